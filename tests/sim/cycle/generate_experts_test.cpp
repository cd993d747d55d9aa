// SPDX-License-Identifier: MIT
// Programs of a mixture of experts' parts.
#include "sim/kernel/experts.hpp"

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

kernel::ExpertBlock mixtral(std::int64_t tokens, const std::string& stack, double weight_bytes = 2) {
  kernel::ExpertBlock block;
  block.tokens.tokens = tokens;
  block.tokens.top_k = 2;
  block.tokens.experts = 8;
  block.hidden = 4096;
  block.inner = 14336;
  block.stack = stack;
  block.weight_bytes = weight_bytes;
  return block;
}

}  // namespace

TEST_CASE("an expert's product multiplies its rows, rounded up to tiles", "[cycle][experts]") {
  const auto a100 = arch::resolve_gpu("a100-sxm4-80gb").spec;
  const auto launches = kernel::expert_launches(mixtral(4096, "vllm_triton"));
  for (std::size_t i = 1; i <= 2; ++i) {
    const auto parts = generate(launches[i], a100);
    REQUIRE(parts.size() == 1);
    CHECK_NOTHROW(check(parts[0].program));
    CHECK(mma_macs(parts[0].program) >= launches[i].work.mac);
    CHECK(mma_macs(parts[0].program) < 1.1 * launches[i].work.mac);
  }
}

TEST_CASE("with one token the touched experts' weights are streamed once", "[cycle][experts]") {
  const auto a100 = arch::resolve_gpu("a100-sxm4-80gb").spec;
  const auto launches = kernel::expert_launches(mixtral(1, "vllm_triton"));
  const auto parts = generate(launches[1], a100);
  const double weights = launches[1].work.read.value;
  // Three stages: two slices of 64 ahead of 4096 / 64 more.
  CHECK_THAT(asked_bytes(parts[0].program, "weights"), WithinRel(weights, 0.05));
}

TEST_CASE("int4 weights are a quarter of the bytes and are widened by instructions", "[cycle][experts]") {
  const auto a100 = arch::resolve_gpu("a100-sxm4-80gb").spec;
  const auto half = generate(kernel::expert_launches(mixtral(16, "vllm_cutlass"))[1], a100);
  const auto quarter = generate(kernel::expert_launches(mixtral(16, "sglang_marlin", 0.5))[1], a100);
  CHECK(asked_bytes(quarter[0].program, "weights") < 0.3 * asked_bytes(half[0].program, "weights"));
  CHECK(total(quarter[0].program, Op::hfma2) > 0);
}

TEST_CASE("programs of experts are valid for any load", "[cycle][experts]") {
  std::mt19937 random(5);
  const auto pick = [&](std::int64_t most) { return std::uniform_int_distribution<std::int64_t>(1, most)(random); };
  for (const char* name : {"v100-sxm2-16gb", "t4", "a100-sxm4-80gb"}) {
    const auto spec = arch::resolve_gpu(name).spec;
    for (int i = 0; i < 30; ++i) {
      const char* const stacks[] = {"vllm_triton", "sglang_marlin", "trtllm_cutlass"};
      kernel::ExpertBlock block = mixtral(pick(1 << pick(13)), stacks[pick(3) - 1], pick(2) == 1 ? 2 : 0.5625);
      block.math = DataType::fp16;
      block.hidden = 16 * pick(300);
      block.inner = 16 * pick(300);
      block.tokens.experts = pick(64) + 1;
      block.tokens.top_k = std::min(block.tokens.experts, pick(8));
      for (const auto& launch : kernel::expert_launches(block)) {
        for (const Part& part : generate(launch, spec)) {
          CHECK_NOTHROW(check(part.program));
          CHECK_NOTHROW(make_machine(spec, spec.clocks.boost, part.program));
        }
      }
    }
  }
}
