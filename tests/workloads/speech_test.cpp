// SPDX-License-Identifier: MIT
// Speech networks against the figures that their publishers state.
#include "tests/support/catch.hpp"
#include "tests/workloads/support.hpp"
#include "tests/workloads/training.hpp"

namespace voltaic::workloads {
namespace {

Workload of_length(const std::string& name, std::int64_t seq, bool training = false,
                   std::map<std::string, std::int64_t> dims = {}) {
  BuildOptions options;
  options.training = training;
  options.batch = 1;
  options.seq = seq;
  options.dims = std::move(dims);
  return load_workload(name, options);
}

/// Elements of all convolution filters over time.
double filter_elements(const Workload& workload) {
  double total = 0;
  for (const auto& tensor : workload.graph.tensors()) {
    if (tensor.role == graph::TensorRole::parameter && tensor.shape.size() == 3) {
      total += static_cast<double>(tensor.elements());
    }
  }
  return total;
}

const graph::Tensor& output(const Workload& workload) {
  return workload.graph.tensor(workload.graph.outputs.front());
}

}  // namespace

TEST_CASE("speech networks have their published number of parameters", "[workloads][speech]") {
  // Jasper DR 10x5: 333 M [Li19], 332,632,349 by its model card. QuartzNet 15x5: 18.9 M [Kriman20].
  CHECK(test::load("jasper").parameters == 332632349);
  CHECK(test::load("quartznet").parameters == 18924381);
  // 28.2 M by its model card.
  CHECK(of_length("tacotron2", 2).parameters == 28193153);
  CHECK(of_length("tacotron2", 2, true).parameters == 28193153);
  // HiFi-GAN v1: 13.92 M, WaveGlow: 87.73 M, both with folded weights [Kong20]; 87.88 M as trained.
  CHECK(test::load("waveglow").parameters == 87731816);
  CHECK(test::load("waveglow", true).parameters == 87879272);
  CHECK(test::load("hifigan-generator").parameters == 13926017);
  CHECK(test::load("hifigan-generator", true).parameters == 13936130);
  // 268 M with the 512 channels of its paper.
  CHECK(of_length("waveglow", 64, false, {{"channels", 512}}).parameters == 267999848);
}

TEST_CASE("FastPitch has 45 M parameters, and 1 M more in the aligner that trains it", "[workloads][speech]") {
  // Twelve layers of 3,640,896: attention 384 x 192 + 192 + 64 x 384, two norms of 768, filters 2 x 384 x 1536 x 3.
  CHECK(test::load("fastpitch").parameters == 45261395);
  CHECK(test::load("fastpitch", true).parameters - test::load("fastpitch").parameters ==
        (384 * 768 * 3 + 768) + (768 * 80 + 80) + (80 * 160 * 3 + 160) + (160 * 80 + 80) + (80 * 80 + 80));
}

TEST_CASE("the discriminators of HiFi-GAN have 70.7 M parameters", "[workloads][speech]") {
  const auto discriminators = test::load("hifigan", true).parameters - test::load("hifigan-generator", true).parameters;
  CHECK(discriminators > 70650000);
  CHECK(discriminators < 70750000);
}

TEST_CASE("recognisers apply each filter once per 20 ms", "[workloads][speech][mac]") {
  for (const std::string name : {"jasper", "quartznet"}) {
    CAPTURE(name);
    const Workload workload = of_length(name, 1670);
    CHECK_THAT(test::macs(workload), WithinRel(835 * filter_elements(workload), 1e-12));
    CHECK(output(workload).shape == graph::Shape{1, 835});
  }
}

TEST_CASE("a mel frame costs Tacotron 2 one decoder step", "[workloads][speech][mac]") {
  const std::int64_t characters = 50;
  const auto with = [&](std::int64_t frames, bool training) {
    return of_length("tacotron2", frames, training, {{"text", characters}});
  };
  const double attention_cell = 4.0 * 1024 * (256 + 512 + 1024);
  const double decoder_cell = 4.0 * 1024 * (1024 + 512 + 1024);
  const double attention = 1024.0 * 128 + static_cast<double>(characters) * (2 * 32 * 31 + 32 * 128 + 128 + 512.0);
  const double frame = 1536.0 * 81;
  const double postnet = 5.0 * (2 * 80 * 512 + 3 * 512 * 512);
  const double prenet = 80.0 * 256 + 256 * 256;
  const double step = attention_cell + decoder_cell + attention + frame + postnet + prenet;
  for (const bool training : {false, true}) {
    CAPTURE(training);
    CHECK_THAT(test::macs(with(20, training)) - test::macs(with(10, training)), WithinRel(10 * step, 1e-9));
    CHECK(test::count_ops(with(20, training), graph::OpType::lstm) == 1 + 2 * 20);
  }
  CHECK(output(with(20, false)).shape == graph::Shape{1, 80, 20});
}

TEST_CASE("WaveGlow multiplies 229 G times for a second of audio", "[workloads][speech][mac]") {
  // [Zhai20], for 22,050 samples; 86 frames of 256 are 22,016. It counts 2.3 % more than the shapes give.
  CHECK_THAT(test::macs(of_length("waveglow", 86)), WithinRel(228.9e9, 0.03));
  // Noise to audio and back run the same couplings.
  CHECK_THAT(test::macs(of_length("waveglow", 86, true)), WithinRel(test::macs(of_length("waveglow", 86)), 1e-9));
}

TEST_CASE("vocoders draw 256 samples per frame", "[workloads][speech]") {
  CHECK(output(of_length("hifigan-generator", 10)).shape == graph::Shape{1, 1, 2560});
  CHECK(output(of_length("waveglow", 10)).shape == graph::Shape{1, 320, 8});
  CHECK(output(of_length("fastpitch", 10)).shape == graph::Shape{1, 10, 80});
}

TEST_CASE("text to audio is two networks one after the other", "[workloads][speech]") {
  const auto macs = [](const std::string& name) { return test::macs(of_length(name, 20)); };
  CHECK_THAT(macs("tacotron2-waveglow"), WithinRel(macs("tacotron2") + macs("waveglow"), 1e-12));
  CHECK_THAT(macs("fastpitch-waveglow"), WithinRel(macs("fastpitch") + macs("waveglow"), 1e-12));
  CHECK_THAT(macs("fastpitch-hifigan"), WithinRel(macs("fastpitch") + macs("hifigan-generator"), 1e-12));
  CHECK(of_length("fastpitch-hifigan", 20).parameters == 45261395 + 13926017);
  CHECK(output(of_length("fastpitch-hifigan", 20)).shape == graph::Shape{1, 1, 5120});
}

TEST_CASE("training of speech networks reaches every parameter", "[workloads][speech][backward]") {
  for (const std::string name :
       {"jasper", "quartznet", "tacotron2", "waveglow", "fastpitch", "hifigan", "hifigan-generator",
        "tacotron2-waveglow", "fastpitch-waveglow", "fastpitch-hifigan"}) {
    CAPTURE(name);
    CHECK(test::untrained(of_length(name, 8, true)).empty());
  }
}

TEST_CASE("lengths from one frame on are built, odd ones too", "[workloads][speech]") {
  for (const std::string name : {"jasper", "quartznet", "tacotron2", "waveglow", "fastpitch", "hifigan"}) {
    for (const std::int64_t seq : {1, 2, 7}) {
      CAPTURE(name, seq);
      CHECK_NOTHROW(of_length(name, seq, true));
      CHECK_NOTHROW(of_length(name, seq, false));
    }
  }
}

TEST_CASE("sizes that speech networks do not have are refused by name", "[workloads][speech]") {
  CHECK(test::contains(test::message_of<ConfigError>([] { of_length("tacotron2", 2001); }),
                       "tacotron2: expected --seq up to 2000 mel frames"));
  CHECK(test::contains(test::message_of<UsageError>([] { of_length("jasper", 0); }), "--seq"));
  CHECK(test::contains(test::message_of<UsageError>([] {
                         of_length("waveglow", 8, false, {{"chanels", 8}});
                       }),
                       "did you mean 'channels'?"));
  BuildOptions decode;
  decode.phase = RunPhase::decode;
  CHECK(test::contains(test::message_of<UnsupportedError>([&] { load_workload("tacotron2", decode); }), "no phases"));
}

}  // namespace voltaic::workloads
