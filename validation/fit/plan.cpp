// SPDX-License-Identifier: MIT
#include "validation/fit/plan.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>

#include "arch/loader.hpp"
#include "arch/units/error.hpp"

namespace voltaic::validation {
namespace {

/// Whose a value is: all boards of an architecture, each board, each board but the reference, each board whose
/// description states no sustained clock below its boost, or one measuring session on a board beside its first.
enum class Scope : std::uint8_t { architecture, board, reference, settled, session };

struct Entry {
  constexpr Entry(FitFamily f, Scope s, std::string_view p, double low, double high, double spread, bool log = true)
      : path(p), lower(low), upper(high), width(spread), family(f), scope(s), logarithmic(log) {}
  std::string_view path;  ///< One '*' stands for every member there.
  double lower, upper;
  double width;  ///< Of the logarithm; absolute where `logarithmic` is false.
  FitFamily family;
  Scope scope;
  bool logarithmic;
};

using F = FitFamily;
constexpr auto kArch = Scope::architecture;
constexpr auto kBoard = Scope::board;
constexpr auto kOther = Scope::reference;
constexpr auto kSettled = Scope::settled;
constexpr auto kSession = Scope::session;

/// Bounds are what the physics allows, widths how far one would believe the prior of another board to be off.
constexpr Entry kPlan[] = {
    // Pointwise: streams, the L2 region, arithmetic of the slow functions, host times.
    {F::pointwise, kBoard, "vector.kinds.elementwise.stream_share", 0.5, 1.1, 0.15},
    {F::pointwise, kBoard, "vector.kinds.elementwise.stream_share_two", 0.5, 1.1, 0.15},
    {F::pointwise, kBoard, "vector.kinds.elementwise.l2_share", 0.2, 2.0, 0.3},
    {F::pointwise, kBoard, "vector.kinds.elementwise.all_hit_share", 0.05, 1.0, 0.3},
    {F::pointwise, kBoard, "vector.kinds.elementwise.all_miss_share", 0.2, 2.0, 0.3},
    {F::pointwise, kBoard, "vector.function_slots.pow", 5, 200, 0.5},
    {F::pointwise, kBoard, "vector.function_slots.pow_scalar", 5, 200, 0.5},
    {F::pointwise, kBoard, "vector.idle_clock.elementwise.slowdown", 0, 3, 0.3, false},
    {F::pointwise, kBoard, "single_op.add.floor_s", 1e-6, 1e-3, 0.4},
    {F::pointwise, kBoard, "single_op.add.launch_s", 1e-6, 1e-3, 0.4},
    {F::pointwise, kBoard, "single_op.mul.floor_s", 1e-6, 1e-3, 0.4},
    {F::pointwise, kBoard, "single_op.mul.launch_s", 1e-6, 1e-3, 0.4},
    {F::pointwise, kBoard, "single_op.div.floor_s", 1e-6, 1e-3, 0.4},
    {F::pointwise, kBoard, "single_op.div.launch_s", 1e-6, 1e-3, 0.4},
    {F::pointwise, kBoard, "single_op.pow.floor_s", 1e-6, 1e-3, 0.4},
    {F::pointwise, kBoard, "single_op.pow.launch_s", 1e-6, 1e-3, 0.4},
    {F::pointwise, kBoard, "single_op.add_scalar.floor_s", 1e-6, 1e-3, 0.4},
    {F::pointwise, kBoard, "single_op.add_scalar.launch_s", 1e-6, 1e-3, 0.4},
    {F::pointwise, kBoard, "single_op.mul_scalar.floor_s", 1e-6, 1e-3, 0.4},
    {F::pointwise, kBoard, "single_op.mul_scalar.launch_s", 1e-6, 1e-3, 0.4},
    {F::pointwise, kBoard, "single_op.div_scalar.floor_s", 1e-6, 1e-3, 0.4},
    {F::pointwise, kBoard, "single_op.div_scalar.launch_s", 1e-6, 1e-3, 0.4},
    {F::pointwise, kBoard, "single_op.pow_scalar.floor_s", 1e-6, 1e-3, 0.4},
    {F::pointwise, kBoard, "single_op.pow_scalar.launch_s", 1e-6, 1e-3, 0.4},
    {F::pointwise, kBoard, "single_op.relu.floor_s", 1e-6, 1e-3, 0.4},
    {F::pointwise, kBoard, "single_op.relu.launch_s", 1e-6, 1e-3, 0.4},
    {F::pointwise, kBoard, "single_op.gelu.floor_s", 1e-6, 1e-3, 0.4},
    {F::pointwise, kBoard, "single_op.gelu.launch_s", 1e-6, 1e-3, 0.4},
    {F::pointwise, kBoard, "single_op.tanh.floor_s", 1e-6, 1e-3, 0.4},
    {F::pointwise, kBoard, "single_op.tanh.launch_s", 1e-6, 1e-3, 0.4},
    // Softmax: one pass in registers, or three passes with the latency of barriers.
    {F::softmax, kBoard, "vector.kinds.softmax_warp.efficiency", 0.3, 1.2, 0.2},
    {F::softmax, kBoard, "vector.kinds.softmax_warp.element_slots", 0.5, 40, 0.7},
    {F::softmax, kBoard, "vector.kinds.softmax_block.efficiency", 0.3, 1.2, 0.2},
    {F::softmax, kBoard, "vector.kinds.softmax_block.unaligned", 1, 2, 0.2},
    {F::softmax, kBoard, "vector.kinds.softmax_block.reread_l1_share", 0.1, 2, 0.5},
    {F::softmax, kBoard, "vector.kinds.softmax_block.reread_l2_share", 0.1, 2, 0.5},
    {F::softmax, kBoard, "vector.kinds.softmax_block.row_cycles", 50, 40000, 0.7},
    {F::softmax, kBoard, "vector.kinds.softmax_block.step_cycles", 5, 8000, 0.7},
    {F::softmax, kBoard, "vector.idle_clock.softmax_warp.slowdown", 0, 3, 0.3, false},
    {F::softmax, kBoard, "vector.idle_clock.softmax_block.slowdown", 0, 3, 0.3, false},
    {F::softmax, kBoard, "single_op.softmax_warp.floor_s", 1e-6, 1e-3, 0.4},
    {F::softmax, kBoard, "single_op.softmax_warp.launch_s", 1e-6, 1e-3, 0.4},
    {F::softmax, kBoard, "single_op.softmax_block.floor_s", 1e-6, 1e-3, 0.4},
    {F::softmax, kBoard, "single_op.softmax_block.launch_s", 1e-6, 1e-3, 0.4},
    // Layer norm: the input is read twice.
    {F::layer_norm, kBoard, "vector.kinds.layer_norm.efficiency", 0.3, 1.2, 0.2},
    {F::layer_norm, kBoard, "vector.kinds.layer_norm.reread_l1_share", 0.1, 2, 0.5},
    {F::layer_norm, kBoard, "vector.kinds.layer_norm.reread_l2_share", 0.1, 2, 0.5},
    {F::layer_norm, kBoard, "vector.kinds.layer_norm.row_cycles", 50, 40000, 0.7},
    {F::layer_norm, kBoard, "vector.kinds.layer_norm.step_cycles", 5, 8000, 0.7},
    {F::layer_norm, kBoard, "vector.idle_clock.layer_norm.slowdown", 0, 3, 0.3, false},
    {F::layer_norm, kBoard, "single_op.layer_norm.floor_s", 1e-6, 1e-3, 0.4},
    {F::layer_norm, kBoard, "single_op.layer_norm.launch_s", 1e-6, 1e-3, 0.4},
    // Matrix products on CUDA cores.
    {F::linear, kArch, "gemm_simt.linear.overlap_p", 1.2, 12, 0.4},
    {F::linear, kArch, "gemm_simt.linear.latency_cycles", 100, 4000, 0.4},
    {F::linear, kArch, "gemm_simt.linear.latency_first_cycles", 100, 20000, 0.6},
    {F::linear, kArch, "gemm_simt.linear.row_sector_cycles", 0.001, 0.5, 0.6},
    {F::linear, kArch, "gemm_simt.linear.evening", 0, 0.5, 0.1, false},
    {F::linear, kArch, "gemm_simt.linear.reread", 0.01, 2, 0.7},
    {F::linear, kArch, "gemm_simt.linear.drift", 0.001, 1, 1},
    {F::linear, kArch, "gemm_simt.linear.reduce_s", 5e-07, 5e-05, 0.5},
    {F::linear, kArch, "gemm_simt.linear.serial_s", 5e-07, 5e-05, 0.5},
    {F::linear, kArch, "gemm_simt.linear.in_place_s", 5e-07, 5e-05, 0.6},
    {F::linear, kArch, "gemm_simt.linear.in_place_part_s", 5e-08, 2e-05, 0.6},
    {F::linear, kArch, "gemm_simt.linear.tlb", 0.01, 2, 0.5},
    {F::linear, kArch, "gemm_simt.linear.tlb_span_bytes", 8e+06, 5e+08, 0.4},
    {F::linear, kArch, "gemm_simt.linear.store", 1, 1.5, 0.3},
    {F::linear, kArch, "gemm_simt.linear.store_unaligned", 1, 2, 0.3},
    {F::linear, kArch, "gemm_simt.linear.kernels.*.efficiency", 0.2, 1, 0.15},
    {F::linear, kArch, "gemm_simt.linear.kernels.*.prologue_cycles", 10, 40000, 1},
    {F::linear, kArch, "gemm_simt.linear.kernels.*.fill_ctas", 1, 8, 0.4},
    {F::linear, kBoard, "single_op.linear.floor_s", 1e-06, 0.001, 0.4},
    {F::linear, kBoard, "single_op.linear.launch_s", 1e-06, 0.001, 0.4},
    {F::linear, kSettled, "gemm_simt.linear.clock_share", 0.3, 1, 0.05},
    {F::linear, kSettled, "gemm_simt.linear.ramp_s", 1e-05, 10, 0.7},
    {F::linear, kOther, "gemm_simt.linear.start_share", 0.3, 1, 0.1},
    {F::linear, kSession, "gemm_simt.linear.start_share", 0.3, 1, 0.1},
    {F::linear, kSession, "gemm_simt.linear.clock_share", 0.3, 1, 0.1},
    {F::linear, kSession, "gemm_simt.linear.ramp_s", 1e-05, 10, 0.7},
    {F::batched, kArch, "gemm_simt.bmm.overlap_p", 1.2, 12, 0.4},
    {F::batched, kArch, "gemm_simt.bmm.latency_cycles", 100, 4000, 0.4},
    {F::batched, kArch, "gemm_simt.bmm.latency_first_cycles", 100, 20000, 0.6},
    {F::batched, kArch, "gemm_simt.bmm.row_sector_cycles", 0.001, 0.5, 0.6},
    {F::batched, kArch, "gemm_simt.bmm.evening", 0, 0.5, 0.1, false},
    {F::batched, kArch, "gemm_simt.bmm.prologue_filled_share", 0, 1, 0.2, false},
    {F::batched, kArch, "gemm_simt.bmm.row_fetch_short", 1, 4, 0.3},
    {F::batched, kArch, "gemm_simt.bmm.row_fetch_long", 1, 6, 0.4},
    {F::batched, kArch, "gemm_simt.bmm.spill", 0.05, 5, 0.5},
    {F::batched, kArch, "gemm_simt.bmm.spill_from", 0.01, 1.2, 0.4},
    {F::batched, kArch, "gemm_simt.bmm.spill_across", 0.01, 1, 0.5},
    {F::batched, kArch, "gemm_simt.bmm.sector_aligned", 0, 1, 0.2, false},
    {F::batched, kArch, "gemm_simt.bmm.line_aligned", 0, 1, 0.2, false},
    {F::batched, kArch, "gemm_simt.bmm.store", 1, 1.5, 0.3},
    {F::batched, kArch, "gemm_simt.bmm.store_unaligned", 1, 2, 0.3},
    {F::batched, kArch, "gemm_simt.bmm.kernels.*.efficiency", 0.2, 1, 0.15},
    {F::batched, kArch, "gemm_simt.bmm.kernels.*.prologue_cycles", 10, 40000, 1},
    {F::batched, kArch, "gemm_simt.bmm.kernels.*.fill_ctas", 1, 8, 0.4},
    {F::batched, kBoard, "single_op.bmm.floor_s", 1e-06, 0.001, 0.4},
    {F::batched, kBoard, "single_op.bmm.launch_s", 1e-06, 0.001, 0.4},
    {F::batched, kSettled, "gemm_simt.bmm.clock_share", 0.3, 1, 0.02},
    {F::batched, kSettled, "gemm_simt.bmm.ramp_s", 1e-05, 10, 0.7},
    {F::batched, kOther, "gemm_simt.bmm.start_share", 0.3, 1, 0.1},
    {F::batched, kSession, "gemm_simt.bmm.start_share", 0.3, 1, 0.1},
    {F::batched, kSession, "gemm_simt.bmm.clock_share", 0.3, 1, 0.1},
    {F::batched, kSession, "gemm_simt.bmm.ramp_s", 1e-05, 10, 0.7},
    // Convolution 3x3 in FP32.
    {F::convolution, kArch, "convolution.square.kernels.*.efficiency", 0.1, 1.5, 0.25},
    {F::convolution, kArch, "convolution.square.kernels.*.prologue_cycles", 5, 40000, 0.5},
    {F::convolution, kArch, "convolution.square.kernels.*.fill_ctas", 0.9, 8, 0.25},
    {F::convolution, kArch, "convolution.square.kernels.*.input_passes", 0.1, 20, 0.4},
    {F::convolution, kArch, "convolution.square.kernels.*.output_passes", 0.1, 20, 0.4},
    {F::convolution, kArch, "convolution.square.kernels.*.reread", 0.001, 0.5, 0.7},
    {F::convolution, kArch, "convolution.square.kernels.*.copy_passes", 0.1, 20, 0.4},
    {F::convolution, kArch, "convolution.square.kernels.*.filter_passes", 0.1, 20, 0.4},
    {F::convolution, kArch, "convolution.square.kernels.*.transform_passes", 0.1, 5, 0.3},
    {F::convolution, kArch, "convolution.square.kernels.*.l2_cost_share", 0.05, 10, 0.4},
    {F::convolution, kArch, "convolution.square.kernels.*.ragged_filter_passes", 0.05, 20, 0.5},
    {F::convolution, kArch, "convolution.square.kernels.*.filter_wait_passes", 0.05, 20, 0.7},
    {F::convolution, kArch, "convolution.square.kernels.*.ragged_output_passes", 0.05, 20, 0.6},
};

bool has_sustained_clock(const std::string& board) {
  const auto clocks = arch::resolve_gpu(board).spec.clocks;
  return clocks.sustained < clocks.boost;
}

/// `path` with '*' replaced by each member found there, where such a value exists.
std::vector<std::string> expand(std::string_view path, const arch::ParameterTree& tree) {
  const auto star = path.find('*');
  if (star == std::string_view::npos) {
    return tree.has(path) ? std::vector<std::string>{std::string(path)} : std::vector<std::string>{};
  }
  std::vector<std::string> out;
  const std::string_view head = path.substr(0, star - 1);
  if (!tree.has(head)) return out;
  for (const auto& name : tree.keys(head)) {
    std::string full = fmt::format("{}.{}{}", head, name, path.substr(star + 1));
    if (tree.has(full)) out.push_back(std::move(full));
  }
  return out;
}

/// An effect that the prior says is absent stays absent: data that lack it would fit noise with it.
bool absent(double prior) {
  return prior == 0;
}

FitParameter parameter(const Entry& e, std::string path, double prior) {
  FitParameter p;
  p.unit = unit_of(e.path);
  p.path = std::move(path);
  p.lower = e.lower;
  p.upper = e.upper;
  p.prior = std::clamp(prior, e.lower, e.upper);
  p.width = e.width;
  p.logarithmic = e.logarithmic;
  return p;
}

}  // namespace

std::string_view unit_of(std::string_view path) {
  for (const std::string_view unit : {"cycles", "bytes", "hz", "s"}) {
    if (path.size() > unit.size() + 1 && path.ends_with(unit) && path[path.size() - unit.size() - 1] == '_')
      return unit;
  }
  return "";
}

int fold_of(const std::string& key, int folds) {
  const auto crc = crc32(0, reinterpret_cast<const Bytef*>(key.data()), static_cast<uInt>(key.size()));
  return static_cast<int>(crc / 10 % static_cast<uLong>(folds));
}

std::string_view to_string(FitFamily family) {
  constexpr std::array<std::string_view, kFitFamilies> kNames{"pointwise", "softmax",         "layer norm",
                                                              "linear",    "batched product", "convolution"};
  return kNames[static_cast<std::size_t>(family)];
}

FitFamily family_of(const KernelRow& row) {
  if (row.kind == RowKind::convolution) return FitFamily::convolution;
  if (row.kind == RowKind::product) return row.product.linear ? FitFamily::linear : FitFamily::batched;
  if (row.vector_op == graph::OpType::softmax) return FitFamily::softmax;
  return row.vector_op == graph::OpType::layer_norm ? FitFamily::layer_norm : FitFamily::pointwise;
}

std::vector<FitParameter> fit_plan(FitFamily family, const arch::CalibrationDocument& document,
                                   const std::vector<FitBoard>& boards) {
  ensure(!boards.empty(), "a fit needs a board");
  std::vector<FitParameter> out;
  for (const Entry& e : kPlan) {
    if (e.family != family) continue;
    if (e.scope == Scope::architecture) {
      const auto tree = document.tree(boards.front().name);
      for (const auto& path : expand(e.path, tree)) {
        if (!absent(tree.number(path))) out.push_back(parameter(e, path, tree.number(path)));
      }
      continue;
    }
    for (std::size_t b = 0; b < boards.size(); ++b) {
      const FitBoard& board = boards[b];
      const auto tree = document.tree(board.name);
      if (e.scope == Scope::reference && b == 0) continue;
      if (e.scope == Scope::settled && has_sustained_clock(board.gpu)) continue;
      if (e.scope != Scope::session) {
        for (const auto& path : expand(e.path, tree)) {
          if (absent(tree.number(path))) continue;
          out.push_back(parameter(e, fmt::format("boards.{}.{}", board.name, path), tree.number(path)));
        }
        continue;
      }
      for (std::size_t s = 1; s < board.sessions.size(); ++s) {
        if (board.sessions[s].empty()) continue;  // measured in no named session
        const auto there = arch::in_session(tree, board.sessions[s]);
        for (const auto& path : expand(e.path, there)) {
          // Where a session is new, its clock begins a little below: at full clock the law does not feel it.
          constexpr double kNew = 0.98;
          const double prior = there.number(path);
          const bool full = path.ends_with("clock_share") && prior == 1;
          out.push_back(parameter(e, fmt::format("boards.{}.sessions.{}.{}", board.name, board.sessions[s], path),
                                  full ? kNew : prior));
        }
      }
    }
  }
  return out;
}

namespace {

/// How far the clock settles below the boost is a matter of a board's power limit: no other board inherits it.
bool is_clock(std::string_view path) {
  return path.ends_with(".clock_share") || path.ends_with(".start_share") || path.ends_with(".ramp_s");
}

}  // namespace

void apply(const std::vector<FitParameter>& parameters, std::span<const double> values, const std::string& reference,
           arch::CalibrationDocument& document) {
  const std::string own = fmt::format("boards.{}.", reference);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const std::string& path = parameters[i].path;
    document.set(path, values[i]);
    if (path.starts_with(own) && !path.starts_with(own + "sessions.") && !is_clock(path)) {
      document.set(std::string_view(path).substr(own.size()), values[i]);
    }
  }
}

}  // namespace voltaic::validation
