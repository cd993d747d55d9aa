// SPDX-License-Identifier: MIT
#include <zlib.h>

#include <string>

#include "sim/cost/engine.hpp"
#include "sim/cost/recurrent_cost.hpp"
#include "sim/cost/roofline.hpp"
#include "sim/kernel/recurrent.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/measured_pack.hpp"

using namespace voltaic;
using kernel::RecurrentCell;
using kernel::RecurrentKernel;
using kernel::RecurrentPass;

namespace {

RecurrentKernel layer(RecurrentCell cell, std::int64_t hidden, std::int64_t batch, std::int64_t steps,
                      RecurrentPass pass = RecurrentPass::forward, DataType math = DataType::fp32) {
  RecurrentKernel k;
  k.cell = cell;
  k.pass = pass;
  k.hidden = hidden;
  k.batch = batch;
  k.steps = steps;
  k.math = math;
  k.element_bytes = bytes_per_element(math);
  return k;
}

const arch::ResolvedGpu& v100() {
  static const auto gpu = arch::resolve_gpu("v100-sxm2-16gb");
  return gpu;
}

double microseconds(const RecurrentKernel& k, const arch::ResolvedGpu& gpu = v100()) {
  return 1e6 * cost::RecurrentCost(gpu)(kernel::recurrent_launch(k, gpu.spec), k).time.value;
}

constexpr auto kForward = RecurrentPass::forward;
constexpr auto kData = RecurrentPass::backward_data;
constexpr auto kLstm = RecurrentCell::lstm;
constexpr auto kGru = RecurrentCell::gru;

}  // namespace

TEST_CASE("steps take the times that the fit's own program gives", "[cost][recurrent]") {
  constexpr double kFigures = 2e-3;
  const auto check = [&](const RecurrentKernel& k, double expected) {
    CAPTURE(k.hidden, k.batch, k.steps, k.layers, k.directions);
    CHECK_THAT(microseconds(k), WithinRel(expected, kFigures));
  };
  check(layer(kLstm, 512, 32, 25), 1203.69);
  check(layer(kLstm, 512, 32, 25, kForward, DataType::fp16), 877.26);
  check(layer(kGru, 1536, 32, 750, kForward, DataType::fp16), 39786.1);
  check(layer(kGru, 2560, 32, 375, kData), 51324.07);
  check(layer(RecurrentCell::vanilla, 1760, 128, 50, kData, DataType::fp16), 2750.33);
  check(layer(kLstm, 4096, 16, 25), 10985.84);
  check(layer(kLstm, 256, 64, 150, kData, DataType::fp16), 5451.64);
  check(layer(kGru, 512, 32, 1), 101.52);
  auto stack = layer(kLstm, 1024, 64, 50, kForward, DataType::fp16);
  stack.layers = 4;
  check(stack, 5257.0);
  stack.layers = 1;
  stack.directions = 2;
  check(stack, 3080.25);
}

TEST_CASE("what surrounds weight gradients grows with rows and units of every cell", "[cost][recurrent]") {
  auto k = layer(kLstm, 1000, 50, 20, RecurrentPass::backward_weights);
  // 1000 rows of 20.8 ns and 1000 units of 129 ns.
  CHECK_THAT(microseconds(k), WithinRel(20.8 + 129.0, 1e-6));
  k.layers = 3;
  CHECK_THAT(microseconds(k), WithinRel(3 * (20.8 + 129.0), 1e-6));
}

TEST_CASE("longer, wider or deeper is never faster", "[cost][recurrent][property]") {
  for (const auto cell : {RecurrentCell::vanilla, kLstm, kGru}) {
    for (const auto pass : {kForward, kData, RecurrentPass::backward_weights}) {
      for (const auto math : {DataType::fp32, DataType::fp16}) {
        double before = 0;
        for (std::int64_t steps = 1; steps < 3000; steps += steps / 4 + 1) {
          const double t = microseconds(layer(cell, 768, 48, steps, pass, math));
          CAPTURE(steps);
          CHECK(t >= before);
          before = t;
        }
        before = 0;
        for (std::int64_t batch = 1; batch < 600; batch += 13) {
          const double t = microseconds(layer(cell, 512, batch, 100, pass, math));
          CAPTURE(batch);
          CHECK(t >= before);
          before = t;
        }
        before = 0;
        for (std::int64_t layers = 1; layers < 9; ++layers) {
          auto k = layer(cell, 512, 32, 40, pass, math);
          k.layers = layers;
          const double t = microseconds(k);
          CAPTURE(layers);
          CHECK(t >= before);
          before = t;
        }
      }
    }
  }
}

