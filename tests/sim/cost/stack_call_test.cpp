// SPDX-License-Identifier: MIT
// Calls inside serving stacks and suites: what each protocol adds to its kernels.
#include "sim/cost/stack_call.hpp"

#include <utility>
#include <vector>

#include "arch/calibration_document.hpp"
#include "sim/kernel/attention_shape.hpp"
#include "tests/support/catch.hpp"

using namespace voltaic;
using cost::CallProtocol;
using cost::CallTiming;
using cost::OperandContents;
using cost::OperandState;
using cost::StackCall;

namespace {

arch::ResolvedGpu board(const std::vector<std::pair<std::string, double>>& numbers = {}) {
  arch::ResolvedGpu gpu = arch::resolve_gpu("a100-sxm4-80gb");
  gpu.calibration = arch::with_numbers(gpu.calibration, numbers);
  return gpu;
}

CallProtocol protocol(std::string stack, CallTiming timing) {
  CallProtocol out;
  out.stack = std::move(stack);
  out.timing = timing;
  return out;
}

std::vector<kernel::Launch> product(const StackCall& call, std::int64_t m) {
  kernel::GemmProblem p;
  p.m = m;
  p.n = p.k = 4096;
  p.transpose_b = true;
  p.math = DataType::bf16;
  p.a_bytes = p.b_bytes = p.c_bytes = 2;
  return kernel::gemm_launches(p, call.library().choose(p), call.gpu().spec);
}

kernel::AttentionKernel attention(std::int64_t seq_q, std::int64_t seq_kv) {
  kernel::AttentionKernel k;
  k.batch = 4;
  k.heads = k.kv_heads = 8;
  k.head_dim = k.value_dim = 128;
  k.seq_q = seq_q;
  k.seq_kv = seq_kv;
  k.decode = seq_q == 1;
  k.causal = !k.decode;
  return k;
}

}  // namespace

TEST_CASE("a call takes its stack's launch, else that of its timing", "[cost][stack]") {
  const auto gpu = board({{"protocols.mylab.gemm.launch_s", 7e-6}, {"protocols.kernel_trace.default.launch_s", 1e-6}});
  const StackCall call(gpu, protocol("mylab", CallTiming::kernel_trace));
  const auto launches = product(call, 512);
  const auto own = call.time(launches, "gemm");
  CHECK_THAT(own.time.value - own.kernel.value, WithinRel(7e-6, 1e-9));
  const auto other = call.time(launches, "moe");
  CHECK_THAT(other.time.value - other.kernel.value, WithinRel(1e-6, 1e-9));
  const StackCall stranger(gpu, protocol("elsewhere", CallTiming::kernel_trace));
  CHECK_THAT(stranger.time(launches, "gemm").time.value, WithinRel(other.time.value, 1e-12));
}

TEST_CASE("a host clock has a floor that short kernels do not show through", "[cost][stack]") {
  const auto gpu = board({{"protocols.mylab.gemm.launch_s", 1e-6}, {"protocols.mylab.gemm.floor_s", 1e-3}});
  const StackCall call(gpu, protocol("mylab", CallTiming::host_clock));
  CHECK_THAT(call.time(product(call, 16), "gemm").time.value, WithinRel(1e-3, 1e-6));
  const auto longer = call.time(product(call, 65536), "gemm");
  CHECK_THAT(longer.time.value, WithinRel(longer.kernel.value + 1e-6, 1e-3));
}

TEST_CASE("the interval holds the prediction and half a tick of the table's clock on both sides", "[cost][stack]") {
  const std::vector<std::pair<std::string, double>> fine{{"protocols.mylab.gemm.measured_over_predicted.low", 0.9},
                                                         {"protocols.mylab.gemm.measured_over_predicted.high", 1.2}};
  auto coarse = fine;
  coarse.emplace_back("protocols.mylab.gemm.grid_s", 2e-6);
  const auto gpu = board(fine);
  const auto grid = board(coarse);
  const StackCall a(gpu, protocol("mylab", CallTiming::kernel_trace));
  const StackCall b(grid, protocol("mylab", CallTiming::kernel_trace));
  const auto exact = a.time(product(a, 512), "gemm");
  CHECK_THAT(exact.low.value, WithinRel(0.9 * exact.time.value, 1e-9));
  CHECK_THAT(exact.high.value, WithinRel(1.2 * exact.time.value, 1e-9));
  const auto ticks = b.time(product(b, 512), "gemm");
  CHECK_THAT(exact.low.value - ticks.low.value, WithinRel(1e-6, 1e-6));
  CHECK_THAT(ticks.high.value - exact.high.value, WithinRel(1e-6, 1e-6));
}

TEST_CASE("a decoding step prepares each of its sequences, a prompt does not", "[cost][stack]") {
  const auto gpu =
      board({{"protocols.mylab.default.per_sequence_s", 2e-7}, {"protocols.mylab.default.per_sequence_large_s", 1e-7}});
  const StackCall call(gpu, protocol("mylab", CallTiming::kernel_trace));
  const auto time = [&](kernel::AttentionKernel k, std::int64_t batch) {
    k.batch = batch;
    const auto t = call.time(kernel::attention_launches(k, call.gpu().spec), "any");
    return t.time.value - t.kernel.value;
  };
  CHECK_THAT(time(attention(1, 512), 100), WithinRel(2e-5, 1e-6));
  CHECK_THAT(time(attention(1, 512), 1000), WithinRel(1e-4, 1e-6));
  CHECK_THAT(time(attention(512, 512), 100), WithinAbs(0, 1e-12));
}

TEST_CASE("a cache that fits L2 is read faster when it was read just before", "[cost][stack]") {
  const auto gpu = board();
  const StackCall call(gpu, protocol("", CallTiming::kernel_trace));
  auto k = attention(1, 512);
  const auto cold = call.time(kernel::attention_launches(k, call.gpu().spec), "decode");
  k.warm = true;
  const auto warm = call.time(kernel::attention_launches(k, call.gpu().spec), "decode");
  CHECK(warm.kernel <= cold.kernel);
  CHECK(warm.main.dram_traffic < cold.main.dram_traffic);
}

TEST_CASE("operands that were reused come from L2 where they fit, and contents reach the operating point",
          "[cost][stack]") {
  const auto gpu = board();
  auto warm = protocol("", CallTiming::kernel_trace);
  warm.operands = OperandState::reused;
  warm.contents = OperandContents::constant;
  const StackCall rotated(gpu, protocol("", CallTiming::kernel_trace));
  const StackCall reused(gpu, warm);
  kernel::GemmProblem p;
  p.m = 16;
  p.n = p.k = 1024;
  p.transpose_b = true;
  p.math = DataType::bf16;
  p.a_bytes = p.b_bytes = p.c_bytes = 2;
  const auto launches = kernel::gemm_launches(p, rotated.library().choose(p), gpu.spec);
  CHECK(reused.time(launches, "gemm").time <= rotated.time(launches, "gemm").time);
  CHECK_THAT(reused.gpu().operating.toggle, WithinAbs(0, 1e-12));
  CHECK_THAT(rotated.gpu().operating.toggle, WithinRel(1.0, 1e-12));
}

TEST_CASE("a call without kernels takes the launch alone", "[cost][stack]") {
  const auto gpu = board({{"protocols.mylab.view.launch_s", 3e-6}});
  const StackCall call(gpu, protocol("mylab", CallTiming::event_average));
  const auto t = call.time({}, "view");
  CHECK_THAT(t.time.value, WithinRel(3e-6, 1e-12));
  CHECK(t.low <= t.time);
  CHECK(t.time <= t.high);
}
