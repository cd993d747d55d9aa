// SPDX-License-Identifier: MIT
#include "sim/study/fit.hpp"

#include <algorithm>
#include <cmath>

#include "arch/units/error.hpp"
#include "tests/support/catch.hpp"

using namespace voltaic;

namespace {

Request request(const std::string& workload, const std::string& gpu, bool training = false, std::int64_t batch = 1) {
  Request r;
  r.workload = workload;
  set_option(r, "gpu", gpu);
  r.training = training;
  r.batch = batch;
  return r;
}

std::int64_t states(const report::MemoryUse& use) {
  return use.weights + use.gradients + use.optimizer_state;
}

report::MemoryUse memory(const Request& r) {
  Runner runner;
  return runner.memory(r);
}

report::MemoryUse bert(graph::Optimizer optimizer, graph::Precision precision) {
  Request r = request("bert-large", "a100-sxm4-80gb", true);
  r.seq = 128;
  r.optimizer = optimizer;
  r.precision = precision;
  return memory(r);
}

}  // namespace

TEST_CASE("the largest size is found whatever the line, and its successor is known not to fit", "[study][fit]") {
  for (const double slope : {1.0, 3.7, 1000.0, 1e6}) {
    for (const std::int64_t start : {1, 7, 4096}) {
      int asked = 0;
      // Steps of 13 stand for algorithms that change with the size.
      const auto excess = [&](std::int64_t n) -> std::optional<double> {
        ++asked;
        return slope * (static_cast<double>(n) + static_cast<double>(n / 13)) - 1e9;
      };
      const std::int64_t most = study::largest_that_fits(excess, start);
      CHECK(asked < 64);
      CHECK(*excess(most) <= 0);
      CHECK(*excess(most + 1) > 0);
    }
  }
}

TEST_CASE("a search stops where nothing fits, where sizes end and where all fits", "[study][fit]") {
  CHECK(study::largest_that_fits([](std::int64_t) { return 1.0; }, 64) == 0);
  const auto ends = [](std::int64_t n) -> std::optional<double> {
    return n > 512 ? std::nullopt : std::optional<double>(static_cast<double>(n) - 1e6);
  };
  CHECK(study::largest_that_fits(ends, 1) == 512);
  CHECK(study::largest_that_fits(ends, 4096) == 512);
  CHECK(study::largest_that_fits([](std::int64_t) { return -1.0; }, 1) == 2147483647);
}

TEST_CASE("an answer fits at its largest batch and not one beyond, and says so of the request itself", "[study][fit]") {
  for (const char* name : {"resnet50", "bert-base"}) {
    for (const bool training : {false, true}) {
      Runner runner;
      Request r = request(name, "v100-sxm2-16gb", training, 4);
      const report::Fit fit = study::fit(runner, r);
      INFO(name << " training " << training);
      CHECK(fit.asked.fits());
      CHECK(fit.changes.empty());
      REQUIRE(fit.max_batch);
      r.batch = *fit.max_batch;
      CHECK(runner.memory(r).fits());
      CHECK(runner.predict(r).fits());
      r.batch = *fit.max_batch + 1;
      CHECK_FALSE(runner.memory(r).fits());
    }
  }
}

TEST_CASE("memory alone is the memory of the whole answer", "[study][fit][memory]") {
  for (const char* name : {"resnet18", "gpt2", "bert-base"}) {
    for (const bool training : {false, true}) {
      Runner runner;
      const Request r = request(name, "a100-sxm4-40gb", training, 8);
      INFO(name << " training " << training);
      CHECK(runner.memory(r).parts() == runner.predict(r).memory.parts());
    }
  }
  Runner runner;
  Request r = request("gpt2", "a100-sxm4-40gb", false, 2);
  r.seq = 64;
  r.generate = 32;
  CHECK(runner.memory(r).parts() == runner.predict(r).memory.parts());
}

