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

SimtChoice::SimtChoice(const arch::ParameterTree& tree)
    : launch_(tree.number_or("choice.launch_s", 0)),
      clock_(tree.number_or("choice.clock_hz", 0)),
      bandwidth_(tree.number_or("choice.bandwidth_bytes_per_s", 0)),
      l2_(tree.number_or("choice.l2_bytes", 0)),
      sms_(tree.number_or("choice.sm_count", 0)) {
  if (tree.has("choice.fixed_batched")) {
    fixed_batched_ = tree.word("choice.fixed_batched");
    fixed_single_ = tree.word("choice.fixed_single");
    return;
  }
  weights_ = tree.numbers("choice.weights");
  guard_ = std::max(1.0, tree.number("choice.guard"));
  splits_ = tree.numbers("choice.splits");
  if (splits_.size() > 1) {
    split_ = tree.numbers("choice.split_weights");
    split_shape_ = tree.numbers("choice.split_shape_weights");
  }
  ensure(weights_.size() == 9, "a matrix calibration needs nine choice weights");
  ensure(splits_.size() == 1 || (split_.size() == 4 && split_shape_.size() == 4),
         "split weights must be four and four");
}

/// Natural logarithms that the scores of all candidates share.
struct SimtChoice::Logs {
  explicit Logs(const SimtProblem& p) : m(std::log(p.m)), n(std::log(p.n)), k(std::log(p.k)), b(std::log(p.b)) {}
  double m, n, k, b;
};

double SimtChoice::score(const SimtKernel& kernel, const SimtProblem& p, double split, bool apart, double seconds,
                         double ctas, double sms, const Logs& logs) const {
  // Single precision serves a score; it is what makes the choice cheap.
  const auto ln = [](double x) { return static_cast<double>(std::log(static_cast<float>(x))); };
  const double x = ctas / sms;
  const double in_turn = std::ceil(x);
  const double resident = x / kernel.ctas_per_sm;
  const double waves = std::ceil(resident);
  const double covered = ctas / (split * p.b) * kernel.tile_n * kernel.tile_m;
  const double k_padded = std::ceil(std::ceil(p.k / split) / kernel.k_step) * kernel.k_step;
  const auto& w = weights_;
  double score = w[0] * ln(seconds * 1e6) + w[1] * ln(in_turn) + w[2] * x / in_turn + w[3] * ln(p.m * p.n / covered) +
                 w[4] * ln(k_padded) + w[5] * ln(waves) + w[6] * resident / waves + w[7] * std::min(x, 1.0) +
                 w[8] * std::min(x, 4.0);
  score += kernel.bias[0] + kernel.bias[1] * logs.k + kernel.bias[2] * logs.m + kernel.bias[3] * logs.n +
           kernel.bias[4] * logs.b;
  if (split > 1) {
    const double ln_mn = logs.m + logs.n;
    const double ln_split = ln(split);
    score += split_[0] + split_shape_[1] * logs.k + split_shape_[3] * ln_mn +
             ln_split * (split_[1] + split_shape_[0] * logs.k + split_shape_[2] * ln_mn);
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
  SimtMachine reference = machine;
  reference.sms = sms_;
  struct Candidate {
    const SimtKernel* kernel;
    double split, seconds, score;
  };
  const SimtProblem p(problem);
  const SimtTraffic traffic = law.compulsory(p, machine);
  const Logs logs(p);
  std::vector<Candidate> candidates;
  candidates.reserve(law.kernels().size() * splits_.size());
  double fastest = std::numeric_limits<double>::infinity();
  for (const SimtKernel& kernel : law.kernels()) {
    for (const double split : splits_) {
      if (split > 1 && p.k / split < 16) continue;
      const bool apart = law.reduces_apart(p, split);
      const double extra = launch_ + (apart ? law.reduce_time(p, split, reference) : 0);
      const SimtTime t = law.time(kernel, p, traffic, split, reference);
      const double points = score(kernel, p, split, apart, extra + t.total, t.ctas, sms_, logs);
      const double here = machine.sms == sms_ ? t.total : law.time(kernel, p, traffic, split, machine).total;
      fastest = std::min(fastest, extra + here);
      candidates.push_back({&kernel, split, extra + here, points});
    }
  }
  const Candidate* best = nullptr;
  for (const Candidate& c : candidates) {
    if (c.seconds <= guard_ * fastest && (best == nullptr || c.score > best->score)) best = &c;
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
