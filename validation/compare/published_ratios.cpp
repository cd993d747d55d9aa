// SPDX-License-Identifier: MIT
// Speed-ups between published rows, which what-if questions ask for.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "validation/compare/published_rows.hpp"

namespace voltaic::validation {
namespace {

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : 0.5 * (values[half - 1] + values[half]);
}

/// Times of the rows that measured the same run: tables repeat them under several headings.
struct Run {
  std::vector<double> measured, predicted;
  double measured_s() const { return median(measured); }
  double predicted_s() const { return median(predicted); }
};

struct Key {
  std::string network, mode, half, gpu;
  std::int64_t batch = 0;
  auto tie() const { return std::tie(network, mode, half, gpu, batch); }
  bool operator<(const Key& other) const { return tie() < other.tie(); }
};
using Runs = std::map<Key, Run>;

Runs collect(const std::vector<PublishedAsk>& asks) {
  Runs runs;
  for (const PublishedAsk& ask : asks) {
    if (!(ask.pair.measured > 0) || !(ask.pair.predicted > 0)) continue;
    Run& run = runs[{ask.network, ask.pair.mode, ask.half, ask.request.gpu, ask.request.batch.value_or(1)}];
    run.measured.push_back(ask.pair.measured);
    run.predicted.push_back(ask.pair.predicted);
  }
  return runs;
}

std::string label(const Key& key) {
  return fmt::format("{} {} {} {} batch {}", key.network, key.mode, key.half, key.gpu, key.batch);
}

/// How many times faster `fast` is than `slow`, each pass doing `work` times as much.
RatioPair ratio(const char* kind, std::string name, const Run& slow, const Run& fast, double work = 1) {
  return {kind, std::move(name), work * slow.measured_s() / fast.measured_s(),
          work * slow.predicted_s() / fast.predicted_s()};
}

void gpu_ratios(const Runs& runs, std::vector<RatioPair>& out) {
  for (const auto& [fast, run] : runs) {
    if (!fast.gpu.starts_with("a100")) continue;
    for (auto at = runs.lower_bound({fast.network, fast.mode, fast.half, "v100", 0}); at != runs.end(); ++at) {
      const Key& slow = at->first;
      if (slow.network != fast.network || slow.mode != fast.mode || slow.half != fast.half) break;
      if (!slow.gpu.starts_with("v100")) break;
      if (slow.batch != fast.batch) continue;
      out.push_back(ratio("A100 over V100", fmt::format("{} over {}", label(fast), slow.gpu), at->second, run));
    }
  }
}

void precision_ratios(const Runs& runs, std::vector<RatioPair>& out) {
  for (const auto& [fast, run] : runs) {
    if (fast.half != "half") continue;
    const auto slow = runs.find({fast.network, fast.mode, "single", fast.gpu, fast.batch});
    if (slow != runs.end()) out.push_back(ratio("16 bits over 32", label(fast), slow->second, run));
  }
}

/// Throughput at each batch over that at the smallest of the same network, GPU, mode and precision.
void batch_ratios(const Runs& runs, std::vector<RatioPair>& out) {
  const Runs::value_type* smallest = nullptr;
  for (const auto& entry : runs) {
    const Key& key = entry.first;
    const bool same = smallest != nullptr && smallest->first.network == key.network &&
                      smallest->first.mode == key.mode && smallest->first.half == key.half &&
                      smallest->first.gpu == key.gpu;
    if (!same) {
      smallest = &entry;
      continue;
    }
    const double work = static_cast<double>(key.batch) / static_cast<double>(smallest->first.batch);
    out.push_back(ratio("batch scaling", fmt::format("{} over {}", label(key), smallest->first.batch), smallest->second,
                        entry.second, work));
  }
}

}  // namespace

std::vector<RatioPair> ratio_pairs(const std::vector<PublishedAsk>& asks) {
  const Runs runs = collect(asks);
  std::vector<RatioPair> out;
  gpu_ratios(runs, out);
  precision_ratios(runs, out);
  batch_ratios(runs, out);
  return out;
}

}  // namespace voltaic::validation
