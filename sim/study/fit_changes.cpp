// SPDX-License-Identifier: MIT
#include "sim/study/fit_changes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>
#include <string>
#include <utility>

#include "arch/units/error.hpp"
#include "sim/kernel/fused.hpp"
#include "sim/study/fit.hpp"

namespace voltaic::study {
namespace {

/// Options to add to the request, and what they mean.
struct Change {
  std::vector<std::pair<std::string, std::string>> options;
  std::string note;

  std::string what() const {
    std::string text;
    for (const auto& [name, value] : options) text += fmt::format("{}--{} {}", text.empty() ? "" : " ", name, value);
    return text;
  }
  Request applied(const Request& request) const {
    Request changed = request;
    for (const auto& [name, value] : options) set_option(changed, name, value);
    return changed;
  }
};

/// Ways to one end, mildest first.
using Kind = std::vector<Change>;

Change change(std::string option, std::string value, std::string note = {}) {
  return {{{std::move(option), std::move(value)}}, std::move(note)};
}

Change both(const Change& a, const Change& b) {
  Change sum = a;
  sum.options.insert(sum.options.end(), b.options.begin(), b.options.end());
  if (!b.note.empty()) sum.note += (sum.note.empty() ? "" : "; ") + b.note;
  return sum;
}

class Changes {
 public:
  Changes(Runner& runner, const Request& request, const report::Prediction& asked,
          std::optional<std::int64_t> max_batch)
      : runner_(runner), request_(request), asked_(asked), max_batch_(max_batch) {}

  std::vector<report::FitChange> find() {
    try_options();
    if (request_.training) try_zero();
    try_other_gpus();
    std::stable_sort(found_.begin(), found_.end(), [](const auto& a, const auto& b) {
      const double infinite = 1e300;
      return a.time_ratio.value_or(infinite) < b.time_ratio.value_or(infinite);
    });
    return std::move(found_);
  }

 private:
  std::optional<report::MemoryUse> memory(const Request& changed) const {
    try {
      return runner_.memory(changed);
    } catch (const std::runtime_error&) {
      return std::nullopt;  // The GPU or the workload does not have it.
    }
  }
  bool suffices(const Change& c) const {
    const auto use = memory(c.applied(request_));
    return use && use->fits();
  }

  /// Notes `c` with its time per sample; does nothing where it has no time.
  void add(const Change& c) {
    try {
      const report::Prediction p = runner_.predict(c.applied(request_));
      if (!p.fits() || !(p.global_batch > 0)) return;
      report::FitChange row;
      row.what = c.what();
      row.memory_bytes = p.memory_total();
      row.capacity_bytes = p.memory.capacity;
      row.note = c.note;
      const double asked = asked_.total.value / std::max(asked_.global_batch, 1.0);
      if (asked > 0) row.time_ratio = p.total.value / p.global_batch / asked;
      found_.push_back(std::move(row));
    } catch (const std::runtime_error&) {
      return;
    }
  }

  Kind precisions() const;
  Kind micro_batches() const;
  std::vector<Kind> kinds() const;
  void try_options();
  bool try_combinations(const std::vector<Kind>& kinds);
  void try_zero();
  void try_zero(const Request& base, const std::string& with);
  void try_other_gpus();
  Seconds communication(const report::MemoryUse& use, int stage, std::int64_t gpus) const;

