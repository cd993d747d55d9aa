// SPDX-License-Identifier: MIT
// Microbenchmarks as programs: what published measurements ran, one mechanism at a time, so that the machine can be
// held against them.
#pragma once

#include "arch/spec.hpp"
#include "sim/cycle/machine.hpp"
#include "sim/cycle/program.hpp"

namespace voltaic::cycle::micro {

/// `count` instructions of one warp, each waiting for the result of the one before.
Program dependent(Op op, int count, const MmaShape& shape = {});
/// `count` instructions of each of `warps` warps, none waiting for another.
Program independent(Op op, int count, int warps, const MmaShape& shape = {});
/// Shared-memory loads of which each takes `degree` wavefronts: lanes `degree` words apart [CPG] K.3.
Program shared_loads(int degree, int count, int warps);
/// One lane follows pointers through `footprint` bytes that an earlier pass has touched.
Program pointer_chase(Bytes footprint, int steps, const arch::GpuSpec& gpu);
/// Warps that read `per_sm` bytes again and again, eight 256-byte loads under way each; all SMs together read
/// `footprint` different ones.
Program read_again(Bytes per_sm, Bytes footprint, int trips, const arch::GpuSpec& gpu);
/// A thread per 8-byte element, which it reads from each of `reads` tensors and writes to each of `writes`; the tensors
/// are far larger than L2.
Program stream(int reads, int writes, int warps, std::int64_t ctas);

/// Cycles of a program on one SM of a GPU whose other SMs do the same, `ctas_per_sm` resident at once.
double cycles(const Program& program, const Machine& machine, int ctas_per_sm = 1);

}  // namespace voltaic::cycle::micro
