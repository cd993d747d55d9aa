// SPDX-License-Identifier: MIT
#include "sim/report/warp_trace.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "tests/support/catch.hpp"

using namespace voltaic;
using cycle::Op;
using cycle::Stall;
using cycle::WarpSpan;

namespace {

/// Warp 5 of the CTA in slot 1, on sub-partition 2 of 4: 32 (2 + 4 x 1) + 5 = 197.
std::vector<WarpSpan> toy_spans() {
  return {{.from = 0, .to = 1, .warp = 0, .state = Stall::selected, .op = Op::load_global},
          {.from = 1, .to = 400, .warp = 0, .state = Stall::long_scoreboard, .op = Op::ffma},
          {.from = 400, .to = 401, .warp = 0, .state = Stall::selected, .op = Op::ffma},
          {.from = 3, .to = 4, .warp = 197, .state = Stall::selected, .op = Op::mma}};
}

std::string traced(const std::vector<WarpSpan>& spans) {
  std::ostringstream out;
  report::write_warp_trace({"toy \"kernel\"", "toy", 4, spans}, out);
  return out.str();
}

}  // namespace

TEST_CASE("a warp's states are events of its slot's track, grouped by sub-partition", "[report][trace]") {
  const auto j = nlohmann::json::parse(traced(toy_spans()));
  CHECK(j["otherData"]["kernel"] == "toy \"kernel\"");
  CHECK(j["otherData"]["time"] == "1 us is 1 SM cycle");
  std::vector<nlohmann::json> events, names;
  for (const auto& e : j["traceEvents"]) (e["ph"] == "X" ? events : names).push_back(e);
  REQUIRE(events.size() == 4);
  CHECK(events[0]["name"] == "LDG");
  CHECK(events[1]["name"] == "long_scoreboard");
  CHECK(events[1]["args"]["instruction"] == "FFMA");
  CHECK(events[1]["ts"] == 1);
  CHECK(events[1]["dur"] == 399);
  CHECK(events[3]["pid"] == 2);
  CHECK(events[3]["tid"] == 37);
  std::set<std::string> labels;
  for (const auto& n : names) labels.insert(n["args"]["name"]);
  CHECK(labels ==
        std::set<std::string>{"sub-partition 0", "sub-partition 2", "CTA slot 0, warp 0", "CTA slot 1, warp 5"});
}

TEST_CASE("the same spans in another order give the same bytes", "[report][trace]") {
  auto spans = toy_spans();
  const std::string first = traced(spans);
  std::reverse(spans.begin(), spans.end());
  CHECK(traced(spans) == first);
}

TEST_CASE("a window without warps is an empty trace", "[report][trace]") {
  CHECK(nlohmann::json::parse(traced({}))["traceEvents"].empty());
}
