// SPDX-License-Identifier: MIT
// The launch of one convolution as cuDNN would issue it.
#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "sim/kernel/conv_shape.hpp"
#include "sim/kernel/lowering.hpp"

namespace voltaic::kernel {

namespace {

constexpr double kGridLimit = 9.0e15;  ///< Largest count kept exact in a double; grids beyond are clamped.

std::int64_t count(double ctas) {
  return static_cast<std::int64_t>(std::clamp(ctas, 1.0, kGridLimit));
}

std::string_view chip_prefix(arch::Architecture a) {
  switch (a) {
    case arch::Architecture::volta: return "volta";
    case arch::Architecture::turing: return "turing";
    case arch::Architecture::ampere: return "ampere";
    case arch::Architecture::hopper: return "sm90";
  }
  return "volta";
}

std::string_view pass_word(ConvPass pass) {
  switch (pass) {
    case ConvPass::forward: return "fprop";
    case ConvPass::dgrad: return "dgrad";
    case ConvPass::wgrad: return "wgrad";
  }
  return "fprop";
}

/// Instruction shape as it stands in the kernel's name: "s884" on Volta.
std::string_view mma_word(arch::Architecture a, DataType math) {
  if (a == arch::Architecture::volta) return "s884";
  if (a == arch::Architecture::turing) return "s1688";
  return math == DataType::tf32 ? "s1688tf32" : "s16816";
}

std::string tensor_name(const ConvKernel& kernel, const arch::GpuSpec& gpu) {
  const ConvProblem& p = kernel.problem;
  const auto type = to_string(p.math);
  if (gpu.architecture == arch::Architecture::hopper) {
    return fmt::format("sm90_xmma_{}_implicit_gemm_{}_nhwc_tilesize{}x{}", pass_word(p.pass), type, kernel.tile.tile_m,
                       kernel.tile.tile_n);
  }
  return fmt::format("{}_{}_{}cudnn_{}_{}x{}_ldg8_{}_nhwc_tn_v1", chip_prefix(gpu.architecture), type,
                     mma_word(gpu.architecture, p.math), type, kernel.tile.tile_m, kernel.tile.tile_n,
                     p.pass == ConvPass::forward ? "relu" : pass_word(p.pass));
}

std::string simt_name(const ConvKernel& kernel, const arch::GpuSpec& gpu) {
  const auto chip = chip_prefix(gpu.architecture);
  const GemmTile& t = kernel.tile;
  switch (kernel.algorithm) {
    case ConvAlgorithm::implicit_gemm:
      if (kernel.problem.groups > 1) return fmt::format("conv2d_grouped_direct_{}", pass_word(kernel.problem.pass));
      return t.name == "explicit" ? "im2col + sgemm_32x32_sliced1x4" : "implicit_convolve_sgemm";
    case ConvAlgorithm::winograd_fused:
      return fmt::format("{}_scudnn_winograd_128x128_ldg1_ldg4_{}_{}_nt_v1", chip,
                         kernel.problem.pass == ConvPass::forward ? "relu" : "mobile",
                         t.name == "fused442" ? "tile442t" : "tile148t");
    case ConvAlgorithm::winograd_nonfused:
      return fmt::format("winograd_nonfused {}_sgemm_{}x{}_nn", chip, t.tile_m, t.tile_n);
    case ConvAlgorithm::fft: return fmt::format("fft2d + {}_cgemm_32x64_tn", chip);
    case ConvAlgorithm::direct_depthwise: return fmt::format("conv_depthwise_{}", pass_word(kernel.problem.pass));
    case ConvAlgorithm::implicit_precomp_gemm: break;
  }
  // The cost model's key of a measured kernel is the middle of its name: "128x64_relu_medium".
  const std::string tile = t.name.empty() ? fmt::format("{}x{}_relu_small", t.tile_m, t.tile_n) : t.name;
  if (kernel.problem.pass == ConvPass::forward) return fmt::format("{}_scudnn_{}_nn_v1", chip, tile);
  return fmt::format("{}_scudnn_{}x{}_{}_nn_v1", chip, t.tile_m, t.tile_n, pass_word(kernel.problem.pass));
}

/// Multiply-adds that the algorithm spends; Winograd and FFT need fewer than the definition, and the roofline holds for
/// these. F(2x2,3x3) saves 36/16, F(4x4,3x3) 144/36, F(5x5,5x5) 625/81; a complex product takes at least 3
/// multiplications.
double algorithm_mac(const ConvKernel& kernel) {
  const ConvProblem& p = kernel.problem;
  const double direct = direct_mac(p);
  switch (kernel.algorithm) {
    case ConvAlgorithm::winograd_fused: return direct / 2.25;
    case ConvAlgorithm::winograd_nonfused: return p.filter[1] == 5 ? direct * 81 / 625 : direct / 4;
    case ConvAlgorithm::fft: {
      const FftShape fft = fft_shape(p, kernel.tile.name == "fft16" ? 16 : 32);
      const double complex =
          fft.bins * fft.chunks * static_cast<double>(p.n) * static_cast<double>(p.c) * static_cast<double>(p.k);
      return std::min(direct, 3 * complex);
    }
    default: return direct;
  }
}

Work conv_work(const ConvKernel& kernel) {
  const ConvProblem& p = kernel.problem;
  const ConvBytes bytes = conv_bytes(p);
  Work work;
  work.mac = algorithm_mac(kernel);
  switch (p.pass) {
    case ConvPass::forward:
      work.read = Bytes{bytes.input + bytes.weights};
      work.written = Bytes{bytes.output};
      break;
    case ConvPass::dgrad:
      work.read = Bytes{bytes.output + bytes.weights};
      work.written = Bytes{bytes.input};
      break;
    case ConvPass::wgrad:
      work.read = Bytes{bytes.input + bytes.output};
      work.written = Bytes{bytes.weights};
      break;
  }
  work.read += Bytes{bytes.epilogue};
  return work;
}

void set_grid(const ConvKernel& kernel, Launch& launch) {
  const ConvProblem& p = kernel.problem;
  const GemmTile& t = kernel.tile;
  const ImplicitGemm g = implicit_gemm(p);
  launch.grid[0] = count(std::ceil(g.m / t.tile_m));
  launch.grid[1] = count(std::ceil(g.n / t.tile_n));
  launch.grid[2] = count(static_cast<double>(p.groups) * static_cast<double>(t.split_k));
  if (kernel.algorithm == ConvAlgorithm::winograd_fused) {
    const WinogradShape s = winograd_shape(p);
    launch.grid[0] = count(std::ceil(s.out / 32));
    launch.grid[1] = count(fused_winograd_ctas(s, t.name == "fused442") / std::ceil(std::max(s.out, 1.0) / 32));
    launch.grid[2] = 1;
  } else if (kernel.algorithm == ConvAlgorithm::winograd_nonfused) {
    const WinogradShape s = winograd_shape(p);
    const double tiles = winograd_tiles(s, winograd_outputs(p), t.name.empty() ? 1 : 16);
    const bool wgrad = p.pass == ConvPass::wgrad;
    launch.grid[0] = count(std::ceil((wgrad ? s.out : tiles) / t.tile_m));
    launch.grid[1] = count(std::ceil((wgrad ? s.in : s.out) / t.tile_n));
    launch.grid[2] = static_cast<std::int64_t>(winograd_points(p));
  } else if (kernel.algorithm == ConvAlgorithm::fft) {
    const FftShape fft = fft_shape(p, t.name == "fft16" ? 16 : 32);
    launch.grid[0] = count(std::ceil(static_cast<double>(p.n) / fft.batch_tile));
    launch.grid[1] = count(std::ceil(static_cast<double>(p.k) / 64));
    launch.grid[2] = count(fft.bins);
  } else if (kernel.algorithm == ConvAlgorithm::direct_depthwise) {
    const double outputs = static_cast<double>(p.n) * static_cast<double>(p.k) * spatial(p.out);
    launch.grid[0] = count(std::ceil(outputs / launch.cta.threads));
    launch.grid[1] = launch.grid[2] = 1;
  }
}

}  // namespace

std::vector<Launch> conv_launches(const ConvKernel& kernel, const arch::GpuSpec& gpu) {
  const ConvProblem& p = kernel.problem;
  const GemmTile& t = kernel.tile;
  std::vector<Launch> out(1);
  Launch& launch = out.front();
  const bool depthwise = kernel.algorithm == ConvAlgorithm::direct_depthwise;
  launch.name = t.tensor_cores ? tensor_name(kernel, gpu) : simt_name(kernel, gpu);
  launch.library = depthwise ? "ATen" : "cuDNN";
  launch.family = depthwise ? "conv_depthwise" : (t.tensor_cores ? "conv_tensor" : "conv_simt");
  launch.math = p.math;
  launch.tensor_cores = t.tensor_cores;
  launch.cta.threads = 32 * t.warps;
  launch.cta.registers_per_thread = depthwise ? 40 : 128;
  // Double-buffered slices of both operands.
  const double slice = (t.tile_m + t.tile_n) * t.tile_k * std::min(p.element_bytes, 4.0);
  launch.cta.shared_memory = depthwise ? Bytes{0} : Bytes{t.stages * slice};
  launch.work = conv_work(kernel);
  set_grid(kernel, launch);
  launch.detail = kernel;
  return out;
}

}  // namespace voltaic::kernel
