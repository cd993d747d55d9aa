// SPDX-License-Identifier: MIT
#include "validation/compare/llm_rows.hpp"

#include <fmt/format.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "arch/units/error.hpp"
#include "validation/compare/kernel_rows.hpp"

namespace voltaic::validation {
namespace {

bool has_all(const CsvTable& table, std::initializer_list<const char*> columns) {
  return std::all_of(columns.begin(), columns.end(), [&](const char* c) { return table.has(c); });
}

bool is_inference_table(const CsvTable& table) {
  return has_all(table, {"model", "implementation", "gpu", "tp", "precision", "batch", "input_len", "output_len",
                         "latency_ms", "latency_kind", "throughput", "throughput_unit", "source"});
}
bool is_serving_table(const CsvTable& table) {
  return has_all(table, {"model", "hardware", "prompt_size", "batch_size", "token_size", "prompt_time_ms",
                         "token_time_ms", "tensor_parallel"});
}
bool is_layer_table(const CsvTable& table) {
  return has_all(table, {"gpu", "workload", "phase", "op", "latency_us"}) && !table.has("m") && !table.has("rows");
}

std::vector<LlmAsk> read_rows(const CsvTable& table, Validation& out) {
  if (is_serving_table(table)) return read_serving_rows(table, out);
  std::vector<LlmAsk> asks;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    LlmAsk ask;
    const std::string reason =
        is_layer_table(table) ? read_layer_row(table, row, ask) : read_inference_row(table, row, ask);
    if (reason.empty()) {
      asks.push_back(std::move(ask));
    } else {
      skip(out, reason);
    }
  }
  return asks;
}

std::string key_of(const Request& request) {
  std::string key = request.workload;
  for (const auto& option : request_options()) key += '|' + option.get(request);
  return key;
}

struct Answer {
  double total_s = 0, low_s = 0, high_s = 0, per_token_s = 0;
  std::string explanation, reason;
};

Answer answer(Runner& runner, const Request& request) {
  Answer out;
  try {
    const report::Prediction p = runner.predict(request);
    out.total_s = p.total.value;
    out.low_s = p.interval.low.value;
    out.high_s = p.interval.high.value;
    if (p.generation) out.per_token_s = p.generation->mean.value;
    const auto largest = std::max_element(p.bound.begin(), p.bound.end());
    const auto at = static_cast<std::size_t>(largest - p.bound.begin());
    out.explanation =
        fmt::format("{:.0f} % bound by {}", 100 * *largest, at < kernel::kBounds ? kernel::kBoundNames[at] : "launch");
    if (!p.fits()) out.reason = "does not fit on the GPU as modelled";
  } catch (const std::runtime_error& e) {
    out.reason = e.what();
  }
  return out;
}

Pair paired(const LlmAsk& ask, const Answer& a) {
  Pair pair = ask.pair;
  const double figure = ask.times * (ask.figure == LlmAsk::Figure::per_token ? a.per_token_s : a.total_s);
  const double scale = a.total_s > 0 ? figure / a.total_s : 0;
  const auto whole = [&ask](double gpu_s) {
    return std::max(gpu_s + ask.communication_s, ask.host_least_s) + ask.host_added_s;
  };
  pair.predicted = whole(figure);
  pair.low = whole(scale * a.low_s);
  pair.high = whole(scale * a.high_s);
  pair.explanation = a.explanation;
  return pair;
}

}  // namespace

std::string llm_gpu(std::string_view table_gpu) {
  constexpr std::pair<std::string_view, std::string_view> kOwn[] = {
      {"a100", "a100-sxm4-40gb"},      {"a100-40gb", "a100-sxm4-40gb"},
      {"a100-80gb", "a100-sxm4-80gb"}, {"a100 mig", "a100-sxm4-40gb:1g.5gb"},
      {"v100-sxm2", "v100-sxm2-16gb"}, {"v100-16gb", "v100-sxm2-16gb"},
      {"h100-80gb", "h100-sxm5-80gb"},
  };
  const std::string word = table_word(table_gpu);
  for (const auto& [theirs, ours] : kOwn) {
    if (theirs == word) return std::string(ours);
  }
  return gpu_of(table_gpu);
}

std::optional<double> measured_time(const CsvTable& table, std::size_t row, const char* column, double unit) {
  constexpr double kShortest = 1e-9, kLongest = 1e6;
  const auto value = table.number(row, column);
  if (!value) return std::nullopt;
  const double seconds = *value * unit;
  if (seconds >= kShortest && seconds <= kLongest) return seconds;
  throw ConfigError(
      table.place(row), column,
      fmt::format("expected a time from {:g} to {:g}, got {:g}", kShortest / unit, kLongest / unit, *value));
}

bool is_llm_table(const CsvTable& table) {
  return is_inference_table(table) || is_serving_table(table) || is_layer_table(table);
}

void predict_llm_rows(Runner& runner, const CsvTable& table, Validation& out) {
  std::vector<LlmAsk> asks = read_rows(table, out);
  std::map<std::string, std::size_t> index;
  std::vector<std::size_t> request_of;
  std::vector<const Request*> requests;  // releases repeat shapes: each is predicted once
  for (LlmAsk& ask : asks) {
    ask.request.calibration = out.options.calibration;
    const auto [at, fresh] = index.try_emplace(key_of(ask.request), requests.size());
    if (fresh) requests.push_back(&ask.request);
    request_of.push_back(at->second);
  }
  std::vector<Answer> answers(requests.size());
  tbb::parallel_for(std::size_t{0}, requests.size(), [&](std::size_t i) { answers[i] = answer(runner, *requests[i]); });
  for (std::size_t i = 0; i < asks.size(); ++i) {
    const Answer& a = answers[request_of[i]];
    if (a.reason.empty()) {
      out.pairs.push_back(paired(asks[i], a));
    } else {
      skip(out, a.reason);
    }
  }
}

}  // namespace voltaic::validation
