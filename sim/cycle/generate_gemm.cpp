// SPDX-License-Identifier: MIT
// Matrix products: a launch of the library as the programs of its CTAs.
#include "sim/cycle/generate.hpp"

#include <algorithm>
#include <cmath>

#include "sim/cycle/generate_gemm.hpp"
#include "sim/kernel/gemm.hpp"

namespace voltaic::cycle {
namespace gemm {
namespace {

double d(std::int64_t v) {
  return static_cast<double>(std::max<std::int64_t>(v, 1));
}

/// Callers differ in what they leave in L2. Products on CUDA cores and those of Volta and Turing were measured with the
/// same operands again and again, so what fits is found there. On Ampere's tensor cores operands are those of a
/// network: by the time a layer's turn comes again, those of its five fellows have passed, as in the measured tables
/// [AIC].
bool cold(const kernel::GemmProblem& p, bool tensor_cores, const arch::GpuSpec& gpu) {
  constexpr double kFellows = 6;
  if (!tensor_cores || gpu.architecture < arch::Architecture::ampere) return false;
  const double bytes = d(p.m) * d(p.k) * p.a_bytes + d(p.n) * d(p.k) * p.b_bytes + d(p.m) * d(p.n) * p.c_bytes;
  return kFellows * d(p.batch) * bytes > gpu.l2.capacity.value / std::max(1, gpu.l2.partitions);
}

/// Widest access of a lane to rows that start together.
double widest(double row_bytes, double least) {
  double bytes = 16;
  while (bytes > least && std::fmod(row_bytes, bytes) != 0) bytes /= 2;
  return bytes;
}

Operand operand(std::string name, bool along_k, double extent, double k, double element, int tile) {
  Operand o;
  o.tensor.name = std::move(name);
  o.along_k = along_k;
  o.tile = std::max(1, tile);
  o.filled = extent / std::ceil(extent / o.tile);
  o.element = element;
  o.pitch = element * (along_k ? k : extent);
  o.widest = widest(o.pitch, std::min(1.0, element));
  return o;
}

/// The rasteriser of tensor-core kernels walks over strips of tiles, so that those in flight form a square block; the
/// other kernels walk along rows of the output.
Panels panels_of(const Product& p, const kernel::GemmProblem& g, double deep, const arch::GpuSpec& gpu) {
  const double in_flight = d(gpu.sm.count) * resident(p.cta, p.tile.ctas_per_sm, gpu);
  const double across = std::ceil(d(g.n) / std::max(1, p.tile.tile_n));
  const double down = std::ceil(d(g.m) / std::max(1, p.tile.tile_m));
  return wave_panels(across, down, deep, in_flight, static_cast<double>(p.tile.tile_n) / std::max(1, p.tile.tile_m),
                     p.tile.tensor_cores);
}

void set_operands(Product& p, const kernel::GemmProblem& g, const arch::GpuSpec& gpu) {
  const double m = d(g.m), n = d(g.n), k = d(g.k), split = d(p.tile.split_k);
  p.a = operand("A", !g.transpose_a, m, k, g.a_bytes, p.tile.tile_m);
  p.b = operand("B", g.transpose_b, n, k, g.b_bytes, p.tile.tile_n);
  // Scales and places lie apart from the weights, whose rows are aligned without them.
  if (g.dequantise || g.sparse) p.b.widest = widest((p.b.along_k ? k : n) * p.b_shared_bytes, 1);
  p.rows = p.a.filled;
  p.columns = p.b.filled;
  p.c.element = p.partial ? 4 : g.c_bytes;
  p.c.pitch = n * p.c.element;
  p.c.widest = widest(p.c.pitch, std::min(p.c.element, 16.0));
  p.c.tensor.name = p.partial ? "partial sums" : "C";
  p.c.tensor.written = true;

  const Panels panels = panels_of(p, g, d(g.batch) * split, gpu);
  const double k_part = k / split;
  p.a.tensor.unique_bytes = d(g.batch) * m * k * g.a_bytes;
  p.b.tensor.unique_bytes = d(g.batch) * n * k * g.b_bytes;
  p.a.tensor.wave_bytes = panels.a * p.a.filled * k_part * g.a_bytes;
  p.b.tensor.wave_bytes = panels.b * p.b.filled * k_part * g.b_bytes;
  p.c.tensor.unique_bytes = p.c.tensor.wave_bytes = d(g.batch) * m * n * p.c.element * (p.partial ? split : 1);
  p.a.tensor.cold = p.b.tensor.cold = p.c.tensor.cold = cold(g, p.tile.tensor_cores, gpu);

  const bool batched = g.batch > 1;
  p.a.per_cta = {0, p.tile.tile_m * (p.a.along_k ? p.a.pitch : g.a_bytes),
                 batched ? m * k * g.a_bytes : k_part * (p.a.along_k ? g.a_bytes : p.a.pitch)};
  p.b.per_cta = {p.tile.tile_n * (p.b.along_k ? p.b.pitch : g.b_bytes), 0,
                 batched ? n * k * g.b_bytes : k_part * (p.b.along_k ? g.b_bytes : p.b.pitch)};
  p.c.per_cta = {p.tile.tile_n * p.c.element, p.tile.tile_m * p.c.pitch, m * n * p.c.element};
}

/// L1 keeps the sector between two steps of a row that starts inside one where it has room for the lines of all rows.
void set_l1(Product& p, const arch::GpuSpec& gpu) {
  constexpr double kLine = 128;
  const int ctas = resident(p.cta, p.tile.ctas_per_sm, gpu);
  const double room = gpu.l1.capacity.value - ctas * p.cta.shared_memory.value;
  const double rows = (p.a.along_k ? p.a.filled : 0) + (p.b.along_k ? p.b.filled : 0);
  const bool async = p.tile.tensor_cores && gpu.architecture >= arch::Architecture::ampere;
  const bool fits = ctas * rows * kLine <= room;
  p.a.past_l1 = !fits || (async && p.a.widest >= 16);
  p.b.past_l1 = !fits || (async && p.b.widest >= 16);
}

}  // namespace

Product make_product(const kernel::Launch& launch, const kernel::GemmKernel& kernel, const arch::GpuSpec& gpu) {
  const kernel::GemmProblem& g = kernel.problem;
  Product p;
  p.name = launch.name;
  p.tile = kernel.tile;
  p.tile.tile_m = std::max(1, p.tile.tile_m);
  p.tile.tile_n = std::max(1, p.tile.tile_n);
  p.tile.tile_k = std::max(1, p.tile.tile_k);
  p.math = g.math;
  p.math_bytes = g.dequantise ? bytes_per_element(g.math) : g.a_bytes;
  p.b_shared_bytes = g.dequantise ? (g.b_bytes < 0.75 ? 0.5 : 1) : g.sparse ? g.a_bytes / 2 : g.b_bytes;
  p.bias = g.bias;
  p.dequantise = g.dequantise;
  p.sparse = g.sparse && p.tile.tensor_cores;
  p.cta = launch.cta;
  for (std::size_t i = 0; i < 3; ++i) p.grid[i] = std::max<std::int64_t>(1, launch.grid[i]);
  const double split = d(p.tile.split_k);
  const double k_part = d(g.k) / split;
  p.steps = std::max(1.0, std::ceil(std::ceil(k_part) / p.tile.tile_k - 1e-9));
  p.k_filled = std::min(1.0, k_part / (p.steps * p.tile.tile_k));
  p.partial = split > 1;
  set_operands(p, g, gpu);
  set_l1(p, gpu);
  return p;
}

}  // namespace gemm

std::vector<Part> generate_gemm(const kernel::Launch& launch, const kernel::GemmKernel& kernel,
                                const arch::GpuSpec& gpu) {
  if (launch.family == "gemm_reduce") return {{gemm::reduce_program(launch, kernel, gpu)}};
  gemm::Product p = gemm::make_product(launch, kernel, gpu);
  if (kernel.tile.name == "gemv") return {{gemm::gemv_program(p, gpu)}};
  if (kernel.tile.tensor_cores) return {{gemm::tensor_program(p, gpu)}};
  const kernel::GemmProblem& g = kernel.problem;
  const double split = static_cast<double>(std::max<std::int64_t>(1, kernel.tile.split_k));
  const double partial = 4 * split * static_cast<double>(g.m) * static_cast<double>(g.n);
  if (split <= 1 || partial <= kernel::kSplitWorkspace) return {{gemm::simt_program(p, gpu)}};
  // Beyond the library's workspace the parts are added in place, tile by tile one after another.
  p.stores = false;
  Part product{gemm::simt_program(p, gpu)};
  p.partial = false;
  p.c.tensor.unique_bytes /= split;
  p.c.tensor.wave_bytes = split * p.c.tensor.unique_bytes;
  Part chain{gemm::chain_program(p, static_cast<double>(p.tile.tile_m) * p.tile.tile_n, split, gpu)};
  chain.starts = 0;
  std::vector<Part> out;
  out.push_back(std::move(product));
  out.push_back(std::move(chain));
  return out;
}

}  // namespace voltaic::cycle
