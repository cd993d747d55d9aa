// SPDX-License-Identifier: MIT
// One prediction after start-up: graph copy, passes, lowering, pricing, play and figures.
#include <benchmark/benchmark.h>

#include "sim/report/json.hpp"
#include "sim/request.hpp"

namespace {

using namespace voltaic;

Request bert_training() {
  Request r;
  r.workload = "bert-large";
  r.gpu = "a100-sxm4-40gb";
  r.training = true;
  r.batch = 8;
  r.seq = 512;
  r.precision = graph::Precision::fp32;
  return r;
}

/// Warm: GPU, graph and priced kernels are at hand, as in a sweep.
void predict_bert_large_training(benchmark::State& state) {
  Runner runner;
  const Request r = bert_training();
  std::size_t nodes = runner.predict(r).nodes.size();
  for (auto _ : state) nodes = runner.predict(r).nodes.size();
  state.counters["nodes"] = static_cast<double>(nodes);
}
BENCHMARK(predict_bert_large_training)->Unit(benchmark::kMillisecond);

/// Cold: the GPU is read and every kernel priced anew; the graph is at hand.
void predict_bert_large_training_cold(benchmark::State& state) {
  Runner graphs;
  const Request r = bert_training();
  const auto work = graphs.workload(r);
  const SimulationOptions options = graphs.options(r);
  const auto gpu = std::make_shared<const arch::ResolvedGpu>(arch::resolve_gpu(r.gpu));
  for (auto _ : state) {
    const Simulator simulator(gpu);
    benchmark::DoNotOptimize(simulator.predict(work->graph, options).total.value);
  }
}
BENCHMARK(predict_bert_large_training_cold)->Unit(benchmark::kMillisecond);

void build_bert_large(benchmark::State& state) {
  const Request r = bert_training();
  for (auto _ : state) {
    Runner runner;
    benchmark::DoNotOptimize(runner.workload(r)->parameters);
  }
}
BENCHMARK(build_bert_large)->Unit(benchmark::kMillisecond);

void write_prediction_json(benchmark::State& state) {
  Runner runner;
  const auto p = runner.predict(bert_training());
  for (auto _ : state) benchmark::DoNotOptimize(report::prediction_json(p, "predict", "0").size());
}
BENCHMARK(write_prediction_json)->Unit(benchmark::kMillisecond);

}  // namespace
