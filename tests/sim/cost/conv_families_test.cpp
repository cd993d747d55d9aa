// SPDX-License-Identifier: MIT
// Families of convolutions for which there are no rows: their times stay above the bound, near it where they should
// be, and without cliffs.
#include <fmt/format.h>

#include <array>
#include <memory>

#include "arch/loader.hpp"
#include "sim/cost/engine.hpp"
#include "tests/support/catch.hpp"

using namespace voltaic;
using kernel::ConvPass;
using kernel::ConvProblem;

namespace {

struct Machine {
  explicit Machine(const std::string& name)
      : gpu(arch::resolve_gpu(name)),
        engine(cost::make_engine(cost::EngineKind::analytic, gpu)),
        library(cost::make_library(gpu)) {}
  kernel::KernelCost cost(const ConvProblem& p) const {
    return engine->cost(kernel::conv_launches(library->choose(p), gpu.spec).at(0));
  }
  double time(const ConvProblem& p) const { return cost(p).time.value; }
  arch::ResolvedGpu gpu;
  std::unique_ptr<kernel::CostModel> engine;
  std::unique_ptr<kernel::LibraryChoice> library;
};

ConvProblem layer(std::int64_t n, std::int64_t c, std::int64_t k, std::int64_t size, std::int64_t filter,
                  std::int64_t stride = 1) {
  ConvProblem p;
  p.n = n;
  p.c = c;
  p.k = k;
  for (int i = 1; i < 3; ++i) {
    p.in[i] = size;
    p.filter[i] = filter;
    p.pad[i] = filter / 2;
    p.stride[i] = stride;
    p.out[i] = (size + 2 * p.pad[i] - filter) / stride + 1;
  }
  return p;
}

ConvProblem in_type(ConvProblem p, DataType type) {
  p.math = type;
  p.element_bytes = type == DataType::tf32 ? 4 : bytes_per_element(type);
  return p;
}

constexpr std::array<ConvPass, 3> kPasses{ConvPass::forward, ConvPass::dgrad, ConvPass::wgrad};
constexpr std::array<const char*, 7> kBoards{"v100-sxm2-16gb", "t4", "a100-sxm4-80gb", "a30", "a10", "a40",
                                             "h100-sxm5-80gb"};

}  // namespace

TEST_CASE("every family of convolutions takes at least its bound and at most a small multiple of it", "[cost][conv]") {
  ConvProblem dilated = layer(16, 256, 256, 33, 3);
  dilated.dilation[1] = dilated.dilation[2] = dilated.pad[1] = dilated.pad[2] = 2;
  dilated.out[1] = dilated.out[2] = 33;
  ConvProblem speech = layer(32, 256, 256, 1, 1);
  speech.in[2] = speech.out[2] = 800;
  speech.filter[2] = 33;
  speech.pad[2] = 16;
  ConvProblem volume = layer(2, 64, 64, 64, 3);
  volume.in[0] = volume.out[0] = 64;
  volume.filter[0] = 3;
  volume.pad[0] = 1;
  ConvProblem grouped = layer(64, 256, 256, 28, 3);
  grouped.groups = 32;
  ConvProblem depthwise = layer(64, 192, 192, 28, 3);
  depthwise.groups = 192;
  for (const char* board : kBoards) {
    const Machine machine(board);
    for (const auto& shape : {dilated, speech, volume, grouped, depthwise, layer(64, 3, 64, 224, 7, 2),
                              layer(64, 256, 64, 56, 1), layer(64, 1024, 2048, 14, 1, 2)}) {
      for (const DataType type : {DataType::fp32, DataType::fp16}) {
        for (const ConvPass pass : kPasses) {
          ConvProblem p = in_type(shape, type);
          p.pass = pass;
          p.channels_last = type != DataType::fp32;
          const auto cost = machine.cost(p);
          INFO(board << ' ' << to_string(type) << " pass " << static_cast<int>(pass) << " channels " << p.c
                     << " groups " << p.groups << ": " << cost.time.value / cost.roofline.value);
          REQUIRE(cost.time >= cost.roofline);
          // The most: filter gradients of first layers on T4, which are slow where measured, and of narrow groups.
          REQUIRE(cost.time.value < 100 * cost.roofline.value);
        }
      }
    }
  }
}

