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

constexpr std::array<double, 12> kTensorSplits{1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32};

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

double utility(const TensorLaw& law, std::size_t tile_index, const TensorProblem& p, double split, const TensorTime& t,
               double ctas, double sms) {
  const TensorTile& tile = law.tiles()[tile_index];
  const auto& c = law.choice();
  const double area = static_cast<double>(tile.tile_m) * tile.tile_n;
  const double v = ctas / (sms * tile.ctas_per_sm);
  double u = c[0] * std::log(t.whole) + c[1] * std::log(t.smooth) + law.bias()[tile_index] +
             c[4] * std::log(v / std::ceil(v)) + c[5] * std::log(ctas / (split * p.b) * area / (p.m * p.n)) +
             c[6] * std::log(area) * std::min(1.0, v) + c[7] * std::log(std::min(1.0, ctas / sms));
  if (split > 1) u += c[2] + c[3] * std::log(split);
  return u;
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
      tensor_(gpu) {}

/// Utility of each tile and split, as fitted; the highest is taken. README.md names its terms.
kernel::GemmTile GemmChoice::tensor_tile(const kernel::GemmProblem& problem) const {
  const TensorLaw& law = tensor_.law(problem.math);
  const TensorMachine reference = tensor_.reference(problem.math);
  TensorMachine machine = reference;
  machine.sms = static_cast<double>(gpu_.sm.count);
  const TensorProblem p(problem);
  struct Candidate {
    const TensorTile* tile;
    double split, seconds, utility;
  };
  std::vector<Candidate> candidates;
  candidates.reserve(law.tiles().size() * kTensorSplits.size());
  double fastest = std::numeric_limits<double>::infinity();
  const auto mostly_padding = [&](const TensorTile& tile) {
    return (tile.tile_m >= 32 && p.m <= tile.tile_m / 4.0) || (tile.tile_n >= 64 && p.n <= tile.tile_n / 4.0);
  };
  // An output smaller than every tile must take one all the same: then all compete.
  const bool all_padding = std::all_of(law.tiles().begin(), law.tiles().end(), mostly_padding);
  for (std::size_t i = 0; i < law.tiles().size(); ++i) {
    const TensorTile& tile = law.tiles()[i];
    if (!all_padding && mostly_padding(tile)) continue;
    const double tiles = std::ceil(p.m / tile.tile_m) * std::ceil(p.n / tile.tile_n) * p.b;
    const double slots = reference.sms * tile.ctas_per_sm;
    for (const double split : kTensorSplits) {
      if (split > 1 && (p.k / split < 2 * tile.k_step * p.step_scale || tiles * split > 6 * slots)) break;
      if (split > 1 && tiles * split > 1.01 * slots && p.k / split < 2048) continue;
      const TensorTime t = law.time(tile, p, split, reference);
      const double here = machine.sms == reference.sms ? t.whole : law.time(tile, p, split, machine).whole;
      fastest = std::min(fastest, here);
      candidates.push_back({&tile, split, here, utility(law, i, p, split, t, tiles * split, reference.sms)});
    }
  }
  const Candidate* best = nullptr;
  for (const Candidate& c : candidates) {
    if (c.seconds <= law.guard() * fastest && (best == nullptr || c.utility > best->utility)) best = &c;
  }
  if (best == nullptr) throw InternalError("a matrix product has no candidate kernel");
  return to_tile(*best->tile, best->split, p.step_scale);
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
