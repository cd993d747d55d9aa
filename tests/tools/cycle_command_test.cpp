// SPDX-License-Identifier: MIT
// The cycle engine from the command line.
#include <nlohmann/json.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/program.hpp"

using Catch::Matchers::WithinAbs;
using Catch::Matchers::WithinRel;
using nlohmann::json;
using voltaic::test::Outcome;

namespace {

json answer(const std::string& arguments) {
  INFO("voltaic " << arguments);
  const Outcome o = ::voltaic::test::voltaic(arguments + " --json --quiet");
  INFO(o.err);
  REQUIRE(o.code == 0);
  return json::parse(o.out);
}

double kernel_time(const json& document) {
  double sum = 0;
  for (const auto& layer : document["result"]["layers"]) sum += layer["time_s"].get<double>();
  return sum;
}

}  // namespace

TEST_CASE("the cycle engine answers the same bytes on one thread and on all", "[commands][cycle]") {
  for (const char* request : {"predict resnet50 --batch 4 --engine cycle --json",
                              "explain bert-large --seq 64 --engine cycle --kernel encoder.0.attn --json"}) {
    const Outcome one = ::voltaic::test::voltaic(std::string(request) + " --jobs 1");
    const Outcome all = ::voltaic::test::voltaic(request);
    CHECK(one.code == all.code);
    CHECK(one.out == all.out);
  }
}

TEST_CASE("requests record the engine and how it samples", "[commands][cycle]") {
  const json j = answer("predict op:matmul,m=512,n=512,k=512 --engine cycle --l2 tags");
  CHECK(j["request"]["engine"] == "cycle");
  CHECK(j["request"]["sample"] == "steady");
  CHECK(j["request"]["l2"] == "tags");
}

TEST_CASE("no kernel is faster than its bound, whatever simulates it", "[commands][cycle]") {
  for (const char* gpu : {"v100-sxm2-16gb", "a100-sxm4-40gb", "t4"}) {
    const json j = answer(std::string("predict bert-large --seq 128 --engine cycle --gpu ") + gpu);
    for (const auto& layer : j["result"]["layers"]) {
      for (const auto& k : layer["kernels"]) {
        CHECK(k["time_s"].get<double>() >= k["roofline_s"].get<double>());
        for (const auto& [name, leg] : k["legs"].items()) CHECK(leg.get<double>() <= k["time_s"].get<double>());
      }
    }
  }
}

TEST_CASE("explain says where warps wait and what would help", "[commands][cycle]") {
  const json r = answer("explain op:add,rows=16384,cols=4096 --engine cycle --gpu a100-sxm4-40gb")["result"];
  double sum = 0;
  for (const auto& [name, share] : r["stalls"].items()) sum += share.get<double>();
  CHECK_THAT(sum, WithinAbs(1, 1e-9));
  CHECK(r["stalls"]["long_scoreboard"].get<double>() > 0.5);
  const json& changes = r["profiles"][0]["changes"];
  REQUIRE(changes.size() == 3);
  CHECK(changes[0]["path"] == "dram.bandwidth");
  CHECK(changes[0]["time_ratio"].get<double>() < 0.7);
}

TEST_CASE("more of what bounds a kernel makes it faster", "[commands][cycle]") {
  const std::string add = "predict op:add,rows=16384,cols=4096 --engine cycle";
  CHECK(kernel_time(answer(add + " --set 'gpu.dram.peak_bandwidth*=1.5'")) < 0.75 * kernel_time(answer(add)));
  const std::string product = "predict op:matmul,m=4096,n=4096,k=4096 --engine cycle";
  CHECK(kernel_time(answer(product + " --set 'gpu.sm.count*=0.5'")) > 1.5 * kernel_time(answer(product)));
}

namespace {

/// Time of the sample over that of the whole.
double sampled_over_full(const std::string& request) {
  INFO(request);
  return kernel_time(answer("predict " + request)) / kernel_time(answer("predict " + request + " --sample full"));
}

const std::string kFourSms =
    " --engine cycle --gpu a100-sxm4-40gb --set gpu.sm.count=4 --set gpu.dram.channels=2 --set gpu.l2.slices=4"
    " --set 'gpu.dram.peak_bandwidth*=0.037' --set 'gpu.l2.capacity*=0.037'";

}  // namespace

TEST_CASE("a sample of a kernel takes the time of the whole within 2 %", "[commands][cycle]") {
  for (const char* operation : {"op:matmul,m=512,n=512,k=4096 --precision fp32", "op:gelu,rows=4096,cols=1024",
                                "op:layer_norm,rows=2048,cols=1024", "op:add,rows=4096,cols=1024 --precision fp32"}) {
    CHECK_THAT(sampled_over_full(operation + kFourSms), WithinAbs(1, 0.02));
  }
  CHECK_THAT(sampled_over_full("op:matmul,m=2048,n=1024,k=1024 --precision fp32 --engine cycle"), WithinAbs(1, 0.02));
}

TEST_CASE("a product that waits for DRAM in bursts is a little faster as a sample, a known gap", "[commands][cycle]") {
  // One SM with its share of the bandwidth never meets the bursts of the others.
  for (const std::string& request :
       {"op:matmul,m=1024,n=1024,k=1024" + kFourSms, std::string("op:matmul,m=1024,n=2048,k=512 --engine cycle")}) {
    const double ratio = sampled_over_full(request);
    CHECK(ratio < 1);
    CHECK(ratio > 0.93);
  }
}

TEST_CASE("a trace of warps covers the cycles that were asked for", "[commands][cycle]") {
  const auto file = voltaic::test::scratch() / "warps.json";
  const Outcome o = ::voltaic::test::voltaic("explain op:matmul,m=1024,n=1024,k=1024 --engine cycle --quiet --trace '" +
                                             file.string() + "' --trace-cycles 2000:2500");
  CHECK(o.code == 0);
  const json trace = json::parse(voltaic::test::read_file(file));
  double first = 1e18, last = 0;
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    first = std::min(first, event["ts"].get<double>());
    last = std::max(last, event["ts"].get<double>() + event["dur"].get<double>());
  }
  CHECK(first >= 2000);
  CHECK(last <= 2500);
}

TEST_CASE("validate holds a drawn part of a table against the cycle engine, the same part each time",
          "[commands][cycle]") {
  const std::string request = "validate --measured tests/golden/kernels_sample.csv --engine cycle --rows 2 --seed 3";
  const json j = answer(request);
  CHECK(j["request"]["engine"] == "cycle");
  for (const auto& group : j["result"]["groups"]) CHECK(group["rows"].get<int>() <= 4);  // fit and report rows
  const Outcome one = ::voltaic::test::voltaic(request + " --csv --quiet --jobs 1");
  CHECK(one.out == ::voltaic::test::voltaic(request + " --csv --quiet").out);
}
