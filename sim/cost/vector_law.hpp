// SPDX-License-Identifier: MIT
// Parameters of the vector-kernel laws, read once from calibration section "vector".
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "arch/loader.hpp"
#include "sim/kernel/launch.hpp"
#include "sim/memory/cache.hpp"

namespace voltaic::cost {

inline constexpr std::size_t kVectorKinds = static_cast<std::size_t>(kernel::VectorKind::index_select_large) + 1;

/// The law of one kind of vector kernel; what each number was fitted on stands in the calibration file.
struct VectorLaw {
  double stream_share = 1;          ///< Share of the sustained DRAM bandwidth with one tensor input.
  double stream_share_two = 1;      ///< The same with two or more.
  double l2_share = 1;              ///< Share of the L2 bandwidth of the spec.
  memory::CacheRegion region;       ///< Where footprints leave L2.
  double efficiency = 1;            ///< Share of a plain stream that the kernel reaches.
  double unaligned = 1;             ///< Slow-down of rows that are not whole vectors of four elements.
  double short_run_efficiency = 1;  ///< Share reached when contiguous runs are shorter than a 32-byte sector.
  double exponent = 4;              ///< p of the smooth maximum of the legs.
  double fixed_s = 0;               ///< Launch ramp and drain on the GPU: time of the kernel with no work.
  memory::RereadRegion reread;
  double row_cycles = 0;          ///< Latency of one row or CTA beside its columns.
  double step_cycles = 0;         ///< Latency per pass of the CTA's threads over the columns.
  double least_latency_s = 0;     ///< Latency of a grid below one wave.
  bool whole_waves = false;       ///< Waves of CTAs are rounded up.
  double element_slots = 0;       ///< FP32-lane issue slots per element beside the function.
  double elements_in_flight = 0;  ///< Elements one thread keeps in flight; 0: enough.
};

/// How the clock sags when a kernel runs alone between idle gaps: f = 1 + s clip((K1 - k0) / (0.6 K1)).
struct IdleClock {
  double slowdown = 0;  ///< s
  double below_s = 0;   ///< K1
};

class VectorLaws {
 public:
  explicit VectorLaws(const arch::ParameterTree& calibration);

  const VectorLaw& operator[](kernel::VectorKind kind) const { return laws_[static_cast<std::size_t>(kind)]; }
  const IdleClock& idle_clock(kernel::VectorKind kind) const { return idle_[static_cast<std::size_t>(kind)]; }
  /// FP32-lane issue slots per element of a pointwise function; 0 for unknown ones.
  double function_slots(std::string_view function) const;

 private:
  std::array<VectorLaw, kVectorKinds> laws_;
  std::array<IdleClock, kVectorKinds> idle_;
  std::vector<std::pair<std::string, double>> functions_;  ///< Sorted by name.
  double default_function_ = 0;
};

}  // namespace voltaic::cost
