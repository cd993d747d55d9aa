// SPDX-License-Identifier: MIT
// One prediction per point of a grid over options, on all cores, in a fixed order.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sim/report/study_rows.hpp"
#include "sim/request.hpp"

namespace voltaic::study {

/// One swept option and its values: {"batch", {"1", "2"}}. For --set the name is "set" and values are "path=value".
struct Axis {
  std::string option;
  std::string label;  ///< Shown in tables: the option, or the path of a --set.
  std::vector<std::string> values;
};

/// Splits `--option text` into an axis; --set and --dim keep their path in each value.
Axis parse_axis(std::string_view option, std::string_view text);

/// The request at one index of the grid; `point.set` receives its labels and values.
Request request_at(const Request& base, const std::vector<Axis>& axes, std::size_t index, report::SweepPoint& point);

struct SweepOptions {
  int jobs = 0;                                                       ///< 0: all cores. Results do not depend on it.
  std::function<void(std::size_t done, std::size_t total)> progress;  ///< Called from one thread at a time.
};

/// The grid in row order, last axis fastest. Throws UsageError for a malformed value before anything runs.
/// A point that cannot be predicted carries its error; when no point can, the first error is thrown.
std::vector<report::SweepPoint> sweep(Runner& runner, const Request& base, const std::vector<Axis>& axes,
                                      const SweepOptions& options);

}  // namespace voltaic::study
