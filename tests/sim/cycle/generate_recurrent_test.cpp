// SPDX-License-Identifier: MIT
// Programs of recurrent layers.
#include "sim/kernel/recurrent.hpp"

#include <cmath>
#include <random>

#include "arch/loader.hpp"
#include "sim/cycle/generate.hpp"
#include "sim/cycle/machine.hpp"
#include "tests/sim/cycle/program_work.hpp"
#include "tests/support/catch.hpp"

using namespace voltaic;
using namespace voltaic::cycle;
using namespace voltaic::cycle::test;

namespace {

kernel::RecurrentKernel lstm(std::int64_t hidden, std::int64_t batch, std::int64_t steps, bool half) {
  kernel::RecurrentKernel k;
  k.hidden = hidden, k.batch = batch, k.steps = steps;
  k.math = half ? DataType::fp16 : DataType::fp32;
  k.element_bytes = half ? 2 : 4;
  return k;
}

double special(const Part& part) {
  return 32 * part.times * total(part.program, Op::mufu);
}

}  // namespace

TEST_CASE("steps of an LSTM multiply and read the weights as often as there are steps", "[cycle][recurrent]") {
  const auto v100 = arch::resolve_gpu("v100-sxm2-16gb").spec;
  const auto launch = kernel::recurrent_launch(lstm(1024, 64, 25, true), v100);
  const auto parts = generate(launch, v100);
  REQUIRE(parts.size() == 2);
  CHECK(parts[0].times == 25);
  CHECK_THAT(25 * mma_macs(parts[0].program), WithinRel(launch.work.mac, 1e-9));
  // 8 MiB of weights, by one or two tiles of the batch.
  const double tiles = std::round(asked_bytes(parts[0].program, "weights") / (4096.0 * 1024 * 2));
  CHECK(tiles >= 1);
  CHECK(tiles <= 2);
  CHECK_THAT(asked_bytes(parts[0].program, "weights"), WithinRel(tiles * 4096 * 1024 * 2, 1e-9));
  CHECK_THAT(special(parts[1]), WithinRel(launch.work.special, 1e-9));
}

TEST_CASE("a persistent kernel reads its weights once and starts once", "[cycle][recurrent]") {
  const auto v100 = arch::resolve_gpu("v100-sxm2-16gb").spec;
  auto k = lstm(1024, 64, 50, true);
  k.persistent = true;
  const auto launch = kernel::recurrent_launch(k, v100);
  const auto parts = generate(launch, v100);
  REQUIRE(parts.size() == 2);
  CHECK(parts[0].times == 1);
  CHECK(parts[0].starts == 1);
  CHECK(parts[1].times == 50);
  CHECK(parts[1].starts == 0);
  CHECK_THAT(asked_bytes(parts[0].program, "weights"), WithinRel(4096.0 * 1024 * 2, 0.05));
  const double macs = 50 * mma_macs(parts[1].program);
  CHECK(macs >= launch.work.mac);
  CHECK(macs < 1.5 * launch.work.mac);  // 51.2 rows of an SM are padded to 64
}

TEST_CASE("programs of recurrent layers are valid for any shape", "[cycle][recurrent]") {
  std::mt19937 random(3);
  const auto pick = [&](std::int64_t most) { return std::uniform_int_distribution<std::int64_t>(1, most)(random); };
  for (const char* name : {"v100-sxm2-16gb", "t4", "a100-sxm4-80gb"}) {
    const auto spec = arch::resolve_gpu(name).spec;
    for (int i = 0; i < 60; ++i) {
      auto k = lstm(pick(3000), pick(200), pick(500), pick(2) == 1);
      k.cell = static_cast<kernel::RecurrentCell>(pick(3) - 1);
      k.pass = static_cast<kernel::RecurrentPass>(pick(3) - 1);
      k.layers = pick(4), k.directions = pick(2);
      k.persistent = k.math == DataType::fp16 && pick(3) == 1;
      if (k.persistent) k.layers = k.directions = 1;
      for (const Part& part : generate(kernel::recurrent_launch(k, spec), spec)) {
        CHECK_NOTHROW(check(part.program));
        CHECK_NOTHROW(make_machine(spec, spec.clocks.boost, part.program));
      }
    }
  }
}
