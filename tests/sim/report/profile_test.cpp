// SPDX-License-Identifier: MIT
#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "sim/report/detail/json_writer.hpp"
#include "sim/report/kernel_profile.hpp"
#include "tests/support/catch.hpp"

using namespace voltaic;
using cycle::Section;
using cycle::Stall;

namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

void set(cycle::Metrics& m, Stall s, double share) {
  m.stalls[static_cast<std::size_t>(s)] = share;
}

/// A kernel that waits for DRAM: 90 % of its bandwidth, the lanes nearly idle.
cycle::Metrics streaming() {
  cycle::Metrics m;
  m.elapsed_cycles = 10000;
  m.sm_active_cycles = 9800;
  m.duration = Seconds{10e-6};
  m.sm_clock = Hertz{1e9};
  m.instructions = 1e6;
  m.ipc_active = 0.5;
  m.issue_slots_busy = m.issued_warps = m.one_or_more_eligible = 0.125;
  m.no_eligible = 0.875;
  m.pipes[static_cast<std::size_t>(cycle::Pipe::fma)] = 0.1;
  m.sm_busy = m.sm_throughput = 0.125;
  m.dram_throughput = m.memory_throughput = 0.9;
  m.l2_throughput = 0.4;
  m.l2_hit_rate = 0.25;
  m.l2_read_sectors = 1e6;
  m.active_warps = 12;
  m.eligible_warps = 0.2;
  m.warp_cycles_per_instruction = 96;
  set(m, Stall::long_scoreboard, 0.8);
  set(m, Stall::lg_throttle, 0.19);
  set(m, Stall::selected, 0.01);
  m.grid = {1000, 1, 1};
  m.sms = 100;
  m.threads_per_cta = 256;
  m.waves_per_sm = 1.25;
  m.theoretical_occupancy = 0.75;
  m.theoretical_warps = 48;
  m.achieved_occupancy = 0.74;
  m.limit_registers = 6;
  m.limit_ctas = 16;
  return m;
}

report::KernelProfile streaming_profile() {
  report::KernelProfile p;
  p.name = "vectorized_elementwise_kernel";
  p.gpu = "toy";
  p.grid = {1000, 1, 1};
  p.block = 256;
  p.duration = Seconds{10e-6};
  p.cycles = 10000;
  p.clock = Hertz{1e9};
  p.metrics = streaming();
  p.changes = {{"gpu.dram.peak_bandwidth", "*1.1", 0.92}, {"gpu.l2.capacity", "*2", 0.95}};
  return p;
}

}  // namespace

TEST_CASE("a kernel near the peak of one resource is bound by it, and the number is named", "[report][profile]") {
  cycle::Metrics m = streaming();
  CHECK(report::finding(m, Section::speed_of_light) ==
        "Bound by DRAM: Memory Throughput is 90.0 % of peak, Compute (SM) Throughput 12.5 %.");
  m.sm_busy = m.sm_throughput = m.pipes[static_cast<std::size_t>(cycle::Pipe::tensor)] = 0.95;
  CHECK(contains(report::finding(m, Section::speed_of_light), "Bound by the tensor cores"));
}

TEST_CASE("a kernel near no peak is bound by latency or has too few CTAs", "[report][profile]") {
  cycle::Metrics m = streaming();
  m.dram_throughput = m.l2_throughput = m.memory_throughput = 0.3;
  CHECK(contains(report::finding(m, Section::speed_of_light), "Bound by latency"));
  m.sm_active_cycles = 1000;
  CHECK(contains(report::finding(m, Section::speed_of_light), "Bound by the start and the end of the kernel"));
  m.grid = {20, 1, 1};
  CHECK(contains(report::finding(m, Section::speed_of_light), "Bound by too few CTAs"));
  CHECK(report::finding(m, Section::launch) == "20 CTAs for 100 SMs: 80.0 % of them have nothing to do.");
}

