// SPDX-License-Identifier: MIT
// compare and sweep: many predictions of one workload.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "arch/units/error.hpp"
#include "sim/jobs.hpp"
#include "sim/report/csv.hpp"
#include "sim/report/json.hpp"
#include "sim/report/table.hpp"
#include "sim/study/compare.hpp"
#include "sim/study/sweep.hpp"
#include "tools/voltaic/commands.hpp"
#include "tools/voltaic/output.hpp"

namespace voltaic::tools {
namespace {

using Clock = std::chrono::steady_clock;

/// A line on a terminal that says how far a sweep is and when it will end; nothing elsewhere.
class Progress {
 public:
  explicit Progress(bool shown) : shown_(shown && stderr_is_terminal()) {}
  ~Progress() {
    if (drawn_) std::fputs("\r\033[K", stderr);
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void operator()(std::size_t done, std::size_t total) {
    const auto now = Clock::now();
    if (!shown_ || now - last_ < std::chrono::milliseconds(100)) return;
    last_ = now;
    const double elapsed = std::chrono::duration<double>(now - start_).count();
    const double left = elapsed / static_cast<double>(done) * static_cast<double>(total - done);
    std::fputs(fmt::format("\r\033[K{} of {} points, {:.0f} s left", done, total, left).c_str(), stderr);
    drawn_ = true;
  }

 private:
  bool shown_;
  bool drawn_ = false;
  Clock::time_point start_ = Clock::now();
  Clock::time_point last_ = start_;
};

report::Envelope envelope(const CommandLine& line, Runner& runner, const Request& base) {
  report::Envelope e;
  e.command = line.command;
  e.tool_version = VOLTAIC_VERSION;
  e.request.emplace_back("workload", base.workload);
  for (const auto& option : request_options()) {
    std::string typed;
    for (const auto& [name, text] : line.options) {
      if (name == option.name) typed += (typed.empty() ? "" : " ") + text;
    }
    e.request.emplace_back(option.name, typed.empty() ? option.get(base) : typed);
  }
  const auto work = runner.workload(base);
  if (!work->source_path.empty()) e.inputs.push_back({work->source_path, work->source_sha256});
  e.assumptions = work->assumptions;
  e.warnings = work->warnings;
  return e;
}

/// The request of the first point: its workload and GPU stand for the study's.
Request first_request(const Request& base, const std::vector<study::Axis>& axes) {
  report::SweepPoint point;
  return study::request_at(base, axes, 0, point);
}

}  // namespace

int run_compare(const CommandLine& line) {
  const auto [base, axes] = request_and_axes(line);
  Runner runner;
  report::Comparison comparison;
  with_jobs(line.jobs, [&] { comparison = study::compare(runner, base, axes); });
  std::string text;
  if (line.json) {
    const Request first = first_request(base, axes);
    auto e = envelope(line, runner, first);
    e.calibration_id = runner.simulator(first)->gpu().calibration_id;
    text = report::comparison_json(comparison, e);
  } else {
    text = line.csv ? report::comparison_csv(comparison) : report::compare_page(comparison, page_style(line.no_color));
  }
  write_file(line.output, text);
  return kExitOk;
}

int run_sweep(const CommandLine& line) {
  const auto [base, axes] = request_and_axes(line);
  Runner runner;
  std::vector<report::SweepPoint> points;
  {
    Progress progress(!line.quiet);
    study::SweepOptions options;
    options.jobs = line.jobs;
    options.progress = [&](std::size_t done, std::size_t total) { progress(done, total); };
    points = study::sweep(runner, base, axes, options);
  }
  const auto failed = std::count_if(points.begin(), points.end(), [](const auto& p) { return !p.error.empty(); });
  if (failed > 0 && !line.quiet) {
    const auto first = std::find_if(points.begin(), points.end(), [](const auto& p) { return !p.error.empty(); });
    say(fmt::format("warning: {} of {} points have no answer; the first: {}", failed, points.size(),
                    one_line(first->error, 300)));
  }
  std::string text;
  if (line.json_lines) {
    for (const auto& point : points) text += report::sweep_point_json(point) + "\n";
  } else if (line.json) {
    const Request first = first_request(base, axes);
    auto e = envelope(line, runner, first);
    e.calibration_id = runner.simulator(first)->gpu().calibration_id;
    text = report::sweep_json(points, e);
  } else {
    text = line.csv ? report::sweep_csv(points) : report::sweep_page(points, page_style(line.no_color));
  }
  write_file(line.output, text);
  return kExitOk;
}

}  // namespace voltaic::tools
