// SPDX-License-Identifier: MIT
// Programs of matrix products: what they multiply, load and store adds up to the problem with its padding.
#include <algorithm>
#include <cmath>
#include <memory>
#include <random>

#include "arch/loader.hpp"
#include "sim/cost/engine.hpp"
#include "sim/cycle/detail/sample_plan.hpp"
#include "sim/cycle/footprint.hpp"
#include "sim/cycle/generate.hpp"
#include "sim/cycle/generate_gemm.hpp"
#include "sim/kernel/lowering.hpp"
#include "sim/sm/occupancy.hpp"
#include "tests/support/catch.hpp"

using namespace voltaic;

namespace {

/// Instructions of a class that a warp of a CTA issues.
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

struct Board {
  explicit Board(const char* name) : gpu(arch::resolve_gpu(name, {})), library(cost::make_library(gpu)) {}
  arch::ResolvedGpu gpu;
  std::unique_ptr<kernel::LibraryChoice> library;
};

kernel::GemmProblem problem(std::int64_t m, std::int64_t n, std::int64_t k, DataType math, std::int64_t batch = 1) {
  kernel::GemmProblem p;
  p.batch = batch;
  p.linear = batch == 1;
  p.transpose_b = p.linear;
  p.m = m, p.n = n, p.k = k;
  p.math = math;
  p.a_bytes = p.b_bytes = bytes_per_element(math);
  p.c_bytes = math == DataType::int8 ? 4 : p.a_bytes;
  return p;
}

std::vector<kernel::GemmProblem> problems(DataType math, int count) {
  std::minstd_rand random(11);
  const auto draw = [&](double low, double high) {
    const double u = static_cast<double>(random() - 1) / 2147483645.0;
    return static_cast<std::int64_t>(low * std::pow(high / low, u));
  };
  std::vector<kernel::GemmProblem> out;
  for (int i = 0; i < count; ++i) {
    kernel::GemmProblem p = problem(draw(1, 8192), draw(1, 16384), draw(1, 65536), math, i % 3 == 0 ? draw(2, 64) : 1);
    p.transpose_a = i % 5 == 1;
    p.bias = i % 2 == 0;
    out.push_back(p);
  }
  return out;
}

const cycle::Tensor& tensor(const cycle::Program& p, std::string_view name, std::size_t& at) {
  for (at = 0; at < p.tensors.size(); ++at) {
    if (p.tensors[at].name == name) return p.tensors[at];
  }
  FAIL("no tensor " << name);
  return p.tensors.front();
}

}  // namespace

TEST_CASE("an aligned product on CUDA cores multiplies its tile and loads its panels once per CTA",
          "[cycle][generate][gemm]") {
  const Board v100("v100-pcie-32gb");
  const auto p = problem(1024, 1024, 512, DataType::fp32);
  kernel::GemmTile tile;
  tile.name = "64x128";
  tile.tile_m = 64, tile.tile_n = 128, tile.tile_k = 8, tile.warps = 4, tile.ctas_per_sm = 4;
  const auto launches = kernel::gemm_launches(p, tile, v100.gpu.spec);
  const auto parts = cycle::generate(launches.at(0), v100.gpu.spec);
  REQUIRE(parts.size() == 1);
  const cycle::Program& program = parts[0].program;
  cycle::check(program);
  // A warp: 32 lanes, 8 x 8 outputs each, 512 of k; the epilogue scales 64 outputs.
  CHECK(issued(program, cycle::Op::ffma) == 64 * 512 + 64);
  // 64 steps end with a barrier, the first loads with another; the last step needs none.
  CHECK(issued(program, cycle::Op::barrier) == 64);
  std::size_t a = 0, b = 0, c = 0;
  CHECK(tensor(program, "A", a).unique_bytes == 1024.0 * 512 * 4);
  tensor(program, "B", b);
  tensor(program, "C", c);
  const double ctas = 16 * 8;
  CHECK(cycle::requested_bytes(program, a) == ctas * 64 * 512 * 4);
  CHECK(cycle::requested_bytes(program, b) == ctas * 128 * 512 * 4);
  CHECK(cycle::requested_bytes(program, c) == 1024.0 * 1024 * 4);
}

TEST_CASE("rows beyond the matrix are multiplied but not loaded", "[cycle][generate][gemm]") {
  const Board v100("v100-pcie-32gb");
  const auto p = problem(1, 128, 256, DataType::fp32);
  kernel::GemmTile tile;
  tile.tile_m = 64, tile.tile_n = 128, tile.tile_k = 8, tile.warps = 4, tile.ctas_per_sm = 4;
  const auto program =
      cycle::generate(kernel::gemm_launches(p, tile, v100.gpu.spec).at(0), v100.gpu.spec).at(0).program;
  CHECK(issued(program, cycle::Op::ffma) == 64 * 256 + 64);
  std::size_t a = 0, c = 0;
  tensor(program, "A", a);
  tensor(program, "C", c);
  CHECK(cycle::requested_bytes(program, a) == 256 * 4);
  CHECK(cycle::requested_bytes(program, c) == 128 * 4);
}

