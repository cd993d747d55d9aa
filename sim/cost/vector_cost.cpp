// SPDX-License-Identifier: MIT
#include "sim/cost/vector_cost.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "sim/cost/overlap.hpp"
#include "sim/memory/cache.hpp"
#include "sim/memory/dram.hpp"
#include "sim/sm/occupancy.hpp"

namespace voltaic::cost {

namespace {

using kernel::Bound;
using kernel::KernelCost;
using kernel::Launch;
using kernel::VectorKernel;
using kernel::VectorKind;

/// The launch as the laws see it; computed once.
struct View {
  const Launch& launch;
  const VectorKernel& kernel;
  const arch::GpuSpec& gpu;
  const VectorLaw& law;
  double slow;      ///< Clock slow-down of SMs and L2.
  double resident;  ///< CTAs one SM holds by its threads; row laws were fitted with this count.
  double active_sms;
};

double resident_ctas(const Launch& launch, const arch::GpuSpec& gpu) {
  const double threads = std::max(1, launch.cta.threads);
  return std::max(1.0, std::floor(gpu.sm.max_warps * 32.0 / threads));
}

struct MemoryTime {
  double l2 = 0, dram = 0;
  double dram_bytes = 0, l2_bytes = 0;
};

BytesPerSecond stream_bandwidth(const View& v) {
  const double share = v.kernel.tensor_inputs > 1 ? v.law.stream_share_two : v.law.stream_share;
  return std::min(share * memory::sustained_bandwidth(v.gpu.dram), v.gpu.dram.peak_bandwidth);
}

/// Rows that are not whole vectors, and runs shorter than a sector, slow all of a kernel's bytes.
double penalty(const View& v) {
  const double run = static_cast<double>(v.kernel.cols) * v.kernel.element_bytes;
  double slow = v.kernel.cols % 4 != 0 ? v.law.unaligned : 1;
  if (v.kernel.kind == VectorKind::copy_strided && run < 32) slow /= v.law.short_run_efficiency;
  return slow;
}

/// Re-reads: by the rows open at once (softmax, norms), or by what passes between two reads (broadcast operands).
void add_reread(const View& v, double miss, BytesPerSecond l2, BytesPerSecond dram, MemoryTime& t) {
  const Bytes again{v.kernel.reread_bytes};
  if (!(again.value > 0)) return;
  if (v.kernel.far_bytes >= 0) {  // Rows by index: what L2 still holds passes through its ports.
    const Bytes far{std::min(v.kernel.far_bytes, again.value)};
    t.l2 += ((again - far) / l2).value;
    t.dram += (far / std::min(l2, dram)).value;
    t.dram_bytes += far.value;
    t.l2_bytes += again.value;
    return;
  }
  if (v.kernel.reuse_bytes > 0) {
    const double far = memory::miss_share(Bytes{v.kernel.reuse_bytes}, v.gpu.l2.capacity, v.law.region);
    t.dram += (far * again / std::min(l2, dram)).value;
    t.dram_bytes += far * again.value;
    t.l2_bytes += again.value;
    return;
  }
  const Bytes open{v.resident * static_cast<double>(v.kernel.cols) * v.kernel.element_bytes};
  const memory::Reread shares = memory::reread_shares(v.gpu, open, miss, v.law.reread);
  const Bytes beyond_l1 = shares.l1_miss * again;
  t.l2 += ((1 - shares.l2_miss) * beyond_l1 / l2).value;
  t.dram += (shares.l2_miss * beyond_l1 / std::min(l2, dram)).value;
  t.dram_bytes += shares.l2_miss * beyond_l1.value;
  t.l2_bytes += beyond_l1.value;
}

MemoryTime memory_time(const View& v) {
  const Bytes traffic = v.launch.work.traffic();
  const BytesPerSecond l2 = v.law.l2_share * memory::l2_bandwidth(v.gpu, static_cast<double>(v.gpu.sm.count));
  const BytesPerSecond dram = stream_bandwidth(v);
  const double cold = traffic.value > 0 ? std::min(1.0, v.kernel.cold_bytes / traffic.value) : 0;
  const double miss = std::max(cold, memory::miss_share(traffic, v.gpu.l2.capacity, v.law.region));
  const memory::StreamTime stream = memory::mixed_stream_time(traffic, miss, l2, dram);
  MemoryTime t;
  t.l2 = stream.l2.value * v.slow / v.law.efficiency;
  t.dram = stream.dram.value / v.law.efficiency;
  t.dram_bytes = miss * traffic.value;
  t.l2_bytes = traffic.value;
  add_reread(v, miss, l2, dram, t);
  t.l2 *= penalty(v);
  t.dram *= penalty(v);
  // Few CTAs reach few of the L2 ports.
  const double all = static_cast<double>(std::max<std::int64_t>(v.gpu.sm.count, 1));
  const double spread = (Bytes{t.l2_bytes} / l2).value * all / v.active_sms * v.slow / std::max(1.0, v.law.efficiency);
  if (v.active_sms < all) t.l2 = std::max(t.l2, spread - t.dram);
  return t;
}

/// Elements that the lanes work on: warps of softmax compute on rows padded to a power of two.
double computed_elements(const View& v) {
  const auto cols = static_cast<std::uint64_t>(std::max<std::int64_t>(v.kernel.cols, 1));
  const double rows = static_cast<double>(v.kernel.rows);
  if (v.kernel.kind == VectorKind::softmax_warp) return rows * static_cast<double>(std::bit_ceil(cols));
  return rows * static_cast<double>(cols);
}

double math_time(const View& v, double slots) {
  const double rate = v.gpu.total_fp32_lanes() * v.gpu.clocks.boost.value;
  return rate > 0 ? computed_elements(v) * slots / rate * v.slow : 0;
}

/// Row laws: CTAs of one row each, `resident` at a time; and the latency that few bytes in flight cannot hide.
double latency_time(const View& v) {
  double t = v.law.least_latency_s;
  const double clock = v.gpu.clocks.boost.value;
  if (v.law.row_cycles > 0 || v.law.step_cycles > 0) {
    const double threads = std::max(1, v.launch.cta.threads);
    const double steps = static_cast<double>(v.kernel.cols) / threads;
    double waves = static_cast<double>(v.kernel.rows) / (static_cast<double>(v.gpu.sm.count) * v.resident);
    if (v.law.whole_waves) waves = std::ceil(waves);
    t = std::max(t, waves * (v.law.row_cycles + v.law.step_cycles * steps) / clock * v.slow);
  }
  if (v.law.elements_in_flight > 0) {
    // Loaded latency is about twice the idle one; an index is fetched from L2 first.
    const double latency = 2 * v.gpu.dram.idle_latency.value + v.gpu.l2.latency.value / clock;
    const double ctas = std::min(v.launch.ctas(), v.resident * static_cast<double>(v.gpu.sm.count));
    const double in_flight =
        std::max(1.0, ctas) * v.launch.cta.threads * v.law.elements_in_flight * v.kernel.element_bytes;
    const double far = std::max(0.0, v.kernel.far_bytes);
    t = std::max(t, (v.launch.work.read.value + far) / in_flight * latency);
  }
  // Loops over time: each step waits for what the last one wrote to L2, and for a barrier.
  if (v.kernel.passes > 0) {
    t = std::max(t, v.kernel.passes * (2 * v.gpu.l2.latency.value + v.law.step_cycles) / clock * v.slow);
  }
  return t;
}

double slots_of(const VectorLaws& laws, const VectorLaw& law, const VectorKernel& kernel) {
  double slots = law.element_slots;
  if (!kernel.function.empty()) slots += laws.function_slots(kernel.function);
  for (const auto function : kernel.fused) slots += laws.function_slots(function);
  return slots;
}

}  // namespace

KernelCost VectorCost::priced(const Launch& launch, const VectorKernel& kernel, double slow) const {
  if (kernel::is_serving(kernel.kind)) return serving_(launch, kernel);
  const VectorLaw& law = laws_[kernel.kind];
  const double active = std::min(launch.ctas(), static_cast<double>(gpu_.sm.count));
  const View v{launch, kernel, gpu_, law, slow, resident_ctas(launch, gpu_), std::max(1.0, active)};
  const MemoryTime memory = memory_time(v);
  const double math = math_time(v, slots_of(laws_, law, kernel));
  const double latency = latency_time(v);
  const double p = law.exponent;
  KernelCost cost;
  // The slow-down was fitted with latencies of its own; boards hold their base clock.
  cost.clock = std::max((1 / slow) * gpu_.clocks.boost, std::min(gpu_.clocks.base, gpu_.clocks.boost));
  cost.time = Seconds{law.fixed_s + smooth_max2(smooth_max2(memory.l2 + memory.dram, math, p), latency, p)};
  cost.leg(Bound::dram) = Seconds{memory.dram};
  cost.leg(Bound::l2) = Seconds{memory.l2};
  cost.leg(Bound::fma) = Seconds{math};
  cost.leg(Bound::latency) = Seconds{law.fixed_s + latency};
  cost.dram_traffic = Bytes{memory.dram_bytes};
  cost.l2_traffic = Bytes{memory.l2_bytes};
  return cost;
}

KernelCost VectorCost::operator()(const Launch& launch, const VectorKernel& kernel) const {
  return priced(launch, kernel, 1);
}

KernelCost VectorCost::isolated(const Launch& launch, const VectorKernel& kernel) const {
  KernelCost cost = priced(launch, kernel, 1);
  const IdleClock& idle = laws_.idle_clock(kernel.kind);
  if (!(idle.slowdown > 0) || !(idle.below_s > 0)) return cost;
  const double k0 = cost.time.value - laws_[kernel.kind].fixed_s;
  const double slow = 1 + idle.slowdown * memory::ramp(idle.below_s - k0, 0, 0.6 * idle.below_s);
  if (slow > 1) cost = priced(launch, kernel, slow);
  return cost;
}

}  // namespace voltaic::cost
