// SPDX-License-Identifier: MIT
// predict and explain: one request, one answer.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>

#include "arch/units/error.hpp"
#include "sim/cycle/what_if.hpp"
#include "sim/jobs.hpp"
#include "sim/kernel_profiles.hpp"
#include "sim/report/csv.hpp"
#include "sim/report/json.hpp"
#include "sim/report/table.hpp"
#include "sim/report/trace.hpp"
#include "sim/report/warp_trace.hpp"
#include "sim/sensitivity.hpp"
#include "tools/voltaic/commands.hpp"
#include "tools/voltaic/goal.hpp"
#include "tools/voltaic/output.hpp"

namespace voltaic::tools {
namespace {

SensitivityInputs sensitivity_inputs(Runner& runner, const Request& request) {
  SensitivityInputs inputs;
  inputs.resolve = [&request](const std::vector<arch::Override>& extra) {
    auto overrides = request.overrides;
    overrides.insert(overrides.end(), extra.begin(), extra.end());
    arch::ResolvedGpu gpu = arch::resolve_gpu(request.gpu, overrides, request.calibration);
    arch::operate(gpu, request.operating);
    return std::make_shared<const arch::ResolvedGpu>(std::move(gpu));
  };
  inputs.double_batch = [&runner, request]() -> std::optional<std::pair<graph::OpGraph, SimulationOptions>> {
    Request twice = request;
    const std::int64_t batch = runner.workload(request)->batch;
    if (batch > (std::int64_t{1} << 40)) return std::nullopt;
    twice.batch = 2 * batch;
    try {
      const auto work = runner.workload(twice);
      if (work->batch != 2 * batch) return std::nullopt;
      return std::pair{work->graph, runner.options(twice)};
    } catch (const std::runtime_error&) {
      return std::nullopt;  // sizes without a batch, or too large
    }
  };
  return inputs;
}

/// As sensitivities(), of a whole completion.
std::vector<report::Sensitivity> completion_sensitivities(Runner& runner, const Request& request, Seconds base) {
  std::vector<report::Sensitivity> out;
  const auto add = [&](std::string_view path, std::string change, const Request& changed, double share) {
    const double ratio = base.value > 0 ? runner.predict(changed).total / base : 1;
    out.push_back({std::string(path), std::move(change), share * ratio});
  };
  for (const HardwareChange& c : hardware_changes()) {
    Request changed = request;
    for (const auto path : c.overrides) changed.overrides.push_back({std::string(path), std::string(c.factor), true});
    add(c.path, "*" + std::string(c.factor), changed, 1);
  }
  Request faster_host = request;
  faster_host.host_scale = 0.5;
  add("host.launch_cost", "*0.5", faster_host, 1);
  Request twice = request;
  twice.batch = 2 * request.batch.value_or(1);
  add("batch", "*2", twice, 0.5);
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.time_ratio < b.time_ratio; });
  return out;
}

/// A completion under limits from a quarter of the board's to its own.
std::vector<report::CapPoint> completion_power_caps(Runner& runner, Request request) {
  constexpr int kSteps = 6;
  const arch::PowerSpec& board = runner.simulator(request)->gpu().spec.power;
  const double limit = board.limit.value;
  constexpr double kAboveIdle = 5;
  const double least = std::min(limit, std::max(limit / 4, board.idle.value + kAboveIdle));
  std::vector<report::CapPoint> out;
  for (int i = 0; i <= kSteps; ++i) {
    request.operating.power_cap = Watts{least + (limit - least) * i / kSteps};
    const report::Prediction p = runner.predict(request);
    out.push_back({*request.operating.power_cap, p.total, Joules{p.energy_j.value.value_or(0)}});
  }
  return out;
}

/// The answer under each power limit; the bound knows none.
std::vector<report::CapPoint> power_caps(Runner& runner, Request request) {
  if (request.engine == cost::EngineKind::roofline) return {};
  request.operating.power_cap.reset();
  if (request.generate) return completion_power_caps(runner, request);
  return runner.simulator(request)->power_caps(runner.predict(request), runner.options(request));
}

/// Keeps only the layer (or the layers holding the node) called `id`.
void keep_kernel(report::Prediction& p, const std::string& id) {
  std::vector<report::LayerRow> kept;
  std::vector<std::string> names;
  for (const auto& layer : p.layers) {
    names.push_back(layer.id);
    report::LayerRow part = layer;
    if (layer.id != id) {
      std::erase_if(part.nodes, [&](std::uint32_t n) { return p.graph.node(n).id != id; });
      for (const auto n : layer.nodes) names.push_back(p.graph.node(n).id);
    }
    if (!part.nodes.empty()) kept.push_back(std::move(part));
  }
  if (kept.empty()) {
    const std::string near = nearest(id, names);
    throw UsageError(fmt::format("--kernel: no layer or node '{}'{}", one_line(id),
                                 near.empty() ? "" : ", did you mean '" + near + "'?"));
  }
  p.layers = std::move(kept);
}

