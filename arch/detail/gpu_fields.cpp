// SPDX-License-Identifier: MIT
#include "arch/detail/gpu_fields.hpp"

#include <fmt/format.h>

#include <cmath>

#include "arch/quantity_text.hpp"

namespace voltaic::arch::detail {
namespace {

// Limits that no machine meets but that keep every later product far from overflow.
constexpr double kSmallest = 1e-12;
constexpr double kLargest = 1e18;
constexpr double kLargestCount = 1e6;
constexpr double kLargestLatency = 1e5;  ///< Cycles of one instruction.

class List {
 public:
  void add(std::string path, std::string_view unit, Rule rule, Slot slot, bool required = true) {
    fields.push_back({std::move(path), unit, rule, slot, required});
  }
  template <class Tag>
  void add(std::string path, std::string_view unit, Rule rule, Quantity<Tag>& q) {
    add(std::move(path), unit, rule, Slot(&q.value));
  }
  void add_rates(const std::string& path, RateTable& table) {
    for (const auto& type : kDataTypes) {
      add(path + '.' + std::string(type.name), "", Rule::non_negative, &table[type.type], false);
    }
  }
  std::vector<Field> fields;
};

void add_sm(List& list, SmSpec& sm) {
  list.add("sm.count", "", Rule::count, &sm.count);
  list.add("sm.sub_partitions", "", Rule::count, &sm.sub_partitions);
  list.add("sm.fp32_lanes", "", Rule::positive, &sm.fp32_lanes);
  list.add("sm.sfu_lanes", "", Rule::positive, &sm.sfu_lanes);
  list.add("sm.tensor_cores", "", Rule::non_negative, &sm.tensor_cores);
  list.add_rates("sm.cuda_core", sm.cuda_core);
  list.add_rates("sm.tensor", sm.tensor);
  list.add_rates("sm.tensor_sparse", sm.tensor_sparse);
  list.add("sm.max_warps", "", Rule::count, &sm.max_warps);
  list.add("sm.max_ctas", "", Rule::count, &sm.max_ctas);
  list.add("sm.max_threads_per_cta", "", Rule::count, &sm.max_threads_per_cta);
  list.add("sm.registers", "", Rule::count, &sm.registers);
  list.add("sm.max_registers_per_thread", "", Rule::count, &sm.max_registers_per_thread);
  list.add("sm.register_allocation_unit", "", Rule::count, &sm.register_allocation_unit);
  list.add("sm.warp_allocation_granularity", "", Rule::count, &sm.warp_allocation_granularity);
  list.add("sm.shared_memory", "bytes", Rule::positive, sm.shared_memory);
  list.add("sm.shared_memory_per_cta", "bytes", Rule::positive, sm.shared_memory_per_cta);
  list.add("sm.shared_allocation_unit", "bytes", Rule::positive, sm.shared_allocation_unit);
  list.add("sm.shared_reserved_per_cta", "bytes", Rule::non_negative, sm.shared_reserved_per_cta);
  list.add("sm.shared_bytes_per_cycle", "", Rule::positive, &sm.shared_bytes_per_cycle);
}

void add_pipeline(List& list, PipelineSpec& p) {
  list.add("pipeline.alu_latency", "cycles", Rule::latency, p.alu_latency);
  list.add("pipeline.fma_latency", "cycles", Rule::latency, p.fma_latency);
  list.add("pipeline.imad_latency", "cycles", Rule::latency, p.imad_latency);
  list.add("pipeline.half_latency", "cycles", Rule::latency, p.half_latency);
  list.add("pipeline.fp64_latency", "cycles", Rule::latency, p.fp64_latency);
  list.add("pipeline.mufu_latency", "cycles", Rule::latency, p.mufu_latency);
  list.add("pipeline.mma_latency", "cycles", Rule::latency, p.mma_latency);
  list.add("pipeline.shuffle_latency", "cycles", Rule::latency, p.shuffle_latency);
  list.add("pipeline.shared_latency", "cycles", Rule::latency, p.shared_latency);
  list.add("pipeline.matrix_load_latency", "cycles", Rule::latency, p.matrix_load_latency);
  list.add("pipeline.branch_latency", "cycles", Rule::latency, p.branch_latency);
  list.add("pipeline.barrier_latency", "cycles", Rule::latency, p.barrier_latency);
  list.add("pipeline.cta_launch", "cycles", Rule::latency, p.cta_launch);
  list.add("pipeline.queue_entries", "", Rule::count, &p.queue_entries);
  list.add("pipeline.port_interval", "cycles", Rule::latency, &p.port_interval);
  list.add("pipeline.l2_port_bytes_per_cycle", "", Rule::positive, &p.l2_port_bytes_per_cycle);
  list.add("pipeline.register_bank_conflicts", "", Rule::share, &p.register_bank_conflicts);
  list.add("pipeline.kernel_start", "s", Rule::non_negative, p.kernel_start);
}

void add_chip(List& list, GpuSpec& g) {
  list.add("clocks.base", "hz", Rule::positive, g.clocks.base);
  list.add("clocks.boost", "hz", Rule::positive, g.clocks.boost);
  list.add("clocks.sustained", "hz", Rule::positive, g.clocks.sustained);
  list.add("l1.capacity", "bytes", Rule::positive, g.l1.capacity);
  list.add("l1.bytes_per_cycle", "", Rule::positive, &g.l1.bytes_per_cycle);
  list.add("l1.latency", "cycles", Rule::positive, g.l1.latency);
  list.add("l2.capacity", "bytes", Rule::positive, g.l2.capacity);
  list.add("l2.partitions", "", Rule::count, &g.l2.partitions);
  list.add("l2.bytes_per_cycle_per_sm", "", Rule::positive, &g.l2.bytes_per_cycle_per_sm);
  list.add("l2.latency", "cycles", Rule::positive, g.l2.latency);
  list.add("l2.far_latency", "cycles", Rule::positive, g.l2.far_latency);
  list.add("l2.slices", "", Rule::count, &g.l2.slices);
  list.add("l2.ways", "", Rule::count, &g.l2.ways);
  list.add("dram.capacity", "bytes", Rule::positive, g.dram.capacity);
  list.add("dram.usable", "bytes", Rule::positive, g.dram.usable);
  list.add("dram.peak_bandwidth", "bytes_per_s", Rule::positive, g.dram.peak_bandwidth);
  list.add("dram.stream_efficiency", "", Rule::fraction, &g.dram.stream_efficiency);
  list.add("dram.idle_latency", "s", Rule::positive, g.dram.idle_latency);
  list.add("dram.channels", "", Rule::count, &g.dram.channels);
  list.add("dram.refresh_share", "", Rule::share, &g.dram.refresh_share);
  list.add("dram.turnaround_share", "", Rule::share, &g.dram.turnaround_share);
  list.add("links.nvlinks", "", Rule::whole, &g.links.nvlinks);
  list.add("links.nvlink_each_way", "bytes_per_s", Rule::non_negative, g.links.nvlink_each_way);
  list.add("links.pcie_generation", "", Rule::whole, &g.links.pcie_generation);
  list.add("links.pcie_lanes", "", Rule::whole, &g.links.pcie_lanes);
  list.add("links.pcie_each_way", "bytes_per_s", Rule::positive, g.links.pcie_each_way);
  list.add("power.limit", "w", Rule::positive, g.power.limit);
  list.add("power.idle", "w", Rule::non_negative, g.power.idle);
  list.add("price.usd_per_hour", "", Rule::non_negative, Slot(&g.price.usd_per_hour), false);
}

void add_mig(List& list, std::vector<MigProfile>& profiles) {
  for (std::size_t i = 0; i < profiles.size(); ++i) {
    MigProfile& p = profiles[i];
    const std::string at = "mig." + std::to_string(i) + '.';
    list.add(at + "sm_count", "", Rule::count, &p.sm_count);
    list.add(at + "memory", "bytes", Rule::positive, p.memory);
    list.add(at + "memory_fraction", "", Rule::fraction, &p.memory_fraction);
    list.add(at + "max_instances", "", Rule::count, &p.max_instances);
  }
}

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

}  // namespace

std::string Field::json_path() const {
  return unit.empty() ? path : path + '_' + std::string(unit);
}

double Field::get() const {
  return std::visit(Overloaded{[](const std::optional<double>* p) { return p->value_or(0); },
                               [](const auto* p) { return static_cast<double>(*p); }},
                    slot);
}

void Field::set(double value) const {
  std::visit(
      Overloaded{[value](int* p) { *p = static_cast<int>(value); },
                 [value](std::int64_t* p) { *p = static_cast<std::int64_t>(value); }, [value](auto* p) { *p = value; }},
      slot);
}

std::vector<Field> fields_of(GpuSpec& spec) {
  List list;
  list.fields.reserve(128 + 4 * spec.mig.size());
  add_sm(list, spec.sm);
  add_pipeline(list, spec.pipeline);
  add_chip(list, spec);
  add_mig(list, spec.mig);
  return std::move(list.fields);
}

std::vector<Word> words_of(GpuSpec& spec) {
  return {{"name", &spec.name},
          {"product", &spec.product},
          {"chip", &spec.chip},
          {"compute_capability", &spec.compute_capability},
          {"dram.technology", &spec.dram.technology}};
}

std::string rule_problem(Rule rule, double value) {
  const auto complain = [value](std::string_view wanted) { return fmt::format("expected {}, got {}", wanted, value); };
  const bool whole = value == std::nearbyint(value);
  switch (rule) {
    case Rule::count:
      return whole && value >= 1 && value <= kLargestCount ? "" : complain("a whole number from 1 to 1000000");
    case Rule::whole:
      return whole && value >= 0 && value <= kLargestCount ? "" : complain("a whole number from 0 to 1000000");
    case Rule::positive:
      return value >= kSmallest && value <= kLargest ? "" : complain("a number above 0 and up to 1e18");
    case Rule::non_negative:
      return value == 0 || (value >= kSmallest && value <= kLargest) ? "" : complain("a number from 0 to 1e18");
    case Rule::fraction: return value >= kSmallest && value <= 1 ? "" : complain("(0, 1]");
    case Rule::share: return value == 0 || (value >= kSmallest && value < 1) ? "" : complain("[0, 1)");
    case Rule::latency:
      return value >= kSmallest && value <= kLargestLatency ? "" : complain("a number above 0 and up to 100000");
  }
  return "";
}

std::string format_field(double value, std::string_view unit) {
  if (unit == "bytes_per_s" && value >= 1e9 && value < 1e13) return fmt::format("{:.4g} GB/s", value / 1e9);
  if (unit == "hz" && value >= 1e6 && value < 1e10) return fmt::format("{:.4g} MHz", value / 1e6);
  return format_quantity(value, unit);
}

std::optional<Architecture> parse_architecture(std::string_view word) {
  for (const auto a : {Architecture::volta, Architecture::turing, Architecture::ampere, Architecture::hopper}) {
    if (to_string(a) == word) return a;
  }
  return std::nullopt;
}

}  // namespace voltaic::arch::detail
