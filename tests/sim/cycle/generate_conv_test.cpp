// SPDX-License-Identifier: MIT
// Programs of convolutions: every algorithm and pass is a program that an SM holds, with the work of its algorithm.
#include <algorithm>
#include <cmath>
#include <memory>
#include <random>

#include "arch/loader.hpp"
#include "sim/cost/engine.hpp"
#include "sim/cycle/detail/sample_plan.hpp"
#include "sim/cycle/footprint.hpp"
#include "sim/cycle/generate.hpp"
#include "sim/kernel/conv_shape.hpp"
#include "sim/kernel/lowering.hpp"
#include "sim/sm/occupancy.hpp"
#include "tests/support/catch.hpp"

using namespace voltaic;

namespace {

double issued(const cycle::Program& p, cycle::Op op) {
  const cycle::detail::LoopNest nest(p);
  cycle::detail::Extent trips{};
  for (std::size_t l = 0; l < p.loops.size(); ++l) trips[l] = static_cast<double>(p.loops[l].trips);
  double sum = 0;
  for (std::size_t i = 0; i < p.code.size(); ++i) {
    if (p.code[i].op == op) sum += nest.issues(i, trips) / p.warps;
  }
  return sum;
}

kernel::ConvProblem problem(std::int64_t n, std::int64_t c, std::int64_t k, std::int64_t size, std::int64_t filter,
                            std::int64_t stride = 1) {
  kernel::ConvProblem p;
  p.n = n, p.c = c, p.k = k;
  for (int i = 1; i < 3; ++i) {
    p.in[i] = size;
    p.filter[i] = filter;
    p.stride[i] = stride;
    p.pad[i] = filter / 2;
    p.out[i] = (size + 2 * p.pad[i] - filter) / stride + 1;
  }
  return p;
}

kernel::ConvKernel kernel_of(const kernel::ConvProblem& p, kernel::ConvAlgorithm algorithm) {
  kernel::ConvKernel k;
  k.problem = p;
  k.algorithm = algorithm;
  k.tile.tile_m = 128, k.tile.tile_n = 64, k.tile.tile_k = 8, k.tile.warps = 4, k.tile.ctas_per_sm = 4;
  return k;
}

double macs(const std::vector<cycle::Part>& parts) {
  double sum = 0;
  for (const auto& part : parts) {
    const auto& p = part.program;
    const double warps = p.warps * static_cast<double>(p.ctas()) * part.times;
    sum += warps * (32 * issued(p, cycle::Op::ffma) + issued(p, cycle::Op::mma) * p.mma.macs() / p.mma.issues);
  }
  return sum;
}

}  // namespace

TEST_CASE("an implicit product multiplies what the definition does, padded to tiles", "[cycle][generate][conv]") {
  const auto gpu = arch::resolve_gpu("v100-pcie-32gb", {});
  const auto p = problem(16, 64, 128, 32, 3);
  const auto kernel = kernel_of(p, kernel::ConvAlgorithm::implicit_precomp_gemm);
  const auto launch = kernel::conv_launches(kernel, gpu.spec).at(0);
  const auto parts = cycle::generate(launch, gpu.spec);
  REQUIRE(parts.size() == 1);
  const double all = macs(parts);
  CHECK(all >= kernel::direct_mac(p));
  CHECK(all < 1.01 * kernel::direct_mac(p));
  // Taps re-read the image nine times, of which L1 serves most.
  const auto& program = parts[0].program;
  std::size_t image = 0;
  while (program.tensors.at(image).name != "input") ++image;
  const double bytes = program.tensors[image].unique_bytes;
  CHECK(cycle::requested_bytes(program, image) > bytes);
  CHECK(cycle::requested_bytes(program, image) < 9 * 2 * bytes);
}