TEST_CASE("layers that overlap are no slower than one after another", "[cost][recurrent][property]") {
  for (const std::int64_t steps : {1, 10, 200}) {
    auto k = layer(kLstm, 1024, 64, steps, kForward, DataType::fp16);
    const double one = microseconds(k);
    k.layers = 3;
    CHECK(microseconds(k) <= 3 * one);
    k.layers = 1;
    k.directions = 2;
    CHECK(microseconds(k) <= 2 * one);
  }
}

TEST_CASE("more bandwidth is never slower and nothing beats its roofline", "[cost][recurrent][property]") {
  for (const char* name : {"v100-sxm2-16gb", "t4", "a100-sxm4-80gb", "h100-sxm5-80gb"}) {
    const auto gpu = arch::resolve_gpu(name);
    const auto faster = arch::resolve_gpu(name, {arch::parse_override("gpu.dram.peak_bandwidth*=1.5")});
    const auto engine = cost::make_engine(cost::EngineKind::analytic, gpu);
    const auto fast_engine = cost::make_engine(cost::EngineKind::analytic, faster);
    for (const std::int64_t hidden : {1, 64, 500, 1536, 4096}) {
      for (const std::int64_t batch : {1, 32, 256}) {
        for (const auto pass : {kForward, kData, RecurrentPass::backward_weights}) {
          for (const bool persistent : {false, true}) {
            auto k = layer(kLstm, hidden, batch, 37, pass, DataType::fp16);
            k.persistent = persistent;
            const auto launch = kernel::recurrent_launch(k, gpu.spec);
            const auto c = engine->cost(launch);
            CAPTURE(name, hidden, batch, persistent);
            CHECK(c.time >= c.roofline);
            CHECK(c.time >= cost::roofline_cost(launch, gpu.spec).time);
            for (const auto& leg : c.legs) CHECK(leg <= c.time);
            CHECK(fast_engine->cost(launch).time.value <= c.time.value * (1 + 1e-9));
          }
        }
      }
    }
  }
}

TEST_CASE("a recorded graph leaves the host's share out", "[cost][recurrent]") {
  auto k = layer(kLstm, 256, 16, 100, kForward, DataType::fp16);
  const double eager = microseconds(k);
  k.captured = true;
  const double replayed = microseconds(k);
  CHECK(replayed < eager / 2);
  k.persistent = true;
  CHECK(microseconds(k) < replayed);
}

TEST_CASE("recurrent layers of the suite are predicted within the stated error", "[cost][recurrent][measured]") {
  const auto table = test::measured_table("deepbench/rnn.csv");
  if (!table) {
    WARN("measured pack not found: skipped");
    return;
  }
  struct Row {
    const char* column;
    RecurrentPass pass;
    double limit;
  };
  for (const auto& [precision, math] : {std::pair{"FP32", DataType::fp32}, {"FP16_tensorcore_mixed", DataType::fp16}}) {
    for (const Row& want : {Row{"fwd_us", kForward, 0.15}, {"bwd_inputs_us", kData, 0.09}}) {
      test::Errors errors;
      for (const auto& row : table->rows) {
        if (table->word(row, "gpu") != "V100" || table->word(row, "status") != "current") continue;
        if (table->word(row, "precision") != precision) continue;
        const std::string& word = table->word(row, "cell");
        const std::string key = "rnn|" + word + "|" + table->word(row, "hidden") + "|" + table->word(row, "batch_N") +
                                "|" + table->word(row, "timesteps");
        if (!test::is_report_row(key)) continue;
        const auto cell = word == "lstm" ? kLstm : word == "gru" ? kGru : RecurrentCell::vanilla;
        errors.add(microseconds(layer(cell, table->integer(row, "hidden"), table->integer(row, "batch_N"),
                                      table->integer(row, "timesteps"), want.pass, math)),
                   table->number(row, want.column));
      }
      CAPTURE(precision, want.column, errors.values.size());
      CHECK(errors.mean_absolute() < want.limit);
    }
  }
}
