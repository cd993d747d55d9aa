// SPDX-License-Identifier: MIT
// Convolutions: which algorithm makes which programs; streams and depthwise kernels.
#include "sim/cycle/generate_conv.hpp"

#include <algorithm>
#include <cmath>

#include "sim/cycle/generate.hpp"

namespace voltaic::cycle {
namespace conv {
namespace {

constexpr double kLanes = 32;
constexpr int kWarps = 8;
constexpr double kMostCtas = 1e12;

double d(std::int64_t v) {
  return static_cast<double>(v);
}

std::int64_t ctas(double count) {
  return static_cast<std::int64_t>(std::clamp(std::ceil(count), 1.0, kMostCtas));
}

/// Accesses of a warp to neighbouring elements; lanes beyond the last item are predicated off.
Access warp_access(std::uint16_t tensor, double element, double filled, int warps) {
  Access a = detail::global_access(tensor, 1, std::max(1.0, kLanes * element * filled));
  a.per_warp = static_cast<std::int64_t>(kLanes * element);
  a.per_cta[0] = a.per_warp * warps;
  return a;
}

}  // namespace

Part stream_part(const Stream& s, const arch::GpuSpec& gpu) {
  gemm::Emitter e(s.name, gpu);
  e.program.warps = kWarps;
  e.program.registers_per_thread = static_cast<int>(std::clamp(24 + s.loads, 32.0, 128.0));
  e.program.grid[0] = ctas(s.items / (kLanes * kWarps));
  const double filled = std::min(1.0, s.items / (d(e.program.grid[0]) * kLanes * kWarps));
  Tensor in;
  in.name = "in";
  in.unique_bytes = in.wave_bytes = s.read_unique;
  in.cold = false;
  Access load = warp_access(e.tensor(in), s.load_bytes, filled, kWarps);
  load.l1_hit = std::clamp(s.reused, 0.0, 1.0);
  Tensor out;
  out.name = "out";
  out.unique_bytes = out.wave_bytes = s.written;
  out.written = true;
  out.cold = false;
  const Access store = warp_access(e.tensor(out), s.store_bytes, filled, kWarps);
  gemm::emit_prologue(e, 0, 1, gpu);
  e.address(2 * s.loads);
  e.memory(Op::load_global, e.access(load), s.loads, 0);
  e.wait(detail::bit(0)).math(Op::ffma, s.additions, detail::Next::dependent);
  e.address(s.stores);
  e.memory(Op::store_global, e.access(store), s.stores);
  return {e.finish()};
}

Part depthwise_part(const kernel::Launch& launch, const kernel::ConvKernel& kernel, const arch::GpuSpec& gpu) {
  const kernel::ConvProblem& p = kernel.problem;
  const kernel::ConvBytes bytes = kernel::conv_bytes(p);
  const bool wgrad = p.pass == kernel::ConvPass::wgrad;
  const bool dgrad = p.pass == kernel::ConvPass::dgrad;
  const double taps = kernel::spatial(p.filter);
  gemm::Emitter e(launch.name, gpu);
  e.program.warps = std::clamp(launch.cta.threads / 32, 1, 32);
  e.program.registers_per_thread = launch.cta.registers_per_thread;
  for (std::size_t i = 0; i < 3; ++i) e.program.grid[i] = std::max<std::int64_t>(1, launch.grid[i]);
  const double outputs = d(p.n) * d(p.k) * kernel::spatial(p.out);
  const double filled = std::min(1.0, outputs / (d(e.program.ctas()) * kLanes * e.program.warps));
  const auto tensor = [&](const char* name, double size, bool written) {
    Tensor t;
    t.name = name;
    t.unique_bytes = t.wave_bytes = size;
    t.cold = false;
    t.written = written;
    return e.tensor(t);
  };
  const std::uint16_t image = tensor(dgrad ? "output" : "input", dgrad ? bytes.output : bytes.input, false);
  Access tap = warp_access(image, p.element_bytes, filled, e.program.warps);
  // Taps of one row and of neighbouring rows are in L1 after the first.
  tap.l1_hit = std::clamp(1 - 1 / taps * std::max(1.0, d(p.stride[1]) * d(p.stride[2])), 0.0, 1.0);
  gemm::emit_prologue(e, 0, 1, gpu);
  // Kernels for the usual filters have their taps unrolled: all loads are under way at once.
  constexpr double kMostUnrolled = 25;
  const double at_once = taps <= kMostUnrolled ? taps : 1;
  const std::uint16_t trip = e.open_loop(taps / at_once);
  e.address(6 * at_once);  // bounds and place of each tap
  tap.per_trip[trip] = static_cast<std::int64_t>(p.element_bytes);
  e.memory(Op::load_global, e.access(tap), at_once, 0);
  if (wgrad) {
    Access grad = warp_access(tensor("output", bytes.output, false), p.element_bytes, filled, e.program.warps);
    grad.l1_hit = std::clamp(1 - at_once / taps, 0.0, 1.0);
    e.memory(Op::load_global, e.access(grad), 1, 1);
  } else {
    Access weight = detail::global_access(tensor("weights", bytes.weights, false), 1, p.element_bytes);
    weight.l1_hit = 1 - 1.0 / e.program.warps;
    e.memory(Op::load_global, e.access(weight), at_once, 1);
  }
  e.wait(detail::bit(0) | detail::bit(1)).math(Op::ffma, at_once, detail::Next::dependent);
  if (wgrad) {  // the warp's sum of each tap
    for (int i = 0; i < 5; ++i) {
      e.variable(Op::shuffle, at_once, 2);
      e.wait(detail::bit(2)).math(Op::ffma, at_once, detail::Next::dependent);
    }
    const Access sum = detail::global_access(tensor("weight gradient", bytes.weights, true), 1, 4);
    e.memory(Op::atomic, e.access(sum), at_once);
  }
  e.close_loop();
  if (!wgrad) {
    const double result = dgrad ? bytes.input : bytes.output;
    e.memory(Op::store_global,
             e.access(warp_access(tensor("result", result, true), p.element_bytes, filled, e.program.warps)));
  }
  return {e.finish()};
}

}  // namespace conv

std::vector<Part> generate_conv(const kernel::Launch& launch, const kernel::ConvKernel& kernel,
                                const arch::GpuSpec& gpu) {
  const auto one = [](Part part) {
    std::vector<Part> out;
    out.push_back(std::move(part));
    return out;
  };
  switch (kernel.algorithm) {
    case kernel::ConvAlgorithm::winograd_fused: return one(conv::winograd_fused_part(launch, kernel, gpu));
    case kernel::ConvAlgorithm::winograd_nonfused: return conv::winograd_parts(launch, kernel, gpu);
    case kernel::ConvAlgorithm::fft: return conv::fft_parts(launch, kernel, gpu);
    case kernel::ConvAlgorithm::direct_depthwise: return one(conv::depthwise_part(launch, kernel, gpu));
    case kernel::ConvAlgorithm::implicit_gemm:
      if (kernel.tile.name == "explicit") return conv::explicit_parts(launch, kernel, gpu);
      break;
    case kernel::ConvAlgorithm::implicit_precomp_gemm: break;
  }
  return conv::implicit_parts(launch, kernel, gpu);
}

}  // namespace voltaic::cycle
