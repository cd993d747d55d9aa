// SPDX-License-Identifier: MIT
// One eager call between events: host floor, launch, kernel, and a host delay of unknown cause.
#include "sim/cost/single_op.hpp"

#include <algorithm>
#include <cmath>

#include "tests/support/catch.hpp"

using namespace voltaic;
using cost::HostDelay;
using cost::SingleOp;

namespace {

/// Every launch takes the time that its rows say, in microseconds.
class ToyEngine final : public kernel::CostModel {
 public:
  kernel::KernelCost cost(const kernel::Launch& launch) const override {
    kernel::KernelCost out;
    out.time = Seconds{1e-6 * static_cast<double>(std::get<kernel::VectorKernel>(launch.detail).rows)};
    return out;
  }
};

kernel::Launch launch(std::int64_t microseconds, std::string_view function = "add",
                      kernel::VectorKind kind = kernel::VectorKind::elementwise) {
  kernel::VectorKernel vector;
  vector.kind = kind;
  vector.rows = microseconds;
  vector.function = function;
  kernel::Launch out;
  out.detail = vector;
  return out;
}

arch::ResolvedGpu toy(const std::string& single_op) {
  arch::ResolvedGpu gpu;
  gpu.calibration = arch::ParameterTree::parse(R"({"single_op": )" + single_op + "}", "toy.json");
  return gpu;
}

const char* const kToy = R"({
  "default": {"floor_s": 5e-6, "launch_s": 2e-6},
  "add": {"floor_s": 30e-6, "launch_s": 10e-6, "exponent": 2, "measured_over_predicted": {"low": 0.9, "high": 1.2}},
  "mul": {"floor_s": 30e-6, "launch_s": 10e-6, "exponent": 2, "measured_over_predicted": {"low": 1.01, "high": 0.99}}})";

constexpr HostDelay kDelay{20e-6, 0.7, 1.0, 4.0, 0.5};

/// The delay that lies below share `quantile` of the rows when each weighs 1/time, by summing thin slices.
double by_integration(const HostDelay& delay, double base) {
  constexpr int kSlices = 400000;
  const double end = delay.longest;
  std::vector<double> weight(kSlices);
  double total = 0;
  const double dz = end / kSlices;
  for (int i = 0; i < kSlices; ++i) {
    const double z = (i + 0.5) * dz;
    const double density = z < delay.shortest ? delay.short_share / delay.shortest
                                              : (1 - delay.short_share) / (delay.longest - delay.shortest);
    weight[static_cast<std::size_t>(i)] = density * dz / (base + delay.scale_s * z);
    total += weight[static_cast<std::size_t>(i)];
  }
  double below = 0;
  for (int i = 0; i < kSlices; ++i) {
    below += weight[static_cast<std::size_t>(i)];
    if (below >= delay.quantile * total) return base + delay.scale_s * (i + 1) * dz;
  }
  return base + delay.scale_s * end;
}

/// Mean |predicted / time - 1| over the delays.
double relative_error(const HostDelay& delay, double base, double predicted) {
  constexpr int kSlices = 20000;
  double sum = 0;
  for (int i = 0; i < kSlices; ++i) sum += std::abs(predicted / (base + delay.at((i + 0.5) / kSlices)) - 1);
  return sum / kSlices;
}

}  // namespace

TEST_CASE("a call takes the host's floor or launch and kernel, whichever lasts longer", "[cost][single_op]") {
  const ToyEngine engine;
  const auto gpu = toy(kToy);
  const SingleOp protocol(gpu, engine);
  const auto time = [&](const std::vector<kernel::Launch>& l) { return protocol.time(l).time.value; };
  // sqrt(30^2 + (10 + 30)^2) = 50 us.
  CHECK_THAT(time({launch(30)}), WithinRel(50e-6, 1e-5));
  // sqrt(30^2 + 10^2) us where the kernel does nothing; 10 ms of kernel hide the floor.
  CHECK_THAT(time({launch(0)}), WithinRel(std::sqrt(1000.0) * 1e-6, 1e-5));
  CHECK_THAT(time({launch(10000)}), WithinRel(10010e-6, 1e-4));
  // Kernels of one call follow each other.
  CHECK_THAT(time({launch(10), launch(20)}), WithinRel(50e-6, 1e-5));
}

