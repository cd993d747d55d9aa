// SPDX-License-Identifier: MIT
#include "sim/report/csv.hpp"

#include "sim/report/detail/layer_groups.hpp"
#include "sim/report/units.hpp"

namespace voltaic::report {
namespace {

class Csv {
 public:
  void cell(std::string_view text) {
    if (!first_) out_ += ',';
    first_ = false;
    out_ += csv_cell(text);
  }
  void cell(double number) { cell(std::string_view(shortest(number))); }
  void cell(std::int64_t number) { cell(std::string_view(std::to_string(number))); }
  void cell(const Optional& o) { o.value ? cell(*o.value) : cell(std::string_view{}); }
  void end() {
    out_ += '\n';
    first_ = true;
  }
  void header(std::initializer_list<std::string_view> names) {
    for (const auto n : names) cell(n);
    end();
  }
  std::string take() { return std::move(out_); }

 private:
  std::string out_;
  bool first_ = true;
};

}  // namespace

std::string csv_cell(std::string_view text) {
  if (text.find_first_of(",\"\n\r") == std::string_view::npos) return std::string(text);
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

std::string prediction_csv(const Prediction& p) {
  Csv csv;
  csv.header({"layer", "phase", "node", "op", "kernel", "library", "time_s", "bound", "roofline_s", "mac", "flop",
              "dram_bytes", "l2_bytes", "ctas", "waves", "occupancy", "repeats", "energy_j"});
  const auto rows = rows_by_node(p);
  for (const auto& layer : p.layers) {
    for (const std::uint32_t id : layer.nodes) {
      const graph::Node& node = p.graph.node(id);
      for (const auto& k : p.distinct[p.nodes[rows[id]].distinct].kernels) {
        csv.cell(layer.id);
        csv.cell(graph::to_string(layer.phase));
        csv.cell(node.id);
        csv.cell(graph::to_string(node.op));
        csv.cell(k.launch.name);
        csv.cell(k.launch.library);
        csv.cell(k.cost.time.value);
        csv.cell(kernel::to_string(k.cost.bound()));
        csv.cell(k.cost.roofline.value);
        csv.cell(k.launch.work.mac);
        csv.cell(2 * k.launch.work.mac);
        csv.cell(k.cost.dram_traffic.value);
        csv.cell(k.cost.l2_traffic.value);
        csv.cell(k.launch.ctas());
        csv.cell(k.cost.waves);
        csv.cell(k.cost.occupancy);
        csv.cell(layer.repeats);
        csv.cell(k.cost.energy.value);
        csv.end();
      }
    }
  }
  return csv.take();
}

std::string comparison_csv(const Comparison& c) {
  Csv csv;
  csv.header({"label", "time_s", "low_s", "high_s", "speedup", "samples_per_s", "memory_bytes", "fits", "energy_j",
              "average_power_w", "reason"});
  for (const auto& r : c.rows) {
    csv.cell(r.label);
    csv.cell(r.time.value);
    csv.cell(r.interval.low.value);
    csv.cell(r.interval.high.value);
    csv.cell(r.speedup);
    csv.cell(r.samples_per_s);
    csv.cell(r.memory_bytes);
    csv.cell(std::string_view(r.fits ? "true" : "false"));
    csv.cell(r.energy_j);
    csv.cell(r.average_power_w);
    csv.cell(r.reason);
    csv.end();
  }
  return csv.take();
}

std::string sweep_csv(std::span<const SweepPoint> points) {
  Csv csv;
  if (!points.empty()) {
    for (const auto& [name, value] : points.front().set) csv.cell(name);
  }
  csv.header({"time_s", "samples_per_s", "tokens_per_s", "memory_bytes", "fits", "energy_j", "average_power_w",
              "cost_usd", "error"});
  for (const auto& p : points) {
    for (const auto& [name, value] : p.set) csv.cell(value);
    const bool ok = p.error.empty();
    ok ? csv.cell(p.time.value) : csv.cell(std::string_view{});
    ok ? csv.cell(p.samples_per_s) : csv.cell(std::string_view{});
    ok&& p.tokens_per_s ? csv.cell(*p.tokens_per_s) : csv.cell(std::string_view{});
    ok ? csv.cell(p.memory_bytes) : csv.cell(std::string_view{});
    csv.cell(std::string_view(!ok ? "" : p.fits ? "true" : "false"));
    csv.cell(p.energy_j);
    csv.cell(p.average_power_w);
    csv.cell(p.cost_usd);
    csv.cell(p.error);
    csv.end();
  }
  return csv.take();
}

std::string fit_csv(const Fit& f) {
  Csv csv;
  csv.header({"what", "memory_bytes", "capacity_bytes", "fits", "time_ratio", "note"});
  const auto row = [&csv](std::string_view what, std::int64_t bytes, std::int64_t capacity, std::optional<double> ratio,
                          std::string_view note) {
    csv.cell(what);
    csv.cell(bytes);
    csv.cell(capacity);
    csv.cell(std::string_view(bytes <= capacity ? "true" : "false"));
    ratio ? csv.cell(*ratio) : csv.cell(std::string_view{});
    csv.cell(note);
    csv.end();
  };
  const MemoryUse& use = f.asked.memory;
  row("as asked", use.total(), use.capacity, 1.0, use.largest());
  for (const auto& c : f.changes) row(c.what, c.memory_bytes, c.capacity_bytes, c.time_ratio, c.note);
  return csv.take();
}

std::string workload_csv(const WorkloadView& w) {
  Csv csv;
  csv.header({"layer", "op", "output_shape", "parameters", "mac", "flop"});
  for (const auto& l : w.layers) {
    csv.cell(l.id);
    csv.cell(l.op);
    csv.cell(l.output_shape);
    csv.cell(l.parameters);
    csv.cell(l.mac);
    csv.cell(l.flop);
    csv.end();
  }
  return csv.take();
}

}  // namespace voltaic::report
