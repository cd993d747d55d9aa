// SPDX-License-Identifier: MIT
#include "sim/runtime/device.hpp"

#include <algorithm>
#include <array>
#include <chrono>

#include "arch/units/error.hpp"
#include "tests/support/catch.hpp"

using namespace voltaic;
using graph::Phase;
using runtime::Dispatch;
using runtime::LaunchModel;
using runtime::Timeline;

namespace {

constexpr double kUs = 1e-6;

/// Microseconds of a point in time; exact for the whole microseconds used here.
std::int64_t us(engine::SimTime t) {
  return t.ps / 1'000'000;
}

/// 4 us from launch to first CTA, 1 us between kernels.
constexpr LaunchModel kToyLaunch{Seconds{4 * kUs}, Seconds{1 * kUs}, false, Seconds{10 * kUs}};

std::vector<Seconds> kernels(std::initializer_list<double> microseconds) {
  std::vector<Seconds> out;
  for (const double t : microseconds) out.push_back(Seconds{t * kUs});
  return out;
}

std::int64_t idle_ps(const Timeline& t) {
  return t.total.ps - t.gpu_busy.ps - t.waiting_for_host.ps;
}

}  // namespace

TEST_CASE("one operation takes its call, the launch latency and its kernel", "[runtime]") {
  const auto k = kernels({50});
  const std::array program{Dispatch{7, Phase::forward, Seconds{10 * kUs}, k, 0}};
  const Timeline t = runtime::play(program, kToyLaunch);
  // 10 call + 4 latency + 50 kernel.
  REQUIRE(t.kernels.size() == 1);
  CHECK(us(t.kernels[0].start) == 14);
  CHECK(us(t.kernels[0].end) == 64);
  CHECK(t.kernels[0].node == 7);
  CHECK(us(t.total) == 64);
  CHECK(us(t.gpu_busy) == 50);
  CHECK(us(t.waiting_for_host) == 14);
}

TEST_CASE("the host runs ahead of long kernels, which then follow each other at the stream's gap", "[runtime]") {
  const auto k = kernels({50});
  const std::array program{Dispatch{0, Phase::forward, Seconds{10 * kUs}, k, 0},
                           Dispatch{1, Phase::forward, Seconds{10 * kUs}, k, 0},
                           Dispatch{2, Phase::forward, Seconds{10 * kUs}, k, 0}};
  const Timeline t = runtime::play(program, kToyLaunch);
  // Ready at 14, 24, 34; start at 14, 64 + 1, 115 + 1; end at 166.
  CHECK(us(t.kernels[1].start) == 65);
  CHECK(us(t.kernels[2].start) == 116);
  CHECK(us(t.total) == 166);
  CHECK(us(t.gpu_busy) == 150);
  CHECK(us(t.waiting_for_host) == 14);
  CHECK(idle_ps(t) == 2'000'000);
}

TEST_CASE("short kernels wait for the host", "[runtime]") {
  const auto k = kernels({2});
  const std::array program{Dispatch{0, Phase::forward, Seconds{10 * kUs}, k, 0},
                           Dispatch{1, Phase::forward, Seconds{10 * kUs}, k, 0},
                           Dispatch{2, Phase::forward, Seconds{10 * kUs}, k, 0}};
  const Timeline t = runtime::play(program, kToyLaunch);
  // Ready at 14, 24, 34, each stream free long before; end 36. Waiting 14 + 8 + 8.
  CHECK(us(t.total) == 36);
  CHECK(us(t.gpu_busy) == 6);
  CHECK(us(t.waiting_for_host) == 30);
  CHECK(idle_ps(t) == 0);
}