TEST_CASE("memory never falls when the batch grows", "[study][fit][memory][property]") {
  for (const char* name : {"bert-base", "gpt2", "vit-b16", "resnet50"}) {
    for (const bool training : {false, true}) {
      Runner runner;
      std::int64_t before = 0;
      for (std::int64_t batch = 1; batch <= 96; batch += batch < 8 ? 1 : 11) {
        const report::MemoryUse use = runner.memory(request(name, "a100-sxm4-40gb", training, batch));
        INFO(name << " training " << training << " batch " << batch);
        CHECK(use.total() >= before);
        before = use.total();
      }
    }
  }
}

TEST_CASE("model states are 16 bytes per parameter for Adam in mixed precision", "[study][fit][memory]") {
  using graph::Optimizer;
  using graph::Precision;
  Runner runner;
  Request r = request("bert-large", "a100-sxm4-80gb", true);
  r.seq = 128;
  const std::int64_t parameters = graph::parameter_count(runner.workload(r)->graph);  // Heads of pretraining too.
  CHECK(states(bert(Optimizer::adam, Precision::mixed_fp16)) == 16 * parameters);
  CHECK(states(bert(Optimizer::adam, Precision::fp32)) == 16 * parameters);
  // SGD, momentum and Adam keep 0, 4 and 8 bytes.
  CHECK(bert(Optimizer::sgd, Precision::fp32).optimizer_state == 0);
  CHECK(bert(Optimizer::momentum, Precision::fp32).optimizer_state == 4 * parameters);
  CHECK(bert(Optimizer::adam, Precision::mixed_bf16).optimizer_state == 8 * parameters);
}

TEST_CASE("a cached token of Llama 3.1 8B takes 131,072 bytes", "[study][fit][memory]") {
  const auto cache = [](std::int64_t context, std::int64_t batch) {
    Request r = request("llama-3.1-8b", "a100-sxm4-80gb", false, batch);
    r.phase = workloads::RunPhase::decode;
    r.context = context;
    return memory(r).kv_cache;
  };
  CHECK(cache(1000, 1) == 131072 * 1000);  // 32 layers x 8 heads x 128 x (key, value) x 2 bytes
  CHECK(cache(500, 4) == 131072 * 2000);
}

TEST_CASE("a sliding window caches its window alone", "[study][fit][memory]") {
  const auto cache = [](workloads::RunPhase phase, std::int64_t tokens) {
    Request r = request("mistral-7b", "a100-sxm4-80gb");
    r.phase = phase;
    (phase == workloads::RunPhase::decode ? r.context : r.seq) = tokens;
    return memory(r).kv_cache;
  };
  for (const auto phase : {workloads::RunPhase::decode, workloads::RunPhase::prefill}) {
    CHECK(cache(phase, 2048) == 131072 * 2048);
    CHECK(cache(phase, 4096) == 131072 * 4096);
    CHECK(cache(phase, 16384) == 131072 * 4096);
  }
}

TEST_CASE("fused attention turns the quadratic term of memory linear", "[study][fit][memory]") {
  const auto activations = [](workloads::AttentionForm form, std::int64_t seq) {
    Request r = request("gpt2", "a100-sxm4-80gb", true, 4);
    r.attention = form;
    r.seq = seq;
    const report::MemoryUse use = memory(r);
    return static_cast<double>(use.activations + use.gradients);
  };
  // Second differences over equal steps vanish on a straight line.
  const auto bend = [&](workloads::AttentionForm form) {
    const double a = activations(form, 256), b = activations(form, 512), c = activations(form, 768);
    return (c - 2 * b + a) / (c - a);
  };
  CHECK(std::fabs(bend(workloads::AttentionForm::flash)) < 0.01);
  CHECK(bend(workloads::AttentionForm::unfused) > 0.05);
}

