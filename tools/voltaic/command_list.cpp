// SPDX-License-Identifier: MIT
// list, show, support and schema: what Voltaic knows.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "arch/units/error.hpp"
#include "sim/graph/operation.hpp"
#include "sim/report/csv.hpp"
#include "sim/report/gpu_page.hpp"
#include "sim/report/json.hpp"
#include "sim/report/table.hpp"
#include "tools/voltaic/commands.hpp"
#include "tools/voltaic/help.hpp"
#include "tools/voltaic/output.hpp"

namespace voltaic::tools {
namespace {

using Json = nlohmann::ordered_json;
using report::Align;
using report::TextTable;

report::Envelope envelope(std::string command) {
  report::Envelope e;
  e.command = std::move(command);
  e.tool_version = VOLTAIC_VERSION;
  return e;
}

std::string list_workloads(bool json, const report::PageStyle& style, Json& result) {
  TextTable table;
  table.column("name", Align::left);
  table.column("family", Align::left);
  table.column("what", Align::left, true);
  for (const auto& entry : workloads::zoo()) {
    table.row({entry.name, entry.family, entry.description});
    result["items"].push_back({{"name", entry.name}, {"family", entry.family}, {"description", entry.description}});
  }
  return json ? "" : table.render(style);
}

std::string list_operations(bool json, const report::PageStyle& style, Json& result) {
  TextTable table;
  table.column("operation", Align::left);
  table.column("family", Align::left);
  for (const auto op : graph::all_ops()) {
    const std::string name(graph::to_string(op));
    const std::string family(graph::to_string(graph::family(op)));
    table.row({name, family});
    result["items"].push_back({{"name", name}, {"family", family}});
  }
  return json ? "" : table.render(style);
}

std::string list_options(bool json, const report::PageStyle& style, Json& result) {
  TextTable table;
  table.column("option", Align::left);
  table.column("value", Align::left);
  table.column("what", Align::left, true);
  for (const auto& option : request_options()) {
    table.row({"--" + std::string(option.name), std::string(option.metavar), std::string(option.help)});
    result["items"].push_back({{"name", option.name}, {"value", option.metavar}, {"description", option.help}});
  }
  return json ? "" : table.render(style);
}

std::string list_gpus(bool json, const report::PageStyle& style, Json& result) {
  std::vector<arch::ResolvedGpu> gpus;
  for (const auto& name : arch::gpu_names()) gpus.push_back(arch::resolve_gpu(name));
  for (const auto& gpu : gpus) {
    const auto& s = gpu.spec;
    result["items"].push_back({{"name", s.name},
                               {"product", s.product},
                               {"architecture", arch::to_string(s.architecture)},
                               {"sm_count", s.sm.count},
                               {"fp32_peak_flop_per_s", s.cuda_core_peak(DataType::fp32).value},
                               {"fp16_tensor_peak_flop_per_s", s.tensor_peak(DataType::fp16).value},
                               {"memory_bytes", static_cast<std::int64_t>(s.dram.capacity.value)},
                               {"dram_bandwidth_bytes_per_s", s.dram.peak_bandwidth.value},
                               {"power_limit_w", s.power.limit.value}});
  }
  return json ? "" : report::gpu_table(gpus, style.width);
}

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const auto& w : words) out += (out.empty() ? "" : ", ") + w;
  return out;
}

report::WorkloadView view_of(const workloads::Workload& work, double bytes_per_element) {
  report::WorkloadView view = report::view_workload(work.graph);
  view.name = work.name;
  view.kind = work.kind;
  view.input_path = work.source_path;
  view.input_sha256 = work.source_sha256;
  view.parameters = work.parameters;
  view.parameters_active_per_token = work.parameters_active_per_token;
  view.kv_cache_bytes_per_token = work.kv_cache_elements_per_token * bytes_per_element;
  return view;
}

/// Bytes of a cached key or value: caches are kept in the activation type, which int8 and fp8 requests leave at 16
/// bits.
double cache_element_bytes(graph::Precision p) {
  using graph::Precision;
  if (p == Precision::fp64) return 8;
  return p == Precision::fp32 || p == Precision::tf32 ? 4 : 2;
}

int show_workload(const CommandLine& line) {
  CommandLine inner = line;
  inner.positional = {line.positional.at(1)};
  const Request request = single_request(inner);
  Runner runner;
  const auto work = runner.workload(request);
  const auto view = view_of(*work, cache_element_bytes(request.resolved_precision()));
  if (line.json) {
    auto e = envelope("show-workload");
    e.assumptions = work->assumptions;
    e.warnings = work->warnings;
    e.request.emplace_back("workload", request.workload);
    if (!work->source_path.empty()) e.inputs.push_back({work->source_path, work->source_sha256});
    write_file(line.output, report::workload_json(view, e));
  } else {
    write_file(line.output,
               line.csv ? report::workload_csv(view) : report::workload_page(view, page_style(line.no_color)));
  }
  return kExitOk;
}

int show_gpu(const CommandLine& line) {
  CommandLine inner = line;
  inner.positional = {"none"};
  const Request request = single_request(inner);
  const auto gpu = arch::resolve_gpu(line.positional.at(1), request.overrides, request.calibration);
  if (line.json) {
    auto e = envelope("show-gpu");
    e.assumptions = gpu.notes;
    e.calibration_id = gpu.calibration_id;
    e.request.emplace_back("gpu", line.positional.at(1));
    write_file(line.output, report::document_json(e, report::gpu_json(gpu)));
  } else {
    write_file(line.output, report::gpu_page(gpu));
  }
  return kExitOk;
}

