// SPDX-License-Identifier: MIT
// The kernels that an eager framework launches for one layer, in its order [NEUDATA]; views launch nothing.
#include "tests/support/catch.hpp"
#include "tests/workloads/support.hpp"

namespace voltaic::workloads {

using test::kernels_of;
using test::load;
using Ops = std::vector<std::string>;

TEST_CASE("a BERT layer runs separate projections, scaled and masked scores, and post-norms", "[workloads][eager]") {
  // One sample: the batched products read the permuted views in place.
  const Ops inference{"linear",  "linear", "linear",     "matmul", "div_scalar", "add",
                      "softmax", "matmul", "contiguous", "linear", "add",        "layer_norm",
                      "linear",  "gelu",   "linear",     "add",    "layer_norm"};
  CHECK(kernels_of(load("bert-large"), "encoder.layer.3.") == inference);
  // More samples: query, key and value are packed first. Training adds three dropouts.
  const Ops training{"linear",     "linear",  "linear",     "contiguous", "contiguous", "matmul", "div_scalar", "add",
                     "softmax",    "dropout", "contiguous", "matmul",     "contiguous", "linear", "dropout",    "add",
                     "layer_norm", "linear",  "gelu",       "linear",     "dropout",    "add",    "layer_norm"};
  CHECK(kernels_of(load("bert-large", true, 2), "encoder.layer.3.") == training);
}

TEST_CASE("BERT ends in a two-class head in inference and in both pre-training heads in training",
          "[workloads][eager]") {
  CHECK(kernels_of(load("bert-large"), "classifier") == Ops{"linear"});
  const Workload training = load("bert-large", true);
  CHECK(kernels_of(training, "predictions") == Ops{"linear", "gelu", "layer_norm", "linear"});
  CHECK(kernels_of(training, "seq_relationship") == Ops{"linear"});
  CHECK(kernels_of(training, "loss") == Ops{"cross_entropy", "cross_entropy", "add"});
}

TEST_CASE("a GPT-2 layer masks with where and spells its GELU out", "[workloads][eager]") {
  const Ops expected{"layer_norm", "linear",     "matmul",     "div_scalar", "where",      "softmax",
                     "matmul",     "contiguous", "linear",     "add",        "layer_norm", "linear",
                     "mul_scalar", "pow_scalar", "mul_scalar", "add",        "mul_scalar", "tanh",
                     "add_scalar", "mul",        "linear",     "add"};
  const Workload workload = load("gpt2-large");
  CHECK(kernels_of(workload, "h.7.") == expected);
  for (const auto& node : workload.graph.nodes()) {
    if (node.id == "h.7.attn.c_attn") CHECK(node.attributes.flag("transposed_weight"));
    if (node.id == "lm_head.dense") CHECK_FALSE(node.attributes.flag("transposed_weight"));
  }
}

TEST_CASE("an OPT layer packs heads, clamps masked scores and has no attention dropout", "[workloads][eager]") {
  const Ops expected{"layer_norm", "linear",     "mul_scalar", "linear",  "contiguous", "linear",
                     "contiguous", "contiguous", "matmul",     "add",     "maximum",    "softmax",
                     "matmul",     "contiguous", "linear",     "dropout", "add",        "layer_norm",
                     "linear",     "relu",       "linear",     "dropout", "add"};
  CHECK(kernels_of(load("opt-1.3b", true), "decoder.layers.5.") == expected);
}

TEST_CASE("flash attention replaces products, mask and softmax by one kernel", "[workloads][eager]") {
  BuildOptions options;
  options.attention = AttentionForm::flash;
  const Workload workload = load_workload("gpt2", options);
  CHECK(kernels_of(workload, "h.0.attn") == Ops{"layer_norm", "linear", "attention", "linear", "add"});
  CHECK(test::count_ops(workload, graph::OpType::softmax) == 0);
}

TEST_CASE("views and sizes that launch nothing are kept as host calls", "[workloads][eager]") {
  const Workload workload = load("gpt2-large");
  double calls = 0;
  for (const auto& node : workload.graph.nodes()) {
    if (node.layer.starts_with("h.0.")) calls += node.extra_host_calls;
  }
  CHECK(calls > 20);
  CHECK(calls < 80);
}

TEST_CASE("causal training scores each token against the next", "[workloads][eager]") {
  BuildOptions options;
  options.training = true;
  options.batch = 2;
  options.seq = 16;
  const Workload workload = load_workload("gpt2", options);
  const auto& last = workload.graph.nodes().back();
  REQUIRE(to_string(last.op) == "cross_entropy");
  CHECK(workload.graph.tensor(last.inputs[0]).shape == graph::Shape{30, 50257});  // 2 * (16 - 1) tokens
}

}  // namespace voltaic::workloads
