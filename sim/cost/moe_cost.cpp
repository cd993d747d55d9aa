// SPDX-License-Identifier: MIT
#include "sim/cost/moe_cost.hpp"

#include <algorithm>
#include <cmath>

#include "arch/units/error.hpp"

namespace voltaic::cost {

namespace {

using kernel::Bound;
using kernel::ExpertKernel;
using kernel::ExpertPart;

double count(std::int64_t n) {
  return static_cast<double>(n);
}

double p_norm(double a, double b, double p) {
  const double high = std::max(a, b), low = std::min(a, b);
  return high > 0 ? high * std::pow(1 + std::pow(low / high, p), 1 / p) : 0;
}

ExpertTiles parse_tiles(const arch::ParameterTree& tree) {
  const std::string word = tree.word("tiles");
  if (word == "library") return ExpertTiles::library;
  if (word == "by_rows") return ExpertTiles::by_rows;
  if (word == "best") return ExpertTiles::best;
  throw ConfigError(tree.file(), "tiles", "expected library, by_rows or best, got '" + word + "'");
}

ExpertLaw read_law(const arch::ParameterTree& tree) {
  ExpertLaw law;
  law.tiles = parse_tiles(tree);
  const auto take = [&tree](std::string_view name, double& value) { value = tree.number_or(name, value); };
  law.all_tokens = tree.number_or("all_tokens", 0) > 0;
  law.foreign_slots = tree.number_or("foreign_slots", 0) > 0;
  take("floor_s", law.floor_s);
  take("slot_s", law.slot_s);
  take("expert_s", law.expert_s);
  take("vector_share", law.vector_share);
  take("overlap", law.overlap);
  take("narrow_efficiency", law.narrow_efficiency);
  take("wide_efficiency", law.wide_efficiency);
  take("tuned_efficiency", law.tuned_efficiency);
  take("row_exponent", law.row_exponent);
  take("narrow_stream", law.narrow_stream);
  take("wide_stream", law.wide_stream);
  take("narrow_latency", law.narrow_latency);
  take("wide_latency", law.wide_latency);
  take("spill", law.spill);
  take("spill_spread", law.spill_spread);
  take("spill_l2", law.spill_l2);
  take("panel", law.panel);
  take("prologue_cycles", law.prologue_cycles);
  take("unaligned", law.unaligned);
  if (tree.has("tile_shares")) {
    const auto shares = tree.numbers("tile_shares");
    std::copy_n(shares.begin(), std::min(shares.size(), law.tile_shares.size()), law.tile_shares.begin());
  }
  if (tree.has("tuned_experts") && tree.has("tuned_widths")) {
    const auto experts = tree.numbers("tuned_experts"), widths = tree.numbers("tuned_widths");
    for (std::size_t i = 0; i < std::min(experts.size(), widths.size()); ++i) {
      law.tuned.emplace_back(static_cast<std::int64_t>(experts[i]), static_cast<std::int64_t>(widths[i]));
    }
  }
  return law;
}

/// Tokens whose rows the products see.
double entering(const ExpertLaw& law, const ExpertKernel& k) {
  return law.all_tokens ? count(k.tokens) : k.load.hit;
}

/// Rows between the products.
double rows_between(const ExpertLaw& law, const ExpertKernel& k) {
  return law.foreign_slots ? k.load.hit * count(k.top_k) : k.load.slots;
}

double blocks_of(const ExpertLaw& law, const ExpertKernel& k, int rows) {
  const auto at = std::find(kernel::kRowBlocks.begin(), kernel::kRowBlocks.end(), rows);
  const auto i = static_cast<std::size_t>(at - kernel::kRowBlocks.begin());
  ensure(i < kernel::kRowBlocks.size(), "tiles of so many rows are not counted");
  return law.foreign_slots ? k.load.blocks_with_foreign[i] : k.load.blocks[i];
}

}  // namespace

struct MoeCost::Product {
  const ExpertKernel& kernel;
  double n, k;
  bool first;
  double rate;
};

struct MoeCost::Tile {
  double rows, columns;
  double blocks;
  double efficiency, stream, latency;
  double slow = 1;
};

MoeCost::MoeCost(const arch::ResolvedGpu& gpu)
    : gpu_(gpu.spec),
      sms_(count(std::max<std::int64_t>(gpu.spec.sm.count, 1))),
      clock_(gpu.spec.clocks.boost.value),
      bandwidth_(gpu.spec.dram.peak_bandwidth.value) {
  if (!gpu.calibration.has("moe.stacks")) return;
  const arch::ParameterTree stacks = gpu.calibration.at("moe.stacks");
  for (const auto& name : stacks.keys("")) laws_.emplace(name, read_law(stacks.at(name)));
}

const ExpertLaw& MoeCost::law(std::string_view stack) const {
  static const ExpertLaw kPlain;
  if (const auto found = laws_.find(stack); found != laws_.end()) return found->second;
  return laws_.empty() ? kPlain : laws_.begin()->second;
}

double MoeCost::rate(const kernel::Launch& launch) const {
  const double tensor = gpu_.has_tensor_path(launch.math) ? gpu_.sm.tensor[launch.math] : 0;
  const double lanes = gpu_.sm.cuda_core[launch.math];
  return std::max({tensor, lanes, 1.0});
}

double MoeCost::tile_time(const ExpertLaw& law, const Product& p, const Tile& tile, kernel::KernelCost& cost) const {
  const double odd = std::fmod(p.k, 16) != 0 ? 1 + law.unaligned : 1;
  const double cycles =
      tile.rows * tile.columns * p.k / (p.rate * tile.efficiency) * tile.slow * odd + law.prologue_cycles;
  const double tiles = tile.blocks * std::ceil(p.n / tile.columns) / sms_ * cycles / clock_;
  const double bytes = p.kernel.load.touched * p.n * p.k * p.kernel.weight_bytes;
  const double weights = bytes * odd / (tile.stream * bandwidth_);
  constexpr double kStart = 1000;
  const double one = (p.k * tile.latency + kStart) / clock_;
  const double time = p_norm(p_norm(tiles, weights, law.overlap), one, 4);
  if (!(time < cost.time.value) && cost.time.value > 0) return time;
  cost.time = Seconds{time};
  cost.leg(Bound::tensor) = Seconds{tiles};
  cost.leg(Bound::dram) = Seconds{weights};
  cost.leg(Bound::latency) = Seconds{one};
  cost.dram_traffic = Bytes{bytes};
  cost.l2_traffic = Bytes{bytes + tile.blocks * tile.rows * p.k * 2};
  return time;
}

/// Leaves the fastest tile that the stack can take.
void MoeCost::product_time(const ExpertLaw& law, const Product& p, kernel::KernelCost& cost) const {
  const ExpertKernel& k = p.kernel;
  constexpr std::array<int, 4> kRows{16, 32, 64, 128};
  const auto best_of = [&](double first_columns) {
    for (std::size_t i = 0; i < kRows.size(); ++i) {
      const double efficiency = law.tuned_efficiency * law.tile_shares[i];
      tile_time(law, p,
                {count(kRows[i]), i == 0 ? first_columns : 128, blocks_of(law, k, kRows[i]), efficiency,
                 law.narrow_stream, law.wide_latency},
                cost);
    }
  };
  if (law.tiles == ExpertTiles::best) return best_of(128);
  if (law.tiles == ExpertTiles::by_rows) {
    const double mean = entering(law, k) * count(k.top_k) / count(k.local_experts);
    int rows = 64;
    for (const int r : {48, 32, 16, 8}) {
      if (mean / r < 0.9) rows = r;
    }
    const double padded = std::max(rows, 16);
    const double efficiency = law.wide_efficiency * std::pow(padded / 64, law.row_exponent);
    tile_time(law, p, {padded, 128, blocks_of(law, k, rows), efficiency, law.narrow_stream, law.wide_latency}, cost);
    return;
  }
  const auto shape = std::make_pair(k.local_experts, k.inner);
  if (std::find(law.tuned.begin(), law.tuned.end(), shape) != law.tuned.end()) return best_of(64);
  // Rows and panels of weights in flight that leave L2 slow the tiles.
  constexpr double kPanels = 67, kPanelRows = 512;
  const double rows = p.first ? entering(law, k) : rows_between(law, k);
  const double panel = (std::min(std::ceil(p.n / 64), kPanels) * 64 + kPanelRows) * p.k * 2;
  const double x = (rows * p.k * 2 + law.panel * panel) / (law.spill_l2 * std::max(1.0, gpu_.l2.capacity.value));
  const bool apart = p.first && !(law.foreign_slots && k.gathered);
  const double slow = 1 + (law.spill + (apart ? law.spill_spread : 0)) * x * x / (1 + x * x);
  if (entering(law, k) <= count(k.local_experts)) {
    tile_time(law, p,
              {16, 32, blocks_of(law, k, 16), law.narrow_efficiency, law.narrow_stream, law.narrow_latency, slow},
              cost);
  } else {
    tile_time(law, p, {64, 64, blocks_of(law, k, 64), law.wide_efficiency, law.wide_stream, law.wide_latency, slow},
              cost);
  }
}

/// Bytes of two per element: the activation reads gate and up and writes their product; the sum reads a token's rows
/// and writes one. A library's sum goes through four-byte rows.
double MoeCost::combine_bytes(const ExpertLaw& law, const ExpertKernel& k) const {
  const double hidden = count(k.hidden), inner = count(k.inner), top_k = count(k.top_k);
  const double rows = rows_between(law, k);
  double bytes = k.with_activation ? rows * inner * 6 : 0;
  if (law.tiles == ExpertTiles::best) bytes += rows * hidden * 4;
  const double tokens = law.tiles == ExpertTiles::best || law.all_tokens ? count(k.tokens) : k.load.hit;
  bytes += tokens * (top_k + 1) * hidden * 2;
  if (law.all_tokens) bytes += std::max(0.0, count(k.tokens) * top_k - rows) * (3 * inner + hidden) * 2;
  return bytes;
}

kernel::KernelCost MoeCost::operator()(const kernel::Launch& launch, const ExpertKernel& k) const {
  const ExpertLaw& law = this->law(k.stack);
  kernel::KernelCost cost = whole(law, launch, k);
  if (k.share == 1) cost.dram_traffic = std::max(cost.dram_traffic, launch.work.traffic());
  if (k.share != 1) {
    cost.time = k.share * cost.time;
    for (Seconds& leg : cost.legs) leg = k.share * leg;
    cost.dram_traffic = k.share * cost.dram_traffic;
    cost.l2_traffic = k.share * cost.l2_traffic;
  }
  return cost;
}

kernel::KernelCost MoeCost::whole(const ExpertLaw& law, const kernel::Launch& launch, const ExpertKernel& k) const {
  kernel::KernelCost cost;
  cost.clock = gpu_.clocks.boost;
  cost.dram_traffic = launch.work.traffic();
  cost.l2_traffic = launch.work.traffic();
  switch (k.part) {
    case ExpertPart::route: {
      const double tokens = law.tiles == ExpertTiles::best ? count(k.tokens) : entering(law, k);
      cost.time = Seconds{law.floor_s + law.slot_s * tokens * count(k.top_k) + law.expert_s * count(k.local_experts)};
      cost.leg(Bound::latency) = cost.time;
      break;
    }
    case ExpertPart::up:
      product_time(law, {k, count(k.gate_width) * count(k.inner), count(k.hidden), true, rate(launch)}, cost);
      break;
    case ExpertPart::down: product_time(law, {k, count(k.hidden), count(k.inner), false, rate(launch)}, cost); break;
    case ExpertPart::combine:
      cost.dram_traffic = Bytes{combine_bytes(law, k)};
      cost.l2_traffic = cost.dram_traffic;
      cost.time = Seconds{cost.dram_traffic.value / (law.vector_share * bandwidth_)};
      cost.leg(Bound::dram) = cost.time;
      break;
  }
  return cost;
}

}  // namespace voltaic::cost
