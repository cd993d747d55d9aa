// SPDX-License-Identifier: MIT
// What surrounds attention over a cache: the merge of split keys, and the writing of new keys and values.
#include <algorithm>
#include <cmath>

#include "sim/cycle/detail/attention.hpp"

namespace voltaic::cycle::detail {
namespace {

constexpr double kLanes = 32, kMostCtas = 1e15;

double d(std::int64_t v) {
  return static_cast<double>(v);
}

std::int64_t whole(double v) {
  return static_cast<std::int64_t>(std::clamp(std::ceil(v - 1e-9), 1.0, kMostCtas));
}

}  // namespace

/// A CTA takes a few rows: their sums over all splits first, then one split's results after another [FA2].
Part merge_splits(const kernel::Launch& launch, const kernel::AttentionKernel& k, const arch::GpuSpec& gpu) {
  constexpr double kWarps = 4;
  constexpr int kSums = 0, kShared = 1, kPart = 2;
  const double value = d(k.value_dim), splits = d(k.splits);
  const double queries = d(k.batch) * d(k.heads) * d(k.seq_q);
  const double rows = std::fmod(value, 128) == 0 ? 4 : std::fmod(value, 64) == 0 ? 8 : 16;
  Emitter e(launch.name + " combine", gpu);
  const auto parts = e.tensor(whole_tensor("parts", 4 * queries * value * splits, false, false));
  const auto sums = e.tensor(whole_tensor("sums", 4 * queries * splits, false, false));
  const auto result = e.tensor(whole_tensor("o", queries * value * k.element_bytes, true, true));
  e.program.warps = static_cast<int>(kWarps);
  e.program.registers_per_thread = 48;
  e.program.grid[0] = whole(queries / rows);
  const double held = std::min(rows, queries);  // the last CTA's rows may be fewer
  e.program.shared_bytes = std::min(4 * rows * (splits + 1), gpu.sm.shared_memory_per_cta.value);
  const auto exchange = e.access(shared_access(128));
  e.address(32);
  emit_stream(e, Op::load_global, sums, 4 * held * splits, 4 * std::max(1.0, held), 4, kSums);
  e.wait(bit(kSums)).memory(Op::store_shared, exchange);
  e.barrier();
  e.memory(Op::load_shared, exchange, 1, kShared);
  e.wait(bit(kShared)).math(Op::ffma, 2, Next::dependent);
  for (int i = 0; i < 10; ++i) {  // maximum and sum over lanes
    e.variable(Op::shuffle, 1, kShared);
    e.wait(bit(kShared)).math(Op::ffma, 1, Next::dependent);
  }
  e.variable(Op::mufu, 3, kShared);
  e.wait(bit(kShared)).memory(Op::store_shared, exchange);
  e.barrier();
  e.open_loop(splits);
  Place place;
  place.per_trip[0] = offset(4 * queries * value);
  place.per_cta[0] = offset(4 * rows * value);
  emit_stream(e, Op::load_global, parts, 4 * held * value, 4 * value, 4, kPart, place);
  e.memory(Op::load_shared, exchange, 1, kShared);
  e.wait(static_cast<std::uint8_t>(bit(kPart) | bit(kShared)));
  e.math(Op::ffma, held * value / (kLanes * kWarps), Next::dependent);
  e.close_loop();
  e.address(8);
  emit_stream(e, Op::store_global, result, held * value * k.element_bytes, value * k.element_bytes, 4, kNoScoreboard);
  return Part{e.finish()};
}

Part transpose_groups(const kernel::AttentionKernel& k, const arch::GpuSpec& gpu) {
  constexpr int kRead = 0;
  const double elements = d(k.batch) * d(k.heads) * d(k.seq_q) * d(k.value_dim);
  Emitter e("copy of grouped heads", gpu);
  e.program.warps = 4;
  e.program.grid[0] = whole(elements / (4 * kLanes * 4));  // four elements of a thread
  const double width = kLanes * k.element_bytes;
  const auto in = e.tensor(whole_tensor("in", elements * k.element_bytes, false, false));
  const auto out = e.tensor(whole_tensor("out", elements * k.element_bytes, false, true));
  e.math(Op::imad, 4 * 12, Next::dependent);  // strided offsets
  e.memory(Op::load_global, e.access(global_access(in, 1, width)), 4, kRead);
  e.wait(bit(kRead)).memory(Op::store_global, e.access(global_access(out, 1, width)), 4);
  return Part{e.finish()};
}

/// One CTA per token looks its slot up and copies element by element.
Part append_cache(const kernel::Launch& launch, const kernel::AttentionKernel& k, const arch::GpuSpec& gpu) {
  constexpr int kSlot = 0, kToken = 1;
  const double tokens = d(k.batch) * d(k.seq_q);
  const double dims = d(k.head_dim) + d(k.value_dim);
  const double bytes = tokens * d(k.kv_heads) * dims * k.element_bytes;
  Emitter e(launch.name, gpu);
  const bool cold = !k.warm;
  const auto source = e.tensor(whole_tensor("k, v", bytes, cold, false));
  const auto cache = e.tensor(whole_tensor("cache", bytes, true, true));
  const auto slots = e.tensor(whole_tensor("slots", 8 * tokens, true, false));
  e.program.warps = std::clamp((launch.cta.threads + 31) / 32, 1, 32);
  e.program.registers_per_thread = launch.cta.registers_per_thread;
  e.program.grid[0] = whole(tokens);
  const double width = kLanes * k.element_bytes;
  const auto load = e.access(global_access(source, 1, width)), store = e.access(global_access(cache, 1, width));
  e.address(8);
  e.memory(Op::load_global, e.access(global_access(slots, 1, 8)), 1, kSlot);
  // Block and place in it: a 64-bit division, which is a subroutine.
  e.wait(bit(kSlot));
  for (int i = 0; i < 12; ++i) e.math(Op::imad, 6, Next::dependent);
  e.variable(Op::mufu, 1, kSlot);
  e.wait(bit(kSlot)).math(Op::imad, 6, Next::dependent);
  e.open_loop(d(k.kv_heads) * dims / 2 / (kLanes * e.program.warps));
  // Head and offset of the element: a 32-bit division, then four 64-bit addresses.
  e.variable(Op::convert, 1, kSlot);
  e.wait(bit(kSlot)).variable(Op::mufu, 1, kSlot);
  e.wait(bit(kSlot)).variable(Op::convert, 1, kSlot);
  e.wait(bit(kSlot));
  for (int i = 0; i < 6; ++i) e.math(Op::imad, 2, Next::dependent);
  e.math(Op::imad, 16, Next::dependent);
  e.memory(Op::load_global, load, 2, kToken);
  e.wait(bit(kToken)).memory(Op::store_global, store, 2);
  e.close_loop();
  return Part{e.finish()};
}

}  // namespace voltaic::cycle::detail
