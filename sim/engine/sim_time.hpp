// SPDX-License-Identifier: MIT
// Simulated time: whole picoseconds, so that events have one order on every machine.
#pragma once

#include <compare>
#include <cstdint>

#include "arch/units/quantity.hpp"

namespace voltaic::engine {

/// Picoseconds since the start of the simulation; 63 bits reach 106 days.
struct SimTime {
  std::int64_t ps = 0;

  friend constexpr auto operator<=>(SimTime, SimTime) = default;
  friend constexpr SimTime operator+(SimTime a, SimTime b) { return {a.ps + b.ps}; }
  friend constexpr SimTime operator-(SimTime a, SimTime b) { return {a.ps - b.ps}; }
  constexpr Seconds seconds() const { return {static_cast<double>(ps) * 1e-12}; }
};

/// Rounds once, as a cost enters the engine. Throws UnsupportedError beyond the range, InternalError on NaN or below
/// zero.
SimTime to_sim_time(Seconds t);

}  // namespace voltaic::engine
