// SPDX-License-Identifier: MIT
// Answers as JSON: one envelope, stable key order, base units in the key names, never NaN or infinity.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "arch/units/embedded.hpp"
#include "sim/report/fit_rows.hpp"
#include "sim/report/prediction.hpp"
#include "sim/report/study_rows.hpp"

namespace voltaic {
/// The JSON Schema files of sim/report/schema.
std::span<const EmbeddedFile> embedded_schemas();
}  // namespace voltaic

namespace voltaic::report {

struct InputFile {
  std::string path;
  std::string sha256;
};

/// What stands around every answer.
struct Envelope {
  std::string
      command;  ///< "predict"; names the schema: predict "voltaic.prediction/1.0", others "voltaic.COMMAND/1.0".
  std::string tool_version;
  std::string calibration_id;  ///< "ampere 2026-11-30": name, blank, date. Empty: null.
  std::vector<InputFile> inputs;
  Settings request;  ///< Values that read as numbers or booleans become such.
  std::vector<std::string> assumptions;
  std::vector<std::string> warnings;
};

/// Envelope of a prediction's own request.
Envelope envelope_of(const Prediction& prediction, std::string_view command, std::string_view tool_version);

/// The whole document, two-space indented, with a final newline. `command` is "predict" or "explain".
std::string prediction_json(const Prediction& prediction, std::string_view command, std::string_view tool_version);
std::string comparison_json(const Comparison& comparison, const Envelope& envelope);
std::string sweep_json(std::span<const SweepPoint> points, const Envelope& envelope);
/// One point as one line, for JSON lines; no newline.
std::string sweep_point_json(const SweepPoint& point);
std::string fit_json(const Fit& fit, std::string_view tool_version);
std::string workload_json(const WorkloadView& workload, const Envelope& envelope);
/// Any other answer: `result` is JSON text. Throws InternalError when it is none.
std::string document_json(const Envelope& envelope, std::string_view result);

/// Text of a schema by command name ("predict", "compare", "show-gpu") and the names there are.
std::string_view schema_text(std::string_view command);
std::vector<std::string> schema_names();

}  // namespace voltaic::report
