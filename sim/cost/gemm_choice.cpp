// SPDX-License-Identifier: MIT
#include "sim/cost/gemm_choice.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>

#include "arch/units/error.hpp"

namespace voltaic::cost {

namespace {

constexpr std::array<double, 12> kTensorSplits{1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32};

kernel::GemmTile to_tile(const SimtKernel& k, double split) {
  kernel::GemmTile tile;
  tile.name = k.name;
  tile.tile_m = k.tile_m;
  tile.tile_n = k.tile_n;
  tile.tile_k = k.k_step;
  tile.warps = k.threads / 32;
  tile.stages = 2;
  tile.ctas_per_sm = k.ctas_per_sm;
  tile.split_k = static_cast<std::int64_t>(split);
  return tile;
}

kernel::GemmTile to_tile(const TensorTile& t, double split, double step_scale) {
  kernel::GemmTile tile;
  tile.name = t.name;
  tile.tile_m = t.tile_m;
  tile.tile_n = t.tile_n;
  tile.tile_k = static_cast<int>(t.k_step * step_scale);
  tile.warps = t.warps;
  tile.stages = static_cast<int>(t.stages);
  tile.ctas_per_sm = t.ctas_per_sm;
  tile.split_k = static_cast<std::int64_t>(split);
  tile.tensor_cores = true;
  return tile;
}

/// "fp32, fp16 (tensor cores), int8 (DP4A)": what a GPU can multiply.
std::string multiplies_in(const arch::GpuSpec& gpu) {
  std::string text;
  for (const auto& d : kDataTypes) {
    const bool tensor = gpu.has_tensor_path(d.type);
    if (!tensor && !(gpu.sm.cuda_core[d.type] > 0)) continue;
    if (!text.empty()) text += ", ";
    text += d.name;
    if (tensor) text += " (tensor cores)";
  }
  return text;
}

}  // namespace

SimtChoice::SimtChoice(const arch::ParameterTree& tree)
    : launch_(tree.number_or("choice.launch_s", 0)),
      clock_(tree.number_or("choice.clock_hz", 0)),
      bandwidth_(tree.number_or("choice.bandwidth_bytes_per_s", 0)),
      l2_(tree.number_or("choice.l2_bytes", 0)) {
  if (tree.has("choice.fixed_batched")) {
    fixed_batched_ = tree.word("choice.fixed_batched");
    fixed_single_ = tree.word("choice.fixed_single");
    return;
  }
  weights_ = tree.numbers("choice.weights");
  splits_ = tree.numbers("choice.splits");
  if (splits_.size() > 1) {
    split_ = tree.numbers("choice.split_weights");
    split_shape_ = tree.numbers("choice.split_shape_weights");
  }
  ensure(weights_.size() == 9, "a matrix calibration needs nine choice weights");
  ensure(splits_.size() == 1 || (split_.size() == 4 && split_shape_.size() == 4),
         "split weights must be four and four");
}

double SimtChoice::score(const SimtLaw& law, const SimtKernel& kernel, const SimtProblem& p, double split,
                         const SimtMachine& machine) const {
  SimtTime t = law.time(kernel, p, split, machine);
  const bool apart = law.reduces_apart(p, split);
  const double seconds = launch_ + t.total + (apart ? law.reduce_time(p, split, machine) : 0);
  const double x = t.ctas / machine.sms;
  const double in_turn = std::ceil(x);
  const double resident = x / kernel.ctas_per_sm;
  const double waves = std::ceil(resident);
  const double covered =
      std::ceil(p.n / kernel.tile_n) * kernel.tile_n * std::ceil(p.m / kernel.tile_m) * kernel.tile_m;
  const double k_padded = std::ceil(std::ceil(p.k / split) / kernel.k_step) * kernel.k_step;
  const auto& w = weights_;
  double score = w[0] * std::log(seconds * 1e6) + w[1] * std::log(in_turn) + w[2] * x / in_turn +
                 w[3] * std::log(p.m * p.n / covered) + w[4] * std::log(k_padded) + w[5] * std::log(waves) +
                 w[6] * resident / waves + w[7] * std::min(x, 1.0) + w[8] * std::min(x, 4.0);
  score += kernel.bias[0] + kernel.bias[1] * std::log(p.k) + kernel.bias[2] * std::log(p.m) +
           kernel.bias[3] * std::log(p.n) + kernel.bias[4] * std::log(p.b);
  if (split > 1) {
    const double ln_k = std::log(p.k);
    const double ln_mn = std::log(p.m * p.n);
    const double ln_split = std::log(split);
    score += split_[0] + split_shape_[1] * ln_k + split_shape_[3] * ln_mn +
             ln_split * (split_[1] + split_shape_[0] * ln_k + split_shape_[2] * ln_mn);
    if (!apart) score += split_[2] + split_[3] * ln_split;
  }
  return score;
}

kernel::GemmTile SimtChoice::operator()(const SimtLaw& law, const kernel::GemmProblem& problem,
                                        SimtMachine machine) const {
  if (weights_.empty()) {
    return to_tile(law.kernel(problem.batch > 1 ? fixed_batched_ : fixed_single_), 1);
  }
  machine.clock = clock_;
  machine.boost_ratio = 1;
  machine.bandwidth = bandwidth_;
  machine.l2 = l2_;
  const SimtProblem p(problem);
  const SimtKernel* best = &law.kernels().front();
  double best_split = 1;
  double best_score = -std::numeric_limits<double>::infinity();
  for (const SimtKernel& kernel : law.kernels()) {
    for (const double split : splits_) {
      if (split > 1 && p.k / split < 16) continue;
      const double s = score(law, kernel, p, split, machine);
      if (s > best_score) {
        best_score = s;
        best = &kernel;
        best_split = split;
      }
    }
  }
  return to_tile(*best, best_split);
}

GemmChoice::GemmChoice(const arch::ResolvedGpu& gpu)
    : gpu_(gpu.spec),
      simt_(gpu),
      linear_(gpu.calibration.at("gemm_simt.linear")),
      batched_(gpu.calibration.at("gemm_simt.bmm")),
      tensor_(gpu) {}

/// Utility of each tile and split, as fitted; the highest is taken. See README.md for its terms.
kernel::GemmTile GemmChoice::tensor_tile(const kernel::GemmProblem& problem) const {
  const TensorLaw& law = tensor_.law(problem.math);
  const TensorMachine machine = tensor_.reference(problem.math);
  const TensorProblem p(problem);
  const auto& c = law.choice();
  const TensorTile* best = nullptr;
  double best_split = 1;
  double best_utility = -std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < law.tiles().size(); ++i) {
    const TensorTile& tile = law.tiles()[i];
    const bool too_large =
        (tile.tile_m >= 32 && p.m <= tile.tile_m / 4.0) || (tile.tile_n >= 64 && p.n <= tile.tile_n / 4.0);
    if (too_large) continue;
    const double covered = std::ceil(p.m / tile.tile_m) * tile.tile_m * std::ceil(p.n / tile.tile_n) * tile.tile_n;
    const double ctas = covered / tile.tile_m / tile.tile_n * p.b;
    const double slots = machine.sms * tile.ctas_per_sm;
    const double ln_padding = std::log(covered / (p.m * p.n));
    const double ln_area = std::log(static_cast<double>(tile.tile_m) * tile.tile_n);
    for (const double split : kTensorSplits) {
      if (split > 1 && (p.k / split < 2 * tile.k_step * p.step_scale || ctas * split > 6 * slots)) break;
      if (split > 1 && ctas * split > 1.01 * slots && p.k / split < 2048) continue;
      const TensorTime t = law.time(tile, p, split, machine);
      const double v = ctas * split / slots;
      double u = c[0] * std::log(t.whole) + c[1] * std::log(t.smooth) + law.bias()[i] +
                 c[4] * std::log(v / std::ceil(v)) + c[5] * ln_padding + c[6] * ln_area * std::min(1.0, v) +
                 c[7] * std::log(std::min(1.0, ctas * split / machine.sms));
      if (split > 1) u += c[2] + c[3] * std::log(split);
      if (u > best_utility) {
        best_utility = u;
        best = &tile;
        best_split = split;
      }
    }
  }
  if (best == nullptr) best = &law.tiles().back();
  return to_tile(*best, best_split, p.step_scale);
}

kernel::GemmTile GemmChoice::operator()(const kernel::GemmProblem& problem) const {
  if (gpu_.has_tensor_path(problem.math)) return tensor_tile(problem);
  if (!(gpu_.sm.cuda_core[problem.math] > 0)) {
    throw UnsupportedError(
        fmt::format("{} cannot multiply in {}: it has {}", gpu_.name, to_string(problem.math), multiplies_in(gpu_)));
  }
  const SimtLaw& law = simt_.law(problem.linear);
  return (problem.linear ? linear_ : batched_)(law, problem, simt_.machine(problem.math, law));
}

}  // namespace voltaic::cost
