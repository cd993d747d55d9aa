// SPDX-License-Identifier: MIT
#include <nlohmann/json.hpp>

#include "sim/report/csv.hpp"
#include "sim/report/json.hpp"
#include "sim/report/table.hpp"
#include "tests/sim/report/toy_prediction.hpp"
#include "tests/support/catch.hpp"

using namespace voltaic;
using namespace voltaic::report;

namespace {

Fit misfit() {
  Fit fit;
  fit.asked = test::toy_prediction();
  fit.asked.memory.kv_cache = std::int64_t{20} << 30;
  fit.asked.memory.peak_layer = "layers.3";
  fit.max_batch = 2;
  fit.max_seq_reason = "the workload reads no tokens";
  FitChange cheaper;
  cheaper.what = "--precision int8";
  cheaper.memory_bytes = std::int64_t{10} << 30;
  cheaper.capacity_bytes = fit.asked.memory.capacity;
  cheaper.time_ratio = 0.75;
  cheaper.note = "check the accuracy";
  FitChange unknown = cheaper;
  unknown.what = "another way";
  unknown.time_ratio.reset();
  fit.changes = {cheaper, unknown};
  return fit;
}

}  // namespace

TEST_CASE("an answer of fit says what limits, how far it may grow and what would help", "[report][fit]") {
  const auto document = nlohmann::json::parse(fit_json(misfit(), "1.0"));
  CHECK(document.at("schema") == "voltaic.fit/1.0");
  const auto& result = document.at("result");
  CHECK(result.at("fits") == false);
  CHECK(result.at("limiting") == "kv_cache");
  CHECK(result.at("max_batch") == 2);
  CHECK(result.at("max_seq").is_null());
  CHECK(result.at("size_reasons").at("max_seq") == "the workload reads no tokens");
  CHECK(result.at("peak").at("layer") == "layers.3");
  CHECK(result.at("changes").at(0).at("time_ratio") == 0.75);
  CHECK(result.at("changes").at(1).at("time_ratio").is_null());
}

TEST_CASE("the page of fit leads with the answer", "[report][fit]") {
  const std::string page = fit_page(misfit(), {});
  CHECK(page.find("does not fit, 20.0 GiB of 16.0 GiB, 4.00 GiB too much\n") != std::string::npos);
  CHECK(page.find("KV cache") != std::string::npos);
  CHECK(page.find("x0.75") != std::string::npos);
  CHECK(page.find("(the workload reads no tokens)") != std::string::npos);
  Fit fits = misfit();
  fits.asked.memory.kv_cache = 0;
  fits.changes.clear();
  CHECK(fit_page(fits, {}).find("to spare") != std::string::npos);
  CHECK(fit_page(fits, {}).find("would make it fit") == std::string::npos);
}

TEST_CASE("the table of fit begins with the request as asked", "[report][fit]") {
  const std::string table = fit_csv(misfit());
  CHECK(table.find("as asked,21475885056,17179869184,false,1,kv_cache\n") != std::string::npos);
  CHECK(table.find("--precision int8,10737418240,17179869184,true,0.75,check the accuracy\n") != std::string::npos);
  CHECK(table.find("another way,10737418240,17179869184,true,,") != std::string::npos);
}
