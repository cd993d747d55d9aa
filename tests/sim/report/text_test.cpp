// SPDX-License-Identifier: MIT
#include <nlohmann/json.hpp>
#include <sstream>

#include "sim/report/csv.hpp"
#include "sim/report/detail/layer_groups.hpp"
#include "sim/report/table.hpp"
#include "sim/report/trace.hpp"
#include "sim/report/units.hpp"
#include "tests/sim/report/toy_prediction.hpp"
#include "tests/support/catch.hpp"

using namespace voltaic;
using report::TextTable;

namespace {

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) out.push_back(line);
  return out;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("figures carry three digits and the prefix that suits them", "[report]") {
  CHECK(report::format_time(Seconds{1.234e-3}) == "1.23 ms");
  CHECK(report::format_time(Seconds{0.9999e-6}) == "1.00 us");
  CHECK(report::format_time(Seconds{99.96e-6}) == "100 us");
  CHECK(report::format_time(Seconds{2}) == "2.00 s");
  CHECK(report::format_time(Seconds{}) == "0 s");
  CHECK(report::format_gib(1.5 * 1024 * 1024 * 1024) == "1.50 GiB");
  CHECK(report::format_gib(2048) == "2.00 KiB");
  CHECK(report::format_si(312e12, "FLOP/s") == "312 TFLOP/s");
  CHECK(report::format_si(999.7e9, "B") == "1.00 TB");
  CHECK(report::format_percent(0.1234) == "12.3 %");
  CHECK(report::format_count(335141) == "335,141");
}

TEST_CASE("a table fits its width by cutting the flexible column", "[report]") {
  TextTable table;
  table.column("name", report::Align::left, true);
  table.column("value");
  table.row({"a.very.long.name.of.a.layer.that.does.not.fit", "12"});
  table.row({"b", "3"});
  for (const auto& line : lines(table.render({30, false}))) CHECK(report::display_width(line) <= 30);
  // Numbers are right-aligned: both rows end in the same column.
  const auto all = lines(table.render({0, false}));
  CHECK(all[1].size() == all[2].size());
  CHECK(report::shorten("encoder.layer", 8) == "enc..yer");
}

TEST_CASE("the predict page opens with the answer and fits the terminal", "[report]") {
  const auto p = test::toy_prediction();
  const std::string page = report::predict_page(p, {80, false});
  CHECK(lines(page)[0] == "toy \"net\" on toy-gpu: 40.0 us (36.0 us to 44.0 us, 90 %, interpolated)");
  CHECK(contains(page, "host exposed    25.0 %  ##########\n"));
  CHECK(contains(page, "100 ksamples/s"));
  CHECK(contains(page, "energy not known: no power model"));
  CHECK(contains(page, "no time for 2 x topk: no rule"));
  for (const auto& line : lines(page)) CHECK(report::display_width(line) <= 80);
  CHECK(report::predict_page(p, {80, true}).find("\033[") != std::string::npos);
  CHECK(page.find('\033') == std::string::npos);
}

TEST_CASE("layers that differ in a number share a line, and equal kernels are counted", "[report]") {
  const auto p = test::toy_prediction();
  const auto layers = report::layer_groups(p);
  REQUIRE(layers.size() == 1);
  CHECK(layers[0].name == "block.*");
  CHECK(layers[0].layers == 2);
  CHECK_THAT(layers[0].time_s, WithinRel(28e-6, 1e-12));
  const auto kernels = report::kernel_groups(p);
  REQUIRE(kernels.size() == 2);
  CHECK(kernels[0].count == 2);
  CHECK_THAT(kernels[0].time_s, WithinRel(20e-6, 1e-12));
  CHECK(contains(report::explain_page(p, {100, false}), "toy_gemm"));
}

TEST_CASE("the trace is JSON whose events lie where the timeline has them", "[report][trace]") {
  std::ostringstream out;
  report::write_trace(test::toy_prediction(), out);
  const auto j = nlohmann::json::parse(out.str());
  int host = 0, kernels = 0;
  double end = 0;
  for (const auto& e : j["traceEvents"]) {
    if (e["ph"] != "X") continue;
    if (e["pid"] == 0) {
      ++host;
      continue;
    }
    ++kernels;
    CHECK(e["ts"].get<double>() >= end);
    end = e["ts"].get<double>() + e["dur"].get<double>();
    CHECK(e["args"].contains("layer"));
  }
  CHECK(host == 3);
  CHECK(kernels == 3);
  CHECK_THAT(end, WithinRel(40.0, 1e-12));
}

TEST_CASE("CSV has one row per kernel and quotes what needs it", "[report][csv]") {
  CHECK(report::csv_cell("plain") == "plain");
  CHECK(report::csv_cell("a,\"b\"") == "\"a,\"\"b\"\"\"");
  const auto rows = lines(report::prediction_csv(test::toy_prediction()));
  REQUIRE(rows.size() == 4);
  CHECK(rows[1] == "block.0,forward,fc1,linear,toy_gemm,toy,1e-05,fma,5e-06,1000,2000,4096,0,12,0.5,0.25,1,0");
}

TEST_CASE("a workload's page gives MAC and FLOP side by side and its CSV the same layers", "[report]") {
  report::WorkloadView w;
  w.name = "toy";
  w.kind = "graph file";
  w.parameters = w.parameters_active_per_token = 1000;
  w.mac = 500;
  w.flop = 1000;
  w.layers = {{"fc", "linear", "[4, 8]", 1000, 500, 1000}};
  const std::string page = report::workload_page(w, {80, false});
  CHECK(contains(page, "1,000 parameters"));
  CHECK(contains(page, "1.00 kFLOP = 2 x 500 MAC"));
  CHECK(lines(report::workload_csv(w))[1] == "fc,linear,\"[4, 8]\",1000,500,1000");
}

TEST_CASE("equal predictions give equal bytes", "[report]") {
  const auto page = [] { return report::explain_page(test::toy_prediction(), {100, false}); };
  CHECK(page() == page());
}