  Runner& runner_;
  const Request& request_;
  const report::Prediction& asked_;
  std::optional<std::int64_t> max_batch_;
  std::vector<report::FitChange> found_;
};

/// Narrower types than the one asked for. Those that the GPU lacks drop out when they are tried.
Kind Changes::precisions() const {
  using graph::Precision;
  const Precision now = request_.resolved_precision();
  const bool wide = now == Precision::fp64 || now == Precision::fp32 || now == Precision::tf32;
  const bool mixed = now == Precision::mixed_fp16 || now == Precision::mixed_bf16;
  Kind kind;
  const auto offer = [&](Precision p, std::string note) {
    if (p != now) kind.push_back(change("precision", std::string(to_string(p)), std::move(note)));
  };
  if (request_.training) {
    if (wide) offer(Precision::mixed_bf16, "");
    if (wide) offer(Precision::mixed_fp16, "");
    if (wide || mixed) offer(Precision::bf16, "16-bit weights and states");
    return kind;
  }
  if (wide || mixed) offer(Precision::bf16, "");
  if (wide || mixed) offer(Precision::fp16, "");
  for (const Precision p : {Precision::fp8, Precision::int8, Precision::w8a16, Precision::int4, Precision::w4a16}) {
    if (bytes_per_element(multiply_type(p)) > bytes_per_element(multiply_type(now)) || is_weight_only(now)) continue;
    offer(p, is_weight_only(p) ? "weights alone" : "check the accuracy");
  }
  return kind;
}

/// The same samples per optimizer step in more and smaller passes.
Kind Changes::micro_batches() const {
  Kind kind;
  const auto batch = static_cast<std::int64_t>(asked_.global_batch);
  constexpr std::int64_t kMostSteps = 4096;
  for (std::int64_t steps = request_.accumulation + 1; steps <= std::min(batch, kMostSteps); ++steps) {
    if (batch % steps != 0) continue;
    Change c = change("accumulation", std::to_string(steps), fmt::format("micro-batches of {}", batch / steps));
    if (!request_.batch) c.options.emplace_back("batch", std::to_string(batch));
    kind.push_back(std::move(c));
  }
  return kind;
}

std::vector<Kind> Changes::kinds() const {
  std::vector<Kind> kinds{precisions()};
  if (request_.resolved_attention() != workloads::AttentionForm::flash) kinds.push_back({change("attention", "flash")});
  if (!kernel::generates_kernels(request_.framework)) {
    kinds.push_back({change("framework", "compiled", "fused chains")});
  }
  if (!request_.training) return kinds;
  if (request_.recompute == graph::Recompute::none) {
    kinds.push_back({change("recompute", "selective"), change("recompute", "full")});
  }
  kinds.push_back(micro_batches());
  using graph::Optimizer;
  Kind optimizers;
  const std::string other = "changes the training";
  if (request_.optimizer != Optimizer::momentum && request_.optimizer != Optimizer::sgd)
    optimizers.push_back(change("optimizer", "momentum", other));
  if (request_.optimizer != Optimizer::sgd) optimizers.push_back(change("optimizer", "sgd", other));
  kinds.push_back(std::move(optimizers));
  std::erase_if(kinds, [](const Kind& kind) { return kind.empty(); });
  return kinds;
}

/// Alternatives of one kind are independent for precisions; elsewhere the mildest that suffices is enough.
void Changes::try_options() {
  const std::vector<Kind> all = kinds();
  bool any = false;
  for (const Kind& kind : all) {
    for (const Change& c : kind) {
      if (!suffices(c)) continue;
      add(c);
      any = true;
      if (c.options.front().first != "precision") break;
    }
  }
  if (max_batch_ && *max_batch_ > 0 && static_cast<double>(*max_batch_) < asked_.global_batch) {
    add(change("batch", std::to_string(*max_batch_), "fewer samples per step"));
    any = true;
  }
  if (!any) try_combinations(all);
}

/// Two kinds at once, each at its strongest, then three.
bool Changes::try_combinations(const std::vector<Kind>& kinds) {
  std::vector<Change> strongest;
  for (const Kind& kind : kinds) {
    for (const Change& c : std::views::reverse(kind)) {
      if (!memory(c.applied(request_))) continue;
      strongest.push_back(c);
      break;
    }
  }
  const std::size_t n = strongest.size();
  bool any = false;
  const auto consider = [&](const Change& c) {
    if (!suffices(c)) return;
    add(c);
    any = true;
  };
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = i + 1; j < n; ++j) consider(both(strongest[i], strongest[j]));
  }
  for (std::size_t i = 0; !any && i < n; ++i) {
    for (std::size_t j = i + 1; j < n; ++j) {
      for (std::size_t k = j + 1; k < n; ++k) consider(both(both(strongest[i], strongest[j]), strongest[k]));
    }
  }
  return any;
}

