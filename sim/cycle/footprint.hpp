// SPDX-License-Identifier: MIT
// Which share of a program's sectors L2 serves, from footprints.
#pragma once

#include "arch/spec.hpp"
#include "sim/cycle/program.hpp"

namespace voltaic::cycle {

/// Sets l2_hit and write_back of every tensor, as shares of the sectors that reach L2. First touches of tensors that
/// are not cold hit while all tensors together fit L2; touches within a wave of resident CTAs share what the first one
/// fetched; touches by later waves hit as far as what passes in between leaves the tensor in L2.
///     DRAM bytes = first + (wave - unique) miss(between),  first = unique (cold ? 1 : miss(all)),
///     l2_hit = 1 - DRAM bytes / requested bytes
/// miss() is memory::miss_share. Lines that SMs of both partitions of an L2 read take their place in both.
void set_l2_hits(Program& program, const arch::GpuSpec& gpu);

/// Bytes of a tensor that the whole grid asks L2 for: sectors of all its accesses, after L1, times trips and CTAs.
double requested_bytes(const Program& program, std::size_t tensor);

}  // namespace voltaic::cycle
