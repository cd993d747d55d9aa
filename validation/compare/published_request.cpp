// SPDX-License-Identifier: MIT
// From a published row and its entry of the mapping to a request.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <regex>

#include "arch/quantity_text.hpp"
#include "arch/units/error.hpp"
#include "validation/compare/kernel_rows.hpp"
#include "validation/compare/llm_rows.hpp"
#include "validation/compare/published_rows.hpp"

namespace voltaic::validation {
namespace {

bool holds(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

bool is_ampere_or_later(std::string_view gpu) {
  return gpu.starts_with("a") || gpu.starts_with("h");
}

bool has_16_bits(std::string_view precision) {
  return precision == "mixed" || precision == "FP16" || precision == "BF16" || precision == "AMP";
}

/// What "FP32" and the like mean to frameworks: on Ampere and later their default multiplies FP32 tensors in TF32.
std::string precision_of(const PublishedRow& row, const PublishedEntry& entry, const Request& request) {
  if (const auto own = entry.precision.find(row.precision); own != entry.precision.end()) return own->second;
  if (row.precision == "FP32" || row.precision == "TF32") return is_ampere_or_later(request.gpu) ? "tf32" : "fp32";
  if (row.precision == "mixed" || row.precision == "AMP") return "mixed-fp16";
  // TensorFlow's scripts call automatic mixed precision FP16.
  if (row.precision == "FP16")
    return request.training || row.framework.starts_with("TensorFlow") ? "mixed-fp16" : "fp16";
  if (row.precision == "BF16") return request.training ? "mixed-bf16" : "bf16";
  if (row.precision == "INT8") return "int8";
  return "";
}

std::string set_precision(const PublishedRow& row, const PublishedEntry& entry, PublishedAsk& ask) {
  const auto precision = graph::parse_precision(precision_of(row, entry, ask.request));
  if (row.precision.empty()) return "precision not stated";
  if (!precision) return fmt::format("precision {} is none that is built", one_line(row.precision, 40));
  ask.request.precision = *precision;
  const bool single = *precision == graph::Precision::fp32 || *precision == graph::Precision::tf32;
  ask.half = single ? "single" : *precision == graph::Precision::int8 ? "int8" : "half";
  return "";
}

std::int64_t rounded(double value) {
  return std::max<std::int64_t>(1, std::llround(value));
}

/// Empty, or what the row does not state.
std::string set_sizes(const PublishedRow& row, const PublishedEntry& entry, Request& request) {
  const std::vector<double> numbers = numbers_of(row.size);
  const auto size = [&](const PublishedSize& wanted) -> std::optional<std::int64_t> {
    const auto value = wanted.of(numbers, request.seq.value_or(0));
    return value ? std::optional(rounded(*value)) : std::nullopt;
  };
  if (entry.seq) {
    request.seq = size(*entry.seq);
    if (!request.seq) return "sequence length not stated";
  }
  if (!entry.image.empty()) {
    request.image_height = size(entry.image[0]);
    request.image_width = size(entry.image[1]);
    if (!request.image_height || !request.image_width) return "image size not stated";
  }
  for (const auto& [name, wanted] : entry.dims) {
    const auto value = size(wanted);
    if (!value) return fmt::format("{} not stated", name);
    request.dims[name] = *value;
  }
  return "";
}

/// Samples of one pass, or why they are not known.
std::string set_batch(const PublishedRow& row, const PublishedEntry& entry, PublishedAsk& ask) {
  std::optional<std::int64_t> batch = row.batch;
  if (!batch) {
    auto own = entry.batch.find(row.precision);
    if (own == entry.batch.end()) own = entry.batch.find("");
    if (own != entry.batch.end()) batch = own->second;
  }
  if (!batch) return "batch not stated";
  const Accumulation accumulation = accumulation_of(row);
  if (accumulation.in_batch) *batch /= accumulation.steps;
  ask.accumulated = static_cast<double>(accumulation.steps);
  ask.request.batch = rounded(static_cast<double>(*batch) * entry.samples_per_batch_unit);
  return "";
}

/// Seconds of one pass as measured, or why they are not known.
std::string set_measured(const PublishedRow& row, const PublishedEntry& entry, PublishedAsk& ask) {
  if (!row.throughput) {
    ask.pair.measured = *row.latency_s;
    return "";
  }
  double units = 1;
  if (const auto own = entry.per_sample.find(row.unit); own != entry.per_sample.end()) {
    const auto per_sample = own->second.of(numbers_of(row.size), ask.request.seq.value_or(0));
    if (!per_sample) return fmt::format("units of {} in a sample not stated", one_line(row.unit, 40));
    units = *per_sample;
  } else if (row.unit.empty() && row.latency_s) {
    ask.pair.measured = *row.latency_s;
    return "";
  } else if (holds(row.unit, "token") || holds(row.unit, "frame") || holds(row.unit, "mel") || row.unit.empty()) {
    return fmt::format("how many {} a sample has is not known", row.unit.empty() ? "units" : one_line(row.unit, 40));
  }
  ask.pair.measured = static_cast<double>(*ask.request.batch) * units / *row.throughput;
  return "";
}

void describe(const PublishedRow& row, PublishedAsk& ask) {
  const Request& r = ask.request;
  Pair& pair = ask.pair;
  const std::string model = row.submodel.empty() ? row.model : fmt::format("{} {}", row.model, row.submodel);
  pair.gpu = one_line(row.gpu, 40);
  pair.op = "network";
  pair.dtype = one_line(row.precision, 40);
  pair.mode = row.mode;
  pair.origin = one_line(row.framework.empty() ? model : fmt::format("{}, {}", model, row.framework), 80);
  pair.family = fmt::format("{} {}", one_line(row.model, 60), row.mode);
  std::string sizes;
  if (r.seq) sizes += fmt::format(" seq {}", *r.seq);
  if (r.image_height) sizes += fmt::format(" image {}x{}", *r.image_height, *r.image_width);
  for (const auto& [name, value] : r.dims) sizes += fmt::format(" {} {}", name, value);
  const auto framework = kernel::to_string(r.framework);
  pair.label = fmt::format("{} batch {}{} {} {}", r.workload, *r.batch, sizes, framework,
                           graph::to_string(r.resolved_precision()));
  if (ask.accumulated > 1) pair.label += fmt::format(" accumulated {:g}", ask.accumulated);
  ask.network = fmt::format("{} {} {}{} {}", model, row.framework, r.workload, sizes, framework);
  pair.fit = is_fit_key(fmt::format("{}|{}|{}|{}", row.model, row.mode, row.precision, *r.batch));
}

}  // namespace

std::string published_gpu(std::string_view table_gpu) {
  std::string word = table_word(table_gpu);
  constexpr std::string_view kSlice = " mig ";
  std::string slice;
  if (const auto at = word.find(kSlice); at != std::string::npos) {
    slice = ":" + word.substr(at + kSlice.size());
    word.resize(at);
  }
  if (word == "v100") word = "v100-sxm2-16gb";
  if (word == "v100-32gb" || word == "v100-sxm-32gb") word = "v100-sxm2-32gb";
  if (word == "v100-sxm3-32gb-h") word = "v100-sxm3-32gb";
  if (word == "a30-24gb") word = "a30";
  const std::string gpu = llm_gpu(word);
  return gpu.empty() ? gpu : gpu + slice;
}

Accumulation accumulation_of(const PublishedRow& row) {
  const auto number = [](const std::string& text) { return std::max<std::int64_t>(1, std::stoll(text)); };
  const bool half = has_16_bits(row.precision);
  std::smatch found;
  Accumulation out;
  // "Accumulation steps (TF32 and FP16)=64 and 32": 32 bits first.
  static const std::regex kSteps(R"(Accumulation steps \([^)]*\)=(\d{1,9}) and (\d{1,9}))");
  static const std::regex kGradient(R"(Gradient Accumulation: mixed precision, (?:FP32|TF32)=(\d{1,9}) ?, ?(\d{1,9}))");
  static const std::regex kPlain(R"(Grad accumulation=(\d{1,9}))");
  if (std::regex_search(row.flags, found, kSteps)) {
    out.steps = number(found[half ? 2 : 1]);
    // Some of these tables state the batch of a whole step, others that of a pass beside it.
    out.in_batch = !holds(row.flags, "Accumulated Batch size") && row.batch && *row.batch >= out.steps &&
                   *row.batch % out.steps == 0;
  } else if (std::regex_search(row.flags, found, kGradient)) {
    out.steps = number(found[half ? 1 : 2]);
  } else if (std::regex_search(row.flags, found, kPlain)) {
    out.steps = number(found[1]);
  }
  return out;
}

std::string_view profile_of(const PublishedRow& row) {
  const std::string& flags = row.flags;
  if (holds(flags, "TensorRT") || holds(flags, "TRT") || holds(row.framework, "tensorrt")) return "tensorrt";
  if (holds(flags, "graphs_on") || holds(flags, "CUDA graph")) return "graph";
  const bool off = holds(flags, "XLA=No") || holds(flags, "XLA=OFF") || holds(flags, "XLA-OFF") ||
                   holds(flags, "XLA=\xe2\x9c\x97");  // a cross
  if (holds(flags, "XLA") && !off) return "xla";
  return row.framework == "MXNet" ? "graph" : "eager";
}

std::string_view profile_of(const PublishedRow& row, const PublishedEntry& entry) {
  auto own = entry.profile.find(row.precision);
  if (own == entry.profile.end()) own = entry.profile.find("");
  return own == entry.profile.end() ? profile_of(row) : own->second;
}

std::string ask_published(const PublishedMap& map, const PublishedRow& row, PublishedAsk& ask) {
  const PublishedEntry* entry = map.find(row);
  if (entry == nullptr) return fmt::format("model {} has no entry in the mapping", one_line(row.model, 60));
  if (!entry->skip.empty()) return entry->skip;
  Request& request = ask.request;
  request.gpu = published_gpu(row.gpu);
  if (request.gpu.empty()) return fmt::format("GPU {} is unknown", one_line(row.gpu, 40));
  // A board of the same chip with a higher power limit.
  if (row.gpu == "V100-SXM3-32GB-H") request.overrides.push_back(arch::parse_override("gpu.power.limit=450W"));
  request.workload = entry->workload;
  request.training = row.mode == "training";
  if (std::string reason = set_precision(row, *entry, ask); !reason.empty()) return reason;
  if (std::string reason = set_sizes(row, *entry, request); !reason.empty()) return reason;
  if (std::string reason = set_batch(row, *entry, ask); !reason.empty()) return reason;
  set_option(request, "framework", profile_of(row, *entry));
  if (!entry->optimizer.empty()) set_option(request, "optimizer", entry->optimizer);
  if (request.training && !entry->optimizer_kernels.empty())
    set_option(request, "optimizer-kernels", entry->optimizer_kernels);
  if (!entry->layout.empty()) set_option(request, "layout", entry->layout);
  if (!entry->attention.empty()) set_option(request, "attention", entry->attention);
  if (!entry->input_copy.empty()) {
    set_option(request, "input-copy", entry->input_copy);
  } else if (row.framework.starts_with("TensorFlow") && !request.training) {
    set_option(request, "input-copy", "pageable");  // Arrays that the session is fed with.
  }
  const PublishedHost host = map.host_of(row, kernel::to_string(request.framework), request.gpu);
  request.host_scale = host.scale;
  if (!request.training) ask.host_s = host.step_s;
  if (std::string reason = set_measured(row, *entry, ask); !reason.empty()) return reason;
  describe(row, ask);
  return "";
}

}  // namespace voltaic::validation
