// SPDX-License-Identifier: MIT
#include "workloads/sizes.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "arch/units/error.hpp"

namespace voltaic::workloads {
namespace {

constexpr std::int64_t kLargestSize = 2147483647;
constexpr std::int64_t kLongestDefaultSequence = 4096;  // models that allow 128k tokens are seldom run at that length
constexpr std::int64_t kUnstatedSequence = 512;

std::int64_t checked(std::string_view option, std::int64_t value) {
  if (value < 1 || value > kLargestSize) {
    throw UsageError(fmt::format("--{}: expected an integer from 1 to {}, got {}", option, kLargestSize, value));
  }
  return value;
}

void check_dims(const BuildOptions& options, const Workload& workload, const std::vector<std::string>& known) {
  for (const auto& [name, value] : options.dims) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      const std::string near = nearest(name, known);
      throw UsageError(fmt::format("--dim {}: {} has no such dim{}", one_line(name), workload.name,
                                   near.empty() ? "" : fmt::format("; did you mean '{}'?", near)));
    }
    checked("dim " + name, value);
  }
}

void check_phase(const BuildOptions& options, const TokenLimits& limits, const Workload& workload) {
  if (options.phase == RunPhase::whole) return;
  if (!limits.autoregressive) {
    throw UnsupportedError(
        fmt::format("{}: has no phases prefill and decode; autoregressive models have", workload.name));
  }
  if (options.training) throw UsageError("--phase: training has no phases; leave --phase out");
}

std::int64_t own_sequence(const TokenLimits& limits) {
  if (limits.usual > 0) return limits.usual;
  return limits.positions == 0 ? kUnstatedSequence : std::min(limits.positions, kLongestDefaultSequence);
}

}  // namespace

std::int64_t resolve_batch(const BuildOptions& options, Workload& workload) {
  if (!options.batch) workload.assumptions.emplace_back("batch 1");
  workload.batch = checked("batch", options.batch.value_or(1));
  return workload.batch;
}

TokenSizes resolve_tokens(const BuildOptions& options, const TokenLimits& limits, Workload& workload,
                          const std::vector<std::string>& known_dims) {
  check_phase(options, limits, workload);
  check_dims(options, workload, known_dims);
  if (options.image_height || options.image_width) {
    workload.warnings.push_back(fmt::format("--image has no effect: {} reads tokens", workload.name));
  }
  TokenSizes sizes;
  sizes.training = options.training;
  sizes.flash = options.attention == AttentionForm::flash;
  sizes.phase = options.phase;
  sizes.batch = resolve_batch(options, workload);
  sizes.prompt = checked("seq", options.seq.value_or(own_sequence(limits)));
  sizes.seq = sizes.decode() ? 1 : sizes.prompt;
  sizes.context = sizes.decode() ? checked("context", options.context.value_or(sizes.prompt)) : sizes.seq;
  if (!options.seq && !sizes.decode()) workload.assumptions.push_back(fmt::format("sequence length {}", sizes.prompt));
  if (sizes.decode() && !options.context)
    workload.assumptions.push_back(fmt::format("context {} tokens", sizes.context));
  if (!sizes.decode() && options.context)
    workload.warnings.emplace_back("--context has no effect outside --phase decode");
  if (limits.positions > 0 && sizes.context > limits.positions) {
    const auto* option = sizes.decode() ? "context" : "seq";
    if (limits.learned_positions) {
      throw ConfigError(
          workload.name, "",
          fmt::format("expected --{} up to its {} positions, got {}", option, limits.positions, sizes.context));
    }
    workload.warnings.push_back(fmt::format("--{} {} is beyond the {} positions that {} was made for", option,
                                            sizes.context, limits.positions, workload.name));
  }
  workload.tokens_per_sample = sizes.seq;
  return sizes;
}

ImageSizes resolve_image(const BuildOptions& options, std::int64_t own_size, Workload& workload) {
  return resolve_image(options, {own_size, own_size}, workload);
}

