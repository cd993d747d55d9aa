// SPDX-License-Identifier: MIT
// A thousand points of ResNet-50 over batch and DRAM bandwidth, as `voltaic sweep` runs them.
#include <benchmark/benchmark.h>

#include "sim/study/sweep.hpp"

namespace {

using namespace voltaic;

void sweep_resnet50(benchmark::State& state) {
  Request base;
  base.workload = "resnet50";
  const std::vector<study::Axis> axes{study::parse_axis("batch", "1:100:1"),
                                      study::parse_axis("set", "gpu.dram.peak_bandwidth*=0.5:1.4:0.1")};
  for (auto _ : state) {
    Runner runner;
    study::SweepOptions options;
    options.jobs = static_cast<int>(state.range(0));
    const auto points = study::sweep(runner, base, axes, options);
    if (points.size() != 1000) state.SkipWithError("expected 1000 points");
  }
  state.counters["points/s"] = benchmark::Counter(1000, benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(sweep_resnet50)->Arg(1)->Arg(2)->Unit(benchmark::kMillisecond)->UseRealTime()->Iterations(3);

}  // namespace