TEST_CASE("a gap that ends before the next kernel is ready is the host's", "[runtime]") {
  // Kernel 0 ends at 14 + 9.5 = 23.5; kernel 1 is ready at 24, its stream free at 24.5: 0.5 waiting, 0.5 gap.
  const auto k0 = kernels({9.5});
  const auto k1 = kernels({1});
  const std::array program{Dispatch{0, Phase::forward, Seconds{10 * kUs}, k0, 0},
                           Dispatch{1, Phase::forward, Seconds{10 * kUs}, k1, 0}};
  const Timeline t = runtime::play(program, kToyLaunch);
  CHECK(t.kernels[1].start.ps == 24'500'000);
  CHECK(t.waiting_for_host.ps == 14'500'000);
  CHECK(idle_ps(t) == 500'000);
}

TEST_CASE("launches of one call leave at even distances", "[runtime]") {
  const auto k = kernels({1, 1});
  const std::array program{Dispatch{0, Phase::forward, Seconds{20 * kUs}, k, 0}};
  const Timeline t = runtime::play(program, kToyLaunch);
  // Launched at 10 and 20, ready at 14 and 24.
  CHECK(us(t.kernels[0].start) == 14);
  CHECK(us(t.kernels[1].start) == 24);
  CHECK(t.kernels[1].kernel == 1);
}

TEST_CASE("a recorded program pays the host once", "[runtime]") {
  const auto k = kernels({2});
  const std::array program{Dispatch{0, Phase::forward, Seconds{10 * kUs}, k, 0},
                           Dispatch{1, Phase::forward, Seconds{10 * kUs}, k, 0},
                           Dispatch{2, Phase::forward, Seconds{10 * kUs}, {}, 0}};
  LaunchModel recorded = kToyLaunch;
  recorded.recorded = true;
  const Timeline t = runtime::play(program, recorded);
  // 10 graph launch + 4 latency + 2 + 1 gap + 2.
  CHECK(us(t.total) == 19);
  CHECK(t.host.size() == 1);
  CHECK(us(t.waiting_for_host) == 14);
}

TEST_CASE("views take host time and no GPU time", "[runtime]") {
  const std::array program{Dispatch{0, Phase::forward, Seconds{3 * kUs}, {}, 0},
                           Dispatch{1, Phase::backward, Seconds{3 * kUs}, {}, 0}};
  const Timeline t = runtime::play(program, kToyLaunch);
  CHECK(us(t.total) == 6);
  CHECK(t.gpu_busy.ps == 0);
  CHECK(us(t.waiting_for_host) == 6);
  CHECK(us(t.phase_end[0]) == 3);
  CHECK(us(t.phase_end[1]) == 6);
}

TEST_CASE("two streams overlap and busy time counts their union", "[runtime]") {
  const auto k = kernels({20});
  const std::array program{Dispatch{0, Phase::forward, Seconds{10 * kUs}, k, 0},
                           Dispatch{1, Phase::forward, Seconds{10 * kUs}, k, 1}};
  const Timeline t = runtime::play(program, kToyLaunch);
  // 14..34 and 24..44.
  CHECK(us(t.total) == 44);
  CHECK(us(t.gpu_busy) == 30);
  CHECK(us(t.waiting_for_host) == 14);
}

TEST_CASE("an empty program takes no time", "[runtime]") {
  const Timeline t = runtime::play({}, kToyLaunch);
  CHECK(t.total.ps == 0);
  CHECK(t.kernels.empty());
}

TEST_CASE("a step longer than the clock is refused, not wrapped", "[runtime]") {
  const std::vector<Seconds> k{Seconds{8e6}, Seconds{8e6}};
  const std::array program{Dispatch{0, Phase::forward, Seconds{1 * kUs}, k, 0}};
  CHECK_THROWS_AS(runtime::play(program, kToyLaunch), UnsupportedError);
}

TEST_CASE("spans of a stream never overlap, and a hundred thousand operations play in well under a second",
          "[runtime]") {
  const auto k = kernels({7, 3});
  std::vector<Dispatch> program(100'000, Dispatch{0, Phase::forward, Seconds{9 * kUs}, k, 0});
  for (std::uint32_t i = 0; i < program.size(); ++i) program[i].node = i;
  const auto begin = std::chrono::steady_clock::now();
  const Timeline t = runtime::play(program, kToyLaunch);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(1));
  REQUIRE(t.kernels.size() == 200'000);
  const bool ordered = std::ranges::adjacent_find(t.kernels, [](const auto& a, const auto& b) {
                         return b.start.ps < a.end.ps + 1'000'000;
                       }) == t.kernels.end();
  CHECK(ordered);
  // GPU-bound: 14.5... start, then 100,000 x (7 + 3 + 2 gaps) less the last gap; the first launch leaves at 4.5,
  // ready 8.5.
  CHECK(t.total.ps == 8'500'000 + 100'000LL * 12'000'000 - 1'000'000);
}
