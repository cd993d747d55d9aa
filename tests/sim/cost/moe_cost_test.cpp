// SPDX-License-Identifier: MIT
#include <cmath>

#include "sim/cost/engine.hpp"
#include "sim/cost/moe_cost.hpp"
#include "sim/kernel/experts.hpp"
#include "tests/support/catch.hpp"

using namespace voltaic;
using kernel::ExpertBlock;
using kernel::Leftover;
using kernel::Routing;

namespace {

struct Layer {
  const char* stack;
  Leftover leftover;
  Routing routing;
  double skew;
  std::int64_t tokens, hidden, inner, top_k, experts, tensor_parallel, expert_parallel;
};

ExpertBlock block_of(const Layer& l, double weight_bytes = 2) {
  ExpertBlock block;
  block.tokens = {l.tokens, l.top_k, l.experts, l.expert_parallel, l.routing, l.skew, l.leftover};
  block.hidden = l.hidden;
  block.inner = l.inner / l.tensor_parallel;
  block.stack = l.stack;
  block.weight_bytes = weight_bytes;
  return block;
}

double microseconds(const ExpertBlock& block, const char* gpu = "a100-sxm4-80gb") {
  const auto board = arch::resolve_gpu(gpu);
  const cost::MoeCost cost(board);
  double sum = 0;
  for (const auto& launch : kernel::expert_launches(block)) {
    sum += 1e6 * cost(launch, std::get<kernel::ExpertKernel>(launch.detail)).time.value;
  }
  return sum;
}

constexpr auto kBalanced = Routing::balanced;
constexpr auto kPower = Routing::power_law;
constexpr double kInt4 = 0.5 + 2.0 / 128;

}  // namespace

TEST_CASE("mixtures of experts take the times that the fit's own program gives", "[cost][moe]") {
  constexpr double kFigures = 1e-3;
  const auto spread = Leftover::spread_idle;
  const auto first = Leftover::first_idle;
  const auto largest = Leftover::largest;
  const auto check = [&](const Layer& layer, double expected, double bytes = 2) {
    CAPTURE(layer.stack, layer.tokens, layer.experts);
    CHECK_THAT(microseconds(block_of(layer, bytes)), WithinRel(expected, kFigures));
  };
  check({"sglang_triton", spread, kBalanced, 0, 1, 4096, 14336, 2, 8, 1, 1}, 466.2);
  check({"sglang_triton", spread, kBalanced, 0, 128, 4096, 1536, 8, 128, 1, 1}, 2889.24);
  check({"sglang_triton", spread, kBalanced, 0, 1024, 4096, 1536, 8, 128, 1, 1}, 4707.72);
  check({"sglang_triton", spread, kPower, 1.01, 256, 7168, 2048, 8, 256, 1, 8}, 2847.22);
  check({"sglang_triton", spread, kBalanced, 0, 1024, 4096, 14336, 2, 8, 8, 1}, 537.61);
  check({"vllm_triton", first, kPower, 1.01, 64, 4096, 1536, 8, 128, 1, 4}, 1067.74);
  check({"vllm_triton", first, kPower, 1.2, 8192, 7168, 2048, 8, 256, 1, 8}, 15911.77);
  check({"sglang_marlin", spread, kBalanced, 0, 64, 6144, 2560, 8, 160, 1, 1}, 2451.97, kInt4);
  check({"sglang_marlin", spread, kPower, 1.2, 2048, 2048, 768, 8, 128, 1, 1}, 1496.53, kInt4);
  check({"trtllm_cutlass", largest, kPower, 1.01, 16, 7168, 2048, 8, 256, 1, 8}, 731.94);
  check({"trtllm_cutlass", largest, kPower, 1.2, 8192, 4096, 14336, 2, 8, 1, 1}, 37134.65);
}

TEST_CASE(
    "a mixture of experts: more tokens are never faster on one tile, nothing beats the roofline, equal inputs give "
    "equal times",
    "[cost][moe][property]") {
  for (const auto& name : arch::gpu_names()) {
    const auto gpu = arch::resolve_gpu(name);
    const auto engine = cost::make_engine(cost::EngineKind::analytic, gpu);
    for (const char* stack : {"sglang_triton", "vllm_triton", "sglang_marlin", "trtllm_cutlass"}) {
      double before = 0;
      // All above the number of experts, where the library keeps to one tile.
      for (const std::int64_t tokens :
           {std::int64_t{256}, std::int64_t{512}, std::int64_t{2048}, std::int64_t{16384}}) {
        ExpertBlock block = block_of({stack, Leftover::largest, Routing::uniform, 0, tokens, 4096, 1536, 8, 128, 1, 1});
        block.math = DataType::fp16;
        double sum = 0, again = 0;
        for (const auto& launch : kernel::expert_launches(block)) {
          const auto cost = engine->cost(launch);
          CHECK(cost.time >= cost.roofline);
          for (const auto leg : cost.legs) CHECK(leg <= cost.time);
          sum += cost.time.value;
          again += engine->cost(launch).time.value;
        }
        CAPTURE(name, stack, tokens);
        CHECK(sum >= before);
        CHECK(sum == again);
        before = sum;
      }
    }
  }
}

TEST_CASE("hostile sizes of a mixture of experts stay finite", "[cost][moe]") {
  constexpr std::int64_t kHuge = std::int64_t{1} << 40;
  for (const auto routing : {Routing::uniform, Routing::balanced, Routing::power_law}) {
    for (const std::int64_t tokens : {std::int64_t{1}, kHuge}) {
      for (const std::int64_t experts : {std::int64_t{1}, std::int64_t{7}, kHuge}) {
        const Layer layer{"vllm_triton", Leftover::spread_idle, routing, 1.2, tokens, 1, 1, experts, experts, 1,
                          experts};
        CHECK(std::isfinite(microseconds(block_of(layer))));
      }
    }
  }
}
