// SPDX-License-Identifier: MIT
#include <nlohmann/json.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/program.hpp"

using namespace voltaic::test;

namespace {

nlohmann::json result_of(const Outcome& o) {
  return nlohmann::json::parse(o.out).at("result");
}

void check_schema(const std::string& arguments) {
  INFO("voltaic " << arguments);
  const Outcome answer = voltaic::test::voltaic(arguments);
  REQUIRE_FALSE(answer.out.empty());
  const auto json = write_scratch("answer.json", answer.out);
  const auto rules = write_scratch("schema.json", voltaic::test::voltaic("schema fit").out);
  const Outcome check = shell("python3 tests/support/check_schema.py '" + rules.string() + "' '" + json.string() + "'");
  if (check.code == 2) {
    WARN("python3-jsonschema is not installed: schemas are not checked");
    return;
  }
  INFO(check.out << check.err);
  CHECK(check.code == 0);
}

}  // namespace

TEST_CASE("fit answers yes with 0 and no with 5, and says what limits", "[commands][fit]") {
  const Outcome yes = voltaic::test::voltaic("fit resnet18 --gpu t4 --json");
  CHECK(yes.code == 0);
  CHECK(result_of(yes).at("fits") == true);
  CHECK(result_of(yes).at("changes").empty());
  const Outcome no = voltaic::test::voltaic("fit mixtral-8x7b --gpu a100-sxm4-80gb --json");
  CHECK(no.code == 5);
  const auto result = result_of(no);
  CHECK(result.at("fits") == false);
  CHECK(result.at("limiting") == "weights");
  CHECK(result.at("max_batch") == 0);
  CHECK(result.at("memory_bytes").at("weights").get<double>() > 93.3e9);
  REQUIRE_FALSE(result.at("changes").empty());
  for (const auto& change : result.at("changes")) {
    CHECK(change.at("memory_bytes").get<double>() <= change.at("capacity_bytes").get<double>());
  }
}

TEST_CASE("parts of memory add up to the total", "[commands][fit]") {
  for (const char* arguments :
       {"fit bert-base --mode training --batch 8 --json", "predict gpt2 --seq 64 --generate 8 --json",
        "fit resnet50 --mode training --gpu v100-sxm2-16gb --json"}) {
    const auto memory = result_of(voltaic::test::voltaic(arguments)).at("memory_bytes");
    std::int64_t sum = 0;
    for (const auto& [name, bytes] : memory.items()) {
      if (name != "total" && name != "capacity" && name != "fits") sum += bytes.get<std::int64_t>();
    }
    INFO(arguments);
    CHECK(memory.at("total") == sum);
  }
}

TEST_CASE("fit's JSON meets its schema whether it fits or not", "[commands][fit][schema]") {
  check_schema("fit bert-large --mode training --batch 4 --json");
  check_schema("fit gpt2-xl --mode training --batch 64 --gpu v100-sxm2-16gb --json --quiet");
  check_schema("fit resnet18 --json");
  check_schema("fit op:copy,bytes=1GiB --json");
}

TEST_CASE("fit shows a page and a table", "[commands][fit]") {
  const Outcome page = voltaic::test::voltaic("fit gpt2-xl --mode training --batch 64 --gpu v100-sxm2-16gb");
  CHECK(page.code == 5);
  CHECK(page.out.find("does not fit") != std::string::npos);
  CHECK(page.out.find("what would make it fit") != std::string::npos);
  CHECK(page.err.find("voltaic fit says what would") != std::string::npos);
  const Outcome table = voltaic::test::voltaic("fit gpt2-xl --mode training --batch 64 --gpu v100-sxm2-16gb --csv");
  CHECK(table.out.rfind("what,memory_bytes,capacity_bytes,fits,time_ratio,note\nas asked,", 0) == 0);
  CHECK(table.out.find(",false,1,activations\n") != std::string::npos);
}

TEST_CASE("fit refuses what predict refuses", "[commands][fit][errors]") {
  CHECK(voltaic::test::voltaic("fit").code == 2);
  CHECK(voltaic::test::voltaic("fit bert-lrge").code == 2);
  CHECK(voltaic::test::voltaic("fit bert-large --batch 1,2").code == 2);
  CHECK(voltaic::test::voltaic("fit bert-large --precision bf16 --gpu v100-sxm2-16gb").code == 4);
  CHECK(voltaic::test::voltaic("fit gpt2 --generate 4 --mode training").code == 2);
}

TEST_CASE("a misfit is a warning of predict with the part that takes most", "[commands][fit]") {
  const Outcome o = voltaic::test::voltaic("predict mixtral-8x7b --gpu a100-sxm4-80gb");
  CHECK(o.code == 0);
  CHECK(o.err.find("most of it weights: does not fit in device memory (voltaic fit") != std::string::npos);
  const Outcome completion = voltaic::test::voltaic("predict llama-2-7b --generate 4 --batch 512 --seq 1024 --gpu t4");
  std::size_t told = 0;
  for (std::size_t at = completion.err.find("does not fit"); at != std::string::npos;
       at = completion.err.find("does not fit", at + 1)) {
    ++told;
  }
  CHECK(told == 1);
}
