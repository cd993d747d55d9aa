// SPDX-License-Identifier: MIT
// The names that Nsight Compute gives its metrics, on its pages and on its command line [NCU].
#include <fmt/format.h>

#include "sim/cycle/metrics.hpp"

namespace voltaic::cycle {
namespace {

constexpr std::array<std::string_view, kSections> kSectionNames{"GPU Speed Of Light Throughput",
                                                                "Compute Workload Analysis",
                                                                "Memory Workload Analysis",
                                                                "Scheduler Statistics",
                                                                "Warp State Statistics",
                                                                "Launch Statistics",
                                                                "Occupancy"};
constexpr std::array<std::string_view, kStalls> kStallLabels{
    "Selected",         "Wait",         "Long Scoreboard",    "Short Scoreboard", "Barrier",
    "LG Throttle",      "MIO Throttle", "Math Pipe Throttle", "Dispatch Stall",   "No Instruction",
    "Branch Resolving", "Drain",        "Not Selected"};
/// The profiler calls the pipe of branches and barriers CBU.
constexpr std::array<std::string_view, kPipes> kPipeLabels{"FMA", "ALU", "FP16", "FP64", "XU", "Tensor", "LSU", "CBU"};
constexpr std::array<std::string_view, kPipes> kPipeNames{"fma", "alu", "fp16", "fp64", "xu", "tensor", "lsu", "cbu"};

class List {
 public:
  void section(Section section) { section_ = section; }
  void add(std::string label, std::string name, MetricUnit unit, double value) {
    list_.push_back({section_, std::move(label), std::move(name), unit, value, true});
  }
  void percent(std::string label, std::string name, double share) {
    add(std::move(label), std::move(name), MetricUnit::percent, 100 * share);
  }
  void limit(std::string label, std::string name, std::optional<int> ctas) {
    if (ctas) add(std::move(label), std::move(name), MetricUnit::ctas, *ctas);
  }
  /// For JSON only.
  void hide() { list_.back().shown = false; }
  std::vector<Metric> take() { return std::move(list_); }