/// Nothing overlaps, and all GPUs hang on links like this one's. Gradients are reduced and weights gathered, of stage 3
/// once more for the backward pass: 2 and 3 times the model's 16-bit size [Rajbhandari20], over the GPU's own links.
Seconds Changes::communication(const report::MemoryUse& use, int stage, std::int64_t gpus) const {
  const arch::LinkSpec& links = runner_.simulator(request_)->gpu().spec.links;
  const double nvlink = static_cast<double>(links.nvlinks) * links.nvlink_each_way.value;
  const double rate = std::max(nvlink, links.pcie_each_way.value);
  const auto model = static_cast<double>(use.weights);
  const double half = request_.resolved_precision() == graph::Precision::mixed_fp16 ||
                              request_.resolved_precision() == graph::Precision::mixed_bf16
                          ? 0.5
                          : 1;
  const double others = static_cast<double>(gpus - 1) / static_cast<double>(gpus);
  return Seconds{rate > 0 ? (stage == 3 ? 3 : 2) * half * model * others / rate : 0};
}

/// On top of the request; where that never suffices, on top of recomputed activations, then of single samples too.
void Changes::try_zero() {
  const std::size_t before = found_.size();
  try_zero(request_, "");
  if (found_.size() > before || request_.recompute != graph::Recompute::none) return;
  Change base = change("recompute", "full");
  if (suffices(base)) return;
  try_zero(base.applied(request_), " with " + base.what());
  const Kind micro = micro_batches();
  if (found_.size() > before || micro.empty()) return;
  base = both(base, micro.back());
  if (!suffices(base)) try_zero(base.applied(request_), " with " + base.what());
}

void Changes::try_zero(const Request& base, const std::string& with) {
  const auto use = memory(base);
  if (!use) return;
  constexpr std::int64_t kMostGpus = 1024;
  std::int64_t fewest = 2 * kMostGpus;
  for (int stage = 1; stage <= 3; ++stage) {
    std::int64_t gpus = 2;
    while (gpus <= kMostGpus && zero_bytes(*use, stage, gpus) > use->capacity) gpus *= 2;
    if (gpus > kMostGpus || gpus >= fewest) continue;
    fewest = gpus;
    const report::Prediction p = with.empty() ? asked_ : runner_.predict(base);
    const Seconds step = p.forward + p.backward + (1.0 / static_cast<double>(gpus)) * p.optimizer;
    report::FitChange row;
    row.what = fmt::format("ZeRO stage {} over {} GPUs{}", stage, gpus, with);
    row.memory_bytes = zero_bytes(*use, stage, gpus);
    row.capacity_bytes = use->capacity;
    row.note = "communication over the GPU's own links, without overlap";
    if (asked_.total.value > 0) row.time_ratio = (step + communication(*use, stage, gpus)) / asked_.total;
    found_.push_back(std::move(row));
  }
}

void Changes::try_other_gpus() {
  if (!request_.overrides.empty()) return;  // They describe this GPU.
  std::vector<std::string> names = arch::gpu_names();
  if (const auto colon = request_.gpu.find(':'); colon != std::string::npos) {
    const std::string board = request_.gpu.substr(0, colon);
    for (const auto& profile : arch::resolve_gpu(board).spec.mig) names.push_back(board + ":" + profile.name);
  }
  for (const std::string& name : names) {
    const Change c = change("gpu", name);
    if (name != request_.gpu && suffices(c)) add(c);
  }
}

}  // namespace

std::int64_t zero_bytes(const report::MemoryUse& use, int stage, std::int64_t gpus) {
  const auto part = [gpus](std::int64_t bytes) { return (bytes + gpus - 1) / gpus; };
  std::int64_t bytes = use.total() - use.optimizer_state + part(use.optimizer_state);
  if (stage >= 2) bytes += part(use.gradients) - use.gradients;
  if (stage >= 3) bytes += part(use.weights) - use.weights;
  return bytes;
}

std::vector<report::FitChange> fitting_changes(Runner& runner, const Request& request, const report::Prediction& asked,
                                               std::optional<std::int64_t> max_batch) {
  return Changes(runner, request, asked, max_batch).find();
}

}  // namespace voltaic::study
