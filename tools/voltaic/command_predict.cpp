// SPDX-License-Identifier: MIT
// predict and explain: one request, one answer.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "arch/units/error.hpp"
#include "sim/report/csv.hpp"
#include "sim/report/json.hpp"
#include "sim/report/table.hpp"
#include "sim/report/trace.hpp"
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
    return std::make_shared<const arch::ResolvedGpu>(arch::resolve_gpu(request.gpu, overrides, request.calibration));
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

}  // namespace

int run_predict(const CommandLine& line) {
  if (!line.report.empty()) throw UnsupportedError("--report is not built yet; --json, --csv and --trace are");
  if (line.trace == "-") throw UsageError("--trace: expected a file");
  if (!line.trace.empty() && line.trace == line.output)
    throw UsageError("--trace and --output: expected two files, got one");
  const std::optional<Goal> goal = line.fail_if.empty() ? std::nullopt : std::optional(parse_goal(line.fail_if));
  const Request request = single_request(line);
  Runner runner;
  report::Prediction p = runner.predict(request);
  const bool explain = line.command == "explain";
  if (explain) {
    p.sensitivities = sensitivities(runner.workload(request)->graph, runner.options(request),
                                    *runner.simulator(request), p.total, sensitivity_inputs(runner, request));
    if (!line.kernel.empty()) keep_kernel(p, line.kernel);
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
                           : explain  ? report::explain_page(p, style)
                                      : report::predict_page(p, style);
  if (!line.trace.empty()) {
    write_file(line.trace, [&](std::ostream& out) { report::write_trace(p, out); });
  }
  write_file(line.output, text);
  if (missed) {
    say("voltaic: goal not met: " + one_line(line.fail_if));
    return kExitGoal;
  }
  return kExitOk;
}

}  // namespace voltaic::tools