/// FROM:TO of --trace-cycles.
std::pair<std::int64_t, std::int64_t> cycle_window(const CommandLine& line, const Request& request) {
  const std::string& text = line.trace_cycles;
  if (request.engine != cost::EngineKind::cycle) throw UsageError("--trace-cycles: belongs to --engine cycle");
  if (line.trace.empty()) throw UsageError("--trace-cycles: expected --trace FILE too");
  std::int64_t from = 0, to = 0;
  const char* end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, from);
  if (first.ec == std::errc{} && first.ptr != end && *first.ptr == ':') {
    const auto second = std::from_chars(first.ptr + 1, end, to);
    constexpr std::int64_t kMost = 1'000'000'000'000, kWidest = 1'000'000;
    if (second.ec == std::errc{} && second.ptr == end && from >= 0 && from < to && to <= kMost) {
      if (to - from <= kWidest) return {from, to};
      throw UsageError(
          fmt::format("--trace-cycles: expected a window of at most {} cycles, got {}", kWidest, to - from));
    }
  }
  throw UsageError(fmt::format("--trace-cycles: expected FROM:TO in cycles, like 0:5000, got '{}'", one_line(text)));
}

void write_warps(const CommandLine& line, std::pair<std::int64_t, std::int64_t> window, const cycle::Profile& kernel,
                 const std::string& gpu) {
  const auto part = std::max_element(kernel.parts.begin(), kernel.parts.end(), [](const auto& a, const auto& b) {
    return a.times * a.sampled.counters.cycles < b.times * b.sampled.counters.cycles;
  });
  const auto spans = cycle::warp_window(*part, window.first, window.second);
  write_file(line.trace, [&](std::ostream& out) {
    report::write_warp_trace({part->program.name, gpu, part->machine.partitions, spans}, out);
  });
}

/// The page, and on the cycle engine the profiles of the kernels that take longest.
std::string explained(const report::Prediction& p, const report::PageStyle& style) {
  constexpr std::size_t kProfiles = 3;
  std::string text = report::explain_page(p, style);
  for (std::size_t i = 0; i < std::min(kProfiles, p.profiles.size()); ++i) {
    text += "\n" + report::profile_page(p.profiles[i], style);
  }
  if (p.profiles.size() > kProfiles) {
    text += fmt::format("\n{} more kernels: --kernel ID shows one, --json all\n", p.profiles.size() - kProfiles);
  }
  return text;
}

int answer(const CommandLine& line) {
  if (!line.report.empty()) throw UnsupportedError("--report is not built yet; --json, --csv and --trace are");
  if (line.trace == "-") throw UsageError("--trace: expected a file");
  if (!line.trace.empty() && line.trace == line.output)
    throw UsageError("--trace and --output: expected two files, got one");
  const std::optional<Goal> goal = line.fail_if.empty() ? std::nullopt : std::optional(parse_goal(line.fail_if));
  const Request request = single_request(line);
  const auto window =
      line.trace_cycles.empty() ? std::pair<std::int64_t, std::int64_t>{0, 0} : cycle_window(line, request);
  Runner runner;
  report::Prediction p = runner.predict(request);
  const bool explain = line.command == "explain";
  if (explain) {
    p.sensitivities = request.generate
                          ? completion_sensitivities(runner, request, p.total)
                          : sensitivities(runner.workload(request)->graph, runner.options(request),
                                          *runner.simulator(request), p.total, sensitivity_inputs(runner, request));
    p.power_caps = power_caps(runner, request);
    if (!line.kernel.empty()) keep_kernel(p, line.kernel);
    if (request.engine == cost::EngineKind::cycle) add_profiles(p, *runner.simulator(request), request.sampling);
  }
  if (!line.quiet) {
    for (const auto& warning : p.warnings) say("warning: " + one_line(warning, 1000));
  }
  const std::string json = line.json || goal ? report::prediction_json(p, line.command, VOLTAIC_VERSION) : "";
  const bool missed =
      goal && holds(*goal, json);  // a goal that cannot be checked is refused before anything is written
  report::PageStyle style = page_style(line.no_color);
  if (line.output != "-") style = {100, false};
  const std::string text = line.json  ? json
                           : line.csv ? report::prediction_csv(p)
                           : explain  ? explained(p, style)
                                      : report::predict_page(p, style);
  if (!line.trace_cycles.empty()) {
    write_warps(line, window, *longest_kernel(p, *runner.simulator(request), request.sampling), p.gpu);
  } else if (!line.trace.empty()) {
    write_file(line.trace, [&](std::ostream& out) { report::write_trace(p, out); });
  }
  write_file(line.output, text);
  if (missed) {
    say("voltaic: goal not met: " + one_line(line.fail_if));
    return kExitGoal;
  }
  return kExitOk;
}

}  // namespace

int run_predict(const CommandLine& line) {
  int code = kExitOk;
  with_jobs(line.jobs, [&] { code = answer(line); });
  return code;
}

}  // namespace voltaic::tools
