// SPDX-License-Identifier: MIT
// Which law serves a product on one GPU, and its answer as the cost of a kernel.
#include <algorithm>
#include <cmath>

#include "sim/cost/gemm_tensor.hpp"

namespace voltaic::cost {

namespace {

double positive(std::int64_t v) {
  return static_cast<double>(std::max<std::int64_t>(v, 1));
}

}  // namespace

TensorModel::TensorModel(const arch::ResolvedGpu& gpu) : gpu_(gpu.spec) {
  const auto tree = gpu.calibration.at("gemm_tensor");
  for (const auto& name : tree.keys("laws")) {
    names_.push_back(name);
    laws_.emplace_back(tree.at("laws." + name), tree);
  }
  ensure(!laws_.empty() && names_.front() == "two_byte", "tensor-core laws begin with that of two-byte operands");
  fitted_clock_ = tree.number("reference.clock_hz");
  fitted_l2_rate_ = tree.number("reference.l2_bytes_per_cycle_per_sm");
  // Libraries are tuned for each chip: boards of another chip than the fitted one say what theirs is.
  tuned_.sms = tree.number("choice_sm_count");
  tuned_.clock = tree.number_or("tuned.clock_hz", fitted_clock_);
  tuned_.bandwidth = tree.number_or("tuned.bandwidth_bytes_per_s", tree.number("reference.bandwidth_bytes_per_s"));
  tuned_.l2 = tree.number_or("tuned.l2_bytes", tree.number("reference.l2_bytes"));
  tuned_.l2_scale = tree.number_or("tuned.l2_bytes_per_cycle_per_sm", fitted_l2_rate_) / fitted_l2_rate_;
  tuned_.floor_scale = fitted_clock_ / tuned_.clock;
}

std::size_t TensorModel::law_index(const kernel::GemmProblem& p) const {
  const auto find = [&](std::string_view name) {
    return static_cast<std::size_t>(std::find(names_.begin(), names_.end(), name) - names_.begin());
  };
  const auto first_of = [&](std::initializer_list<std::string_view> wanted) {
    for (const auto name : wanted) {
      if (const std::size_t i = find(name); i < names_.size()) return i;
    }
    return std::size_t{0};
  };
  if (p.dequantise) return p.b_bytes < 0.75 ? first_of({"w4a16", "w8a16"}) : first_of({"w8a16"});
  if (p.math == DataType::fp8) return first_of({"fp8", "one_byte"});
  return bytes_per_element(p.math) <= 1 ? first_of({"one_byte"}) : 0;
}

TensorMachine TensorModel::reference(const kernel::GemmProblem& p) const {
  TensorMachine out = tuned_;
  out.rate = p.sparse ? gpu_.sm.tensor_sparse[p.math] : gpu_.sm.tensor[p.math];
  return out;
}

TensorMachine TensorModel::machine(const kernel::GemmProblem& p) const {
  TensorMachine out = reference(p);
  out.sms = positive(gpu_.sm.count);
  out.clock = gpu_.clocks.boost.value;
  out.bandwidth = gpu_.dram.peak_bandwidth.value;
  out.l2 = gpu_.l2.capacity.value;
  if (gpu_.l2.bytes_per_cycle_per_sm > 0) out.l2_scale = gpu_.l2.bytes_per_cycle_per_sm / fitted_l2_rate_;
  if (out.clock > 0) out.floor_scale = fitted_clock_ / out.clock;
  return out;
}

kernel::KernelCost TensorModel::cost(const kernel::Launch&, const kernel::GemmKernel& kernel) const {
  using kernel::Bound;
  const TensorLaw& law = this->law(kernel.problem);
  const TensorTile& tile = law.tile(kernel.tile.name);
  const TensorProblem p(kernel.problem, law.unaligned());
  const TensorMachine machine = this->machine(kernel.problem);
  const double split = positive(kernel.tile.split_k);
  const TensorTime t = law.time(tile, p, split, machine);

  kernel::KernelCost out;
  const double scale = kernel.tile.time_scale;
  out.parts.fixed = {scale * t.fixed};  // of the rest the engine tells what follows the clock
  out.time = {scale * (t.whole - t.reduce)};
  out.clock = {machine.clock};
  out.leg(Bound::tensor) = {t.tensor};
  out.leg(Bound::dram) = {t.memory};
  out.leg(Bound::l2) = {t.l2};
  out.leg(Bound::shared) = {t.shared};
  out.leg(Bound::latency) = {t.latency};
  const double step = tile.k_step * p.step_scale;
  const double k_padded = std::ceil(p.k / (split * step)) * step;
  out.l2_traffic = {t.ctas * (p.a * tile.tile_m + p.w * tile.tile_n) * k_padded +
                    p.m * p.n * p.b * (split > 1 ? 4 * split : p.o)};
  out.shared_traffic = {t.ctas * k_padded *
                        (tile.tile_m * tile.tile_n * (p.w_shared / tile.warp_m + p.a / tile.warp_n) +
                         p.a * tile.tile_m + p.w * tile.tile_n)};
  out.dram_traffic = {t.dram_bytes};
  return out;
}

kernel::KernelCost TensorModel::reduce_cost(const kernel::GemmKernel& kernel) const {
  const TensorLaw& law = this->law(kernel.problem);
  const TensorProblem p(kernel.problem, law.unaligned());
  const TensorMachine machine = this->machine(kernel.problem);
  const double split = positive(kernel.tile.split_k);
  kernel::KernelCost out;
  out.time = {law.reduce_time(p, split, machine)};
  out.clock = {machine.clock};
  out.l2_traffic = {(4 * split + p.o) * p.m * p.n * p.b};
  out.dram_traffic = {p.o * p.m * p.n * p.b};
  out.leg(kernel::Bound::dram) = {out.dram_traffic.value / (law.bandwidth_share() * machine.bandwidth)};
  out.leg(kernel::Bound::latency) = {std::max(0.0, out.time.value - out.leg(kernel::Bound::dram).value)};
  return out;
}

}  // namespace voltaic::cost
