// SPDX-License-Identifier: MIT
// End-to-end rows: a whole network, forward alone or forward and backward, one GPU, FP32, timed with events around the
// pass. The table's time has no loss and no optimizer. Rows flagged `fw_host_bound` were slowed in their forward pass
// by memory allocation on the host; their backward time is compared alone.
#include <fmt/format.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <iterator>
#include <optional>

#include "arch/units/error.hpp"
#include "validation/compare/drawn_rows.hpp"
#include "validation/compare/kernel_rows.hpp"
#include "validation/compare/validate.hpp"

namespace voltaic::validation {
namespace {

/// The table's model names and ours.
constexpr std::pair<std::string_view, std::string_view> kModels[] = {
    {"bert_large", "bert-large"}, {"gpt2_large", "gpt2-large"}, {"gpt3_xl", "gpt3-xl"},
    {"gpt3_27", "gpt3-2.7b"},     {"opt_13", "opt-1.3b"},       {"switchxl4", "switch-xl"},
};

std::string_view zoo_name(std::string_view model) {
  for (const auto& [theirs, ours] : kModels) {
    if (theirs == model) return ours;
  }
  return {};
}

constexpr std::string_view kSeveralGpus = "several GPUs";

struct Ask {
  Request request;
  std::string table_gpu, label;
  bool host_bound = false;                      ///< Its forward pass is no measure of the GPU.
  double measured_s = 0;                        ///< Of the whole; of the backward pass where host_bound.
  std::optional<double> forward_s, backward_s;  ///< Training.
};

std::int64_t size_of(const CsvTable& table, std::size_t row, const char* column) {
  const auto value = table.integer(row, column);
  if (!value || *value < 1) throw ConfigError(table.place(row), column, "expected a size of at least 1");
  return *value;
}

std::optional<double> time_of(const CsvTable& table, std::size_t row, const char* column) {
  const auto ms = table.number(row, column);
  if (!ms) return std::nullopt;
  constexpr double kShortestMs = 1e-6;  // one nanosecond: no network is faster
  if (!(*ms >= kShortestMs)) {
    throw ConfigError(table.place(row), column, fmt::format("expected a time in milliseconds, got {}", *ms));
  }
  return *ms * 1e-3;
}

/// Empty, or why the row cannot be predicted.
std::string request_of(const CsvTable& table, std::size_t row, Request& request) {
  const auto model = table.text(row, "model");
  request.workload = zoo_name(model);
  if (request.workload.empty()) return fmt::format("model {} is not in the zoo", one_line(model));
  const auto gpus = table.integer(row, "n_gpus");
  if (!gpus || *gpus < 1) throw ConfigError(table.place(row), "n_gpus", "expected a count of at least 1");
  if (*gpus != 1) return std::string(kSeveralGpus);
  request.gpu = gpu_of(table.text(row, "gpu"));
  if (request.gpu.empty()) return fmt::format("GPU {} is unknown", one_line(table.text(row, "gpu")));
  const auto option = table.text(row, "option");
  if (!option.empty() && option != "fusion") return fmt::format("option {}", one_line(option));
  const auto mode = table.text(row, "mode");
  if (mode != "inf" && mode != "train") {
    throw ConfigError(table.place(row), "mode", fmt::format("expected inf or train, got '{}'", one_line(mode)));
  }
  request.training = mode == "train";
  request.seq = size_of(table, row, "seq");
  request.batch = size_of(table, row, "batch");
  request.precision = graph::Precision::fp32;
  request.attention = workloads::AttentionForm::unfused;
  request.framework = option == "fusion" ? kernel::Framework::compiled : kernel::Framework::eager;
  request.include_optimizer = false;
  request.include_loss = false;
  return "";
}

/// Empty, or why the row cannot be predicted.
std::string ask_of(const CsvTable& table, std::size_t row, Ask& ask) {
  std::string reason = request_of(table, row, ask.request);
  if (!reason.empty()) return reason;
  ask.table_gpu = one_line(table.text(row, "gpu"));
  ask.label = network_label(one_line(table.text(row, "model")), *ask.request.seq, *ask.request.batch);
  ask.host_bound = table.text(row, "flag") == "fw_host_bound";
  if (ask.request.training) {
    if (!ask.host_bound) ask.forward_s = time_of(table, row, "fw_ms");
    ask.backward_s = time_of(table, row, "bw_ms");
  }
  const auto measured = ask.host_bound ? time_of(table, row, "bw_ms") : time_of(table, row, "e2e_ms");
  if (!measured) return std::string(kNoTime);
  ask.measured_s = *measured;
  return "";
}

std::string explain(const report::Prediction& p) {
  std::size_t largest = 0;
  for (std::size_t i = 1; i < p.bound.size(); ++i) {
    if (p.bound[i] > p.bound[largest]) largest = i;
  }
  const std::string_view name = largest < kernel::kBounds    ? kernel::kBoundNames[largest]
                                : largest == kernel::kBounds ? "launch"
                                                             : "communication";
  return fmt::format("{:.0f} % bound by {}", 100 * p.bound[largest], name);
}

/// A pass of the prediction against its measured time; the interval is the whole run's, scaled.
Pair pair_of(const Ask& ask, const report::Prediction& p, Seconds predicted, double measured_s) {
  Pair pair;
  pair.gpu = ask.table_gpu;
  pair.op = "network";
  pair.dtype = "fp32";
  pair.mode = ask.request.training ? "training" : "inference";
  if (ask.request.framework == kernel::Framework::compiled) pair.mode += " fusion";
  pair.label = ask.label;
  pair.measured = measured_s;
  pair.predicted = predicted.value;
  const double share = p.total.value > 0 ? predicted / p.total : 0;
  pair.low = share * p.interval.low.value;
  pair.high = share * p.interval.high.value;
  pair.explanation = explain(p);
  return pair;
}

struct Answer {
  std::vector<Pair> pairs;
  std::string reason;  ///< Why there are none.
};

Answer answer(Runner& runner, const Ask& ask) {
  Answer out;
  report::Prediction p;
  try {
    p = runner.predict(ask.request);
    // The loop collects garbage and empties the allocator's cache before each iteration: the GPU rests in between.
    Request rested = ask.request;
    rested.busy_s = p.total.value;
    p = runner.predict(rested);
  } catch (const std::runtime_error& e) {
    out.reason = e.what();
    return out;
  }
  out.pairs.push_back(pair_of(ask, p, ask.host_bound ? p.backward : p.total, ask.measured_s));
  if (!ask.request.training) {
    out.pairs.front().family = "network inference";
    return out;
  }
  if (ask.host_bound) out.pairs.front().label += " (backward)";
  const auto pass = [&](const char* mode, Seconds predicted, const std::optional<double>& measured_s) {
    if (!measured_s) return;
    out.pairs.push_back(pair_of(ask, p, predicted, *measured_s));
    out.pairs.back().mode += mode;
    out.pairs.back().family = "network training";
  };
  pass(" forward", p.forward, ask.forward_s);
  pass(" backward", p.backward, ask.backward_s);
  return out;
}

/// Keeps those that --rows draws.
void draw(std::vector<Ask>& asks, Validation& out) {
  std::vector<std::string> kinds;
  kinds.reserve(asks.size());
  for (const Ask& ask : asks) {
    const auto& r = ask.request;
    kinds.push_back(fmt::format("{}|{}|{}", ask.table_gpu, r.training, to_string(r.framework)));
  }
  const std::vector<bool> drawn = draw_rows(kinds, out.options.rows, out.options.seed);
  std::vector<Ask> kept;
  for (std::size_t i = 0; i < asks.size(); ++i) {
    if (drawn[i]) {
      kept.push_back(std::move(asks[i]));
    } else {
      skip(out, std::string(kNotDrawn));
    }
  }
  asks = std::move(kept);
}

}  // namespace

bool is_network_table(const CsvTable& table) {
  for (const char* column : {"model", "gpu", "n_gpus", "mode", "seq", "batch", "option", "e2e_ms"}) {
    if (!table.has(column)) return false;
  }
  return true;
}

std::string network_label(std::string_view model, std::int64_t seq, std::int64_t batch) {
  return fmt::format("{} seq {} batch {}", model, seq, batch);
}

void predict_network_rows(Runner& runner, const CsvTable& table, Validation& out) {
  std::vector<Ask> asks;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    Ask ask;
    const std::string reason = ask_of(table, row, ask);
    if (reason.empty()) {
      ask.request.calibration = out.options.calibration;
      ask.request.engine = out.options.engine;
      ask.request.sampling = out.options.sampling;
      asks.push_back(std::move(ask));
      continue;
    }
    skip(out, reason);
    // Rows of several GPUs are another subject than the pooled lines, which are of one.
    if (reason == kSeveralGpus || reason == kNoTime) continue;
    const char* family = table.text(row, "mode") == "train" ? "network training" : "network inference";
    ++out.missed[{family, one_line(table.text(row, "gpu"))}];
  }
  draw(asks, out);
  std::vector<Answer> answers(asks.size());
  tbb::parallel_for(std::size_t{0}, asks.size(), [&](std::size_t i) { answers[i] = answer(runner, asks[i]); });
  for (auto& [pairs, reason] : answers) {
    if (!reason.empty()) skip(out, reason);
    std::move(pairs.begin(), pairs.end(), std::back_inserter(out.pairs));
  }
}

}  // namespace voltaic::validation