TEST_CASE("Mixtral 8x7B in FP16 is 93.4 GB, counts all experts and does not fit an A100 with 80 GB", "[study][fit]") {
  Runner runner;
  const report::Fit fit = study::fit(runner, request("mixtral-8x7b", "a100-sxm4-80gb"));
  CHECK_THAT(static_cast<double>(fit.asked.memory.weights), WithinRel(93.4e9, 1e-3));
  CHECK_FALSE(fit.asked.fits());
  CHECK(fit.asked.memory.largest() == "weights");
  CHECK(fit.max_batch == 0);
  Request r = request("mixtral-8x7b", "a100-sxm4-80gb");
  const auto work = runner.workload(r);
  CHECK(work->parameters_active_per_token < work->parameters / 3);
  // A short prompt multiplies its active weights once per token, attention and logits on top.
  r.seq = 32;
  const double per_token = runner.predict(r).mac / 32;
  CHECK_THAT(per_token, WithinRel(static_cast<double>(work->parameters_active_per_token), 0.05));
  const auto offers = [&](const std::string& what) {
    return std::any_of(fit.changes.begin(), fit.changes.end(), [&](const auto& c) { return c.what == what; });
  };
  CHECK(offers("--precision w8a16"));
  CHECK(offers("--gpu h200-sxm5-141gb"));
  CHECK_FALSE(offers("--gpu a100-pcie-80gb"));
}

TEST_CASE("every change that is offered fits, the cheapest first", "[study][fit]") {
  Runner runner;
  Request r = request("gpt2-large", "v100-sxm2-16gb", true, 8);
  r.seq = 1024;
  r.attention = workloads::AttentionForm::unfused;
  const report::Fit fit = study::fit(runner, r);
  CHECK_FALSE(fit.asked.fits());
  REQUIRE_FALSE(fit.changes.empty());
  double before = 0;
  for (const auto& c : fit.changes) {
    INFO(c.what);
    CHECK(c.memory_bytes <= c.capacity_bytes);
    REQUIRE(c.time_ratio);
    CHECK(*c.time_ratio >= before);
    before = *c.time_ratio;
  }
}

TEST_CASE("ZeRO divides the states of its stage and nothing else", "[study][fit]") {
  report::MemoryUse use;
  use.weights = 4000;
  use.gradients = 4000;
  use.optimizer_state = 8000;
  use.activations = 100;
  use.context = 10;
  CHECK(study::zero_bytes(use, 1, 4) == 4000 + 4000 + 2000 + 110);
  CHECK(study::zero_bytes(use, 2, 4) == 4000 + 1000 + 2000 + 110);
  CHECK(study::zero_bytes(use, 3, 4) == 1000 + 1000 + 2000 + 110);
  CHECK(study::zero_bytes(use, 3, 1) == use.total());
}

TEST_CASE("sizes that a workload does not have are none, with a reason", "[study][fit]") {
  Runner runner;
  const report::Fit image = study::fit(runner, request("resnet18", "t4"));
  CHECK_FALSE(image.max_seq);
  CHECK_FALSE(image.max_seq_reason.empty());
  const report::Fit positions = study::fit(runner, request("bert-base", "a100-sxm4-80gb"));
  CHECK(positions.max_seq == 512);
  CHECK(positions.max_seq_reason.find("positions") != std::string::npos);
  Request r = request("op:copy,bytes=1GiB", "t4");
  r.batch.reset();
  CHECK_FALSE(study::fit(runner, r).max_batch);
}

TEST_CASE("micro-batches and recomputed layers need less memory", "[study][fit][memory]") {
  Request r = request("bert-large", "a100-sxm4-80gb", true, 32);
  r.seq = 512;
  const std::int64_t plain = memory(r).total();
  Request micro = r;
  micro.accumulation = 8;
  CHECK(memory(micro).total() < plain / 2);
  Request full = r;
  full.recompute = graph::Recompute::full;
  CHECK(memory(full).total() < plain / 2);
}
