// SPDX-License-Identifier: MIT
// Which share of a program's sectors L2 serves, from real tags: the addresses that resident CTAs touch go through the
// tag array in the order in which CTAs that run in step ask for them.
#pragma once

#include "sim/cycle/machine.hpp"
#include "sim/cycle/program.hpp"

namespace voltaic::cycle {

/// Sets l2_hit and write_back of every tensor. Tensors that are not cold were touched by the same kernel just before.
/// Waves, or trips of one wave, beyond a few million accesses are taken to hit as the last ones that were replayed.
void replay_tags(Program& program, const Machine& machine, int ctas_per_sm);

}  // namespace voltaic::cycle