TEST_CASE("a call is never shorter than its floor, nor than launch and kernel, nor than their sum is long",
          "[cost][single_op][property]") {
  const ToyEngine engine;
  const auto gpu = toy(kToy);
  const SingleOp protocol(gpu, engine);
  double last = 0;
  for (std::int64_t us = 0; us < 2000; us = us * 5 / 4 + 1) {
    const auto t = protocol.time(std::vector{launch(us)});
    const double busy = 10e-6 + static_cast<double>(us) * 1e-6;
    CHECK(t.time.value >= std::max(30e-6, busy) * (1 - 1e-6));
    CHECK(t.time.value <= 30e-6 + busy);
    CHECK(t.time.value >= last);
    CHECK_THAT(t.kernel.value, WithinAbs(static_cast<double>(us) * 1e-6, 1e-12));
    CHECK(t.floor.value == 30e-6);
    last = t.time.value;
  }
}

TEST_CASE("the longest kernel says what bounds the call", "[cost][single_op]") {
  const ToyEngine engine;
  const auto gpu = toy(kToy);
  const SingleOp protocol(gpu, engine);
  const auto t = protocol.time(std::vector{launch(3), launch(40), launch(7)});
  CHECK_THAT(t.main.time.value, WithinRel(40e-6, 1e-9));
  CHECK_THAT(t.kernel.value, WithinRel(50e-6, 1e-9));
}

TEST_CASE("operations without a floor of their own, and calls without kernels, take the default", "[cost][single_op]") {
  const ToyEngine engine;
  const auto gpu = toy(kToy);
  const SingleOp protocol(gpu, engine);
  CHECK(protocol.time(std::vector{launch(3, "erf")}).floor.value == 5e-6);
  CHECK_THAT(protocol.time({}).time.value, WithinRel(5e-6, 1e-3));
  CHECK(protocol.time({}).kernel.value == 0);
}

TEST_CASE("an interval holds its prediction, also where all rows lay on one side", "[cost][single_op]") {
  const ToyEngine engine;
  const auto gpu = toy(kToy);
  const SingleOp protocol(gpu, engine);
  const auto t = protocol.time(std::vector{launch(30)});
  CHECK_THAT(t.low.value, WithinRel(45e-6, 1e-5));
  CHECK_THAT(t.high.value, WithinRel(60e-6, 1e-5));
  for (const auto* function : {"add", "mul", "erf"}) {
    for (const std::int64_t us : {0, 1, 30, 100000}) {
      const auto u = protocol.time(std::vector{launch(us, function)});
      CHECK((u.low <= u.time && u.time <= u.high));
    }
  }
}

TEST_CASE("floors are looked up by operation: products, convolutions, softmax by kernel, others by function",
          "[cost][single_op]") {
  using kernel::VectorKind;
  CHECK(SingleOp::key(launch(1, "relu")) == "relu");
  CHECK(SingleOp::key(launch(1, "", VectorKind::softmax_warp)) == "softmax_warp");
  CHECK(SingleOp::key(launch(1, "", VectorKind::softmax_block)) == "softmax_block");
  CHECK(SingleOp::key(launch(1, "", VectorKind::layer_norm)) == "layer_norm");
  kernel::Launch l;
  kernel::GemmKernel gemm;
  l.detail = gemm;
  CHECK(SingleOp::key(l) == "linear");
  gemm.problem.linear = false;
  l.detail = gemm;
  CHECK(SingleOp::key(l) == "bmm");
  l.detail = kernel::ConvKernel{};
  CHECK(SingleOp::key(l) == "conv");
  l.detail = kernel::TransferKernel{};
  CHECK(SingleOp::key(l) == "default");
}

