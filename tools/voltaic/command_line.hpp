// SPDX-License-Identifier: MIT
// A command line as typed: which command, which workload, which options with which texts.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/request.hpp"
#include "sim/study/sweep.hpp"

namespace voltaic::tools {

struct CommandLine {
  std::string command;
  std::vector<std::string> positional;                       ///< WORKLOAD, or what `list` and `show` take.
  std::vector<std::pair<std::string, std::string>> options;  ///< Request options in the order of the option table.
  bool json = false, csv = false, json_lines = false, quiet = false, no_color = false;
  std::string output = "-", trace, report;
  int jobs = 0;
  std::vector<std::string> measured;
  std::string fail_if;
  std::optional<std::string> fail_above;
  std::string kernel;
  std::string split = "all";
  std::string gpu, op;      ///< validate: only these rows; calibrate: the boards.
  std::string calibration;  ///< validate: a calibration file.
  std::string engine = "analytic", sample = "steady", l2 = "footprint";  ///< validate: what prices the rows.
  std::int64_t rows = 0;                                                 ///< validate: of each kind; 0: all.
  std::uint64_t seed = 1;                                                ///< validate: of the draw of rows.
  std::string trace_cycles;                                              ///< explain: FROM:TO of one SM's warps.
  std::string out, source, date;  ///< calibrate: the file it writes, and what stands in it.
  std::string only;               ///< calibrate: "intervals": fit no value.
  bool alone = false;             ///< calibrate: the file replaces what ships.
  double below_percentile = 100;  ///< calibrate: leave out rows larger than this percentile of their operation.
};

/// Thrown for --help and --version: text for standard output, exit code 0.
struct HelpWanted {
  std::string text;
};

/// Throws UsageError, HelpWanted and, for commands still to come, UnsupportedError.
CommandLine parse_command_line(int argc, char** argv);

/// The request of commands that answer one question; several values are refused with the command that takes them.
Request single_request(const CommandLine& line);
/// The request with the options of one value, and the axes of those with several.
std::pair<Request, std::vector<study::Axis>> request_and_axes(const CommandLine& line);

}  // namespace voltaic::tools
