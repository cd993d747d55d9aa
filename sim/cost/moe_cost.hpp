// SPDX-License-Identifier: MIT
// Time of a serving stack's fused mixture of experts: sorting, two grouped products, activation and sum.
#pragma once

#include <array>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "arch/loader.hpp"
#include "sim/kernel/kernel_cost.hpp"

namespace voltaic::cost {

/// How a stack takes its tiles.
enum class ExpertTiles : std::uint8_t {
  library,  ///< 16 x 32 up to as many tokens as experts, else 64 x 64; tuned shapes the best of four.
  by_rows,  ///< Rows of a tile by the mean load of an expert: 8 to 64, 128 columns.
  best,     ///< The best of four, 128 columns.
};

/// Constants of one stack, from "moe.stacks.NAME"; what each was fitted on stands there.
struct ExpertLaw {
  ExpertTiles tiles = ExpertTiles::library;
  bool all_tokens = false;     ///< All of the group's tokens enter, those without a slot here as zeroes.
  bool foreign_slots = false;  ///< Tokens that hit the GPU run all their slots, also those of other GPUs.
  double floor_s = 0;          ///< The small kernels of the block.
  double slot_s = 0;           ///< Sorting, per pair of token and expert.
  double expert_s = 0;         ///< The same per expert of the GPU.
  double vector_share = 0.5;   ///< Of DRAM bandwidth: activation, permutation, sum.
  double overlap = 3;          ///< p of tiles and weight reads.
  double narrow_efficiency = 0.5, wide_efficiency = 0.5;  ///< Share of the tensor rate of 16- and 64-row tiles.
  double tuned_efficiency = 0.5;                          ///< The same of 128 x 128 tiles of tuned kernels.
  double row_exponent = 0;                                ///< by_rows: efficiency ~ rows^exponent.
  double narrow_stream = 0.9, wide_stream = 0.9;          ///< Share of DRAM bandwidth at which weights arrive.
  double narrow_latency = 0, wide_latency = 0;            ///< Cycles per step along k of a lone tile.
  double spill = 0, spill_spread = 0;  ///< Slow-down where activations leave L2; more where an expert's rows lie apart.
  double spill_l2 = 1, panel = 0;      ///< Where that begins, in L2 capacities; weight of the tiles in flight.
  double prologue_cycles = 0;          ///< Per tile.
  double unaligned = 0;                ///< More time where k is no multiple of 16.
  std::array<double, 4> tile_shares{1, 1, 1, 1};             ///< Efficiency of 16, 32, 64, 128 rows over that of 128.
  std::vector<std::pair<std::int64_t, std::int64_t>> tuned;  ///< Experts and inner widths that the library tuned for.
};

/// One part of the block:
///     route    floor + slot_s slots + expert_s experts
///     product  ((tiles^p + weights^p)^(4/p) + one^4)^(1/4)
///              tiles    = blocks ceil(n/tile) / SMs (rows tile k / (rate eff) mult + prologue) / clock
///              weights  = touched n k w / (share bandwidth)
///              one      = (k latency + 1000) / clock                  a tile alone
///     combine  bytes / (share bandwidth)
/// Fitted on A100-SXM4-80GB [AICDATA]; other boards by their SMs, rate, clock, L2 and bandwidth.
class MoeCost {
 public:
  explicit MoeCost(const arch::ResolvedGpu& gpu);
  kernel::KernelCost operator()(const kernel::Launch& launch, const kernel::ExpertKernel& kernel) const;

 private:
  struct Product;
  struct Tile;
  const ExpertLaw& law(std::string_view stack) const;
  kernel::KernelCost whole(const ExpertLaw& law, const kernel::Launch& launch, const kernel::ExpertKernel& k) const;
  double rate(const kernel::Launch& launch) const;
  double tile_time(const ExpertLaw& law, const Product& product, const Tile& tile, kernel::KernelCost& cost) const;
  void product_time(const ExpertLaw& law, const Product& product, kernel::KernelCost& cost) const;
  double combine_bytes(const ExpertLaw& law, const kernel::ExpertKernel& kernel) const;

  const arch::GpuSpec& gpu_;
  double sms_, clock_, bandwidth_;
  std::map<std::string, ExpertLaw, std::less<>> laws_;
};

}  // namespace voltaic::cost
