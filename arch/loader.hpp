// SPDX-License-Identifier: MIT
// Turns arch/gpus/*.json, user files, MIG names and --set overrides into a GpuSpec and its calibration.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "arch/parameter_tree.hpp"
#include "arch/spec.hpp"

namespace voltaic::arch {

/// One resolved GPU field, for pages and for `--json`.
struct FieldView {
  std::string path;   ///< "gpu.dram.peak_bandwidth"
  std::string value;  ///< Formatted with its unit: "1555 GB/s".
  double number = 0;
  std::string unit;  ///< Base unit suffix: "bytes_per_s", empty for counts.
  std::string source;
};

/// How the board is run, beside what it is: what nvidia-smi sets, and what the operands hold.
struct OperatingPoint {
  std::optional<Watts> power_cap;  ///< Below the board's own limit.
  std::optional<Hertz> clock;      ///< SM clock locked to at most this.
  double toggle = 1;               ///< Operand contents: 1 random, 0 constant.
};

/// A GPU ready for use: spec, calibration and where each number came from.
struct ResolvedGpu {
  GpuSpec spec;
  ParameterTree calibration;       ///< arch/calibration/<architecture>.json with the board's overrides applied.
  std::string calibration_id;      ///< Name and date of the calibration file.
  std::string board;               ///< Member of "boards" in calibration files whose overrides hold.
  std::vector<FieldView> fields;   ///< Every number of the spec in file order.
  std::vector<std::string> notes;  ///< What was assumed: "MIG slice ...", "--set gpu.sm.count=54".
  OperatingPoint operating;
  bool modified = false;  ///< True for user files, MIG slices and --set: intervals widen.
  std::string json;       ///< The resolved description as JSON text.
};

/// One `--set path=value` as typed. `path*=factor` multiplies.
struct Override {
  std::string path;
  std::string value;
  bool multiply = false;
};

/// Splits "gpu.dram.peak_bandwidth=2.4TB/s" or "gpu.sm.count*=1.5"; throws UsageError when there is no '='.
Override parse_override(std::string_view text);

/// Built-in names in a fixed order.
std::vector<std::string> gpu_names();

/// `name_or_file`: a built-in name, a MIG slice "a100-sxm4-40gb:3g.20gb", or the path of a JSON file, which may be
/// {"base": NAME, ...overrides}. Unknown names throw ConfigError with the nearest; unknown override paths UsageError
/// with the nearest.
/// `calibration_file`: fitted values of your own, laid over those that ship; throws ConfigError for a file that is
/// none.
ResolvedGpu resolve_gpu(const std::string& name_or_file, const std::vector<Override>& overrides = {},
                        const std::string& calibration_file = "");

/// Sets how the board is run; throws UsageError for a cap above the board's limit or not above its idle watts, and for
/// a clock above boost: no board has them.
void operate(ResolvedGpu& gpu, const OperatingPoint& point);

/// True where the FP32 laws were fitted on this very board ("extrapolation.measured_boards").
bool is_measured(const ResolvedGpu& gpu);

/// The GPU in the state in which a table was measured (see calibration_document.hpp); itself where nothing is known of
/// that session.
ResolvedGpu in_session(const ResolvedGpu& gpu, std::string_view session);

}  // namespace voltaic::arch