TEST_CASE("the largest stall is told in plain words with what helps", "[report][profile]") {
  const std::string text = report::finding(streaming(), Section::warp_state);
  CHECK(contains(text, "spends 76.8 (80.0 %) waiting for data from global memory (Stall Long Scoreboard)"));
  CHECK(contains(report::finding(streaming(), Section::occupancy), "limited by registers (6 CTAs per SM)"));
  CHECK(contains(report::finding(streaming(), Section::launch), "the last one fills 25.0 %"));
}

TEST_CASE("a page has the profiler's sections in its order and fits its width", "[report][profile]") {
  const std::string page = report::profile_page(streaming_profile(), {.width = 72, .color = false});
  std::size_t at = 0;
  for (std::size_t i = 0; i < cycle::kSections; ++i) {
    const std::string name = "Section: " + std::string(cycle::to_string(static_cast<Section>(i)));
    INFO(name);
    const std::size_t found = page.find(name, at);
    REQUIRE(found != std::string::npos);
    at = found;
  }
  CHECK(contains(page, "gpu.dram.peak_bandwidth"));
  CHECK(contains(page, "-8.0 %"));
  CHECK(contains(page, "1,000,000"));
  CHECK(page.find("Stall Long Scoreboard") < page.find("Stall LG Throttle"));
  std::istringstream in(page);
  for (std::string line; std::getline(in, line);) {
    INFO(line);
    CHECK(line.size() <= 72);
  }
}

TEST_CASE("a kernel that never ran has a page without sentences", "[report][profile]") {
  const std::string page = report::profile_page({}, {});
  CHECK_FALSE(contains(page, "nan"));
  CHECK_FALSE(contains(page, "Bound by"));
}

TEST_CASE("profiles in JSON have the page's numbers under the profiler's names", "[report][profile]") {
  report::JsonWriter w;
  report::write_profiles(w, {streaming_profile()});
  const auto j = nlohmann::json::parse(w.take());
  REQUIRE(j.size() == 1);
  CHECK(j[0]["name"] == "vectorized_elementwise_kernel");
  CHECK(j[0]["metrics"]["dram__throughput.avg.pct_of_peak_sustained_elapsed"] == 90);
  CHECK(j[0]["metrics"]["launch__occupancy_limit_registers"] == 6);
  CHECK_FALSE(j[0]["metrics"].contains("launch__occupancy_limit_warps"));  // Not a limit of this kernel.
  CHECK(j[0]["stalls"]["long_scoreboard"] == 0.8);
  CHECK(j[0]["changes"][0]["time_ratio"] == 0.92);
  CHECK(contains(j[0]["findings"]["GPU Speed Of Light Throughput"], "Bound by DRAM"));
}

TEST_CASE("a profile of several parts describes the longest one and counts the kernel's start", "[report][profile]") {
  cycle::Profile profile;
  profile.clock = Hertz{1e9};
  const auto add = [&](const char* name, double times, double cycles, std::int64_t ctas) {
    cycle::Profile::Part part;
    part.program.name = name;
    part.program.grid = {ctas, 1, 1};
    part.program.warps = 2;
    part.times = times;
    part.sampled.counters.cycles = cycles;
    part.sampled.ctas_per_sm = 1;
    profile.counters.cycles += times * cycles;
    profile.parts.push_back(std::move(part));
  };
  add("transform", 1, 1000, 3);
  add("product", 3, 1000, 7);
  profile.cost.time = Seconds{5e-6};  // 4,000 cycles, and 1,000 until the first CTA runs
  kernel::Launch launch;
  launch.name = "toy";
  const auto p = report::kernel_profile(launch, profile, arch::GpuSpec{});
  CHECK(p.grid[0] == 7);
  CHECK(p.block == 64);
  CHECK_THAT(p.metrics.elapsed_cycles, WithinRel(5000.0, 1e-12));
  CHECK_THAT(p.metrics.duration.value, WithinRel(5e-6, 1e-12));
  REQUIRE(p.parts.size() == 2);
  CHECK_THAT(p.parts[1].share, WithinRel(0.75, 1e-12));
  profile.parts.clear();
  CHECK(report::kernel_profile(launch, profile, arch::GpuSpec{}).metrics.instructions == 0);
}
