// SPDX-License-Identifier: MIT
#include "sim/cost/gemm_choice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "arch/units/error.hpp"

namespace voltaic::cost {

namespace {

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

SimtChoice::SimtChoice(const arch::ParameterTree& tree) {
  if (tree.has("choice.fixed_batched")) {
    fixed_batched_ = tree.word("choice.fixed_batched");
    fixed_single_ = tree.word("choice.fixed_single");
    return;
  }
  weights_ = tree.numbers("choice.weights");
  sms_ = tree.number("choice.sm_count");
  guard_ = tree.number_or("choice.guard", 0);
  guard_fixed_ = tree.number_or("choice.guard_fixed_s", 0);
  if (tree.has("choice.k_steps")) k_steps_ = tree.numbers("choice.k_steps");
  ensure(weights_.size() == kShared, "a matrix calibration needs 21 choice weights");
}

/// Natural logarithms that all candidates of a problem share.
struct SimtLogs {
  explicit SimtLogs(const SimtProblem& p) : m(std::log(p.m)), n(std::log(p.n)), k(std::log(p.k)), b(std::log(p.b)) {}
  double m, n, k, b;
};

namespace {

double last_wave(double x) {
  return x / std::ceil(x);
}

}  // namespace

void SimtChoice::terms(const SimtKernel& kernel, const SimtProblem& p, double split, float* shared, float* own) const {
  const SimtLogs logs(p);
  const double tiles = std::ceil(p.n / kernel.tile_n) * std::ceil(p.m / kernel.tile_m);
  const double x = tiles * p.b * split / sms_;
  const double k_padded = std::ceil(std::ceil(p.k / split) / kernel.k_step) * kernel.k_step;
  const double ln_z = std::log(split), ln_x = std::log(x), ln_mn = logs.m + logs.n;
  const double z = split > 1 ? 1 : 0;
  const double in_place = split > 1 && !SimtLaw::reduces_apart(p, split) ? 1 : 0;
  const double values[kShared] = {last_wave(x),
                                  std::log(p.m * p.n / (tiles * kernel.tile_m * kernel.tile_n)),
                                  std::log(k_padded),
                                  last_wave(x / kernel.ctas_per_sm),
                                  std::min(x, 1.0),
                                  std::min(x, 4.0),
                                  last_wave(x / 2),
                                  last_wave(x / 4),
                                  last_wave(x / 8),
                                  z,
                                  ln_z,
                                  z * logs.k,
                                  ln_z * logs.k,
                                  z * ln_mn,
                                  ln_z * ln_mn,
                                  in_place,
                                  in_place * ln_z,
                                  z * ln_x,
                                  ln_z * ln_x,
                                  z * std::min(x / split, 1.0),
                                  z * std::min(x / split, 4.0)};
  std::copy_n(values, kShared, shared);
  const double of_kernel[kOwn] = {1,
                                  logs.k,
                                  logs.m,
                                  logs.n,
                                  logs.b,
                                  std::log(std::ceil(x)),
                                  std::log(std::ceil(x / 2)),
                                  std::log(std::ceil(x / 4)),
                                  std::log(std::ceil(x / 8)),
                                  last_wave(x)};
  std::copy_n(of_kernel, kOwn, own);
  for (std::size_t i = 0; i < k_steps_.size(); ++i) own[kOwn + i] = p.k >= k_steps_[i] ? 1.0F : 0.0F;
}

kernel::GemmTile SimtChoice::quickest(const SimtLaw& law, const SimtProblem& p, const SimtMachine& machine) {
  const SimtKernel* best = nullptr;
  double least = std::numeric_limits<double>::infinity(), parts = 1;
  for (const SimtKernel& kernel : law.kernels()) {
    for (const double split : kernel.splits) {
      if (!may_split(p, split)) continue;
      double seconds = law.time(kernel, p, split, machine).total;
      if (SimtLaw::reduces_apart(p, split)) seconds += law.reduce_time(p, split, machine);
      if (seconds >= least) continue;
      least = seconds;
      parts = split;
      best = &kernel;
    }
  }
  if (best == nullptr) throw InternalError("a matrix product has no candidate kernel");
  return to_tile(*best, parts);
}

kernel::GemmTile SimtChoice::operator()(const SimtLaw& law, const kernel::GemmProblem& problem,
                                        const SimtMachine& machine) const {
  if (fixed()) return to_tile(law.kernel(problem.batch > 1 ? fixed_batched_ : fixed_single_), 1);
  const SimtProblem p(problem);
  if (p.linear && !(p.a_along_k && p.b_along_k)) return quickest(law, p, machine);
  struct Candidate {
    const SimtKernel* kernel;
    double split, score, waves_s;
  };
  std::vector<Candidate> candidates;
  candidates.reserve(64);
  std::vector<float> own(own_terms());
  std::array<float, kShared> shared{};
  double quickest = std::numeric_limits<double>::infinity();
  for (const SimtKernel& kernel : law.kernels()) {
    if (kernel.score.size() != own_terms()) continue;
    for (const double split : kernel.splits) {
      if (!may_split(p, split)) continue;
      terms(kernel, p, split, shared.data(), own.data());
      double score = 0;
      for (std::size_t i = 0; i < kShared; ++i) score += weights_[i] * static_cast<double>(shared[i]);
      for (std::size_t i = 0; i < own.size(); ++i) score += kernel.score[i] * static_cast<double>(own[i]);
      const double ctas = std::ceil(p.n / kernel.tile_n) * std::ceil(p.m / kernel.tile_m) * p.b * split;
      const double waves_s = guard_fixed_ + law.waves_time(kernel, p, split, std::ceil(ctas / machine.sms), machine);
      quickest = std::min(quickest, waves_s);
      candidates.push_back({&kernel, split, score, waves_s});
    }
  }
  const Candidate* best = nullptr;
  for (const Candidate& c : candidates) {
    if (guard_ > 0 && c.waves_s > guard_ * quickest) continue;
    if (best == nullptr || c.score > best->score) best = &c;
  }
  if (best == nullptr) throw InternalError("a matrix product has no candidate kernel");
  return to_tile(*best->kernel, best->split);
}

GemmChoice::GemmChoice(const arch::ResolvedGpu& gpu)
    : gpu_(gpu.spec),
      simt_(gpu),
      linear_(gpu.calibration.at("gemm_simt.linear")),
      batched_(gpu.calibration.at("gemm_simt.bmm")),
      tensor_(gpu) {
  const arch::ParameterTree laws = gpu.calibration.at("gemm_tensor.laws");
  for (std::size_t i = 0; i < tensor_.names().size(); ++i) {
    tensor_rules_.emplace_back(laws.at(tensor_.names()[i]), tensor_.law_at(i));
  }
}

kernel::GemmTile GemmChoice::tensor_tile(const kernel::GemmProblem& problem) const {
  const std::size_t law = tensor_.law_index(problem);
  const TensorMachine reference = tensor_.reference(problem);
  const TensorMachine machine = tensor_.machine(problem);
  const TensorChoice& rule = tensor_rules_[law];
  if (rule.tries_on_board()) return rule(tensor_.law(problem), problem, machine, machine);
  TensorMachine here = reference;
  here.sms = machine.sms;
  return rule(tensor_.law(problem), problem, reference, here);
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