TEST_CASE("rows that start inside sectors touch one more, which L1 holds from the step before",
          "[cycle][generate][gemm]") {
  const Board v100("v100-pcie-32gb");
  kernel::GemmTile tile;
  tile.tile_m = 64, tile.tile_n = 128, tile.tile_k = 8, tile.warps = 4, tile.ctas_per_sm = 1;
  const auto p = problem(64, 128, 801, DataType::fp32);
  const auto program =
      cycle::generate(kernel::gemm_launches(p, tile, v100.gpu.spec).at(0), v100.gpu.spec).at(0).program;
  double sectors = 0, ideal = 0, hits = 0;
  for (const cycle::Access& a : program.accesses) {
    if (program.tensors[a.tensor].name != "A" || a.lines == 0) continue;
    sectors += a.sectors;
    hits += a.sectors * a.l1_hit;
    ideal += a.bytes / 32.0;
  }
  CHECK(sectors > 1.5 * ideal);
  CHECK(sectors - hits < 1.1 * ideal);
}

TEST_CASE("Volta's tensor instruction multiplies 16 x 16 x 4 in four steps, Ampere's 16 x 8 x 16",
          "[cycle][generate]") {
  const auto volta = cycle::gemm::mma_shape(DataType::fp16, false, arch::Architecture::volta);
  CHECK(volta.macs() == 1024);
  CHECK(volta.issues == 4);
  const auto turing = cycle::gemm::mma_shape(DataType::fp16, false, arch::Architecture::turing);
  CHECK(turing.macs() == 1024);
  const auto of = [](DataType t, bool sparse) {
    return cycle::gemm::mma_shape(t, sparse, arch::Architecture::ampere).macs();
  };
  CHECK(of(DataType::bf16, false) == 2048);
  CHECK(of(DataType::tf32, false) == 1024);
  CHECK(of(DataType::int8, false) == 4096);
  CHECK(of(DataType::fp64, false) == 256);
  CHECK(of(DataType::fp16, true) == 4096);
}

TEST_CASE("an aligned product on Ampere's tensor cores copies each panel once and multiplies each tile",
          "[cycle][generate][gemm]") {
  const Board a100("a100-sxm4-40gb");
  const auto p = problem(2048, 4096, 1024, DataType::bf16);
  kernel::GemmTile tile;
  tile.tile_m = 128, tile.tile_n = 128, tile.tile_k = 32, tile.warps = 4, tile.stages = 5, tile.ctas_per_sm = 2;
  tile.tensor_cores = true;
  const auto program =
      cycle::generate(kernel::gemm_launches(p, tile, a100.gpu.spec).at(0), a100.gpu.spec).at(0).program;
  cycle::check(program);
  CHECK(issued(program, cycle::Op::mma) * 4 * program.mma.macs() == 128.0 * 128 * 1024);
  // 16 KiB a step, 512 bytes a request, four warps.
  CHECK(issued(program, cycle::Op::copy_async) == 8 * 32);
  // A warp reads 64 rows and 64 columns of 16 of k: 8 tiles of 16 x 16, 512 bytes each; one group more at the drain.
  CHECK(issued(program, cycle::Op::load_matrix) == 8 * (2 * 32 + 1));
  std::size_t a = 0, b = 0;
  tensor(program, "A", a);
  tensor(program, "B", b);
  CHECK(cycle::requested_bytes(program, a) == 16.0 * 32 * 128 * 1024 * 2);
  CHECK(cycle::requested_bytes(program, b) == 16.0 * 32 * 128 * 1024 * 2);
}

TEST_CASE("odd rows of two-byte elements are loaded one by one, without asynchronous copies",
          "[cycle][generate][gemm]") {
  const Board a100("a100-sxm4-40gb");
  kernel::GemmTile tile;
  tile.tile_m = 128, tile.tile_n = 128, tile.tile_k = 32, tile.warps = 4, tile.stages = 5, tile.ctas_per_sm = 2;
  tile.tensor_cores = true;
  const auto of = [&](std::int64_t k) {
    const auto p = problem(2048, 4096, k, DataType::bf16);
    return cycle::generate(kernel::gemm_launches(p, tile, a100.gpu.spec).at(0), a100.gpu.spec).at(0).program;
  };
  const auto odd = of(1023), even = of(1022);
  CHECK(issued(odd, cycle::Op::copy_async) == 0);
  const int arguments = 5;  // two chains of reads
  CHECK(issued(odd, cycle::Op::load_global) == 32 * 8 * 8 + arguments);
  CHECK(issued(even, cycle::Op::copy_async) == 32 * 8 * 4);
}

