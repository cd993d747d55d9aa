// SPDX-License-Identifier: MIT
#include "sim/study/fit.hpp"

#include <algorithm>
#include <cmath>

#include "arch/units/error.hpp"
#include "sim/study/fit_changes.hpp"

namespace voltaic::study {
namespace {

constexpr std::int64_t kLargestSize = 2147483647;

struct Probe {
  std::int64_t n = 0;
  std::optional<double> excess;
  bool fits() const { return excess && *excess <= 0; }
};

/// Between the largest size known to fit and the smallest known not to.
class Bracket {
 public:
  Bracket(const Excess& excess, std::int64_t start) : excess_(excess) {
    probe(std::clamp<std::int64_t>(start, 1, kLargestSize));
    if (low_.n == 0 && high_->n > 1) probe(1);
  }

  std::int64_t search() {
    if (low_.n == 0) return 0;
    while (!high_) {
      if (low_.n == kLargestSize) return low_.n;
      probe(further());
    }
    for (int round = 0; high_->n - low_.n > 1; ++round) probe(between(round));
    return low_.n;
  }

 private:
  void probe(std::int64_t n) {
    const Probe p{n, excess_(n)};
    if (p.fits()) {
      before_ = low_;
      low_ = p;
    } else {
      high_ = p;
    }
  }

  /// Along the line through the last two sizes that fit, else twice as far.
  std::int64_t further() const {
    double next = 2.0 * static_cast<double>(low_.n);
    if (before_.n > 0 && *low_.excess > *before_.excess) {
      const double slope = (*low_.excess - *before_.excess) / static_cast<double>(low_.n - before_.n);
      constexpr double kFurthest = 64;
      next = std::min(static_cast<double>(low_.n) - *low_.excess / slope + 1, kFurthest * next);
    }
    return std::clamp(static_cast<std::int64_t>(std::min(next, 1e15)), low_.n + 1, kLargestSize);
  }

  std::int64_t between(int round) const {
    const double width = static_cast<double>(high_->n - low_.n);
    double share = 0.5;
    const bool line = high_->excess && std::isfinite(*high_->excess);
    if (line && round % 3 != 2) share = -*low_.excess / (*high_->excess - *low_.excess);
    const auto step = static_cast<std::int64_t>(share * width);
    return std::clamp(low_.n + step, low_.n + 1, high_->n - 1);
  }

  const Excess& excess_;
  Probe before_, low_;  ///< Size 0 needs nothing, and nobody asks.
  std::optional<Probe> high_;
};

/// Bytes beyond capacity; nothing for a size that the workload or the model cannot have, with its reason in `why`.
std::optional<double> excess_of(Runner& runner, const Request& request, std::string& why) {
  try {
    const report::MemoryUse use = runner.memory(request);
    return static_cast<double>(use.total()) - static_cast<double>(use.capacity);
  } catch (const std::runtime_error& e) {
    why = e.what();
    return std::nullopt;
  }
}

/// The request whose workload tells the sizes: a completion's are those of its prefill.
Request one_phase(Request request) {
  if (request.generate) request.phase = workloads::RunPhase::prefill;
  return request;
}

/// Whether a size that is asked for is the one that the workload takes.
template <class Size>
bool takes(Runner& runner, const Request& request, Size size, std::int64_t wanted) {
  try {
    return size(*runner.workload(one_phase(request))) == wanted;
  } catch (const std::runtime_error&) {
    return true;  // The search will say why not.
  }
}

/// What the workload says of a size and did not say of the one asked for: positions beyond those it was made for.
std::string new_warning(Runner& runner, const Request& request, const std::vector<std::string>& known) {
  const auto work = runner.workload(one_phase(request));
  for (const std::string& warning : work->warnings) {
    if (std::find(known.begin(), known.end(), warning) == known.end()) return warning;
  }
  return {};
}

/// The largest size that fits, with the reason where something beside memory ends there. `set` puts a size into the
/// request.
template <class Set>
std::int64_t largest(Runner& runner, Request probe, Set set, std::int64_t start,
                     const std::vector<std::string>& warnings, std::string& reason) {
  std::string why;
  const auto excess = [&](std::int64_t n) {
    set(probe, n);
    return excess_of(runner, probe, why);
  };
  const std::int64_t most = largest_that_fits(excess, start);
  if (most > 0 && most < kLargestSize && !excess(most + 1)) reason = why;
  set(probe, most);
  if (most > start && reason.empty()) reason = new_warning(runner, probe, warnings);
  return most;
}

void find_max_batch(Runner& runner, const Request& request, const workloads::Workload& work, report::Fit& fit) {
  const std::int64_t steps = request.accumulation;
  const auto set = [steps](Request& r, std::int64_t n) { r.batch = n * steps; };
  const auto size = [](const workloads::Workload& w) { return w.batch; };
  constexpr std::int64_t kOther = 2;
  Request probe = request;
  set(probe, kOther);
  if (!takes(runner, probe, size, kOther)) {
    fit.max_batch_reason = "the workload fixes its own sizes";
    return;
  }
  fit.max_batch = steps * largest(runner, request, set, work.batch, work.warnings, fit.max_batch_reason);
}

void find_max_seq(Runner& runner, const Request& request, const workloads::Workload& work, report::Fit& fit) {
  if (work.tokens_per_sample == 0) {
    fit.max_seq_reason = "the workload reads no tokens";
    return;
  }
  const bool decode = request.phase == workloads::RunPhase::decode;
  const auto set = [decode](Request& r, std::int64_t n) { (decode ? r.context : r.seq) = n; };
  const auto tokens = [](const workloads::Workload& w) { return w.tokens_per_sample; };
  const auto context = [](const workloads::Workload& w) { return w.context; };
  constexpr std::int64_t kOther = 2;
  Request probe = request;
  set(probe, kOther);
  if (!(decode ? takes(runner, probe, context, kOther) : takes(runner, probe, tokens, kOther))) {
    fit.max_seq_reason = "the workload fixes its own sizes";
    return;
  }
  fit.max_seq =
      largest(runner, request, set, decode ? work.context : work.tokens_per_sample, work.warnings, fit.max_seq_reason);
}

}  // namespace

std::int64_t largest_that_fits(const Excess& excess, std::int64_t start) {
  return Bracket(excess, start).search();
}

report::Fit fit(Runner& runner, const Request& request) {
  report::Fit fit;
  fit.asked = runner.predict(request);
  const auto work = runner.workload(one_phase(request));
  find_max_batch(runner, request, *work, fit);
  find_max_seq(runner, request, *work, fit);
  if (!fit.asked.fits()) fit.changes = fitting_changes(runner, request, fit.asked, fit.max_batch);
  return fit;
}

}  // namespace voltaic::study
