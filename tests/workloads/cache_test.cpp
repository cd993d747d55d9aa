// SPDX-License-Identifier: MIT
// Phases of autoregressive models and the key-value cache.
#include "tests/support/catch.hpp"
#include "tests/workloads/support.hpp"

namespace voltaic::workloads {
namespace {

BuildOptions phase(RunPhase run, std::int64_t context, AttentionForm attention = AttentionForm::unfused) {
  BuildOptions options;
  options.phase = run;
  options.context = context;
  options.attention = attention;
  return options;
}

/// Elements of the cache that nodes read.
double cache_elements_read(const Workload& workload) {
  double total = 0;
  for (const auto& node : workload.graph.nodes()) {
    for (const auto input : node.inputs) {
      const auto& tensor = workload.graph.tensor(input);
      if (tensor.name.starts_with("kv_cache")) total += static_cast<double>(tensor.elements());
    }
  }
  return total;
}

}  // namespace

TEST_CASE("decode of Llama-3.1-8B at context 8192 reads one GiB of cache", "[workloads][cache]") {
  for (const AttentionForm form : {AttentionForm::unfused, AttentionForm::flash}) {
    const Workload workload = load_workload("llama-3.1-8b", phase(RunPhase::decode, 8192, form));
    // 2 (keys, values) * 32 layers * 8 heads * 128 * 8192 tokens, 2 bytes each.
    CHECK(2 * cache_elements_read(workload) == 1024.0 * 1024 * 1024);
    CHECK(workload.kv_cache_elements_per_token * 2 == 131072);
    CHECK(workload.kv_cache_tokens == 8192);
    CHECK(workload.tokens_per_sample == 1);
  }
}

TEST_CASE("decode works on one token per sample", "[workloads][cache]") {
  // Every product has one row per sample: the multiply-adds are the weights once, and attention over the context.
  const Workload workload = load_workload("llama-2-7b", phase(RunPhase::decode, 1000));
  const double weights = 6738415616.0 - 32000.0 * 4096 - 65.0 * 4096;  // without the input table and the norms
  const double attention = 2.0 * 32 * 4096 * 1000;
  CHECK_THAT(test::macs(workload), WithinRel(weights + attention, 1e-12));
}

TEST_CASE("prefill computes the last logits only and writes the cache", "[workloads][cache]") {
  BuildOptions options;
  options.phase = RunPhase::prefill;
  options.seq = 128;
  options.batch = 2;
  for (const std::string name : {"gpt2", "opt-1.3b", "llama-3.1-8b"}) {
    CAPTURE(name);
    const Workload workload = load_workload(name, options);
    const auto& logits = workload.graph.tensor(workload.graph.outputs.front());
    CHECK(logits.shape[0] == 2);
    CHECK(logits.shape[1] == 1);
    double written = 0;
    for (const auto& tensor : workload.graph.tensors()) {
      if (tensor.name.starts_with("kv_cache")) written += static_cast<double>(tensor.elements());
    }
    CHECK(written == workload.kv_cache_elements_per_token * 256);
    CHECK(workload.kv_cache_tokens == 256);
  }
}

TEST_CASE("a mixture decodes with the experts its tokens reach", "[workloads][cache]") {
  const Workload one = load_workload("mixtral-8x7b", phase(RunPhase::decode, 64));
  BuildOptions many = phase(RunPhase::decode, 64);
  many.batch = 256;
  const Workload all = load_workload("mixtral-8x7b", many);
  for (const auto* workload : {&one, &all}) {
    const std::int64_t reached = workload == &one ? 2 : 8;
    for (const auto& node : workload->graph.nodes()) {
      if (node.op != graph::OpType::grouped_linear) continue;
      CHECK(workload->graph.tensor(node.inputs[1]).shape[0] == reached);
    }
  }
}

TEST_CASE("a sliding window bounds the cache", "[workloads][cache]") {
  CHECK(load_workload("mistral-7b", phase(RunPhase::decode, 20000)).kv_cache_tokens == 4096);
  CHECK(load_workload("mistral-7b", phase(RunPhase::decode, 1000)).kv_cache_tokens == 1000);
}

TEST_CASE("phases are refused where a model has none", "[workloads][cache]") {
  CHECK_THROWS_AS(load_workload("bert-large", phase(RunPhase::decode, 10)), UnsupportedError);
  CHECK_THROWS_AS(load_workload("resnet50", phase(RunPhase::prefill, 10)), UnsupportedError);
  BuildOptions training = phase(RunPhase::decode, 10);
  training.training = true;
  CHECK_THROWS_AS(load_workload("gpt2", training), UsageError);
  CHECK_THROWS_AS(load_workload("gpt2", phase(RunPhase::decode, 1025)), ConfigError);  // 1024 positions
  CHECK_THROWS_AS(load_workload("gpt2", phase(RunPhase::decode, 0)), UsageError);
}

}  // namespace voltaic::workloads
