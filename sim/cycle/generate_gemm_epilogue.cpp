// SPDX-License-Identifier: MIT
// The end of a matrix product: scaled, a bias or residual added, converted, stored; and the programs that add the parts
// of a split k.
#include <algorithm>
#include <cmath>

#include "sim/cycle/generate_gemm.hpp"

namespace voltaic::cycle::gemm {
namespace {

constexpr double kLanes = 32, kQuad = 16, kSector = 32;

std::uint16_t bytes16(double v) {
  return static_cast<std::uint16_t>(std::clamp(std::ceil(v), 1.0, 65535.0));
}

Block result_block(const Product& p, double most_run) {
  Block b;
  b.rows = p.c_along_m ? p.tile.tile_n : p.tile.tile_m;
  b.run = (p.c_along_m ? p.tile.tile_m : p.tile.tile_n) * p.c.element;
  b.filled_rows = p.c_along_m ? p.columns : p.rows;
  b.filled_run = (p.c_along_m ? p.rows : p.columns) * p.c.element;
  b.pitch = p.c.pitch;
  b.widest = p.c.widest;
  b.most_run = std::min(most_run, p.c.most_run);
  return b;
}

/// Accumulators of one piece to shared memory and back, in the order in which rows are stored.
void shuffle_piece(Emitter& e, double values, double bytes) {
  const double pair = std::min(2 * bytes, kQuad);
  const std::uint16_t in = e.access(detail::shared_access(kLanes * pair));
  const std::uint16_t out = e.access(detail::shared_access(kLanes * kQuad));
  e.barrier();
  e.memory(Op::store_shared, in, std::ceil(values * bytes / pair));
  e.barrier();
  e.memory(Op::load_shared, out, std::ceil(values * bytes / kQuad), 0);
  e.wait(detail::bit(0));
}

void convert(Emitter& e, const Product& p, double values, bool by_xu) {
  if (p.c.element >= 4) return;
  if (!by_xu) {
    e.math(Op::alu, values / 2);  // F2FP packs two
    return;
  }
  e.variable(Op::convert, values, 1);
  e.wait(detail::bit(1));
  e.math(Op::alu, values / 2);
}

void store_part(Emitter& e, const std::vector<Request>& all, int piece, int pieces, double address) {
  const auto total = static_cast<int>(all.size());
  for (int i = piece * total / pieces; i < (piece + 1) * total / pieces; ++i) {
    const Request& r = all[static_cast<std::size_t>(i)];
    e.address(address);
    if (r.warps < e.program.warps) e.only_warps(r.warps);
    e.memory(Op::store_global, r.access);
    e.all_warps();
  }
}

/// Values that the epilogue adds: a bias per column, a residual per element.
void load_added(Emitter& e, const Product& p, double most_run) {
  if (p.bias) {
    Tensor bias;
    bias.name = "bias";
    bias.unique_bytes = p.columns * p.c.element * static_cast<double>(p.grid[0]);
    bias.wave_bytes = bias.unique_bytes;
    bias.cold = p.b.tensor.cold;
    Access a = detail::global_access(e.tensor(bias), 1, std::min(p.columns * p.c.element, kLanes * kQuad));
    a.per_cta[0] = static_cast<std::int64_t>(p.tile.tile_n * p.c.element);
    e.memory(Op::load_global, e.access(a), 1, 2);
  }
  if (!(p.epilogue_bytes > 0)) return;
  Tensor added;
  added.name = "residual";
  added.unique_bytes = added.wave_bytes = p.c.tensor.unique_bytes * p.epilogue_bytes / p.c.element;
  added.cold = false;
  Block b = result_block(p, most_run);
  const double scale = p.epilogue_bytes / p.c.element;
  b.run *= scale;
  b.filled_run *= scale;
  b.pitch *= scale;
  Place place;
  place.per_cta = p.c.per_cta;
  for (const Request& r : requests(e, e.tensor(added), b, place, e.program.warps)) {
    if (r.warps < e.program.warps) e.only_warps(r.warps);
    e.memory(Op::load_global, r.access, 1, 2);
    e.all_warps();
  }
}

}  // namespace

void emit_epilogue(Emitter& e, const Product& p, const Epilogue& end, const arch::GpuSpec& gpu) {
  const int pieces = std::max(1, end.pieces);
  fetch_arguments(e, 3, 0, gpu);  // of the result and of its scaling
  load_added(e, p, end.most_run);
  Place place;
  place.per_cta = p.c.per_cta;
  const auto stores = requests(e, e.tensor(p.c.tensor), result_block(p, end.most_run), place, e.program.warps);
  const double values = end.values / pieces;
  const bool added = p.bias || p.epilogue_bytes > 0;
  for (int i = 0; i < pieces; ++i) {
    if (end.shuffled) shuffle_piece(e, values, end.accumulator_bytes);
    if (!p.partial) {
      e.math(end.scale, values);
      if (added) e.wait(detail::bit(2)).math(end.scale, values);
      convert(e, p, values, end.narrow_by_xu);
    }
    store_part(e, stores, i, pieces, 2);
  }
}

/// Threads of splitKreduce_kernel each add four neighbouring outputs over the parts, up to four loads ahead.
Program reduce_program(const kernel::Launch& launch, const kernel::GemmKernel& kernel, const arch::GpuSpec& gpu) {
  constexpr double kOutputs = 4, kAhead = 4, kPartial = 4;
  const kernel::GemmProblem& problem = kernel.problem;
  const double outputs =
      static_cast<double>(problem.batch) * static_cast<double>(problem.m) * static_cast<double>(problem.n);
  const double parts = std::max(1.0, static_cast<double>(kernel.tile.split_k));
  Emitter e(launch.name, gpu);
  e.program.warps = std::clamp(launch.cta.threads / 32, 1, 32);
  e.program.registers_per_thread = launch.cta.registers_per_thread;
  for (std::size_t i = 0; i < 3; ++i) e.program.grid[i] = std::max<std::int64_t>(1, launch.grid[i]);
  const double lanes = e.program.warps * kLanes * static_cast<double>(e.program.ctas());
  const double filled = std::min(1.0, outputs / (kOutputs * lanes));

  Tensor in;
  in.name = "partial sums";
  in.unique_bytes = in.wave_bytes = kPartial * parts * outputs;
  in.cold = false;
  const std::uint16_t partials = e.tensor(in);
  Tensor out;
  out.name = "C";
  out.unique_bytes = out.wave_bytes = problem.c_bytes * outputs;
  out.written = true;
  const std::uint16_t result = e.tensor(out);
  const double run = kLanes * kOutputs * kPartial * filled;
  Access load = detail::global_access(partials, 1, run);
  load.per_cta[0] = static_cast<std::int64_t>(kOutputs * kPartial * kLanes) * e.program.warps;
  load.per_warp = static_cast<std::int64_t>(kOutputs * kPartial * kLanes);
  const double stride = std::min(kPartial * outputs, 1e14);

  fetch_arguments(e, 3, 1, gpu);  // thirteen pointers and a structure, some 200 bytes from 0x160 on
  e.stalled(Op::alu, 2, 20);
  for (int i = 0; i < 4; ++i) e.math(Op::imad, 2, detail::Next::dependent);
  e.address(12);
  const auto add = [&](double count, int loop) {
    for (int i = 0; i < static_cast<int>(count); ++i) {
      Access a = load;
      a.base = static_cast<std::int64_t>(i * stride);
      if (loop >= 0) a.per_trip[static_cast<std::size_t>(loop)] = static_cast<std::int64_t>(kAhead * stride);
      e.address(1);
      e.memory(Op::load_global, e.access(a), 1, 0);
    }
    e.wait(detail::bit(0)).math(Op::ffma, kOutputs * count, detail::Next::dependent);
  };
  const double rounds = std::floor(parts / kAhead);
  if (rounds >= 1) {
    const std::uint16_t loop = e.open_loop(rounds);
    add(kAhead, loop);
    e.close_loop();
  }
  if (parts > rounds * kAhead) add(parts - rounds * kAhead, -1);
  e.math(Op::ffma, kOutputs, detail::Next::dependent);
  if (problem.c_bytes < 4) e.math(Op::alu, 2, detail::Next::dependent);
  Access store = detail::global_access(result, 1, kLanes * kOutputs * problem.c_bytes * filled);
  store.per_cta[0] = static_cast<std::int64_t>(kOutputs * problem.c_bytes * kLanes) * e.program.warps;
  store.per_warp = static_cast<std::int64_t>(kOutputs * problem.c_bytes * kLanes);
  e.memory(Op::store_global, e.access(store));
  return e.finish();
}

/// The CTAs of one tile of C in turn: each waits for the one before (a flag in L2), reads C, adds its sums, writes C
/// and raises the flag once its writes are out.
Program chain_program(const Product& p, double outputs, double parts, const arch::GpuSpec& gpu) {
  Product whole = p;
  whole.grid[2] = std::max<std::int64_t>(1, static_cast<std::int64_t>(static_cast<double>(p.grid[2]) / parts));
  Emitter e(p.name + " adds in place", gpu);
  shape_program(e, whole, gpu);
  Tensor flags;
  flags.name = "flags";
  flags.unique_bytes = flags.wave_bytes = kSector * static_cast<double>(whole.grid[0] * whole.grid[1] * whole.grid[2]);
  flags.cold = false;
  const std::uint16_t flag = e.access(detail::global_access(e.tensor(flags), 1, 4));
  Tensor before = p.c.tensor;
  before.name = "C before";
  before.written = false;
  before.cold = false;
  const std::uint16_t read = e.tensor(before);
  const std::uint16_t written = e.tensor(p.c.tensor);
  Place place;
  place.per_cta = p.c.per_cta;
  const Block block = result_block(p, 128);
  const auto loads = requests(e, read, block, place, e.program.warps);
  const auto stores = requests(e, written, block, place, e.program.warps);
  const double values = outputs / (kLanes * e.program.warps);
  const auto each = [&](Op op, const std::vector<Request>& all, int board) {
    for (const Request& r : all) {
      e.address(1);
      if (r.warps < e.program.warps) e.only_warps(r.warps);
      e.memory(op, r.access, 1, board);
      e.all_warps();
    }
  };
  e.open_loop(parts);
  e.memory(Op::load_global, flag, 1, 0);  // the flag as it is seen raised
  e.wait(detail::bit(0)).math(Op::alu, 2, detail::Next::dependent);
  e.barrier();
  each(Op::load_global, loads, 1);
  e.wait(detail::bit(1)).math(Op::ffma, values, detail::Next::dependent);
  each(Op::store_global, stores, 2);
  e.barrier();
  e.wait(detail::bit(2));
  e.memory(Op::atomic, flag, 1, 3);  // behind a fence: all writes have arrived
  e.wait(detail::bit(3)).math(Op::alu, 1, detail::Next::dependent);
  e.close_loop();
  Program out = e.finish();
  out.accesses[flag].bytes = bytes16(4);
  return out;
}

}  // namespace voltaic::cycle::gemm
