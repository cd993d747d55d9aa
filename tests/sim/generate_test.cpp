// SPDX-License-Identifier: MIT
#include "sim/generate.hpp"

#include <cmath>
#include <numeric>

#include "arch/units/error.hpp"
#include "sim/report/json.hpp"
#include "sim/request.hpp"
#include "tests/support/catch.hpp"

using namespace voltaic;

namespace {

double total(const std::vector<PricedStep>& steps, const std::function<double(std::int64_t)>& time) {
  double sum = 0;
  for (const auto& s : steps) sum += s.weight * time(s.context);
  return sum;
}

double exact(std::int64_t first, std::int64_t last, const std::function<double(std::int64_t)>& time) {
  double sum = 0;
  for (std::int64_t c = first; c <= last; ++c) sum += time(c);
  return sum;
}

Request request(std::int64_t tokens) {
  Request r;
  set_option(r, "seq", "64");
  set_option(r, "batch", "2");
  set_option(r, "generate", std::to_string(tokens));
  r.workload = "gpt2";
  return r;
}

}  // namespace

TEST_CASE("weights of priced steps add up to the number of steps", "[generate]") {
  const auto time = [](std::int64_t c) { return 1 + 1e-6 * static_cast<double>(c); };
  for (const std::int64_t n : {1, 2, 7, 33, 34, 100, 4095}) {
    const auto steps = price_steps(65, 64 + n, time);
    const double sum =
        std::accumulate(steps.begin(), steps.end(), 0.0, [](double s, const auto& x) { return s + x.weight; });
    CHECK_THAT(sum, WithinRel(static_cast<double>(n), 1e-12));
  }
  CHECK(price_steps(65, 64, time).empty());
}

TEST_CASE("a straight line is summed exactly from few steps", "[generate]") {
  const auto line = [](std::int64_t c) { return 2 + 0.25 * static_cast<double>(c); };
  const auto steps = price_steps(1000, 5000, line);
  CHECK(steps.size() <= 17);
  CHECK_THAT(total(steps, line), WithinRel(exact(1000, 5000, line), 1e-12));
}

TEST_CASE("jumps and bends are found to a tenth of a per cent", "[generate]") {
  const std::vector<std::function<double(std::int64_t)>> curves{
      [](std::int64_t c) { return c < 2777 ? 1.0 : 1.3; },
      [](std::int64_t c) { return 1 + std::sqrt(static_cast<double>(c)) / 20; },
      [](std::int64_t c) { return 1 + 1e-4 * static_cast<double>(c) + 0.05 * static_cast<double>(c / 700 % 2); },
  };
  for (const auto& curve : curves) {
    const auto steps = price_steps(128, 4223, curve);
    CHECK(steps.size() < 200);
    CHECK_THAT(total(steps, curve), WithinRel(exact(128, 4223, curve), 1e-3));
  }
}

TEST_CASE("a completion is its prefill and its decode steps, and its parts add up", "[generate]") {
  Runner runner;
  const auto p = runner.predict(request(5));
  REQUIRE(p.generation);
  Request prefill = request(5);
  prefill.generate.reset();
  prefill.phase = workloads::RunPhase::prefill;
  double sum = runner.predict(prefill).total.value;
  CHECK(p.generation->time_to_first_token.value == sum);
  Request step = prefill;
  step.phase = workloads::RunPhase::decode;
  for (std::int64_t context = 65; context <= 68; ++context) {  // the first token comes out of the prefill
    step.context = context;
    sum += runner.predict(step).total.value;
  }
  CHECK_THAT(p.total.value, WithinRel(sum, 1e-9));
  CHECK(p.samples_per_s * p.total.value == 2);
  CHECK_THAT(*p.tokens_per_s, WithinRel(10 / p.total.value, 1e-12));
  CHECK_THAT(p.generation->mean.value * 4 + p.generation->time_to_first_token.value, WithinRel(p.total.value, 1e-9));
  CHECK_THAT(p.share_kernels + p.share_communication_exposed + p.share_host_exposed + p.share_idle, WithinAbs(1, 1e-9));
  CHECK_THAT(std::accumulate(p.bound.begin(), p.bound.end(), 0.0), WithinAbs(1, 1e-9));
  double layers = 0, mac = 0;
  for (const auto& layer : p.layers) {
    layers += layer.time.value;
    mac += layer.mac;
    CHECK((layer.id.starts_with("prefill/") || layer.id.starts_with("decode/")));
    CHECK(layer.repeats == (layer.id.starts_with("decode/") ? 4 : 1));
  }
  CHECK_THAT(layers, WithinRel(p.share_kernels * p.total.value, 1e-5));
  CHECK_THAT(mac, WithinRel(p.mac, 1e-9));
}

TEST_CASE("one token is a prefill alone", "[generate]") {
  Runner runner;
  const auto p = runner.predict(request(1));
  REQUIRE(p.generation);
  CHECK(p.generation->mean.value == 0);
  CHECK(p.total == p.generation->time_to_first_token);
  CHECK_THAT(p.generation->output_tokens_per_s, WithinRel(2 / p.total.value, 1e-12));
}

TEST_CASE("the memory of a completion holds the cache of its last step", "[generate]") {
  Runner runner;
  const auto p = runner.predict(request(33));
  // 2 tensors x 12 layers x 768 wide x 2 bytes, two samples of 96 tokens
  CHECK(p.memory.kv_cache == 2 * 12 * 768 * 2 * 2 * 96);
}

TEST_CASE("what generates no tokens is refused by name", "[generate]") {
  Runner runner;
  Request r = request(4);
  r.training = true;
  CHECK_THROWS_AS(runner.predict(r), UsageError);
  r = request(4);
  r.phase = workloads::RunPhase::decode;
  CHECK_THROWS_AS(runner.predict(r), UsageError);
  r = request(4);
  r.context = 70;
  CHECK_THROWS_AS(runner.predict(r), UsageError);
  r = request(4);
  r.workload = "bert-base";
  CHECK_THROWS_AS(runner.predict(r), UnsupportedError);
  CHECK_THROWS_AS(set_option(r, "generate", "0"), UsageError);
  CHECK_THROWS_AS(set_option(r, "generate", "3000000000"), UsageError);
}

TEST_CASE("recorded kernels of a compiler pay no dispatch", "[generate]") {
  Runner runner;
  Request r = request(8);
  r.framework = kernel::Framework::compiled;
  const auto one_by_one = runner.predict(r);
  r.framework = kernel::Framework::compiled_graph;
  const auto recorded = runner.predict(r);
  CHECK(recorded.total < one_by_one.total);
  CHECK(recorded.share_host_exposed < 0.05);
  CHECK_THAT(recorded.mac, WithinRel(one_by_one.mac, 1e-12));
}

TEST_CASE("equal requests give equal bytes", "[generate]") {
  Runner first, second;
  second.predict(request(3));
  CHECK(report::prediction_json(first.predict(request(100)), "predict", "0") ==
        report::prediction_json(second.predict(request(100)), "predict", "0"));
}