TEST_CASE("Winograd multiplies 16 points for 4 outputs of 9 taps, and transforms", "[cycle][generate][conv]") {
  const auto gpu = arch::resolve_gpu("v100-pcie-32gb", {});
  const auto p = problem(16, 256, 256, 32, 3);
  auto kernel = kernel_of(p, kernel::ConvAlgorithm::winograd_fused);
  kernel.tile.tile_m = kernel.tile.tile_n = 128, kernel.tile.warps = 8, kernel.tile.ctas_per_sm = 1;
  const double fused = macs(cycle::generate(kernel::conv_launches(kernel, gpu.spec).at(0), gpu.spec));
  // The transforms of a step add 60 of 512 instructions.
  CHECK(fused > kernel::direct_mac(p) / 2.25);
  CHECK(fused < 1.2 * kernel::direct_mac(p) / 2.25);
  const auto apart = kernel_of(p, kernel::ConvAlgorithm::winograd_nonfused);
  const auto parts = cycle::generate(kernel::conv_launches(apart, gpu.spec).at(0), gpu.spec);
  REQUIRE(parts.size() == 4);
  CHECK(macs(parts) > kernel::direct_mac(p) / 4);
  CHECK(macs(parts) < 1.5 * kernel::direct_mac(p) / 4);
}

TEST_CASE("images in NCHW are turned around a tensor-core kernel, those in NHWC are not", "[cycle][generate][conv]") {
  const auto gpu = arch::resolve_gpu("a100-sxm4-40gb", {});
  auto p = problem(16, 64, 64, 56, 3);
  p.math = DataType::fp16;
  p.element_bytes = 2;
  auto kernel = kernel_of(p, kernel::ConvAlgorithm::implicit_precomp_gemm);
  kernel.tile.tile_k = 32, kernel.tile.tensor_cores = true, kernel.tile.stages = 4, kernel.tile.ctas_per_sm = 2;
  CHECK(cycle::generate(kernel::conv_launches(kernel, gpu.spec).at(0), gpu.spec).size() == 3);
  kernel.problem.channels_last = true;
  const auto parts = cycle::generate(kernel::conv_launches(kernel, gpu.spec).at(0), gpu.spec);
  REQUIRE(parts.size() == 1);
  CHECK(macs(parts) >= kernel::direct_mac(p));
}

TEST_CASE("every convolution that a library may choose is a program that an SM holds",
          "[cycle][generate][conv][property]") {
  for (const char* name : {"v100-sxm2-16gb", "t4", "a100-sxm4-40gb"}) {
    const auto gpu = arch::resolve_gpu(name, {});
    const auto library = cost::make_library(gpu);
    std::minstd_rand random(5);
    const auto draw = [&](std::int64_t low, std::int64_t high) {
      return low + static_cast<std::int64_t>(random()) % (high - low + 1);
    };
    for (int i = 0; i < 200; ++i) {
      const std::int64_t filter = 1 + 2 * draw(0, 3);
      kernel::ConvProblem p = problem(draw(1, 64), draw(1, 300), draw(1, 300), draw(7, 120), filter, draw(1, 2));
      p.pass = static_cast<kernel::ConvPass>(draw(0, 2));
      p.math = i % 2 == 0 ? DataType::fp32 : DataType::fp16;
      p.element_bytes = bytes_per_element(p.math);
      if (i % 7 == 0) p.groups = p.k = p.c;
      const auto kernel = library->choose(p);
      for (const auto& launch : kernel::conv_launches(kernel, gpu.spec)) {
        INFO(name << ' ' << launch.name << ' ' << p.n << ' ' << p.c << ' ' << p.k << ' ' << p.in[1] << ' ' << filter);
        const auto parts = cycle::generate(launch, gpu.spec);
        REQUIRE(!parts.empty());
        for (const auto& part : parts) {
          cycle::check(part.program);
          const auto& q = part.program;
          const kernel::CtaResources cta{32 * q.warps, q.registers_per_thread, Bytes{q.shared_bytes}};
          CHECK(sm::occupancy(cta, gpu.spec.sm).ctas_per_sm >= 1);
        }
        if (launch.family != "conv_depthwise") CHECK(macs(parts) * 2.01 >= launch.work.mac);
      }
    }
  }
}
