// SPDX-License-Identifier: MIT
// Encoder-decoder networks against the figures of their papers and model cards.
#include "sim/graph/passes.hpp"
#include "tests/support/catch.hpp"
#include "tests/workloads/support.hpp"

namespace voltaic::workloads {

using test::load;
using Ops = std::vector<std::string>;

namespace {

Workload in_phase(const std::string& name, RunPhase phase, std::int64_t batch, std::int64_t beam) {
  BuildOptions options;
  options.phase = phase;
  options.batch = batch;
  options.seq = 40;
  options.dims["beam"] = beam;
  if (phase == RunPhase::decode) options.context = 20;
  return load_workload(name, options);
}

}  // namespace

TEST_CASE("encoder-decoder networks have the published parameters", "[workloads][translation]") {
  // BART: the model cards' weights. Transformer big, with e = 1024, f = 4096: six times 12,596,224 (4 e^2 + 4 e, 2 e f
  // + e + f, 4 e) and 16,796,672 (twice the attention, 6 e), and 33,708 e; the paper's 213 M have a vocabulary of
  // 37,000.
  CHECK(load("bart-base").parameters == 139420416);
  CHECK(load("bart-large").parameters == 406291456);
  CHECK(load("transformer-big").parameters == 6LL * (12596224 + 16796672) + 33708LL * 1024);
  CHECK_THAT(static_cast<double>(load("transformer-big").parameters) + 3292.0 * 1024, WithinRel(213e6, 0.01));
  // Base: [Vaswani17] table 3 says 65 M with 37,000 words.
  CHECK(load("transformer-base").parameters == 6LL * (3152384 + 4204032) + 33708LL * 512);
  CHECK_THAT(static_cast<double>(load("transformer-base").parameters) + 3292.0 * 512, WithinRel(65e6, 0.035));
}

TEST_CASE("GNMT has the parameters of its definition", "[workloads][translation]") {
  // An LSTM of n from m: 4 n (m + n + 2). Encoder: 2 of 1024, 1 of 2048, 2 of 1024; decoder: 1 of 1024, 3 of 2048;
  // attention: two squares, a vector, a bias, a scalar; table and output layer of 32,320 words.
  const std::int64_t narrow = 4LL * 1024 * (2048 + 2);
  const std::int64_t wide = 4LL * 1024 * (3072 + 2);
  const std::int64_t attention = 2LL * 1024 * 1024 + 2 * 1024 + 1;
  const std::int64_t words = 32320LL * 1024 + 32320LL * 1025;
  CHECK(load("gnmt").parameters == 5 * narrow + 4 * wide + attention + words);
  CHECK(load("gnmt").parameters == 160671297);
  CHECK(load("gnmt", true).parameters == 160671297);
}

TEST_CASE("multiply-adds of Transformer big follow from its shapes", "[workloads][translation][mac]") {
  BuildOptions options;
  options.batch = 4;
  options.seq = 32;
  // Tokens times weights (both sides, the output layer), and two products of attention in each of 6 + 12 places.
  const double tokens = 4 * 32;
  const double weights = 6.0 * (4 * 1048576 + 2 * 4194304) + 6.0 * (8 * 1048576 + 2 * 4194304) + 33708.0 * 1024;
  const double expected = tokens * (weights + 18.0 * 2 * 32 * 1024);
  CHECK_THAT(test::macs(load_workload("transformer-big", options)), WithinRel(expected, 1e-12));
}

TEST_CASE("multiply-adds of GNMT are its gates, attention and output layer", "[workloads][translation][mac]") {
  BuildOptions options;
  options.batch = 8;
  options.seq = 30;
  const double tokens = 8 * 30;
  const double gates = 5.0 * 4096 * 2048 + 4.0 * 4096 * 3072;
  const double attention = 2.0 * 1048576 + 30 * 1024 + 30 * 1024;  // projections, scores, context
  const double expected = tokens * (gates + attention + 32320.0 * 1024);
  CHECK_THAT(test::macs(load_workload("gnmt", options)), WithinRel(expected, 1e-12));
}

TEST_CASE("a decoder layer of the Transformer attends twice and norms thrice", "[workloads][translation]") {
  const Ops self{"linear",  "mul_scalar", "contiguous", "contiguous", "contiguous", "matmul",    "add",
                 "softmax", "matmul",     "contiguous", "linear",     "add",        "layer_norm"};
  const Ops cross{"linear",      "mul_scalar", "contiguous", "linear",     "contiguous", "contiguous", "matmul",
                  "masked_fill", "softmax",    "matmul",     "contiguous", "linear",     "add",        "layer_norm"};
  const Workload workload = load("transformer-big", false, 2);
  CHECK(test::kernels_of(workload, "decoder.layers.1.self_attn") == self);
  CHECK(test::kernels_of(workload, "decoder.layers.1.encoder_attn") == cross);
  CHECK(test::kernels_of(workload, "decoder.layers.1.ffn") == Ops{"linear", "relu", "linear", "add", "layer_norm"});
}

TEST_CASE("training of encoder-decoder networks differentiates", "[workloads][translation]") {
  for (const std::string name : {"transformer-base", "bart-base", "gnmt"}) {
    CAPTURE(name);
    Workload workload = load(name, true, 2);
    REQUIRE(workload.graph.loss != UINT32_MAX);
    const std::size_t forward = workload.graph.nodes().size();
    graph::append_backward(workload.graph, {});
    CHECK(workload.graph.nodes().size() > 2 * forward);
  }
}

TEST_CASE("a step of translation keeps all weights, and beams are the decoder's rows", "[workloads][translation]") {
  for (const std::string name : {"transformer-big", "bart-large", "gnmt"}) {
    CAPTURE(name);
    const Workload one = in_phase(name, RunPhase::decode, 4, 1);
    const Workload five = in_phase(name, RunPhase::decode, 4, 5);
    CHECK(one.parameters == load(name).parameters);
    CHECK(five.parameters == load(name).parameters);
    CHECK(test::macs(five) > 4 * test::macs(one));
    CHECK(test::macs(five) < 5.01 * test::macs(one));
    CHECK(test::count_ops(one, graph::OpType::argmax) == 1);
    CHECK(test::count_ops(five, graph::OpType::topk) == 1);
    const Workload prefill = in_phase(name, RunPhase::prefill, 4, 1);
    CHECK(prefill.parameters == one.parameters);
    CHECK(test::macs(prefill) > test::macs(one));
  }
}

TEST_CASE("both sides have lengths of their own", "[workloads][translation]") {
  BuildOptions options;
  options.seq = 1024;
  options.dims["decoder_seq"] = 64;
  const double shorter = test::macs(load_workload("bart-large", options));
  options.dims["decoder_seq"] = 128;
  CHECK(test::macs(load_workload("bart-large", options)) > shorter);
  options.dims["decoder_seq"] = 2048;
  const std::string message = test::message_of<ConfigError>([&] { load_workload("bart-large", options); });
  CHECK(message == "bart-large: expected --dim decoder_seq up to its 1024 positions, got 2048");
  options.dims = {{"beams", 4}};
  CHECK(test::contains(test::message_of<UsageError>([&] { load_workload("gnmt", options); }), "did you mean 'beam'?"));
}

}  // namespace voltaic::workloads
