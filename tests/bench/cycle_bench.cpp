// SPDX-License-Identifier: MIT
// The cycle engine: warp instructions per second with every CTA's state its own (nothing memoised, nothing
// extrapolated), and the event queue by itself, as a calendar queue and as a binary heap.
#include <benchmark/benchmark.h>

#include "sim/cycle/detail/event_wheel.hpp"
#include "sim/cycle/simulate.hpp"
#include "sim/engine/event_queue.hpp"
#include "tests/sim/cycle/toy.hpp"

namespace voltaic::cycle {
namespace {

void run(benchmark::State& state, const Program& program, int ctas_per_sm) {
  RunOptions o;
  o.sms = state.range(0);
  o.active_sms = static_cast<double>(o.sms);
  o.ctas = program.ctas();
  o.ctas_per_sm = ctas_per_sm;
  double instructions = 0;
  for (auto _ : state) instructions += simulate(program, test::toy_machine(), o).counters.instructions();
  state.counters["warp_instructions_per_s"] = benchmark::Counter(instructions, benchmark::Counter::kIsRate);
}

/// A matrix product on FMA lanes: operands from shared memory, a barrier per step.
void BM_CycleProduct(benchmark::State& state) {
  Program p;
  p.name = "product";
  p.warps = 8;
  p.grid = {8 * state.range(0), 1, 1};
  p.tensors = {{.name = "a", .unique_bytes = 1e6, .wave_bytes = 1e6, .l2_hit = 0.9}};
  p.accesses = {{.tensor = 0, .sectors = 16, .lines = 4, .wavefronts = 4},
                {.tensor = 0, .wavefronts = 4, .ideal_wavefronts = 4}};
  p.loops = {{.begin = 0, .trips = 50}};
  p.code = {{.op = Op::load_global, .sets = 0},
            {.op = Op::load_shared, .sets = 1, .argument = 1},
            {.op = Op::ffma, .waits = 2, .repeat = 64},
            {.op = Op::load_shared, .sets = 1, .argument = 1},
            {.op = Op::ffma, .waits = 2, .repeat = 64},
            {.op = Op::store_shared, .waits = 1, .argument = 1},
            {.op = Op::barrier},
            {.op = Op::branch},
            {.op = Op::exit}};
  run(state, p, 2);
}
BENCHMARK(BM_CycleProduct)->Arg(1)->Arg(8)->Unit(benchmark::kMillisecond);

/// A stream through 64 warps per SM.
void BM_CycleStream(benchmark::State& state) {
  Program p;
  p.name = "stream";
  p.warps = 4;
  p.grid = {1000 * state.range(0), 1, 1};
  p.tensors = {{.name = "x", .unique_bytes = 1e6, .wave_bytes = 1e6},
               {.name = "y", .unique_bytes = 1e6, .wave_bytes = 1e6, .written = true}};
  p.accesses = {{.tensor = 0, .sectors = 16, .lines = 4, .wavefronts = 4},
                {.tensor = 1, .sectors = 16, .lines = 4, .wavefronts = 4}};
  p.code = {{.op = Op::alu, .repeat = 8},
            {.op = Op::load_global, .sets = 0},
            {.op = Op::ffma, .waits = 1, .repeat = 4},
            {.op = Op::store_global, .argument = 1},
            {.op = Op::exit}};
  run(state, p, 16);
}
BENCHMARK(BM_CycleStream)->Arg(1)->Arg(8)->Unit(benchmark::kMillisecond);

/// Events as schedulers make them: mostly a cycle or two ahead, one in sixteen behind a memory access.
std::int64_t ahead(std::uint64_t& seed) {
  seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
  return (seed >> 60) == 0 ? 500 : 1 + static_cast<std::int64_t>(seed >> 63);
}

void BM_CalendarQueue(benchmark::State& state) {
  const auto members = static_cast<std::uint32_t>(state.range(0));
  detail::EventWheel wheel(members);
  std::uint64_t seed = 1;
  for (std::uint32_t i = 0; i < members; ++i) wheel.schedule(i, ahead(seed));
  std::uint32_t next = 0;
  for (auto _ : state) {
    wheel.pop(next);
    wheel.schedule(next, wheel.now() + ahead(seed));
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_CalendarQueue)->Arg(4)->Arg(432);

void BM_BinaryHeap(benchmark::State& state) {
  const auto members = static_cast<std::uint32_t>(state.range(0));
  engine::EventQueue<std::uint32_t> queue;
  std::uint64_t seed = 1;
  for (std::uint32_t i = 0; i < members; ++i) queue.schedule({ahead(seed)}, i);
  for (auto _ : state) {
    const std::uint32_t next = queue.pop();
    queue.schedule({queue.now().ps + ahead(seed)}, next);
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_BinaryHeap)->Arg(4)->Arg(432);

}  // namespace
}  // namespace voltaic::cycle
