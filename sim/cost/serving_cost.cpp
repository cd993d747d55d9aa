// SPDX-License-Identifier: MIT
#include "sim/cost/serving_cost.hpp"

#include <algorithm>
#include <cmath>

#include "sim/cost/overlap.hpp"
#include "sim/memory/dram.hpp"

namespace voltaic::cost {

namespace {

using kernel::Bound;
using kernel::VectorKind;

/// Elements that the large lookup's grid of eight CTAs of 128 threads keeps in flight on an SM [ATEN].
constexpr double kLookupInFlight = 1024;
constexpr double kWarp = 32;

ServingLaw read_law(const arch::ParameterTree& tree) {
  ServingLaw law;
  const auto take = [&tree](std::string_view name, double& value) { value = tree.number_or(name, value); };
  take("fixed_cycles", law.fixed_cycles);
  take("l2_share", law.l2_share);
  take("all_hit_share", law.region.all_hit);
  take("all_miss_share", law.region.all_miss);
  take("row_cycles", law.row_cycles);
  take("step_cycles", law.step_cycles);
  take("warp_cycles", law.warp_cycles);
  take("warp_miss_cycles", law.warp_miss_cycles);
  take("element_slots", law.element_slots);
  take("exponent", law.exponent);
  return law;
}

double count(std::int64_t n) {
  return static_cast<double>(std::max<std::int64_t>(n, 1));
}

/// CTAs that an SM holds by its threads.
double resident_ctas(const kernel::Launch& launch, const arch::GpuSpec& gpu) {
  return std::max(1.0, std::floor(gpu.sm.max_warps * kWarp / std::max(1, launch.cta.threads)));
}

}  // namespace

ServingCost::ServingCost(const arch::ResolvedGpu& gpu) : gpu_(gpu.spec), sms_(count(gpu.spec.sm.count)) {
  if (!gpu.calibration.has("serving")) return;
  const arch::ParameterTree serving = gpu.calibration.at("serving");
  stream_share_ = serving.number_or("stream_share", 1);
  gddr_mixed_share_ = serving.number_or("gddr_mixed_share", 1);
  for (std::size_t i = 0; i < kKinds; ++i) {
    const auto kind = static_cast<VectorKind>(static_cast<std::size_t>(kFirst) + i);
    const std::string path = "kinds." + std::string(kernel::to_string(kind));
    if (serving.has(path)) laws_[i] = read_law(serving.at(path));
  }
}

const ServingLaw& ServingCost::law(VectorKind kind) const {
  return laws_[static_cast<std::size_t>(kind) - static_cast<std::size_t>(kFirst)];
}

BytesPerSecond ServingCost::stream(VectorKind kind) const {
  const bool pointwise = kind == VectorKind::half_elementwise || kind == VectorKind::half_activation;
  const bool turns = pointwise && gpu_.dram.technology.starts_with("GDDR");
  const double share = stream_share_ * (turns ? gddr_mixed_share_ : 1);
  return std::min(share * memory::sustained_bandwidth(gpu_.dram), gpu_.dram.peak_bandwidth);
}

double ServingCost::latency_cycles(const kernel::Launch& launch, const kernel::VectorKernel& k) const {
  const ServingLaw& law = this->law(k.kind);
  const double rows = count(k.rows), cols = count(k.cols);
  if (k.kind == VectorKind::index_select_small) {
    return rows * std::ceil(cols / (kLookupInFlight * sms_)) * law.row_cycles;
  }
  if (k.kind == VectorKind::index_select_large) {
    const double lanes = std::max(1.0, gpu_.sm.fp32_lanes);
    const double rounds = std::max(1.0, rows * cols / (kLookupInFlight * sms_));
    return rounds * (law.step_cycles + kLookupInFlight * law.element_slots / lanes);
  }
  if (!(law.row_cycles > 0) && !(law.step_cycles > 0)) return 0;
  const double passes = k.passes > 0 ? k.passes : std::ceil(cols / std::max(1, launch.cta.threads));
  return std::ceil(rows / (sms_ * resident_ctas(launch, gpu_))) * (law.row_cycles + law.step_cycles * passes);
}

double ServingCost::issue_cycles(const kernel::VectorKernel& k, double miss) const {
  const ServingLaw& law = this->law(k.kind);
  const double per_warp = law.warp_cycles + law.warp_miss_cycles * miss;
  if (!(per_warp > 0)) return 0;
  // Contiguous kernels spread their elements over all SMs; the others give an SM whole rows.
  if (k.kind == VectorKind::half_activation) return count(k.rows) * count(k.cols) / kWarp / sms_ * per_warp;
  const double passes = k.warp_passes > 0 ? k.warp_passes : std::ceil(count(k.cols) / kWarp);
  return std::max(1.0, count(k.rows) / sms_) * passes * per_warp;
}

kernel::KernelCost ServingCost::operator()(const kernel::Launch& launch, const kernel::VectorKernel& k) const {
  const ServingLaw& law = this->law(k.kind);
  const double clock = gpu_.clocks.boost.value;
  const Bytes traffic = launch.work.traffic();
  const Bytes between = std::max(traffic, Bytes{k.reuse_bytes});  // two reads of the same data
  const double miss = memory::miss_share(between, gpu_.l2.capacity, law.region);
  const BytesPerSecond l2 = law.l2_share * memory::l2_bandwidth(gpu_, sms_);
  const memory::StreamTime bytes = memory::mixed_stream_time(traffic, miss, l2, stream(k.kind));
  const double latency = latency_cycles(launch, k) / clock;
  const double issue = issue_cycles(k, miss) / clock;
  const double fixed = law.fixed_cycles / clock;
  const double p = law.exponent;
  kernel::KernelCost cost;
  cost.clock = gpu_.clocks.boost;
  cost.time = Seconds{fixed + smooth_max2(smooth_max2(bytes.total().value, latency, p), issue, p)};
  cost.leg(Bound::dram) = bytes.dram;
  cost.leg(Bound::l2) = bytes.l2;
  cost.leg(Bound::issue) = Seconds{issue};
  cost.leg(Bound::latency) = Seconds{fixed + latency};
  cost.dram_traffic = miss * traffic;
  cost.l2_traffic = traffic;
  return cost;
}

}  // namespace voltaic::cost