TEST_CASE("a time under an unknown delay is its quantile weighted by 1/time", "[cost][single_op][delay]") {
  HostDelay delay = kDelay;
  for (const double base : {1e-6, 1e-5, 3e-5, 1e-4, 1e-2}) {
    for (const double q : {0.05, 0.3, 0.5, 0.8, 0.99}) {
      delay.quantile = q;
      INFO(base << " " << q);
      CHECK_THAT(delay.time(base), WithinRel(by_integration(delay, base), 1e-4));
    }
  }
}

TEST_CASE("no other prediction has a smaller expected relative error", "[cost][single_op][delay]") {
  for (const double base : {1e-5, 5e-5, 1e-3}) {
    const double best = kDelay.time(base);
    const double least = relative_error(kDelay, base, best);
    for (const double factor : {0.8, 0.95, 0.99, 1.01, 1.05, 1.2}) {
      CHECK(relative_error(kDelay, base, factor * best) >= least - 1e-7);
    }
  }
}

TEST_CASE("a delay lies between none and the longest, and grows with its share", "[cost][single_op][delay]") {
  HostDelay delay = kDelay;
  delay.quantile = 0;
  CHECK_THAT(delay.time(1e-4), WithinRel(1e-4, 1e-12));
  delay.quantile = 1;
  CHECK_THAT(delay.time(1e-4), WithinRel(1.8e-4, 1e-9));  // 100 + 4 x 20 us
  CHECK(kDelay.at(0) == 0);
  CHECK_THAT(kDelay.at(0.7), WithinRel(20e-6, 1e-9));
  CHECK_THAT(kDelay.at(1), WithinRel(80e-6, 1e-9));
  double last = -1;
  for (double q = 0; q <= 1; q += 0.01) {
    CHECK(kDelay.at(q) > last);
    last = kDelay.at(q);
  }
  // Where the delay is small beside the kernel every row weighs alike: the plain median, 0.5/0.7 of 20 us.
  CHECK_THAT(kDelay.time(10) - 10, WithinRel(20e-6 * 0.5 / 0.7, 1e-3));
  double before = 0;
  for (double base = 1e-7; base < 1; base *= 1.3) {
    CHECK(kDelay.time(base) > before);
    CHECK(kDelay.time(base) >= base);
    before = kDelay.time(base);
  }
}

TEST_CASE("no delay changes nothing", "[cost][single_op][delay]") {
  const HostDelay none;
  CHECK(none.time(3e-5) == 3e-5);
  CHECK(none.at(0.5) == 0);
  CHECK(kDelay.time(0) == 0);
}

TEST_CASE("an interval spans the delays of nine rows in ten, and the kernel's own error", "[cost][single_op][delay]") {
  const ToyEngine engine;
  const auto gpu = toy(R"({"default": {"floor_s": 1e-9, "launch_s": 0},
    "add": {"floor_s": 1e-6, "launch_s": 10e-6, "delay_s": 20e-6, "delay_short_share": 0.7, "delay_short": 1,
            "delay_long": 4, "delay_quantile": 0.5, "measured_over_predicted": {"low": 0.9, "high": 1.1}}})");
  const SingleOp protocol(gpu, engine);
  const double base = 60e-6;
  const auto t = protocol.time(std::vector{launch(50)});
  CHECK_THAT(t.time.value, WithinRel(kDelay.time(base), 1e-5));
  CHECK_THAT(t.delay_below.value, WithinRel(t.time.value - base - kDelay.at(0.05), 1e-4));
  CHECK_THAT(t.delay_above.value, WithinRel(base + kDelay.at(0.95) - t.time.value, 1e-4));
  CHECK(t.low.value <= base + kDelay.at(0.05));
  CHECK(t.high.value >= base + kDelay.at(0.95));
  // 10 % of 50 us beside the delay, as independent errors add.
  CHECK_THAT(t.high.value - t.time.value, WithinRel(std::hypot(t.delay_above.value, 5e-6), 1e-4));
  for (const std::int64_t us : {0, 1, 100, 100000}) {
    const auto u = protocol.time(std::vector{launch(us)});
    CHECK((u.low.value > 0 && u.low <= u.time && u.time <= u.high));
  }
}
