// SPDX-License-Identifier: MIT
// A GPU on its way through the loader: the spec, where each number came from, and what has been done to it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "arch/detail/gpu_fields.hpp"
#include "arch/spec.hpp"

namespace voltaic::arch::detail {

struct Description {
  GpuSpec spec;
  std::vector<std::string> sources;  ///< One per field of fields_of(spec); empty where the file is silent.
  std::string board;                 ///< The built-in whose calibration overrides apply.
  std::vector<std::string> notes;
  bool modified = false;
};

/// Reads a full description, or on top of `description` the changes a file makes to it (`changes` true: fields may be
/// missing and bare numbers take the file as their source). Throws ConfigError with file, JSON pointer and problem.
void decode_gpu(const nlohmann::ordered_json& root, const std::string& file, bool changes, Description& description);

/// The description as JSON text that resolve_gpu() accepts again.
std::string encode_gpu(Description& description);

/// Fields changed together with others: boost carries sustained, lanes carry their rate. `changed` holds paths set by
/// the user.
void settle(const GpuSpec& before, const std::vector<std::string>& changed, Description& description);

/// Checks between fields ("expected at most the boost clock, got ..."); empty when all hold, else "PATH: problem".
std::string consistency_problem(const GpuSpec& spec);

/// Checks the stated peaks of the file against lanes x clock x 2, within 2 %.
void check_stated_peaks(const nlohmann::ordered_json& root, const std::string& file, const GpuSpec& spec,
                        bool required);

/// Cuts the GPU down to one MIG instance; throws ConfigError naming the profiles there are.
void apply_mig(std::string_view profile, Description& description);

}  // namespace voltaic::arch::detail