TEST_CASE("wider groups never make a cliff", "[cost][conv]") {
  for (const char* board : kBoards) {
    const Machine machine(board);
    for (const ConvPass pass : kPasses) {
      double before = 0;
      for (const std::int64_t width : {4, 8, 16, 32, 64}) {
        ConvProblem p = in_type(layer(64, 32 * width, 32 * width, 14, 3), DataType::fp16);
        p.groups = 32;
        p.pass = pass;
        p.channels_last = true;
        const double now = machine.time(p);
        INFO(board << " pass " << static_cast<int>(pass) << " width " << width);
        // Twice the width is four times the arithmetic.
        if (before > 0) REQUIRE((now > 0.8 * before && now < 4.4 * before));
        before = now;
      }
    }
  }
}

TEST_CASE("tensors in channels-last order save the change of layout on every tensor-core board", "[cost][conv]") {
  for (const char* board : kBoards) {
    const Machine machine(board);
    for (const ConvPass pass : kPasses) {
      ConvProblem p = in_type(layer(64, 128, 128, 28, 3), DataType::fp16);
      p.pass = pass;
      const double turned = machine.time(p);
      p.channels_last = true;
      CHECK(machine.time(p) < turned);
    }
  }
}

TEST_CASE("TF32 takes between one and three times as long as half precision", "[cost][conv]") {
  for (const char* board : {"a100-sxm4-80gb", "a30", "a10", "h100-sxm5-80gb"}) {
    const Machine machine(board);
    for (const auto& shape : {layer(64, 64, 64, 56, 3), layer(64, 256, 64, 56, 1), layer(64, 512, 512, 7, 3)}) {
      for (const ConvPass pass : kPasses) {
        ConvProblem p = in_type(shape, DataType::fp16);
        p.pass = pass;
        const double half = machine.time(p);
        const double tf32 = machine.time(in_type(p, DataType::tf32));
        INFO(board << " pass " << static_cast<int>(pass) << ": " << tf32 / half);
        CHECK(tf32 > half);
        CHECK(tf32 < 3 * half);
      }
    }
  }
}

TEST_CASE("the filter gradient of a depthwise layer is the slowest of its passes", "[cost][conv]") {
  const Machine machine("v100-sxm2-16gb");
  for (const DataType type : {DataType::fp32, DataType::fp16}) {
    ConvProblem p = in_type(layer(64, 192, 192, 56, 3), type);
    p.groups = 192;
    const double forward = machine.time(p);
    p.pass = ConvPass::dgrad;
    CHECK_THAT(machine.time(p), WithinRel(forward, 0.3));
    p.pass = ConvPass::wgrad;
    CHECK(machine.time(p) > 1.2 * forward);
  }
}

TEST_CASE("gradients that tensor-core kernels do not take run on FMA lanes", "[cost][conv]") {
  const Machine machine("v100-sxm2-16gb");
  ConvProblem p = in_type(layer(8, 2048, 512, 7, 1, 2), DataType::fp16);
  p.pad[1] = p.pad[2] = 3;  // Beyond a filter of 1x1.
  p.out[1] = p.out[2] = 7;
  CHECK(machine.library->choose(p).tile.tensor_cores);
  p.pass = ConvPass::dgrad;
  const auto kernel = machine.library->choose(p);
  CHECK_FALSE(kernel.tile.tensor_cores);
  // 8 * 7 * 7 * 512 * 2048 multiply-adds at 0.32 of 80 SMs * 64 lanes * 1.53 GHz take 164 us.
  CHECK_THAT(machine.time(p), WithinRel(164e-6, 0.02));
}
