// SPDX-License-Identifier: MIT
// A matrix product with its chosen tile as kernel launches: names, grid, CTA resources, work.
#include "sim/kernel/gemm.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/kernel/lowering.hpp"

namespace voltaic::kernel {

namespace {

constexpr int kWarp = 32;
/// Registers a thread needs beside its accumulators: addresses, fragments in flight.
constexpr int kWorkingRegisters = 72;
/// Bytes a thread loads or stores at once.
constexpr double kWidestAccess = 16;

std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

std::string_view layout(const GemmProblem& p) {
  // BLAS letters of the column-major call: the library sees B^T A^T.
  if (p.transpose_b) return p.transpose_a ? "tt" : "tn";
  return p.transpose_a ? "nt" : "nn";
}

std::string simt_name(const GemmProblem& p, const GemmTile& t, arch::Architecture architecture) {
  const char letter = p.math == DataType::fp64   ? 'd'
                      : p.math == DataType::fp16 ? 'h'
                      : p.math == DataType::int8 ? 'i'
                                                 : 's';
  if (architecture == arch::Architecture::hopper) {
    return fmt::format("sm80_xmma_{}gemm_{}_tilesize{}x{}x{}_ffma", letter, layout(p), t.tile_m, t.tile_n, t.tile_k);
  }
  const bool ampere = architecture == arch::Architecture::ampere;
  return fmt::format("{}_{}gemm_{}x{}{}_{}", ampere ? "ampere" : "volta", letter, t.tile_n, t.tile_m,
                     t.tile_k == 32 ? "_sliced1x4" : "", layout(p));
}

/// The instruction shape inside the library's names, by type and architecture.
std::string_view instruction(DataType math, arch::Architecture architecture) {
  if (architecture == arch::Architecture::volta) return "s884";
  switch (math) {
    case DataType::fp64: return "d884";
    case DataType::tf32: return "s1688";
    case DataType::int8: return "i16832";
    case DataType::int4: return "i16864";
    default: return architecture == arch::Architecture::turing ? "s1688" : "s16816";
  }
}

/// "_align1" where rows start off the 16-byte boundaries that the usual kernels need, as CUTLASS names its kernels.
std::string alignment_suffix(const GemmProblem& p) {
  const std::int64_t elements = alignment(p);
  const auto whole = static_cast<std::int64_t>(kWidestAccess / bytes_per_element(p.math));
  return elements < whole ? fmt::format("_align{}", elements) : std::string{};
}

/// Weight-only and sparse products come from libraries of their own.
std::string special_name(const GemmProblem& p, const GemmTile& t, arch::Architecture architecture) {
  const int sm = architecture == arch::Architecture::volta    ? 70
                 : architecture == arch::Architecture::turing ? 75
                 : architecture == arch::Architecture::hopper ? 90
                                                              : 80;
  const auto type = to_string(p.math);
  if (p.sparse) {
    return fmt::format("sm{}_xmma_sparse_gemm_{}_{}_tilesize{}x{}x{}_stage{}_sptensor", sm, type, layout(p), t.tile_m,
                       t.tile_n, t.tile_k, t.stages);
  }
  return fmt::format("cutlass_{}_fpA_intB_gemm_{}_{}_{}x{}_{}x{}_{}", sm, type, p.b_bytes < 1 ? "int4" : "int8",
                     t.tile_m, t.tile_n, t.tile_k, t.stages, layout(p));
}

std::string tensor_name(const GemmProblem& p, const GemmTile& t, arch::Architecture architecture) {
  if (p.sparse || p.dequantise) return special_name(p, t, architecture);
  const auto type = to_string(p.math);
  if (architecture == arch::Architecture::hopper) {
    return fmt::format("sm90_xmma_gemm_{}_{}_tilesize{}x{}x{}_stage{}_warpgroup", type, layout(p), t.tile_m, t.tile_n,
                       t.tile_k, t.stages);
  }
  const std::string_view chip = arch::to_string(architecture);
  return fmt::format("{}_{}_{}gemm_{}_{}x{}_stages_{}x{}_{}", chip, type, instruction(p.math, architecture), type,
                     t.tile_n, t.tile_m, t.tile_k, t.stages, layout(p));
}

/// Registers: one 32-bit accumulator per output of a thread (two for fp64) and the working set; never so many that
/// fewer than the tile's CTAs fit. Shared memory: its stages of both operands, within the same bound.
CtaResources resources(const GemmProblem& p, const GemmTile& t, const arch::GpuSpec& gpu) {
  CtaResources cta;
  cta.threads = t.warps * kWarp;
  const double words = p.math == DataType::fp64 ? 2 : 1;
  const auto accumulators = static_cast<int>(
      words * t.tile_m * t.tile_n * (t.tensor_cores ? 1 : std::max(1, t.tile_k / 8)) / std::max(1, cta.threads));
  const int most = gpu.sm.max_registers_per_thread > 0 ? gpu.sm.max_registers_per_thread : 255;
  const std::int64_t share = gpu.sm.registers / std::max(1, t.ctas_per_sm * cta.threads) / 8 * 8;
  const int bound = share > 0 ? static_cast<int>(std::min<std::int64_t>(most, share)) : most;
  cta.registers_per_thread = std::clamp(accumulators + kWorkingRegisters, 24, std::max(24, bound));
  const double stages = std::max(2, t.stages);
  const double wanted = stages * t.tile_k * (t.tile_m * p.a_bytes + t.tile_n * p.b_bytes);
  const double room = gpu.sm.shared_memory.value / std::max(1, t.ctas_per_sm) - gpu.sm.shared_reserved_per_cta.value;
  const double unit = std::max(1.0, gpu.sm.shared_allocation_unit.value);
  const double largest = std::min(room, gpu.sm.shared_memory_per_cta.value);
  cta.shared_memory = {std::max(0.0, std::min(wanted, std::floor(largest / unit) * unit))};
  return cta;
}

Launch product(const GemmProblem& p, const GemmTile& t, const arch::GpuSpec& gpu) {
  Launch launch;
  launch.name =
      t.tensor_cores ? tensor_name(p, t, gpu.architecture) + alignment_suffix(p) : simt_name(p, t, gpu.architecture);
  launch.library = p.sparse ? "cuSPARSELt" : p.dequantise ? "CUTLASS" : "cuBLAS";
  launch.family = t.tensor_cores ? "gemm_tensor" : p.linear ? "gemm_simt" : "gemm_simt_batched";
  launch.grid[0] = ceil_div(p.n, t.tile_n);
  launch.grid[1] = ceil_div(p.m, t.tile_m);
  launch.grid[2] = p.batch * t.split_k;
  launch.cta = resources(p, t, gpu);
  launch.math = p.math;
  launch.tensor_cores = t.tensor_cores;
  launch.sparse = p.sparse && t.tensor_cores;
  const double b = static_cast<double>(p.batch);
  const double m = static_cast<double>(p.m);
  const double n = static_cast<double>(p.n);
  const double k = static_cast<double>(p.k);
  launch.work.mac = b * m * n * k;
  if (p.bias) launch.work.other_flop = b * m * n;
  launch.work.read = {b * (m * k * p.a_bytes + k * n * p.b_bytes) + (p.bias ? n * p.c_bytes : 0)};
  launch.work.written = {b * m * n * p.c_bytes};
  launch.detail = GemmKernel{p, t};
  return launch;
}

/// Adds the partial results of a split k loop.
Launch reduction(const GemmProblem& p, const GemmTile& t) {
  constexpr std::int64_t kElementsPerCta = 1024;
  Launch launch;
  launch.name = "splitKreduce_kernel";
  launch.library = "cuBLAS";
  launch.family = "gemm_reduce";
  launch.grid[0] = std::max<std::int64_t>(1, ceil_div(p.batch * p.m * p.n, kElementsPerCta));
  launch.cta.threads = 256;
  const double outputs = static_cast<double>(p.batch) * static_cast<double>(p.m) * static_cast<double>(p.n);
  launch.work.other_flop = outputs * static_cast<double>(t.split_k);
  launch.work.read = {outputs * 4 * static_cast<double>(t.split_k)};
  launch.work.written = {outputs * p.c_bytes};
  launch.detail = GemmKernel{p, t};
  return launch;
}

}  // namespace

std::int64_t alignment(const GemmProblem& p) {
  const auto bytes = [](std::int64_t row, double element) {
    const auto whole = static_cast<std::int64_t>(std::max(1.0, kWidestAccess / element));
    return static_cast<double>(std::gcd(std::max<std::int64_t>(row, 1), whole)) * element;
  };
  const double element = bytes_per_element(p.math);
  const double least = std::min(
      {bytes(p.transpose_a ? p.m : p.k, element), bytes(p.transpose_b ? p.k : p.n, element), bytes(p.n, p.c_bytes)});
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(least / element));
}

std::vector<Launch> gemm_launches(const GemmProblem& problem, const GemmTile& tile, const arch::GpuSpec& gpu) {
  if (problem.batch <= 0 || problem.m <= 0 || problem.n <= 0 || problem.k <= 0) return {};
  std::vector<Launch> launches;
  launches.push_back(product(problem, tile, gpu));
  const double partial =
      4.0 * static_cast<double>(tile.split_k) * static_cast<double>(problem.m) * static_cast<double>(problem.n);
  if (tile.split_k > 1 && (tile.tensor_cores || partial <= kSplitWorkspace))
    launches.push_back(reduction(problem, tile));
  return launches;
}

}  // namespace voltaic::kernel