 private:
  Section section_ = Section::speed_of_light;
  std::vector<Metric> list_;
};

void speed_of_light(List& list, const Metrics& m) {
  list.section(Section::speed_of_light);
  if (m.dram_clock) {
    list.add("DRAM Frequency", "dram__cycles_elapsed.avg.per_second", MetricUnit::hertz, m.dram_clock->value);
  }
  list.add("SM Frequency", "gpc__cycles_elapsed.avg.per_second", MetricUnit::hertz, m.sm_clock.value);
  list.add("Elapsed Cycles", "gpc__cycles_elapsed.max", MetricUnit::cycle, m.elapsed_cycles);
  list.percent("Memory Throughput", "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
               m.memory_throughput);
  list.percent("DRAM Throughput", "dram__throughput.avg.pct_of_peak_sustained_elapsed", m.dram_throughput);
  list.add("Duration", "gpu__time_duration.sum", MetricUnit::second, m.duration.value);
  list.percent("L1/TEX Cache Throughput", "l1tex__throughput.avg.pct_of_peak_sustained_active", m.l1_throughput);
  list.percent("L2 Cache Throughput", "lts__throughput.avg.pct_of_peak_sustained_elapsed", m.l2_throughput);
  list.add("SM Active Cycles", "sm__cycles_active.avg", MetricUnit::cycle, m.sm_active_cycles);
  list.percent("Compute (SM) Throughput", "sm__throughput.avg.pct_of_peak_sustained_elapsed", m.sm_throughput);
}

void compute(List& list, const Metrics& m) {
  list.section(Section::compute);
  const auto ipc = MetricUnit::instructions_per_cycle;
  list.add("Executed Ipc Active", "sm__inst_executed.avg.per_cycle_active", ipc, m.ipc_active);
  list.add("Executed Ipc Elapsed", "sm__inst_executed.avg.per_cycle_elapsed", ipc, m.ipc_elapsed);
  list.percent("Issue Slots Busy", "sm__inst_issued.avg.pct_of_peak_sustained_active", m.issue_slots_busy);
  list.percent("SM Busy", "sm__instruction_throughput.avg.pct_of_peak_sustained_active", m.sm_busy);
  list.add("Executed Instructions", "smsp__inst_executed.sum", MetricUnit::instructions, m.instructions);
  for (std::size_t i = 0; i < kPipes; ++i) {
    list.percent(fmt::format("Pipe {}", kPipeLabels[i]),
                 fmt::format("sm__inst_executed_pipe_{}.avg.pct_of_peak_sustained_active", kPipeNames[i]), m.pipes[i]);
    if (m.pipes[i] == 0) list.hide();
  }
}

void memory(List& list, const Metrics& m) {
  list.section(Section::memory);
  list.add("Memory Throughput", "dram__bytes.sum.per_second", MetricUnit::bytes_per_second, m.dram_rate.value);
  list.percent("Mem Busy", "gpu__compute_memory_access_throughput.avg.pct_of_peak_sustained_elapsed", m.memory_busy);
  list.percent("L1/TEX Hit Rate", "l1tex__t_sector_hit_rate.pct", m.l1_hit_rate);
  list.percent("Max Bandwidth", "gpu__compute_memory_request_throughput.avg.pct_of_peak_sustained_elapsed",
               m.max_bandwidth);
  list.percent("L2 Hit Rate", "lts__t_sector_hit_rate.pct", m.l2_hit_rate);
  list.add("DRAM Bytes Read", "dram__bytes_read.sum", MetricUnit::bytes, m.dram_read.value);
  list.add("DRAM Bytes Written", "dram__bytes_write.sum", MetricUnit::bytes, m.dram_written.value);
  list.add("L2 Sectors Read", "lts__t_sectors_op_read.sum", MetricUnit::sectors, m.l2_read_sectors);
  list.hide();
  list.add("L2 Sectors Written", "lts__t_sectors_op_write.sum", MetricUnit::sectors, m.l2_write_sectors);
  list.hide();
  list.add("L2 Fabric Sectors", "lts__t_sectors_srcunit_ltcfabric.sum", MetricUnit::sectors, m.far_sectors);
  if (m.far_sectors == 0) list.hide();
  list.add("Shared Memory Wavefronts", "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum", MetricUnit::wavefronts,
           m.shared_wavefronts);
  if (m.shared_wavefronts == 0) list.hide();
  list.add("Shared Memory Bank Conflicts", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum", MetricUnit::wavefronts,
           m.bank_conflicts);
  if (m.shared_wavefronts == 0) list.hide();
}

void scheduler(List& list, const Metrics& m) {
  list.section(Section::scheduler);
  list.percent("One or More Eligible", "smsp__issue_active.avg.pct_of_peak_sustained_active", m.one_or_more_eligible);
  list.add("Issued Warp Per Scheduler", "smsp__issue_active.avg.per_cycle_active", MetricUnit::plain, m.issued_warps);
  list.percent("No Eligible", "smsp__issue_inst0.avg.pct_of_peak_sustained_active", m.no_eligible);
  list.add("Active Warps Per Scheduler", "smsp__warps_active.avg.per_cycle_active", MetricUnit::warps, m.active_warps);
  list.add("Eligible Warps Per Scheduler", "smsp__warps_eligible.avg.per_cycle_active", MetricUnit::warps,
           m.eligible_warps);
}

void warp_state(List& list, const Metrics& m) {
  list.section(Section::warp_state);
  list.add("Warp Cycles Per Issued Instruction", "smsp__average_warp_latency_per_inst_issued.ratio", MetricUnit::cycle,
           m.warp_cycles_per_instruction);
  for (std::size_t i = 0; i < kStalls; ++i) {
    const auto stall = static_cast<Stall>(i);
    list.add(fmt::format("Stall {}", label(stall)),
             fmt::format("smsp__average_warps_issue_stalled_{}_per_issue_active.ratio", to_string(stall)),
             MetricUnit::cycle, m.stall_cycles(stall));
    list.hide();  // The page has a table of its own for them.
    list.percent(fmt::format("Stall {}", label(stall)),
                 fmt::format("smsp__warp_issue_stalled_{}_per_warp_active.pct", to_string(stall)), m.stall(stall));
    list.hide();
  }
}

void launch(List& list, const Metrics& m) {
  list.section(Section::launch);
  const double ctas = static_cast<double>(m.grid[0]) * static_cast<double>(m.grid[1]) * static_cast<double>(m.grid[2]);
  list.add("Block Size", "launch__block_size", MetricUnit::plain, m.threads_per_cta);
  list.add("Grid Size", "launch__grid_size", MetricUnit::plain, ctas);
  list.add("Registers Per Thread", "launch__registers_per_thread", MetricUnit::registers, m.registers_per_thread);
  list.add("Shared Memory Per Block", "launch__shared_mem_per_block", MetricUnit::bytes, m.shared_per_cta.value);
  list.add("Threads", "launch__thread_count", MetricUnit::threads, m.threads);
  list.add("# SMs", "launch__sm_count", MetricUnit::plain, static_cast<double>(m.sms));
  list.add("Waves Per SM", "launch__waves_per_multiprocessor", MetricUnit::plain, m.waves_per_sm);
}

void occupancy(List& list, const Metrics& m) {
  list.section(Section::occupancy);
  list.limit("Block Limit SM", "launch__occupancy_limit_blocks", m.limit_ctas);
  list.limit("Block Limit Registers", "launch__occupancy_limit_registers", m.limit_registers);
  list.limit("Block Limit Shared Mem", "launch__occupancy_limit_shared_mem", m.limit_shared);
  list.limit("Block Limit Warps", "launch__occupancy_limit_warps", m.limit_warps);
  list.add("Theoretical Active Warps per SM", "sm__maximum_warps_avg_per_active_cycle", MetricUnit::warps,
           m.theoretical_warps);
  list.percent("Theoretical Occupancy", "sm__maximum_warps_per_active_cycle_pct", m.theoretical_occupancy);
  list.percent("Achieved Occupancy", "sm__warps_active.avg.pct_of_peak_sustained_active", m.achieved_occupancy);
  list.add("Achieved Active Warps Per SM", "sm__warps_active.avg.per_cycle_active", MetricUnit::warps,
           m.achieved_warps);
}

}  // namespace

std::string_view to_string(Section section) {
  return kSectionNames[static_cast<std::size_t>(section)];
}
std::string_view label(Stall stall) {
  return kStallLabels[static_cast<std::size_t>(stall)];
}

std::vector<Metric> metric_list(const Metrics& m) {
  List list;
  for (const auto part : {speed_of_light, compute, memory, scheduler, warp_state, launch, occupancy}) part(list, m);
  return list.take();
}

}  // namespace voltaic::cycle
