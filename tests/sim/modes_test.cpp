// SPDX-License-Identifier: MIT
// Ways to run the same network: layouts, folded norms, recomputation, micro-steps, optimizer kernels, the input side.
#include <algorithm>

#include "arch/units/error.hpp"
#include "sim/request.hpp"
#include "tests/support/catch.hpp"

using namespace voltaic;

namespace {

using Options = std::vector<std::pair<std::string, std::string>>;

report::Prediction predict(const std::string& workload, const Options& options) {
  Request request;
  request.workload = workload;
  for (const auto& [name, value] : options) set_option(request, name, value);
  Runner runner;
  return runner.predict(request);
}

Options with(Options base, const Options& more) {
  base.insert(base.end(), more.begin(), more.end());
  return base;
}

const Options kTraining{{"mode", "training"}, {"batch", "16"}, {"seq", "128"}, {"gpu", "a100-sxm4-40gb"}};
const Options kInference{{"batch", "16"}, {"gpu", "a100-sxm4-40gb"}};
const Options kBusy{{"batch", "256"}, {"gpu", "a100-sxm4-40gb"}};  // Kernels rule, not the host.

double kernels_of(const report::Prediction& p, graph::OpType op) {
  double launches = 0;
  for (const auto& row : p.nodes) {
    if (p.graph.node(row.node).op == op)
      launches += row.repeats * static_cast<double>(p.distinct[row.distinct].kernels.size());
  }
  return launches;
}

}  // namespace

TEST_CASE("recomputation takes time and gives memory, the more of it the more", "[modes]") {
  const Options base = with(kTraining, {{"attention", "unfused"}});
  for (const std::string name : {"bert-base", "gpt2"}) {
    const auto none = predict(name, base);
    const auto selective = predict(name, with(base, {{"recompute", "selective"}}));
    const auto full = predict(name, with(base, {{"recompute", "full"}}));
    INFO(name);
    CHECK(none.total < selective.total);
    CHECK(selective.total < full.total);
    CHECK(none.memory.activations > selective.memory.activations);
    CHECK(selective.memory.activations > full.memory.activations);
    CHECK(full.total < 1.4 * none.total);  // A third of the arithmetic at most.
    CHECK(full.mac > none.mac);
    CHECK(full.mac < 1.34 * none.mac);
  }
}

TEST_CASE("recomputation that finds nothing says so", "[modes]") {
  const auto p = predict("resnet18", with(kTraining, {{"recompute", "selective"}}));
  const auto said = [](const std::string& note) { return note.find("--recompute selective") != std::string::npos; };
  CHECK(std::any_of(p.assumptions.begin(), p.assumptions.end(), said));
}

TEST_CASE("micro-steps repeat forward and backward, not the optimizer", "[modes]") {
  const auto whole = predict("bert-base", kTraining);
  const auto split = predict("bert-base", with(kTraining, {{"accumulation", "4"}}));
  CHECK(split.global_batch == 16);
  CHECK(split.samples_per_s * split.total.value == 16);
  CHECK(split.mac == whole.mac);
  CHECK(split.memory.activations < whole.memory.activations);
  CHECK(split.total > whole.total);
  CHECK(kernels_of(split, graph::OpType::optimizer_step) == kernels_of(whole, graph::OpType::optimizer_step));
  CHECK(split.total.value == (split.forward + split.backward + split.optimizer).value);
  double layers = 0;
  for (const auto& layer : split.layers) layers += layer.time.value;
  CHECK_THAT(layers, Catch::Matchers::WithinRel(split.share_kernels * split.total.value, 1e-6));
}

TEST_CASE("a loop over tensors launches more and takes longer than fused optimizer kernels", "[modes]") {
  for (const std::string rule : {"sgd", "momentum", "adam", "adamw", "lamb"}) {
    const Options base = with(kTraining, {{"optimizer", rule}});
    const auto fused = predict("bert-base", base);
    const auto plain = predict("bert-base", with(base, {{"optimizer-kernels", "per-tensor"}}));
    INFO(rule);
    CHECK(kernels_of(plain, graph::OpType::optimizer_step) > kernels_of(fused, graph::OpType::optimizer_step));
    CHECK(plain.optimizer > fused.optimizer);
    CHECK(plain.memory.optimizer_state == fused.memory.optimizer_state);
  }
}

TEST_CASE("convolutions in 16 bits lie channels last unless told otherwise", "[modes]") {
  const auto automatic = predict("resnet50", kBusy);
  const auto last = predict("resnet50", with(kBusy, {{"layout", "nhwc"}}));
  const auto first = predict("resnet50", with(kBusy, {{"layout", "nchw"}}));
  CHECK(automatic.total == last.total);
  CHECK(first.total > last.total);
  const auto wide = predict("resnet50", with(kBusy, {{"precision", "fp32"}}));
  const auto wide_first = predict("resnet50", with(kBusy, {{"precision", "fp32"}, {"layout", "nchw"}}));
  CHECK(wide.total == wide_first.total);
}