ImageSizes resolve_image(const BuildOptions& options, const std::vector<std::int64_t>& own, Workload& workload) {
  const bool volume = own.size() == 3;
  check_phase(options, {}, workload);
  check_dims(options, workload, volume ? std::vector<std::string>{"depth"} : std::vector<std::string>{});
  if (options.seq || options.context) {
    workload.warnings.push_back(fmt::format("--seq and --context have no effect: {} reads images", workload.name));
  }
  ImageSizes sizes;
  sizes.training = options.training;
  sizes.batch = resolve_batch(options, workload);
  sizes.height = checked("image", options.image_height.value_or(own.at(own.size() - 2)));
  sizes.width = checked("image", options.image_width.value_or(own.back()));
  if (!options.image_height && !options.image_width) {
    workload.assumptions.push_back(fmt::format("image {}x{}", sizes.height, sizes.width));
  }
  if (!volume) return sizes;
  const auto depth = options.dims.find("depth");
  sizes.depth = depth == options.dims.end() ? own.front() : depth->second;
  if (depth == options.dims.end()) workload.assumptions.push_back(fmt::format("depth {}", sizes.depth));
  return sizes;
}

ImageSizes resolve_padded(const BuildOptions& options, const std::vector<std::int64_t>& own, Workload& workload) {
  constexpr std::int64_t kStep = 32;
  ImageSizes sizes = resolve_image(options, own, workload);
  const auto padded = [](std::int64_t side) { return (side + kStep - 1) / kStep * kStep; };
  if (padded(sizes.height) == sizes.height && padded(sizes.width) == sizes.width) return sizes;
  sizes.height = padded(sizes.height);
  sizes.width = padded(sizes.width);
  workload.assumptions.push_back(fmt::format("image padded to {}x{}", sizes.height, sizes.width));
  return sizes;
}

void require_sides(const ImageSizes& sizes, std::int64_t step, const Workload& workload) {
  const auto require = [&](const char* side, std::int64_t got) {
    if (got % step == 0) return;
    const std::int64_t below = got / step * step;
    throw ConfigError(workload.name, "",
                      fmt::format("expected a {} that {} divides ({}{}), got {}", side, step,
                                  below == 0 ? "" : fmt::format("{} or ", below), below + step, got));
  };
  require("height", sizes.height);
  require("width", sizes.width);
  if (sizes.depth != 1) require("depth", sizes.depth);
}

void require_own_size(const ImageSizes& sizes, std::int64_t own, const char* why, const Workload& workload) {
  if (sizes.height == own && sizes.width == own) return;
  throw ConfigError(workload.name, "",
                    fmt::format("expected a {0}x{0} image ({1}), got {2}x{3}", own, why, sizes.height, sizes.width));
}

LengthSizes resolve_length(const BuildOptions& options, std::int64_t own_length, const std::string& unit,
                           Workload& workload, const std::vector<std::string>& known_dims) {
  check_phase(options, {}, workload);
  check_dims(options, workload, known_dims);
  if (options.image_height || options.image_width || options.context) {
    workload.warnings.push_back(fmt::format("--image and --context have no effect: {} reads {}", workload.name, unit));
  }
  LengthSizes sizes;
  sizes.training = options.training;
  sizes.batch = resolve_batch(options, workload);
  sizes.length = checked("seq", options.seq.value_or(own_length));
  if (!options.seq) workload.assumptions.push_back(fmt::format("length {} {}", sizes.length, unit));
  workload.tokens_per_sample = sizes.length;
  return sizes;
}

std::int64_t resolve_samples(const BuildOptions& options, Workload& workload,
                             const std::vector<std::string>& known_dims) {
  check_phase(options, {}, workload);
  check_dims(options, workload, known_dims);
  if (options.seq || options.context || options.image_height || options.image_width) {
    workload.warnings.push_back(
        fmt::format("--seq, --context and --image have no effect: {} has no such size", workload.name));
  }
  return resolve_batch(options, workload);
}

std::int64_t resolve_dim(const BuildOptions& options, const std::string& name, std::int64_t own) {
  const auto it = options.dims.find(name);
  return it == options.dims.end() ? own : it->second;
}

}  // namespace voltaic::workloads
