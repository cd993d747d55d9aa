// SPDX-License-Identifier: MIT
// What a GPU is, as the models see it. Values live in arch/gpus/*.json, each beside its source.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "arch/units/data_type.hpp"
#include "arch/units/quantity.hpp"

namespace voltaic::arch {

enum class Architecture : std::uint8_t { volta, turing, ampere, hopper };

/// Fused multiply-adds one SM completes per cycle, by the type multiplied; 0 where the unit does not exist.
struct RateTable {
  std::array<double, kDataTypes.size()> fma_per_cycle{};
  double operator[](DataType t) const { return fma_per_cycle[static_cast<std::size_t>(t)]; }
  double& operator[](DataType t) { return fma_per_cycle[static_cast<std::size_t>(t)]; }
};

/// One streaming multiprocessor.
struct SmSpec {
  std::int64_t count = 0;   ///< SMs enabled on the board.
  int sub_partitions = 0;   ///< Warp schedulers.
  double fp32_lanes = 0;    ///< FFMA per cycle.
  double sfu_lanes = 0;     ///< Special functions (exp, rsqrt, tanh) per cycle.
  double tensor_cores = 0;  ///< Tensor cores per SM; 0 turns the tensor path off.
  RateTable cuda_core;      ///< FMA per cycle outside the tensor cores (int8: DP4A).
  RateTable tensor;         ///< Dense FMA per cycle of all tensor cores of one SM.
  RateTable tensor_sparse;  ///< The same with 2:4 sparse weights.
  int max_warps = 0;
  int max_ctas = 0;
  int max_threads_per_cta = 0;
  std::int64_t registers = 0;  ///< 32-bit registers.
  int max_registers_per_thread = 0;
  int register_allocation_unit = 0;     ///< Registers are handed to a warp in multiples of this.
  int warp_allocation_granularity = 0;  ///< Warps of a CTA are rounded up to this for registers.
  Bytes shared_memory;                  ///< Largest carve-out of one SM.
  Bytes shared_memory_per_cta;          ///< Largest share of one CTA (opt-in).
  Bytes shared_allocation_unit;
  Bytes shared_reserved_per_cta;  ///< Taken by the system from each CTA's share.
  double shared_bytes_per_cycle = 0;
};

/// How warp instructions move through an SM, for the cycle engine. Chip-wide: arch/chips/*.json, which a GPU file may
/// override. Latencies run from issue to the issue of a dependent instruction.
struct PipelineSpec {
  Cycles alu_latency;   ///< IADD3, LOP3, ISETP, MOV.
  Cycles fma_latency;   ///< FFMA.
  Cycles imad_latency;  ///< IMAD.
  Cycles half_latency;  ///< HFMA2.
  Cycles fp64_latency;  ///< DFMA.
  Cycles mufu_latency;  ///< MUFU, conversions.
  Cycles mma_latency;   ///< Of a tensor instruction beyond the cycles in which it issues.
  Cycles shuffle_latency;
  Cycles shared_latency;               ///< LDS without conflicts.
  Cycles matrix_load_latency;          ///< LDSM of one 8x8 tile.
  Cycles branch_latency;               ///< Beyond the branch's own issue.
  Cycles barrier_latency;              ///< From the last arrival to the first issue.
  Cycles cta_launch;                   ///< From a free slot to the next CTA's first instruction.
  double queue_entries = 0;            ///< Memory instructions that a sub-partition may have waiting.
  double port_interval = 0;            ///< Cycles between requests of one sub-partition into the shared memory unit.
  double l2_port_bytes_per_cycle = 0;  ///< L2 to one SM.
  double register_bank_conflicts = 0;  ///< Extra dispatch cycles per three-operand instruction, as a rate.
  Seconds kernel_start;  ///< From the end of a kernel to the first instruction of the next one on a busy stream.
};

struct ClockSpec {
  Hertz base;
  Hertz boost;      ///< Clock of short kernels and of everything below the power limit.
  Hertz sustained;  ///< Clock under a long FP32 matrix load.
};

struct L1Spec {
  Bytes capacity;  ///< Together with shared memory.
  double bytes_per_cycle = 0;
  Cycles latency;
};

struct L2Spec {
  Bytes capacity;
  int partitions = 1;
  double bytes_per_cycle_per_sm = 0;  ///< With all SMs reading.
  Cycles latency;                     ///< Near partition.
  Cycles far_latency;                 ///< Far partition; equals `latency` with one partition.
  int slices = 1;                     ///< Addresses are hashed over them.
  int ways = 16;
};

/// Device memory as one kernel sees it.
struct DramSpec {
  std::string technology;         ///< "HBM2", "GDDR6", ...
  Bytes capacity;                 ///< Nominal, as sold.
  Bytes usable;                   ///< What programs can allocate before the context, after ECC.
  BytesPerSecond peak_bandwidth;  ///< Pin rate times bus width.
  double stream_efficiency = 0;   ///< Share of peak that a long sequential stream reaches, in (0, 1].
  Seconds idle_latency;           ///< One dependent load that misses L2, nothing else in flight.
  int channels = 1;
  double refresh_share = 0;     ///< Of the time, taken by refresh.
  double turnaround_share = 0;  ///< Of the bandwidth, lost between reads and writes when half the bytes are written.
};

struct LinkSpec {
  int nvlinks = 0;                 ///< NVLink connections of the GPU.
  BytesPerSecond nvlink_each_way;  ///< One link, one direction.
  int pcie_generation = 0;
  int pcie_lanes = 0;
  BytesPerSecond pcie_each_way;  ///< Before protocol overhead.
};

struct PowerSpec {
  Watts limit;  ///< Default board power limit.
  Watts idle;
};

/// One MIG profile: a GPU instance with its share of the chip.
struct MigProfile {
  std::string name;  ///< "3g.20gb"
  std::int64_t sm_count = 0;
  Bytes memory;
  double memory_fraction = 0;  ///< Share of L2 and DRAM bandwidth (memory slices of 8).
  int max_instances = 0;
};

struct PriceSpec {
  std::optional<double> usd_per_hour;  ///< On-demand cloud price of one GPU.
};

struct GpuSpec {
  std::string name;     ///< Voltaic's name: "a100-sxm4-40gb".
  std::string product;  ///< The maker's name.
  std::string chip;     ///< "GA100"
  Architecture architecture = Architecture::volta;
  std::string compute_capability;  ///< "8.0"
  SmSpec sm;
  PipelineSpec pipeline;
  ClockSpec clocks;
  L1Spec l1;
  L2Spec l2;
  DramSpec dram;
  LinkSpec links;
  PowerSpec power;
  std::vector<MigProfile> mig;
  PriceSpec price;

  double total_fp32_lanes() const { return sm.fp32_lanes * static_cast<double>(sm.count); }
  /// Dense peak at the boost clock on the unit that multiplies `t` fastest; tensor cores when present.
  FlopsPerSecond peak(DataType t) const;
  FlopsPerSecond tensor_peak(DataType t) const;
  FlopsPerSecond cuda_core_peak(DataType t) const;
  /// With 2:4 sparse weights, counting the multiply-adds of the dense product: twice the dense peak on all boards yet.
  FlopsPerSecond sparse_peak(DataType t) const;
  bool has_tensor_path(DataType t) const { return sm.tensor_cores > 0 && sm.tensor[t] > 0; }
  bool has_sparse_path(DataType t) const { return has_tensor_path(t) && sm.tensor_sparse[t] > 0; }
};

std::string_view to_string(Architecture a);

}  // namespace voltaic::arch