TEST_CASE("compilers fold batch norms, engines add residuals in the epilogue", "[modes]") {
  const auto eager = predict("resnet50", kInference);
  const auto compiled = predict("resnet50", with(kInference, {{"framework", "compiled"}}));
  const auto engine = predict("resnet50", with(kInference, {{"framework", "tensorrt"}}));
  CHECK(kernels_of(eager, graph::OpType::batch_norm) == 53);
  CHECK(kernels_of(compiled, graph::OpType::batch_norm) == 0);
  CHECK(kernels_of(engine, graph::OpType::add) == 0);
  CHECK(engine.mac == eager.mac);
  CHECK(engine.memory.weights < eager.memory.weights);
  CHECK(compiled.total < eager.total);
  CHECK(engine.total < compiled.total);
  // In training the statistics are those of the batch: nothing to fold.
  const auto training = predict("resnet50", with(kTraining, {{"framework", "compiled"}}));
  CHECK(kernels_of(training, graph::OpType::batch_norm) == 53);
}

TEST_CASE("an engine keeps convolution networks in one byte, but not twice as fast as in two", "[modes]") {
  const Options engine = with(kInference, {{"framework", "tensorrt"}, {"batch", "64"}});
  const auto half = predict("resnet50", engine);
  const auto byte = predict("resnet50", with(engine, {{"precision", "int8"}}));
  CHECK(byte.total < half.total);
  CHECK(byte.total > 0.5 * half.total);
  CHECK(kernels_of(byte, graph::OpType::cast) <= 4);  // The image in, the features of the classifier.
}

TEST_CASE("the input side holds a step up and says so", "[modes]") {
  const auto free = predict("resnet50", kInference);
  const auto fed = predict("resnet50", with(kInference, {{"input-rate", "1000"}}));
  CHECK(fed.total.value == 0.016);
  CHECK_THAT(fed.input_wait.value, Catch::Matchers::WithinRel(0.016 - free.total.value, 1e-9));
  CHECK_THAT(fed.share_kernels + fed.share_host_exposed + fed.share_idle, Catch::Matchers::WithinRel(1.0, 1e-12));
  const auto fast = predict("resnet50", with(kInference, {{"input-rate", "1000000"}}));
  CHECK(fast.total == free.total);
  CHECK(fast.input_wait.value == 0);
  CHECK(*fed.energy_j.value > *free.energy_j.value);
}

TEST_CASE("copies of inputs: ordinary memory is slowest, overlapped copies cost least", "[modes]") {
  const auto none = predict("resnet50", kBusy);
  const auto pageable = predict("resnet50", with(kBusy, {{"input-copy", "pageable"}}));
  const auto pinned = predict("resnet50", with(kBusy, {{"input-copy", "pinned"}}));
  const auto overlapped = predict("resnet50", with(kBusy, {{"input-copy", "overlapped"}}));
  CHECK(pageable.total > pinned.total);
  CHECK(pinned.total > overlapped.total);
  CHECK(overlapped.total >= none.total);
}

TEST_CASE("modes that make no sense are refused by name", "[modes][errors]") {
  CHECK_THROWS_AS(predict("bert-base", {{"recompute", "full"}}), UsageError);
  CHECK_THROWS_AS(predict("bert-base", {{"accumulation", "2"}}), UsageError);
  CHECK_THROWS_AS(predict("bert-base", {{"optimizer-kernels", "per-tensor"}}), UsageError);
  CHECK_THROWS_AS(predict("bert-base", with(kTraining, {{"accumulation", "3"}})), UsageError);
  for (const auto& [name, value] : Options{{"layout", "chwn"},
                                           {"input-rate", "0"},
                                           {"input-rate", "nan"},
                                           {"input-rate", "1e-320"},
                                           {"input-copy", "dma"},
                                           {"host-scale", "-1"},
                                           {"accumulation", "5000"},
                                           {"recompute", "some"},
                                           {"optimizer-kernels", "foreach"}}) {
    INFO(name << ' ' << value);
    Request request;
    CHECK_THROWS_AS(set_option(request, name, value), UsageError);
  }
}

TEST_CASE("an engine that runs int8 in fp16 says so once and is held against fp16's peak", "[modes]") {
  const auto p = predict(
      "bert-base", {{"gpu", "v100-pcie-32gb"}, {"precision", "int8"}, {"framework", "tensorrt"}, {"batch", "32"}});
  CHECK(p.model_flop_utilization <= 1);
  CHECK(p.peak_name == "fp16 tensor");
  for (const std::string& warning : p.warnings) CHECK(warning.find("DP4A") == std::string::npos);
}

TEST_CASE("a residual in an epilogue is read, a wider result is written", "[modes]") {
  const auto bytes_of = [](const report::Prediction& p) {
    double bytes = 0;
    for (const auto& row : p.nodes) {
      if (graph::family(p.graph.node(row.node).op) != graph::OpFamily::convolution) continue;
      for (const auto& k : p.distinct[row.distinct].kernels) bytes += k.launch.work.traffic().value;
    }
    return bytes;
  };
  const auto compiled = predict("resnet50", with(kBusy, {{"framework", "compiled"}}));
  const auto engine = predict("resnet50", with(kBusy, {{"framework", "tensorrt"}}));
  // Sixteen blocks: 256 x 56 x 56 three times, 512 x 28 x 28 four, 1024 x 14 x 14 six, 2048 x 7 x 7 three.
  const double residuals = 256.0 * 2 * (3 * 802816.0 + 4 * 401408.0 + 6 * 200704.0 + 3 * 100352.0);
  CHECK_THAT(bytes_of(engine) - bytes_of(compiled), Catch::Matchers::WithinRel(residuals, 1e-9));
}
