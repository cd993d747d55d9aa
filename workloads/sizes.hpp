// SPDX-License-Identifier: MIT
// The sizes of a run, resolved from what was asked and what the model is made for.
#pragma once

#include <string>

#include "workloads/builder.hpp"

namespace voltaic::workloads {

/// What a token model can do and is made for.
struct TokenLimits {
  std::int64_t positions = 0;      ///< Longest sequence; 0: not stated.
  bool learned_positions = false;  ///< A table that ends there (else a longer sequence only deserves a warning).
  bool autoregressive = false;     ///< Has phases prefill and decode.
  std::int64_t usual = 0;          ///< Tokens of a sample when nobody says; 0: as many as there are positions.
};

struct TokenSizes {
  bool training = false;
  bool flash = false;
  RunPhase phase = RunPhase::whole;
  std::int64_t batch = 1;
  std::int64_t seq = 1;      ///< Tokens of a sample that pass through the network: 1 in decode.
  std::int64_t context = 1;  ///< Keys that attention sees: seq, in decode the filled cache.
  std::int64_t prompt = 1;   ///< Sequence length as asked; in decode what an encoder has read.

  bool decode() const { return phase == RunPhase::decode; }
  bool last_token_only() const { return phase != RunPhase::whole; }
};

/// Refuses sizes outside 1..2^31-1, phases a model does not have and dims it does not know.
/// Every default it chose goes to workload.assumptions; workload.name must be set.
TokenSizes resolve_tokens(const BuildOptions& options, const TokenLimits& limits, Workload& workload,
                          const std::vector<std::string>& known_dims = {});

struct ImageSizes {
  bool training = false;
  std::int64_t batch = 1;
  std::int64_t depth = 1;  ///< Slices of a volume.
  std::int64_t height = 224;
  std::int64_t width = 224;
};
ImageSizes resolve_image(const BuildOptions& options, std::int64_t own_size, Workload& workload);
/// The same for models whose own size is {height, width}, or {depth, height, width}: then `--dim depth=N` is known.
ImageSizes resolve_image(const BuildOptions& options, const std::vector<std::int64_t>& own, Workload& workload);

/// The same for detectors, which pad both sides to multiples of 32.
ImageSizes resolve_padded(const BuildOptions& options, const std::vector<std::int64_t>& own, Workload& workload);

/// Refuses an image (or volume) whose sides `step` does not divide, with the sides next to it that fit.
void require_sides(const ImageSizes& sizes, std::int64_t step, const Workload& workload);
/// Refuses every size but the model's own, saying why.
void require_own_size(const ImageSizes& sizes, std::int64_t own, const char* why, const Workload& workload);

/// A length that is not tokens: frames of audio, say. --seq gives it, else the model's own.
struct LengthSizes {
  bool training = false;
  std::int64_t batch = 1;
  std::int64_t length = 1;
};
LengthSizes resolve_length(const BuildOptions& options, std::int64_t own_length, const std::string& unit,
                           Workload& workload, const std::vector<std::string>& known_dims = {});

/// Samples that have no size: rows of features. Refuses phases and unknown dims; warns of sizes without effect.
std::int64_t resolve_samples(const BuildOptions& options, Workload& workload,
                             const std::vector<std::string>& known_dims = {});

/// `--dim name=N`, else the model's own.
std::int64_t resolve_dim(const BuildOptions& options, const std::string& name, std::int64_t own);

/// Batch alone, for what has no other size.
std::int64_t resolve_batch(const BuildOptions& options, Workload& workload);

}  // namespace voltaic::workloads
