// SPDX-License-Identifier: MIT
#include "sim/report/gpu_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "arch/quantity_text.hpp"
#include "sim/report/text_table.hpp"

namespace voltaic::report {
namespace {

using arch::GpuSpec;
using arch::ResolvedGpu;
using Json = nlohmann::ordered_json;

constexpr std::size_t kPageWidth = 100;
constexpr std::size_t kNameWidth = 29;
constexpr std::size_t kValueWidth = 13;

/// Multiply-adds of integers are not floating-point operations.
std::string rate_text(double per_s, DataType type) {
  if (per_s <= 0) return "-";
  std::string text = arch::format_quantity(per_s, "flop_per_s");
  if (!is_floating(type)) text.replace(text.find("FLOP"), 4, "OP");
  return text;
}

std::string bandwidth_text(BytesPerSecond b) {
  return b.value >= 1e9 && b.value < 1e13 ? fmt::format("{:.4g} GB/s", b.value / 1e9)
                                          : arch::format_quantity(b.value, "bytes_per_s");
}

double sparse_peak(const GpuSpec& g, DataType type) {
  if (g.sm.tensor_cores <= 0) return 0;
  return 2 * g.sm.tensor_sparse[type] * static_cast<double>(g.sm.count) * g.clocks.boost.value;
}

std::string headline(const GpuSpec& g) {
  std::string architecture(to_string(g.architecture));
  architecture.front() = static_cast<char>(architecture.front() - 'a' + 'A');
  std::string out = fmt::format("{}: {}, {} ({}, compute capability {})\n", g.name, g.product, g.chip, architecture,
                                g.compute_capability);
  std::string facts =
      fmt::format("{} SMs at {}, {} FP32, ", g.sm.count, arch::format_quantity(g.clocks.boost.value, "hz"),
                  rate_text(g.cuda_core_peak(DataType::fp32).value, DataType::fp32));
  if (g.has_tensor_path(DataType::fp16)) {
    facts += fmt::format("{} FP16 tensor, ", rate_text(g.tensor_peak(DataType::fp16).value, DataType::fp16));
  }
  facts += fmt::format("{} {} at {}, {}", arch::format_quantity(g.dram.capacity.value, "bytes"), g.dram.technology,
                       bandwidth_text(g.dram.peak_bandwidth), arch::format_quantity(g.power.limit.value, "w"));
  return out + wrap(facts, static_cast<int>(kPageWidth), "");
}

std::string peak_section(const GpuSpec& g) {
  TextTable table;
  table.column("Peak at the boost clock", Align::left);
  table.column("CUDA cores");
  table.column("tensor cores");
  table.column("2:4 sparse");
  table.column("FMA per cycle and SM");
  for (const auto& type : kDataTypes) {
    const double cuda = g.cuda_core_peak(type.type).value;
    const double tensor = g.tensor_peak(type.type).value;
    if (cuda <= 0 && tensor <= 0) continue;
    const double fastest = tensor > 0 ? g.sm.tensor[type.type] : g.sm.cuda_core[type.type];
    table.row({"  " + std::string(type.name), rate_text(cuda, type.type), rate_text(tensor, type.type),
               rate_text(sparse_peak(g, type.type), type.type), fmt::format("{:g}", fastest)});
  }
  return table.render({});
}

struct Section {
  std::string_view prefix;
  std::string_view title;
};
constexpr std::array<Section, 9> kSections{{{"gpu.sm.", "Streaming multiprocessor"},
                                            {"gpu.pipeline.", "Pipeline of an SM, from issue to a dependent issue"},
                                            {"gpu.clocks.", "Clocks"},
                                            {"gpu.l1.", "L1 and shared memory"},
                                            {"gpu.l2.", "L2"},
                                            {"gpu.dram.", "Device memory"},
                                            {"gpu.links.", "Links"},
                                            {"gpu.power.", "Power"},
                                            {"gpu.price.", "Price"}}};

/// Rates stand in the peak table, MIG fields in theirs.
bool has_line(const arch::FieldView& field, std::string_view prefix) {
  if (!field.path.starts_with(prefix)) return false;
  return field.path.find('.', prefix.size()) == std::string::npos;
}

std::string field_line(const arch::FieldView& field, std::string_view prefix, bool color) {
  std::string name = field.path.substr(prefix.size());
  std::replace(name.begin(), name.end(), '_', ' ');
  // A long source goes on in its own column.
  const std::string indent(2 + kNameWidth + kValueWidth + 2, ' ');
  const std::string source = wrap(field.source, static_cast<int>(kPageWidth), indent).substr(indent.size());
  return fmt::format("  {:<{}}{:>{}}  {}{}{}", name, kNameWidth, field.value, kValueWidth, color ? "\033[2m" : "",
                     source, color ? "\033[0m" : "");
}

std::string field_sections(const ResolvedGpu& gpu, bool color) {
  std::string out;
  for (const Section& section : kSections) {
    std::string lines;
    for (const auto& field : gpu.fields) {
      if (has_line(field, section.prefix)) lines += field_line(field, section.prefix, color);
    }
    if (lines.empty()) continue;
    out += fmt::format("\n{} ({})\n{}", section.title, section.prefix.substr(0, section.prefix.size() - 1), lines);
  }
  return out;
}

std::string mig_section(const GpuSpec& g) {
  if (g.mig.empty()) return "";
  TextTable table;
  table.column("MIG profile", Align::left);
  table.column("SMs");
  table.column("memory");
  table.column("DRAM bandwidth");
  table.column("L2");
  table.column("at most");
  for (const auto& p : g.mig) {
    table.row({"  " + p.name, std::to_string(p.sm_count), arch::format_quantity(p.memory.value, "bytes"),
               bandwidth_text(g.dram.peak_bandwidth * p.memory_fraction),
               arch::format_quantity(g.l2.capacity.value * p.memory_fraction, "bytes"),
               std::to_string(p.max_instances)});
  }
  return '\n' + table.render({}) +
         fmt::format("  A slice is a GPU of its own: --gpu {}:{}\n", g.name, g.mig.front().name);
}

Json number(double v) {
  if (v == static_cast<double>(static_cast<std::int64_t>(v)) && v < 0x1p53) return static_cast<std::int64_t>(v);
  return v;
}

Json peaks_json(const GpuSpec& g) {
  Json out = Json::array();
  for (const auto& type : kDataTypes) {
    const double cuda = g.cuda_core_peak(type.type).value;
    const double tensor = g.tensor_peak(type.type).value;
    if (cuda <= 0 && tensor <= 0) continue;
    out.push_back({{"dtype", type.name},
                   {"cuda_core_flop_per_s", number(cuda)},
                   {"tensor_flop_per_s", number(tensor)},
                   {"tensor_sparse_flop_per_s", number(sparse_peak(g, type.type))}});
  }
  return out;
}

}  // namespace

std::string gpu_table(const std::vector<ResolvedGpu>& gpus, int width) {
  TextTable table;
  table.column("name", Align::left, true);
  table.column("architecture", Align::left);
  table.column("SMs");
  table.column("FP32");
  table.column("FP16 tensor");
  table.column("memory");
  table.column("bandwidth");
  table.column("power");
  for (const auto& gpu : gpus) {
    const GpuSpec& g = gpu.spec;
    table.row({g.name, std::string(to_string(g.architecture)), std::to_string(g.sm.count),
               rate_text(g.cuda_core_peak(DataType::fp32).value, DataType::fp32),
               rate_text(g.tensor_peak(DataType::fp16).value, DataType::fp16),
               arch::format_quantity(g.dram.capacity.value, "bytes"), bandwidth_text(g.dram.peak_bandwidth),
               arch::format_quantity(g.power.limit.value, "w")});
  }
  return table.render({width, false});
}

std::string gpu_page(const ResolvedGpu& gpu, bool color) {
  std::string out =
      headline(gpu.spec) + '\n' + peak_section(gpu.spec) + field_sections(gpu, color) + mig_section(gpu.spec);
  out += fmt::format("\nCalibration: {}. Sources: arch/SOURCES.md.\n", gpu.calibration_id);
  out += fmt::format("Each line is a --set path, blanks as underscores: --set gpu.dram.peak_bandwidth=2.4TB/s\n");
  for (const auto& note : gpu.notes) out += wrap("Note: " + note, static_cast<int>(kPageWidth), "");
  return out;
}

std::string gpu_json(const ResolvedGpu& gpu) {
  const GpuSpec& g = gpu.spec;
  Json out{{"name", g.name},
           {"product", g.product},
           {"chip", g.chip},
           {"architecture", to_string(g.architecture)},
           {"compute_capability", g.compute_capability},
           {"memory_technology", g.dram.technology},
           {"modified", gpu.modified},
           {"peaks", peaks_json(g)}};
  out["fields"] = Json::array();
  for (const auto& f : gpu.fields) {
    out["fields"].push_back(
        {{"path", f.path}, {"value", number(f.number)}, {"unit", f.unit}, {"text", f.value}, {"source", f.source}});
  }
  out["mig"] = Json::array();
  for (const auto& p : g.mig) {
    out["mig"].push_back({{"name", p.name},
                          {"sm_count", p.sm_count},
                          {"memory_bytes", number(p.memory.value)},
                          {"memory_fraction", number(p.memory_fraction)},
                          {"max_instances", p.max_instances}});
  }
  out["description"] = Json::parse(gpu.json);
  return out.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace voltaic::report
