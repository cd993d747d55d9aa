// SPDX-License-Identifier: MIT
// End-to-end rows: a whole network, forward alone or forward and backward, one GPU, FP32, timed with events around the
// pass. The table's time has no loss and no optimizer. Rows flagged `fw_host_bound` were slowed in their forward pass
// by memory allocation on the host; their backward time is compared alone.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "arch/units/error.hpp"
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

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

struct Ask {
  Request request;
  bool backward_only = false;
  double measured_s = 0;
};

std::int64_t size_of(const CsvTable& table, std::size_t row, const char* column) {
  const auto value = table.integer(row, column);
  if (!value || *value < 1) throw ConfigError(table.place(row), column, "expected a size of at least 1");
  return *value;
}

/// Why the row cannot be predicted, or what to ask.
std::string ask_of(const CsvTable& table, std::size_t row, Ask& ask) {
  const auto model = table.text(row, "model");
  const auto zoo = zoo_name(model);
  if (zoo.empty()) return fmt::format("model {} is not in the zoo", one_line(model));
  const auto gpus = table.integer(row, "n_gpus");
  if (!gpus || *gpus < 1) throw ConfigError(table.place(row), "n_gpus", "expected a count of at least 1");
  if (*gpus != 1) return "several GPUs";
  const auto names = arch::gpu_names();
  const std::string gpu = lower(table.text(row, "gpu"));
  if (std::find(names.begin(), names.end(), gpu) == names.end()) return fmt::format("GPU {} is unknown", one_line(gpu));
  const auto option = table.text(row, "option");
  if (!option.empty() && option != "fusion") return fmt::format("option {}", one_line(option));

  ask.request.workload = zoo;
  ask.request.gpu = gpu;
  const auto mode = table.text(row, "mode");
  if (mode != "inf" && mode != "train") {
    throw ConfigError(table.place(row), "mode", fmt::format("expected inf or train, got '{}'", one_line(mode)));
  }
  ask.request.training = mode == "train";
  ask.request.seq = size_of(table, row, "seq");
  ask.request.batch = size_of(table, row, "batch");
  ask.request.precision = graph::Precision::fp32;
  ask.request.attention = workloads::AttentionForm::unfused;
  ask.request.framework = option == "fusion" ? kernel::Framework::compiled : kernel::Framework::eager;
  ask.request.include_optimizer = false;
  ask.request.include_loss = false;
  ask.backward_only = table.text(row, "flag") == "fw_host_bound";
  const auto measured = table.number(row, ask.backward_only ? "bw_ms" : "e2e_ms");
  if (!measured) return "no measured time";
  constexpr double kShortestMs = 1e-6;  // one nanosecond: no network is faster
  if (!(*measured >= kShortestMs)) {
    throw ConfigError(table.place(row), "e2e_ms", fmt::format("expected a time in milliseconds, got {}", *measured));
  }
  ask.measured_s = *measured * 1e-3;
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

}  // namespace

bool is_network_table(const CsvTable& table) {
  for (const char* column : {"model", "gpu", "n_gpus", "mode", "seq", "batch", "option", "e2e_ms"}) {
    if (!table.has(column)) return false;
  }
  return true;
}

void predict_network_rows(Runner& runner, const CsvTable& table, Validation& out) {
  for (std::size_t row = 0; row < table.rows(); ++row) {
    Ask ask;
    const std::string reason = ask_of(table, row, ask);
    if (!reason.empty()) {
      skip(out, reason);
      continue;
    }
    Pair pair;
    try {
      const auto p = runner.predict(ask.request);
      pair.predicted_s = ask.backward_only ? p.backward.value : p.total.value;
      const double scale = p.total.value > 0 ? pair.predicted_s / p.total.value : 0;
      pair.low_s = p.interval.low.value * scale;
      pair.high_s = p.interval.high.value * scale;
      pair.explanation = explain(p);
    } catch (const std::runtime_error& e) {
      skip(out, e.what());
      continue;
    }
    pair.gpu = table.text(row, "gpu");
    pair.op = "network";
    pair.dtype = "fp32";
    pair.mode = ask.request.training ? "training" : "inference";
    if (ask.request.framework == kernel::Framework::compiled) pair.mode += " fusion";
    pair.label = fmt::format("{} seq {} batch {}{}", table.text(row, "model"), table.text(row, "seq"),
                             table.text(row, "batch"), ask.backward_only ? " (backward)" : "");
    pair.measured_s = ask.measured_s;
    out.pairs.push_back(std::move(pair));
  }
}

}  // namespace voltaic::validation
