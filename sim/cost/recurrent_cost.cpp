// SPDX-License-Identifier: MIT
#include "sim/cost/recurrent_cost.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "sim/cost/overlap.hpp"
#include "sim/kernel/recurrent.hpp"
#include "sim/memory/cache.hpp"

namespace voltaic::cost {

namespace {

using kernel::Bound;
using kernel::KernelCost;
using kernel::Launch;
using kernel::RecurrentKernel;
using kernel::RecurrentPass;

RecurrentStepLaw read_law(const arch::ParameterTree& tree, const std::string& path) {
  RecurrentStepLaw law;
  law.efficiency = tree.number(path + ".efficiency");
  law.k_cycles = tree.number(path + ".k_cycles");
  law.step_s = tree.number(path + ".step_s");
  law.conflict = tree.number_or(path + ".conflict", 0);
  return law;
}

double hidden_of(const RecurrentKernel& k) {
  return static_cast<double>(k.hidden);
}

/// Strides that are multiples of 512 bytes but no power of two put the same columns of all rows on few channels.
bool strides_conflict(const RecurrentKernel& k) {
  constexpr std::int64_t kPage = 512;
  auto stride = static_cast<std::int64_t>(std::min(9e18, hidden_of(k) * k.element_bytes));
  if (k.pass != RecurrentPass::forward || stride <= 0 || stride % kPage != 0) return false;
  return (stride & (stride - 1)) != 0;
}

}  // namespace

RecurrentCost::RecurrentCost(const arch::ResolvedGpu& gpu)
    : gpu_(gpu.spec),
      sms_(static_cast<double>(gpu.spec.sm.count)),
      clock_(gpu.spec.clocks.boost.value),
      dram_(gpu.calibration.number("recurrent.dram_share") * gpu.spec.dram.peak_bandwidth.value),
      l2_(gpu.calibration.number("recurrent.l2_share") * memory::l2_bandwidth(gpu.spec, sms_).value),
      forward_simt_(read_law(gpu.calibration, "recurrent.forward.simt")),
      forward_tensor_(read_law(gpu.calibration, "recurrent.forward.tensor")),
      backward_simt_(read_law(gpu.calibration, "recurrent.backward.simt")),
      backward_tensor_(read_law(gpu.calibration, "recurrent.backward.tensor")),
      pad_(std::max(1.0, gpu.calibration.number("recurrent.batch_tile"))),
      overlap_(std::max(1.0, gpu.calibration.number("recurrent.overlap"))),
      l2_kept_(gpu.calibration.number("recurrent.l2_kept")),
      row_share_(gpu.calibration.number("recurrent.row_share")),
      gate_share_(gpu.calibration.number("recurrent.gate_share")),
      launch_s_(gpu.calibration.number("recurrent.launch_s")),
      start_s_(gpu.calibration.number("recurrent.start_s")),
      host_s_(gpu.calibration.number("recurrent.host_s")),
      lead_s_(gpu.calibration.number("recurrent.lead_s")),
      gap_s_(gpu.calibration.number("recurrent.captured_gap_s")),
      barrier_s_(gpu.calibration.number("recurrent.persistent.barrier_s")),
      exchange_cycles_(gpu.calibration.number("recurrent.persistent.exchange_cycles")),
      around_simt_{gpu.calibration.number("recurrent.weights.simt.row_s"),
                   gpu.calibration.number("recurrent.weights.simt.unit_s")},
      around_tensor_{gpu.calibration.number("recurrent.weights.tensor.row_s"),
                     gpu.calibration.number("recurrent.weights.tensor.unit_s")} {}

const RecurrentStepLaw& RecurrentCost::law(const Launch& launch, const RecurrentKernel& k) const {
  if (k.pass == RecurrentPass::forward) return launch.tensor_cores ? forward_tensor_ : forward_simt_;
  return launch.tensor_cores ? backward_tensor_ : backward_simt_;
}

double RecurrentCost::math_time(const Launch& launch, const RecurrentKernel& k, double cells) const {
  const double rate = launch.tensor_cores ? gpu_.sm.tensor[k.math] : gpu_.sm.cuda_core[k.math];
  if (!(rate > 0)) return 0;
  const double padded = std::ceil(static_cast<double>(k.batch) / pad_) * pad_;
  const double mac = cells * kernel::gates(k.cell) * hidden_of(k) * hidden_of(k) * padded;
  return mac / (sms_ * rate * law(launch, k).efficiency * clock_);
}

/// Gates, states and what is saved of them: 2 G + 4 values of each hidden element.
void RecurrentCost::add_gates(const RecurrentKernel& k, double cells, Step& s) const {
  const double values = 2 * kernel::gates(k.cell) + 4;
  const double bytes = cells * k.element_bytes * static_cast<double>(k.batch) * hidden_of(k) * values;
  s.gates = bytes / (gate_share_ * gpu_.dram.peak_bandwidth.value);
  s.dram_bytes += bytes;
  s.l2_bytes += bytes;
}

RecurrentCost::Step RecurrentCost::step(const Launch& launch, const RecurrentKernel& k, double cells) const {
  const RecurrentStepLaw& law = this->law(launch, k);
  const double g = kernel::gates(k.cell);
  Step s;
  s.math = math_time(launch, k, cells);
  const double weights = cells * k.element_bytes * g * hidden_of(k) * hidden_of(k);
  const double miss = std::clamp(1 - l2_kept_ * gpu_.l2.capacity.value / std::max(weights, 1.0), 0.0, 1.0);
  s.dram = weights * miss * (1 + (strides_conflict(k) ? law.conflict : 0)) / dram_;
  s.l2 = weights * (1 - miss) / l2_;
  s.dram_bytes = weights * miss;
  s.l2_bytes = weights;
  add_gates(k, cells, s);
  const double loop = k.pass == RecurrentPass::forward ? hidden_of(k) : hidden_of(k) * std::sqrt(g);
  const double tiles = std::ceil(static_cast<double>(k.batch) / pad_);
  s.latency = law.step_s + loop * law.k_cycles * (1 + row_share_ * std::max(0.0, tiles - 1)) / clock_;
  s.total = smooth_max2(s.math, s.dram + s.l2, overlap_) + s.gates + s.latency;
  return s;
}

RecurrentCost::Step RecurrentCost::persistent_step(const Launch& launch, const RecurrentKernel& k) const {
  Step s;
  s.math = math_time(launch, k, 1);
  add_gates(k, 1, s);
  const double state = k.element_bytes * static_cast<double>(k.batch) * hidden_of(k);
  s.l2 = state * sms_ / l2_;  // every SM reads the whole state
  s.l2_bytes += state * sms_;
  s.latency = barrier_s_ + exchange_cycles_ / clock_;
  s.total = s.math + s.l2 + s.gates + s.latency;
  return s;
}

KernelCost RecurrentCost::persistent(const Launch& launch, const RecurrentKernel& k) const {
  const auto count = static_cast<double>(k.steps);
  const Step s = persistent_step(launch, k);
  const double weights = k.element_bytes * kernel::gates(k.cell) * hidden_of(k) * hidden_of(k);
  KernelCost cost;
  cost.clock = gpu_.clocks.boost;
  const double load = weights / dram_;
  const double launch_s = k.captured ? 0 : launch_s_;
  cost.time = Seconds{launch_s + load + count * s.total};
  cost.leg(launch.tensor_cores ? Bound::tensor : Bound::fma) = Seconds{count * s.math};
  cost.leg(Bound::dram) = Seconds{load + count * s.gates};
  cost.leg(Bound::l2) = Seconds{count * s.l2};
  cost.leg(Bound::latency) = Seconds{launch_s + count * s.latency};
  cost.parts.fixed = Seconds{launch_s + count * barrier_s_};
  cost.dram_traffic = Bytes{weights + count * s.dram_bytes};
  cost.l2_traffic = Bytes{weights + count * s.l2_bytes};
  return cost;
}

KernelCost RecurrentCost::steps(const Launch& launch, const RecurrentKernel& k) const {
  const kernel::Wavefront front = kernel::wavefront(k);
  const Step s = step(launch, k, front.cells);
  const double host = k.captured ? 0 : front.cells * host_s_;
  const double start = k.captured ? gap_s_ : start_s_;
  const double steady = std::max(s.total, host);
  const double gained = s.total + start - host;  // per step, by a host that does not wait
  const double first = k.captured || gained * front.diagonals <= lead_s_ ? front.diagonals : lead_s_ / gained;
  const double waiting = first * std::max(0.0, s.total + start - steady);
  KernelCost cost;
  cost.clock = gpu_.clocks.boost;
  const double launch_s = k.captured ? 0 : launch_s_;
  cost.time = Seconds{launch_s + front.diagonals * steady + waiting};
  const double busy = front.diagonals * s.total;
  cost.leg(launch.tensor_cores ? Bound::tensor : Bound::fma) = Seconds{front.diagonals * s.math};
  cost.leg(Bound::dram) = Seconds{front.diagonals * (s.dram + s.gates)};
  cost.leg(Bound::l2) = Seconds{front.diagonals * s.l2};
  cost.leg(Bound::latency) = Seconds{cost.time.value - busy + front.diagonals * s.latency};
  cost.parts.fixed = Seconds{cost.time.value - busy};
  cost.dram_traffic = Bytes{front.diagonals * s.dram_bytes};
  cost.l2_traffic = Bytes{front.diagonals * s.l2_bytes};
  return cost;
}

/// Bias gradients walk over all rows; sums are added in place, cell after cell.
///     t = cells (row_s T N + unit_s H)
KernelCost RecurrentCost::around_weights(const Launch& launch, const RecurrentKernel& k) const {
  const Around& law = gpu_.has_tensor_path(k.math) ? around_tensor_ : around_simt_;
  const double cells = static_cast<double>(k.layers) * static_cast<double>(k.directions);
  const double rows = static_cast<double>(k.steps) * static_cast<double>(k.batch);
  KernelCost cost;
  cost.clock = gpu_.clocks.boost;
  cost.time = Seconds{cells * (law.row_s * rows + law.unit_s * hidden_of(k))};
  cost.leg(Bound::latency) = cost.time;
  cost.leg(Bound::dram) = launch.work.traffic() / gpu_.dram.peak_bandwidth;
  cost.dram_traffic = launch.work.traffic();
  cost.l2_traffic = launch.work.traffic();
  return cost;
}

KernelCost RecurrentCost::operator()(const Launch& launch, const RecurrentKernel& k) const {
  if (k.pass == RecurrentPass::backward_weights) return around_weights(launch, k);
  return k.persistent ? persistent(launch, k) : steps(launch, k);
}

}  // namespace voltaic::cost