TEST_CASE("2:4 weights halve what is multiplied and loaded, quantised ones are converted", "[cycle][generate][gemm]") {
  const Board a100("a100-sxm4-40gb");
  auto p = problem(2048, 4096, 1024, DataType::fp16);
  kernel::GemmTile tile;
  tile.tile_m = 128, tile.tile_n = 128, tile.tile_k = 64, tile.warps = 4, tile.stages = 3, tile.ctas_per_sm = 1;
  tile.tensor_cores = true;
  const auto of = [&] {
    return cycle::generate(kernel::gemm_launches(p, tile, a100.gpu.spec).at(0), a100.gpu.spec).at(0).program;
  };
  const auto dense = of();
  p.sparse = true;
  p.b_bytes = 1 + 0.25;
  const auto sparse = of();
  CHECK(issued(sparse, cycle::Op::mma) == issued(dense, cycle::Op::mma) / 2);
  CHECK(sparse.mma.sparse);
  p.sparse = false;
  p.dequantise = true;
  p.b_bytes = 0.5;
  const auto nibbles = of();
  CHECK(issued(nibbles, cycle::Op::hfma2) > 0);
  std::size_t b = 0;
  tensor(nibbles, "B", b);
  CHECK(cycle::requested_bytes(nibbles, b) < 0.3 * cycle::requested_bytes(dense, b));
}

TEST_CASE("parts of a split k are added by a second kernel or in place", "[cycle][generate][gemm]") {
  const Board v100("v100-pcie-32gb");
  kernel::GemmTile tile;
  tile.tile_m = 128, tile.tile_n = 128, tile.tile_k = 8, tile.warps = 8, tile.ctas_per_sm = 2, tile.split_k = 4;
  const auto small = kernel::gemm_launches(problem(256, 256, 4096, DataType::fp32), tile, v100.gpu.spec);
  REQUIRE(small.size() == 2);
  const auto sum = cycle::generate(small[1], v100.gpu.spec).at(0).program;
  CHECK(cycle::requested_bytes(sum, 0) == 4.0 * 256 * 256 * 4);
  CHECK(cycle::requested_bytes(sum, 1) == 256 * 256 * 4);
  const auto large = kernel::gemm_launches(problem(1024, 1024, 4096, DataType::fp32), tile, v100.gpu.spec);
  REQUIRE(large.size() == 1);
  const auto parts = cycle::generate(large[0], v100.gpu.spec);
  REQUIRE(parts.size() == 2);
  CHECK(parts[1].starts == 0);
  CHECK(issued(parts[0].program, cycle::Op::store_global) == 0);
  CHECK(parts[1].program.loops.at(0).trips == 4);
}

TEST_CASE("waves of CTAs along rows of tiles touch each row's panel once, a square block fewer in all",
          "[cycle][generate][gemm]") {
  // 10 x 10 tiles, 20 at a time: two rows of tiles and all columns, five times.
  const auto rows = cycle::gemm::wave_panels(10, 10, 1, 20, 1, false);
  CHECK(rows.a == 10);
  CHECK(rows.b == 50);
  const auto square = cycle::gemm::wave_panels(10, 10, 1, 20, 1, true);
  CHECK_THAT(square.a + square.b, Catch::Matchers::WithinRel(5 * 2 * std::sqrt(20.0), 1e-9));
  const auto all = cycle::gemm::wave_panels(10, 10, 3, 400, 1, true);
  CHECK((all.a == 30 && all.b == 30));
}

TEST_CASE("every product that a library may choose is a program that an SM holds and that adds up",
          "[cycle][generate][gemm][property]") {
  for (const char* name : {"v100-sxm2-16gb", "t4", "a100-sxm4-40gb"}) {
    const Board board(name);
    const arch::GpuSpec& gpu = board.gpu.spec;
    for (const DataType math :
         {DataType::fp64, DataType::fp32, DataType::tf32, DataType::fp16, DataType::bf16, DataType::int8}) {
      if (!gpu.has_tensor_path(math) && !(gpu.sm.cuda_core[math] > 0)) continue;
      for (const auto& p : problems(math, 60)) {
        const kernel::GemmTile tile = board.library->choose(p);
        for (const auto& launch : kernel::gemm_launches(p, tile, gpu)) {
          INFO(name << ' ' << launch.name << ' ' << p.batch << " x " << p.m << " x " << p.n << " x " << p.k);
          const auto parts = cycle::generate(launch, gpu);
          REQUIRE(!parts.empty());
          for (const auto& part : parts) {
            cycle::check(part.program);
            const kernel::CtaResources cta{32 * part.program.warps, part.program.registers_per_thread,
                                           Bytes{part.program.shared_bytes}};
            CHECK(sm::occupancy(cta, gpu.sm).ctas_per_sm >= std::max(1, part.program.ctas_per_sm));
          }
          if (launch.family == "gemm_reduce") continue;
          const cycle::Program& main = parts.front().program;
          const double warps = main.warps * static_cast<double>(main.ctas());
          const double macs = tile.tensor_cores
                                  ? warps * issued(main, cycle::Op::mma) * main.mma.macs() / main.mma.issues
                                  : warps * 32 * 4 *
                                        (issued(main, cycle::Op::ffma) + issued(main, cycle::Op::hfma2) +
                                         issued(main, cycle::Op::dfma) + issued(main, cycle::Op::imad));
          if (tile.name != "gemv") CHECK(macs >= launch.work.mac);
          for (const auto& t : main.tensors) {
            const bool counted =
                std::isfinite(t.unique_bytes) && t.unique_bytes > 0 && t.wave_bytes >= t.unique_bytes * (1 - 1e-9);
            CHECK(counted);
          }
        }
      }
    }
  }
}
