// SPDX-License-Identifier: MIT
// Language networks beyond plain decoders: heads of BERT, ELECTRA, Transformer-XL.
#include "sim/graph/passes.hpp"
#include "tests/support/catch.hpp"
#include "tests/workloads/support.hpp"

namespace voltaic::workloads {

using test::load;
using Ops = std::vector<std::string>;

TEST_CASE("networks of question answering have the published parameters", "[workloads][language]") {
  // The model cards' weights: no pooler, two scores per token.
  CHECK(load("bert-base-squad").parameters == 108893186);
  CHECK(load("bert-large-squad").parameters == 334094338);
  CHECK(load("bert-large-squad", true).parameters == 334094338);
  // ELECTRA's discriminators are BERT without a pooler: 108,891,648 and 334,092,288, and the head.
  CHECK(load("electra-base-squad").parameters == 108891648 + 1538);
  CHECK(load("electra-large-squad").parameters == 334092288 + 2050);
}

TEST_CASE("question answering trains on two cross entropies over positions", "[workloads][language]") {
  const Workload workload = load("bert-base-squad", true, 2);
  CHECK(test::kernels_of(workload, "loss") == Ops{"cross_entropy", "cross_entropy", "add", "div_scalar"});
  CHECK(test::kernels_of(workload, "qa_outputs") == Ops{"linear", "contiguous", "contiguous"});
  CHECK(test::kernels_of(workload, "predictions").empty());
}

TEST_CASE("a masked-token head reads the masked positions alone", "[workloads][language]") {
  BuildOptions options;
  options.training = true;
  options.seq = 128;
  options.batch = 4;
  const double all = test::macs(load_workload("bert-large", options));
  options.dims["masked"] = 20;
  const double some = test::macs(load_workload("bert-large", options));
  // 108 of 128 tokens of each sample skip a dense layer of 1024^2 and 30,522 x 1024 logits.
  CHECK_THAT(all - some, WithinRel(4.0 * 108 * 1024 * (1024 + 30522), 1e-9));
  options.dims["masked"] = 129;
  CHECK(test::message_of<ConfigError>([&] { load_workload("bert-large", options); }) ==
        "bert-large: expected --dim masked up to its 128 tokens, got 129");
  options.dims["masked"] = 20;
  CHECK_THROWS_AS(load_workload("bert-large-squad", options), UsageError);
}

TEST_CASE("ELECTRA trains a generator beside its discriminator", "[workloads][language]") {
  // Discriminator with its head of 768^2 + 768 + 769: 109,483,009.
  CHECK(load("electra-base").parameters == 109483009);
  Workload training = load("electra-base", true, 2);
  // The published generator of 12 layers of 256 shares the tables; its own: a projection, layers of 789,760, a norm of
  // 768 behind the embeddings, and its head (768 x 256 + 768, a norm, 30,522 biases).
  const std::int64_t generator = 256 * 768 + 256 + 12 * 789760 + 2 * 768 + 256 * 768 + 768 + 2 * 768 + 30522;
  CHECK(training.parameters == 109483009 + generator);
  graph::append_backward(training.graph, {});
  CHECK(test::count_ops(training, graph::OpType::bce_loss_backward) == 1);
}

TEST_CASE("Transformer-XL has the parameters of its definition", "[workloads][language]") {
  // Base with e = 512: 16 layers of 5 e^2 (queries, keys, values, output, places), 8 e^2 + 5 e (feed-forward), 4 e; two
  // biases; 267,735 words with a bias each; 3 clusters. The published base checkpoint has 191,950,298 weights.
  CHECK(load("transformer-xl-base").parameters == 191950298);
  CHECK(load("transformer-xl-base", true).parameters == 191950298);
  // Large, e = 1024: 18 layers of 5 e^2 + 8 e^2 + 9 e; tables of 1024, 256, 64 and 16 per word, projected to e, the
  // first once more for the softmax.
  const std::int64_t e = 1024;
  const std::int64_t layers = 18 * (13 * e * e + 9 * e) + 2 * e;
  const std::int64_t tables = 19997 * 1024LL + 20000 * 256LL + 160000 * 64LL + 67738 * 16LL;
  const std::int64_t projections = e * (1024 + 256 + 64 + 16) + e * e;
  CHECK(load("transformer-xl-large").parameters == layers + tables + projections + 267735 + 3 * e + 3);
}

TEST_CASE("Transformer-XL attends to its memory", "[workloads][language][mac]") {
  BuildOptions options;
  options.seq = 64;
  options.batch = 2;
  options.dims["memory"] = 640;
  const Workload workload = load_workload("transformer-xl-base", options);
  // Per layer: 3 e^2 per key and sample, e^2 per place, e^2 + 2 e f per token, three products over queries and keys.
  const double keys = 704;
  const double tokens = 2 * 64;
  const double square = 512.0 * 512;
  const double layer = 2 * keys * 3 * square + keys * square + tokens * 9 * square + 3 * tokens * keys * 512;
  // 4, 5 and 1 of 128 words fall into the tails: head of 20,000, tails of 20,000, 160,000 and 67,738 words.
  const double words = 512.0 * (tokens * 20000 + 4.0 * 20000 + 5.0 * 160000 + 1.0 * 67738);
  CHECK_THAT(test::macs(workload), WithinRel(16 * layer + words, 1e-9));
  options.phase = RunPhase::decode;
  CHECK_THROWS_AS(load_workload("transformer-xl-base", options), UnsupportedError);
}

TEST_CASE("Transformer-XL differentiates at both sizes", "[workloads][language]") {
  for (const std::string name : {"transformer-xl-base", "transformer-xl-large"}) {
    CAPTURE(name);
    Workload workload = load(name, true, 2);
    const std::size_t forward = workload.graph.nodes().size();
    graph::append_backward(workload.graph, {});
    CHECK(workload.graph.nodes().size() > 2 * forward);
  }
}

TEST_CASE("wav2vec 2.0 has the published parameters and one frame per 320 samples", "[workloads][language]") {
  // The model card's weights with a head of 32 letters: 94,371,712 + 769 x 32.
  const Workload workload = load("wav2vec2-base");
  CHECK(workload.parameters == 94371712 + 769 * 32);
  const graph::TensorId logits = workload.graph.outputs.front();
  CHECK(workload.graph.tensor(logits).shape == graph::Shape{1, 499, 32});
  Workload training = load("wav2vec2-base", true, 2);
  graph::append_backward(training.graph, {});
  CHECK(test::count_ops(training, graph::OpType::ctc_loss_backward) == 1);
  BuildOptions options;
  options.seq = 399;
  CHECK(test::message_of<ConfigError>([&] { load_workload("wav2vec2-base", options); }) ==
        "wav2vec2-base: expected --seq of at least the 400 samples that a frame sees, got 399");
}

TEST_CASE("the temporal fusion transformer is made of gated residual networks", "[workloads][language]") {
  // From n to m through h = 128: n h + h, h^2 + h, 2 m (h + 1), a skip of n m + m where n is not m, a norm of 2 m (not
  // of one number); a context adds h^2.
  constexpr std::int64_t h = 128;
  const auto gated = [](std::int64_t n, std::int64_t m, bool context) {
    return n * h + h + h * h + h + 2 * m * (h + 1) + (n == m ? 0 : n * m + m) + (m == 1 ? 0 : 2 * m) +
           (context ? h * h : 0);
  };
  const std::int64_t plain = gated(h, h, false);
  const std::int64_t selection =
      gated(h, 1, false) + gated(4 * h, 4, true) + gated(3 * h, 3, true) + (1 + 4 + 3) * plain;
  const std::int64_t lstms = 2 * 4 * h * (2 * h + 2);
  const std::int64_t gates = 3 * (2 * h * (h + 1) + 2 * h);
  const std::int64_t attention = h * 9 * 32 + 32 * h;
  const std::int64_t embeddings = 369 * h + 2 * 4 * h;
  const Workload workload = load("tft");
  CHECK(workload.parameters ==
        selection + 4 * plain + gated(h, h, true) + plain + lstms + gates + attention + embeddings + 3 * h + 3);
  CHECK(workload.graph.tensor(workload.graph.outputs.front()).shape == graph::Shape{1, 24, 3});
  Workload training = load("tft", true, 4);
  graph::append_backward(training.graph, {});
  CHECK(test::count_ops(training, graph::OpType::rnn_backward) == 2);
}

}  // namespace voltaic::workloads
