// SPDX-License-Identifier: MIT
#include "sim/cost/conv_choice.hpp"

#include <limits>

#include "arch/units/error.hpp"

namespace voltaic::cost {

namespace {

/// CTA shape of a tile: warps of 32 x 64 outputs on tensor cores, 64 outputs per thread on FMA lanes.
void set_tile(kernel::GemmTile& tile, int m, int n, bool tensor_cores) {
  tile.tile_m = m;
  tile.tile_n = n;
  tile.tensor_cores = tensor_cores;
  tile.tile_k = tensor_cores ? 32 : 8;
  const int outputs = m * n;
  tile.warps = std::clamp(outputs / (tensor_cores ? 4096 : 2048), tensor_cores ? 4 : 2, 8);
  tile.ctas_per_sm = outputs > 16384 ? 1 : 2;
}

}  // namespace

kernel::ConvKernel to_kernel(const SquareKernel& square, const kernel::ConvProblem& problem) {
  kernel::ConvKernel kernel;
  kernel.problem = problem;
  kernel.algorithm = square.algorithm;
  set_tile(kernel.tile, square.tile_m, square.tile_n, false);
  kernel.tile.name = square.name;
  return kernel;
}

ConvChoice::ConvChoice(const arch::ResolvedGpu& gpu)
    : gpu_(gpu.spec), square_(gpu.calibration.at("convolution")), general_(gpu.calibration.at("convolution")) {}

/// The bias makes a slower kernel win now and then, as in the library. To keep more bandwidth from ever making a
/// network slower, the choice sees the balance of bandwidth and arithmetic the library was tuned for, not the one of a
/// modified GPU.
std::vector<ConvChoice::Candidate> ConvChoice::square_candidates(const kernel::ConvProblem& problem) const {
  ConvMachine machine = conv_machine(gpu_, problem.math, false);
  machine.dram = square_.tuned_balance() * machine.sms * machine.lanes * machine.clock;
  std::vector<Candidate> out;
  out.reserve(square_.kernels().size());
  for (const auto& candidate : square_.kernels()) {
    if (square_.takes(problem, candidate)) out.push_back({&candidate, square_.time(problem, candidate, machine).time});
  }
  return out;
}

kernel::ConvKernel ConvChoice::choose_square(const kernel::ConvProblem& problem) const {
  const SquareKernel* best = nullptr;
  double least = std::numeric_limits<double>::infinity();
  for (const Candidate& candidate : square_candidates(problem)) {
    const double score = candidate.seconds * candidate.kernel->bias;
    if (score >= least) continue;
    least = score;
    best = candidate.kernel;
  }
  if (best == nullptr) throw InternalError("no kernel takes a 3x3 convolution");
  return to_kernel(*best, problem);
}

kernel::ConvKernel ConvChoice::operator()(const kernel::ConvProblem& problem) const {
  if (square_.applies(problem)) return choose_square(problem);
  const bool tensor = gpu_.has_tensor_path(problem.math);
  ConvMachine machine = conv_machine(gpu_, problem.math, tensor);
  // Kernels with a bias are weighed as on the board that the library was tuned on.
  if (!tensor && square_.tuned_balance() > 0) {
    machine.dram = square_.tuned_balance() * machine.sms * machine.fp32_lanes * machine.clock;
  }
  ConvCandidate best;
  double least = std::numeric_limits<double>::infinity();
  for (const auto& candidate : general_.candidates(problem, tensor)) {
    const double score = general_.bias(problem, candidate) * general_.time(problem, candidate, tensor, machine).time;
    if (score < least) {
      least = score;
      best = candidate;
    }
  }
  kernel::ConvKernel kernel;
  kernel.problem = problem;
  kernel.algorithm = best.algorithm;
  const bool direct = best.algorithm == kernel::ConvAlgorithm::direct_depthwise ||
                      best.algorithm == kernel::ConvAlgorithm::implicit_gemm;
  set_tile(kernel.tile, best.tile_m, best.tile_n, tensor && !direct);
  kernel.tile.split_k = best.split_k;
  return kernel;
}

}  // namespace voltaic::cost
