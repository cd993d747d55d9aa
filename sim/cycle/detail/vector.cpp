// SPDX-License-Identifier: MIT
#include "sim/cycle/detail/vector.hpp"

#include <algorithm>
#include <cmath>

#include "sim/memory/cache.hpp"
#include "sim/sm/occupancy.hpp"

namespace voltaic::cycle::detail {
namespace {

constexpr double kSector = 32, kLine = 128, kWarp = 32;
constexpr double kMostCtas = 1e12;
constexpr int kMostApart = 8;  ///< Requests in a row that get an address of their own.

double whole(double v) {
  return std::max(1.0, std::ceil(v - 1e-9));
}

double resident_ctas(const Program& p, const arch::GpuSpec& gpu) {
  const kernel::CtaResources cta{p.warps * 32, p.registers_per_thread, Bytes{p.shared_bytes}};
  return std::max(1, sm::occupancy(cta, gpu.sm).ctas_per_sm);
}

/// Elements that are computed on; what is written where the kernel does not say.
double elements_of(const kernel::VectorKernel& k) {
  return std::max(1.0, static_cast<double>(std::max<std::int64_t>(k.rows, 1)) *
                           static_cast<double>(std::max<std::int64_t>(k.cols, 1)));
}

}  // namespace

Reread reread_of(const kernel::Launch& launch, const kernel::VectorKernel& k, const arch::GpuSpec& gpu,
                 double resident) {
  Reread r;
  r.asked = std::max(0.0, k.reread_bytes);
  if (!(r.asked > 0)) return r;
  if (k.far_bytes >= 0) {  // Rows by index: popularity decides, and L1 is too small to matter.
    r.beyond_l1 = r.asked;
    r.far = std::min(k.far_bytes, r.asked);
    return r;
  }
  if (k.reuse_bytes > 0) {
    // A CTA's neighbours run on other SMs: what passes one SM between two of its own readings is what passes the GPU.
    r.beyond_l1 = r.asked * memory::reread_shares(gpu, Bytes{k.reuse_bytes}, 1, {}).l1_miss;
    r.far = r.beyond_l1 * memory::miss_share(Bytes{k.reuse_bytes}, gpu.l2.capacity, {});
    return r;
  }
  // From one pass over its row to the next, a CTA touches all of it once, and what it writes in that time takes its
  // place in L1 too.
  const double row = std::max(1.0, static_cast<double>(k.cols) * k.element_bytes);
  const double all = std::max(1.0, elements_of(k) * k.element_bytes);
  const double read = std::max(1.0, launch.work.read.value / all);
  const double passes = 1 + r.asked / (read * all);
  const Bytes open{resident * row * read};
  const Bytes open_in_l1{resident * row * (read + launch.work.written.value / all / passes)};
  r.beyond_l1 = r.asked * memory::reread_shares(gpu, open_in_l1, 1, {}).l1_miss;
  r.far = r.beyond_l1 * memory::reread_shares(gpu, open, 1, {}).l2_miss;
  return r;
}

VectorBuilder::VectorBuilder(const kernel::Launch& l, const kernel::VectorKernel& k, const arch::GpuSpec& g,
                             double registers)
    : e(l.name, g), launch(l), kernel(k), gpu(g) {
  ctas = std::clamp(l.ctas(), 1.0, kMostCtas);
  threads = std::clamp(static_cast<double>(l.cta.threads), 1.0, 1024.0);
  warps = std::ceil(threads / kWarp);
  elements = elements_of(k);
  read = std::max(0.0, l.work.read.value);
  written = std::max(0.0, l.work.written.value);
  Program& p = e.program;
  p.grid = {static_cast<std::int64_t>(ctas), 1, 1};
  ctas = static_cast<double>(p.grid[0]);
  p.warps = static_cast<int>(warps);
  const double most = std::floor(static_cast<double>(gpu.sm.registers) / (warps * kWarp));
  const double wanted = std::max(static_cast<double>(l.cta.registers_per_thread), registers);
  p.registers_per_thread =
      static_cast<int>(std::min({wanted, most, static_cast<double>(gpu.sm.max_registers_per_thread)}));
  p.shared_bytes = l.cta.shared_memory.value;
  const Reread r = reread_of(l, k, g, resident_ctas(p, g));
  again = r.asked;
  again_beyond_l1 = r.beyond_l1;
  // What an earlier kernel touched stays in L2 as far as it fits; what it cannot have touched is cold.
  const bool passes_by = kernel::is_serving(k.kind) && k.reuse_bytes > g.l2.capacity.value;
  const bool cold = k.cold_bytes > 0.5 * read || passes_by;
  input = e.tensor({"input", read, read + r.far, cold, false});
  output = e.tensor({"output", written, written, passes_by, true});
}

void VectorBuilder::open(double mean) {
  constexpr double kFewCtas = 64;  // that do not even out
  double trips = ctas < kFewCtas ? whole(mean) : std::max(1.0, mean);
  // The fraction becomes a whole number of CTAs with a trip more.
  const double more = std::ceil((trips - std::floor(trips)) * ctas - 1e-6);
  trips = std::floor(trips) + (more < ctas ? more / ctas : 1);
  e.open_loop(trips);
  const bool even = more < 1 || more >= ctas;
  if (!even) e.mean_trips(trips + 0.5 / ctas, ctas);
  open_.push_back(trips);
  trips_ *= trips;
}

void VectorBuilder::close() {
  e.close_loop();
  trips_ /= open_.back();
  open_.pop_back();
}

void VectorBuilder::emit(Op op, std::uint16_t tensor, double asked, double beyond_l1, double lane_bytes, int board,
                         double senders) {
  if (!(asked > 0)) return;
  const double sent = ctas * senders * trips_;
  const double most = kWarp * std::max(lane_bytes, 1e-3);
  const double n = whole(asked / sent / most);
  const double each = asked / (sent * n);
  const bool strided = run_bytes_ > 0 && run_bytes_ < kSector;
  Access a;
  if (strided) {
    a = global_access(tensor, whole(each / run_bytes_), run_bytes_);
  } else {
    a = global_access(tensor, 1, each);
    // Requests with fewer bytes are the mean of whole ones and of those at the ends of rows.
    a.bytes = static_cast<std::uint16_t>(std::min(65535.0, kSector * a.sectors));
    if (misaligned_) a.sectors = static_cast<std::uint16_t>(a.sectors + 1);
    a.lines = static_cast<std::uint16_t>((a.sectors + 3) / 4);
  }
  // What L1 serves, and what the last sector of a request holds in excess.
  if (op == Op::load_global) {
    const double moved = strided ? kSector * a.sectors : each;
    a.l1_hit = std::clamp(1 - beyond_l1 / asked * moved / (kSector * a.sectors), 0.0, 1.0);
  }
  const double of_cta = each * n * senders;
  double inner = 1;
  for (const double t : open_) inner *= t;
  a.per_warp = static_cast<std::int64_t>(each);
  a.per_cta[0] = static_cast<std::int64_t>(grid_stride_ ? of_cta : of_cta * inner);
  if (!open_.empty()) {
    const auto loop = e.program.loops.size() - 1;
    a.per_trip[loop] = static_cast<std::int64_t>(grid_stride_ ? of_cta * ctas : of_cta);
  }
  for (int i = 0; i < std::min<double>(n, kMostApart); ++i) {
    a.base = static_cast<std::int64_t>(i * each * senders);
    const double left = i + 1 == kMostApart ? n - kMostApart + 1 : 1;
    e.memory(op, e.access(a), left, board);
  }
}

void VectorBuilder::load(std::uint16_t tensor, double asked, double beyond_l1, double lane_bytes, int board) {
  emit(Op::load_global, tensor, asked, beyond_l1, lane_bytes, board, warps);
}

void VectorBuilder::store(double bytes, double lane_bytes, int stores) {
  const double senders = stores > 0 ? std::min<double>(stores, warps) : warps;
  if (senders < warps) e.only_warps(static_cast<int>(senders));
  emit(Op::store_global, output, bytes, bytes, lane_bytes, kNoScoreboard, senders);
  e.all_warps();
}

void VectorBuilder::atomics(double bytes, double lane_bytes) {
  emit(Op::atomic, output, bytes, bytes, lane_bytes, kNoScoreboard, warps);
}

void VectorBuilder::load_shared_operand(double count, double lane_bytes) {
  if (!has_shared_operand_) {
    shared_operand_ = e.tensor({"weights", 0, 0, false, false});
    has_shared_operand_ = true;
  }
  Access a = global_access(shared_operand_, 1, kWarp * lane_bytes);
  a.l1_hit = 1;
  e.memory(Op::load_global, e.access(a), count, kLoads);
}

void VectorBuilder::prologue(double alu) {
  e.address(alu);
  e.stalled(Op::alu, 2, e.latency(Op::alu));
}

void VectorBuilder::compute(double n, const ElementWork& work, std::uint8_t waits) {
  e.wait(waits);
  const double rounds = work.special > 0 ? std::clamp(std::round(work.rounds), 1.0, 4.0) : 1;
  const double parts = work.special > 0 ? rounds + 1 : 1;
  const auto piece = [&](double share) {
    // Pipes alternate as the compiler orders independent elements.
    double f = share * n * work.ffma, a = share * n * work.alu, i = share * n * work.imad;
    const double turns = std::max(1.0, std::ceil(std::max({f, a, i}) / 4));
    const double of_f = f / turns, of_a = a / turns, of_i = i / turns;
    double f_due = 0, a_due = 0, i_due = 0;
    const auto issue = [this](Op op, double& due, double more) {
      due += more;
      const double now = std::floor(due + 1e-9);
      e.math(op, now);
      due -= now;
    };
    for (double t = 0; t < turns; ++t) {
      issue(Op::ffma, f_due, of_f);
      issue(Op::alu, a_due, of_a);
      issue(Op::imad, i_due, of_i);
    }
    e.math(Op::ffma, f_due > 1e-6 ? 1 : 0);
    e.math(Op::alu, a_due > 1e-6 ? 1 : 0);
    e.math(Op::imad, i_due > 1e-6 ? 1 : 0);
  };
  piece(1 / parts);
  for (double r = 0; r < rounds && work.special > 0; ++r) {
    e.variable(Op::mufu, n * work.special / rounds, kSpecial);
    e.wait(bit(kSpecial));
    piece(1 / parts);
  }
}

void VectorBuilder::chain(Op op, double n) {
  for (double i = 0; i < std::round(n); ++i) e.math(op, 1, Next::dependent);
}

void VectorBuilder::special(Op op) {
  e.variable(op, 1, kSpecial);
  e.wait(bit(kSpecial));
}

void VectorBuilder::divide(double n) {
  const double jump = e.latency(Op::alu) + gpu.pipeline.branch_latency.value;
  for (double i = 0; i < std::round(n); ++i) {
    e.math(Op::alu);  // BSSY
    special(Op::mufu);
    chain(Op::ffma, 2);
    special(Op::convert);  // FCHK
    e.stalled(Op::alu, 1, jump);
    chain(Op::ffma, 3);
    e.stalled(Op::alu, 1, jump);  // BSYNC
  }
}

void VectorBuilder::reciprocal(double n) {
  const double jump = e.latency(Op::alu) + gpu.pipeline.branch_latency.value;
  for (double i = 0; i < std::round(n); ++i) {
    e.math(Op::alu);
    chain(Op::alu, 3);  // range of the exponent
    e.stalled(Op::alu, 1, jump);
    special(Op::mufu);
    chain(Op::ffma, 3);
    e.stalled(Op::alu, 1, jump);
  }
}

ElementWork VectorBuilder::work_left(const ElementWork& counted) const {
  const kernel::Work& work = launch.work;
  ElementWork w = function_work(kernel);
  const double flop = (std::max(0.0, work.other_flop) + std::max(0.0, work.mac)) / elements;
  const double special = std::max(0.0, work.special) / elements;
  w.ffma = std::max(w.ffma, flop - counted.ffma);
  w.special = std::max(w.special, special - counted.special);
  return w;
}

void VectorBuilder::warp_fold(double values, double lanes, double ops) {
  for (double width = 1; width < std::min(lanes, kWarp); width *= 2) {
    e.variable(Op::shuffle, values, kExchange);
    e.wait(bit(kExchange)).math(Op::ffma, values * ops, Next::dependent);
  }
}

void VectorBuilder::cta_fold(double values, double ops) {
  warp_fold(values, kWarp, ops);
  if (warps <= 1) return;
  const std::uint16_t one = e.access(shared_access(4 * values));
  const std::uint16_t all = e.access(shared_access(4 * warps));
  e.memory(Op::store_shared, one);
  e.barrier();
  e.only_warps(1);
  e.memory(Op::load_shared, all, values, kExchange);
  e.wait(bit(kExchange));
  warp_fold(values, warps, ops);
  e.memory(Op::store_shared, one);
  e.all_warps();
  e.barrier();
  e.memory(Op::load_shared, one, 1, kExchange);
  e.wait(bit(kExchange)).math(Op::alu, 1, Next::dependent);
}

Part VectorBuilder::finish() {
  return {e.finish(), 1, 1};
}

}  // namespace voltaic::cycle::detail
