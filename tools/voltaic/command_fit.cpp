// SPDX-License-Identifier: MIT
// fit: does it fit, how far could it grow, what would make it fit.
#include "sim/report/csv.hpp"
#include "sim/report/json.hpp"
#include "sim/report/table.hpp"
#include "sim/study/fit.hpp"
#include "tools/voltaic/commands.hpp"
#include "tools/voltaic/output.hpp"

#include "arch/units/error.hpp"

namespace voltaic::tools {

int run_fit(const CommandLine& line) {
  const Request request = single_request(line);
  Runner runner;
  const report::Fit fit = study::fit(runner, request);
  const bool fits = fit.asked.fits();
  if (!line.quiet) {
    for (const auto& warning : fit.asked.warnings) say("warning: " + one_line(warning, 1000));
  }
  report::PageStyle style = page_style(line.no_color);
  if (line.output != "-") style = {100, false};
  const std::string text = line.json  ? report::fit_json(fit, VOLTAIC_VERSION)
                           : line.csv ? report::fit_csv(fit)
                                      : report::fit_page(fit, style);
  write_file(line.output, text);
  return fits ? kExitOk : kExitGoal;
}

}  // namespace voltaic::tools