/// What this version answers, as four lines.
std::string coverage_page() {
  std::vector<std::string> names;
  names.reserve(kCommands.size());
  for (const auto& c : kCommands) names.emplace_back(c.name);
  std::vector<std::string> future;
  future.reserve(kFutureCommands.size());
  for (const auto& [name, what] : kFutureCommands) future.emplace_back(name);
  std::vector<std::string> precisions;
  precisions.reserve(graph::all_precisions().size());
  for (const auto p : graph::all_precisions()) precisions.emplace_back(graph::to_string(p));
  std::vector<std::string> zoo;
  for (const auto& z : workloads::zoo()) zoo.push_back(z.name);
  const auto row = [](const char* title, const std::vector<std::string>& words) {
    return fmt::format("{:<11}", title) + report::wrap(joined(words), 89, "           ").substr(11) + "\n";
  };
  return row("GPUs", arch::gpu_names()) + row("workloads", zoo) + row("precisions", precisions) +
         row("commands", names) + row("not yet", future);
}

int support_overview(const CommandLine& line) {
  if (!line.json) {
    write_file(line.output, coverage_page());
    return kExitOk;
  }
  Json result;
  result["gpus"] = arch::gpu_names();
  result["workloads"] = Json::array();
  for (const auto& z : workloads::zoo()) result["workloads"].push_back(z.name);
  result["precisions"] = Json::array();
  for (const auto p : graph::all_precisions()) result["precisions"].push_back(graph::to_string(p));
  result["commands"] = Json::array();
  for (const auto& c : kCommands) result["commands"].push_back(c.name);
  result["not_built_yet"] = Json::array();
  for (const auto& [name, what] : kFutureCommands) result["not_built_yet"].push_back(name);
  write_file(line.output, report::document_json(envelope("support"), result.dump()));
  return kExitOk;
}

}  // namespace

int run_list(const CommandLine& line) {
  const std::string what = line.positional.empty() ? "" : line.positional.front();
  const report::PageStyle style = page_style(line.no_color);
  Json result;
  result["what"] = what;
  result["items"] = Json::array();
  std::string text;
  if (what == "gpus") {
    text = list_gpus(line.json, style, result);
  } else if (what == "workloads") {
    text = list_workloads(line.json, style, result);
  } else if (what == "operations") {
    text = list_operations(line.json, style, result);
  } else if (what == "options") {
    text = list_options(line.json, style, result);
  } else {
    throw UsageError(fmt::format("list: expected gpus, workloads, operations or options, got '{}'", one_line(what)));
  }
  write_file(line.output, line.json ? report::document_json(envelope("list"), result.dump()) : text);
  return kExitOk;
}

int run_show(const CommandLine& line) {
  const std::string what = line.positional.empty() ? "" : line.positional.front();
  if (line.positional.size() < 2) throw UsageError("show: expected gpu NAME or workload NAME");
  if (what == "gpu") return show_gpu(line);
  if (what == "workload") return show_workload(line);
  if (what == "system") throw UnsupportedError("show system is not built yet");
  throw UsageError(fmt::format("show: expected gpu or workload, got '{}'", one_line(what)));
}

int run_support(const CommandLine& line) {
  if (line.positional.empty()) return support_overview(line);
  const Request request = single_request(line);
  Runner runner;
  const report::Prediction p = runner.predict(request);
  Json result;
  result["workload"] = p.workload;
  result["gpu"] = p.gpu;
  result["precision"] = graph::to_string(request.resolved_precision());
  result["supported"] = p.unmodelled.empty();
  result["evidence"] = p.interval.evidence;
  result["interval_relative_half_width"] =
      p.total.value > 0 ? (p.interval.high.value - p.interval.low.value) / 2 / p.total.value : 0.0;
  result["unmodelled"] = Json::array();
  for (const auto& u : p.unmodelled)
    result["unmodelled"].push_back({{"op", u.op}, {"count", u.count}, {"reason", u.reason}});
  if (line.json) {
    auto e = envelope("support");
    e.assumptions = p.assumptions;
    e.warnings = p.warnings;
    e.calibration_id = p.calibration_id;
    e.request = p.request;
    write_file(line.output, report::document_json(e, result.dump()));
    return kExitOk;
  }
  std::string text =
      fmt::format("{} on {} in {}: {}\n", p.workload, p.gpu, graph::to_string(request.resolved_precision()),
                  p.unmodelled.empty() ? "covered" : "covered in part");
  text += fmt::format("90 % interval of the step: {:.1f} % either way, {}\n",
                      100 * result["interval_relative_half_width"].get<double>(), p.interval.evidence);
  for (const auto& u : p.unmodelled) text += fmt::format("not modelled: {} x {} ({})\n", u.count, u.op, u.reason);
  for (const auto& a : p.assumptions) text += report::wrap(a, 98, "  ") + "\n";
  write_file(line.output, text);
  return kExitOk;
}

int run_schema(const CommandLine& line) {
  if (line.positional.empty()) {
    std::string text;
    for (const auto& name : report::schema_names()) text += name + "\n";
    write_file(line.output, text);
    return kExitOk;
  }
  const std::string& name = line.positional.front();
  const auto names = report::schema_names();
  if (std::find(names.begin(), names.end(), name) == names.end()) {
    throw UsageError(fmt::format("schema: no schema '{}'; there are {}", one_line(name), joined(names)));
  }
  write_file(line.output, report::schema_text(name));
  return kExitOk;
}

}  // namespace voltaic::tools
