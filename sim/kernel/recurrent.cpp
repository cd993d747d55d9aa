// SPDX-License-Identifier: MIT
#include "sim/kernel/recurrent.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace voltaic::kernel {

namespace {

constexpr std::array<std::string_view, 3> kCells{"vanilla", "lstm", "gru"};
constexpr std::array<std::string_view, 3> kPasses{"forward", "backward_data", "backward_weights"};

/// The tile of a step's product: weights by batch.
constexpr double kTileRows = 128, kTileBatch = 32;

std::string name_of(const RecurrentKernel& k) {
  const auto cell = to_string(k.cell);
  if (k.pass == RecurrentPass::backward_weights) return fmt::format("cudnn_rnn_{}_bias_gradient", cell);
  const char* direction = k.pass == RecurrentPass::forward ? "fwd" : "bwd";
  if (k.persistent) return fmt::format("cudnn_rnn_block_persist_{}_{}", cell, direction);
  return fmt::format("cudnn_rnn_{}_{}_steps", cell, direction);
}

/// Pointwise operations of one hidden element beside its gate sums.
double functions(RecurrentCell cell) {
  return cell == RecurrentCell::lstm ? 9 : cell == RecurrentCell::gru ? 8 : 1;
}

void set_work(const RecurrentKernel& k, double cells, Work& work) {
  const double rows = cells * static_cast<double>(k.steps) * static_cast<double>(k.batch);
  const auto hidden = static_cast<double>(k.hidden);
  const double g = gates(k.cell);
  const double weights = cells * g * hidden * hidden;
  if (k.pass == RecurrentPass::backward_weights) {
    work.other_flop = rows * g * hidden;
    work.read = Bytes{rows * g * hidden * k.element_bytes};
    work.written = Bytes{cells * g * hidden * k.element_bytes};
    return;
  }
  work.mac = rows * g * hidden * hidden;
  work.other_flop = rows * hidden * (3 * g + functions(k.cell));
  work.special = rows * hidden * (g + (k.cell == RecurrentCell::lstm ? 1 : 0));
  // Forward reads what the input adds to each gate and writes the state; backward the other way round.
  const double gate_bytes = rows * g * hidden * k.element_bytes;
  const double state_bytes = rows * hidden * k.element_bytes;
  const bool forward = k.pass == RecurrentPass::forward;
  work.read = Bytes{weights * k.element_bytes + (forward ? gate_bytes : state_bytes)};
  work.written = Bytes{forward ? state_bytes : gate_bytes};
}

std::int64_t step_ctas(const RecurrentKernel& k, double cells) {
  const double wide =
      k.pass == RecurrentPass::forward ? gates(k.cell) * static_cast<double>(k.hidden) : static_cast<double>(k.hidden);
  const double tiles = std::ceil(wide / kTileRows) * std::ceil(static_cast<double>(k.batch) / kTileBatch);
  return static_cast<std::int64_t>(std::min(9e18, std::max(1.0, std::ceil(cells * tiles))));
}

}  // namespace

std::string_view to_string(RecurrentCell cell) {
  return kCells[static_cast<std::size_t>(cell)];
}

std::string_view to_string(RecurrentPass pass) {
  return kPasses[static_cast<std::size_t>(pass)];
}

double gates(RecurrentCell cell) {
  return cell == RecurrentCell::lstm ? 4 : cell == RecurrentCell::gru ? 3 : 1;
}

Wavefront wavefront(const RecurrentKernel& k) {
  const auto steps = static_cast<double>(k.steps);
  const auto layers = static_cast<double>(k.layers);
  const auto directions = static_cast<double>(k.directions);
  Wavefront out;
  out.diagonals = k.directions > 1 ? steps * layers : steps + layers - 1;
  out.cells = out.diagonals > 0 ? steps * layers * directions / out.diagonals : 0;
  return out;
}

bool fits_registers(const RecurrentKernel& k, const arch::GpuSpec& gpu) {
  constexpr double kShare = 0.5, kRegisterBytes = 4;
  const auto hidden = static_cast<double>(k.hidden);
  const double room = kShare * kRegisterBytes * static_cast<double>(gpu.sm.registers * gpu.sm.count);
  return gates(k.cell) * hidden * hidden * k.element_bytes <= room;
}

bool asks_persistent(const RecurrentKernel& k, std::int64_t input_size, const arch::GpuSpec& gpu) {
  constexpr std::int64_t kMostUnits = 1024, kUnits = 128, kManySms = 98, kMostBatch = 128;
  if (k.math != DataType::fp16 || k.layers != 1 || k.directions != 1) return false;
  if (k.hidden > kMostUnits || k.hidden % kUnits != 0 || input_size % kUnits != 0) return false;
  switch (gpu.architecture) {
    case arch::Architecture::volta:
      return ((k.batch % 16 == 0 && k.batch != 80 && k.batch != 112) || k.batch == 8) &&
             ((k.steps >= 40 && k.batch <= 128) || (k.steps >= 20 && k.batch <= 96) ||
              (k.steps >= 10 && k.batch <= 32));
    case arch::Architecture::turing: return false;
    case arch::Architecture::ampere:
    case arch::Architecture::hopper: break;
  }
  // GA10x parts and small slices are left out, and so are GRUs.
  if (gpu.sm.count < kManySms || gpu.compute_capability == "8.6" || k.cell == RecurrentCell::gru) return false;
  if (k.batch % 8 != 0 || k.batch > kMostBatch) return false;
  return k.cell == RecurrentCell::lstm || k.batch < 96 || k.hidden < 896;
}

Launch recurrent_launch(const RecurrentKernel& k, const arch::GpuSpec& gpu) {
  const double cells = static_cast<double>(k.layers) * static_cast<double>(k.directions);
  Launch launch;
  launch.name = name_of(k);
  launch.library = "cuDNN";
  launch.family = "recurrent";
  launch.math = k.math;
  launch.tensor_cores = k.pass != RecurrentPass::backward_weights && gpu.has_tensor_path(k.math);
  launch.cta.threads = 256;
  launch.cta.registers_per_thread = 128;
  if (k.persistent) {
    launch.grid[0] = gpu.sm.count;
  } else if (k.pass == RecurrentPass::backward_weights) {
    constexpr double kColumns = 256;
    launch.grid[0] = static_cast<std::int64_t>(
        std::min(9e18, std::max(1.0, std::ceil(cells * gates(k.cell) * static_cast<double>(k.hidden) / kColumns))));
  } else {
    launch.grid[0] = step_ctas(k, wavefront(k).cells);
  }
  set_work(k, cells, launch.work);
  launch.detail = k;
  return launch;
}

}  // namespace voltaic::kernel
