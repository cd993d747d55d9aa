// SPDX-License-Identifier: MIT
// Pieces that every convolution algorithm's time is made of: the machine as it sees it, and waves of tiles over SMs.
#pragma once

#include <algorithm>
#include <cmath>

#include "arch/spec.hpp"
#include "sim/kernel/launch.hpp"

namespace voltaic::cost {

/// The GPU in the few figures the laws need; plain numbers in base units, for they enter fitted equations.
struct ConvMachine {
  double sms = 1;
  double clock = 1;       ///< Hz
  double dram = 1;        ///< Bytes per second that a long stream reaches.
  double l2 = 0;          ///< Bytes
  double l2_rate = 0;     ///< Bytes per cycle and SM that L2 delivers while all read; 0: unknown.
  double fp32_lanes = 1;  ///< FMA per cycle and SM outside the tensor cores.
  double lanes = 1;       ///< The same for the type and unit that multiplies.
};
ConvMachine conv_machine(const arch::GpuSpec& gpu, DataType math, bool tensor_cores);

/// Time of one convolution with what it is made of.
struct ConvTime {
  double time = 0;  ///< Seconds
  double math = 0;  ///< Seconds the multiplying pipes are busy, averaged over the SMs.
  double dram_bytes = 0;
  double l2_bytes = 0;
  double ctas = 0;
};

/// Share of `bytes` that misses L2 when `footprint` bytes are alive; half of L2 keeps what was last used.
inline double conv_miss(double footprint, double l2, double least = 0) {
  if (!(footprint > 0)) return least;
  return std::clamp(1 - 0.5 * l2 / footprint, least, 1.0);
}

/// Some of the traffic of a general convolution always misses L2: part of the fitted law.
inline constexpr double kLeastConvMiss = 0.15;

/// (a^4 + b^4)^(1/4): how arithmetic and traffic of one kernel overlap.
inline double overlap4(double a, double b) {
  const double a2 = a * a;
  const double b2 = b * b;
  return std::sqrt(std::sqrt(a2 * a2 + b2 * b2));
}

/// The same for pipes that a main loop keeps busy side by side.
inline double overlap8(double a, double b) {
  if (!(b > 0)) return a;
  const double least = std::min(a, b), most = std::max(a, b);
  return most * std::pow(1 + std::pow(least / most, 8), 0.125);
}

/// Tiles of one product spread over the SMs.
struct TileWaves {
  double ctas = 0;
  double k = 0;  ///< Products per output, before rounding to the k step.
  double k_step = 8;
  double tile = 0;        ///< Multiply-adds of one CTA and one k.
  double fetch = 0;       ///< Cycles in which L2 delivers one k of a CTA's operands.
  double efficiency = 1;  ///< Share of the lanes that the main loop keeps busy.
  double prologue = 0;    ///< Cycles per CTA outside the main loop.
  double fill = 1;        ///< CTAs per SM below which its pipes are not full.
  double even = 0.05;     ///< Share of CTAs that even out over SMs.
};

/// cycles = Ne (a + c kk) + max(0, l - N) c kk, with N = ceil(C/S), Ne = (1-s) N + s max(C/S, 1), c the 8-norm of tile
/// / (lanes eff) and fetch; seconds = ((cycles/clock)^4 + (bytes/BW)^4)^(1/4).
ConvTime wave_time(const TileWaves& waves, double bytes, const ConvMachine& machine);

}  // namespace voltaic::cost
