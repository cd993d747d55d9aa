// SPDX-License-Identifier: MIT
// What a CTA's warps execute, as SASS would have it: instructions by class with the compiler's control codes (stall
// count, scoreboards), loops described rather than unrolled, and memory accesses as patterns over tensors. Generators
// (generate.hpp) write programs, the SM model (simulate.hpp) runs them.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "arch/units/data_type.hpp"

namespace voltaic::cycle {

/// Instruction classes; the pipe each one takes is a matter of the machine (machine.hpp).
enum class Op : std::uint8_t {
  ffma,          ///< FFMA, FADD, FMUL, FMNMX.
  hfma2,         ///< HFMA2, HADD2, HMUL2: two halves per lane.
  dfma,          ///< DFMA, DADD, DMUL.
  imad,          ///< IMAD, IDP4A.
  alu,           ///< IADD3, LOP3, SHF, ISETP, PRMT, SEL, MOV: addresses, predicates, packing.
  mufu,          ///< MUFU.EX2, RCP, RSQ, ...: special functions.
  convert,       ///< F2F, F2I, I2F between widths that the ALU cannot do; on the special-function lanes.
  mma,           ///< HMMA, IMMA, DMMA of the program's shape.
  shuffle,       ///< SHFL.
  load_global,   ///< LDG.
  store_global,  ///< STG.
  atomic,        ///< RED and ATOM at L2.
  copy_async,    ///< LDGSTS: global to shared memory past the registers (Ampere).
  load_shared,   ///< LDS.
  store_shared,  ///< STS.
  load_matrix,   ///< LDSM: 8x8 tiles of 16-bit elements to the fragments of an MMA.
  commit_group,  ///< LDGDEPBAR: closes the group of the warp's asynchronous copies so far.
  wait_group,    ///< DEPBAR: waits until at most `argument` groups of the warp are under way.
  barrier,       ///< BAR.SYNC `argument`: waits for all warps of the CTA.
  branch,        ///< BRA back to the start of loop `argument` while it has trips left.
  nop,
  exit,
};
inline constexpr std::size_t kOps = static_cast<std::size_t>(Op::exit) + 1;
std::string_view to_string(Op op);  ///< "FFMA", "LDG", ...
constexpr bool is_memory(Op op) {
  return op >= Op::load_global && op <= Op::load_matrix;
}
constexpr bool is_global(Op op) {
  return op >= Op::load_global && op <= Op::copy_async;
}

inline constexpr int kScoreboards = 6;   ///< Per warp, as the control codes have them.
inline constexpr int kNoScoreboard = 7;  ///< In `sets`: none.
inline constexpr int kBarriers = 16;     ///< Named barriers of a CTA.
inline constexpr int kLoopDepth = 4;     ///< Loops of one program.

/// One instruction, or `repeat` independent ones in a row, each issued by itself.
struct Instruction {
  Op op = Op::nop;
  std::uint8_t stall = 1;             ///< Cycles until the warp's next instruction may issue: covers fixed latencies.
  std::uint8_t waits = 0;             ///< Scoreboards that must be clear before issue, as a mask.
  std::uint8_t sets = kNoScoreboard;  ///< Scoreboard that the result clears (loads, special functions, shuffles).
  std::uint16_t repeat = 1;
  std::uint16_t argument = 0;    ///< Index of the access, the loop, the barrier, or a count of groups.
  std::uint16_t warps = 0xffff;  ///< Only warps below this index execute it; others pass by without an issue slot.
};

/// A run of code that each warp repeats. The loop's body ends with a `branch` whose argument is the loop's index.
struct Loop {
  std::uint32_t begin = 0;  ///< First instruction of the body.
  std::int64_t trips = 1;   ///< Of a CTA with x = 0.
  double trips_per_x = 0;   ///< Added per CTA in x: causal attention. Trips are rounded up and at least 1.
  double trips_ahead = 0;   ///< Added to what CTAs in x add, before it is rounded up.
  std::int64_t trips_at(std::int64_t x) const {
    const double more = std::ceil(trips_per_x * static_cast<double>(x) + trips_ahead - 1e-9);
    return std::max<std::int64_t>(1, trips + static_cast<std::int64_t>(more));
  }
};

/// A tensor in global memory as the caches see it over the whole grid.
struct Tensor {
  std::string name;
  double unique_bytes = 0;  ///< Distinct bytes that the grid touches.
  /// Sum over waves of resident CTAs of the distinct bytes that each touches, at least unique_bytes: what L2 is asked
  /// for anew when nothing stays from wave to wave.
  double wave_bytes = 0;
  bool cold = true;       ///< Not in L2 when the kernel starts, whatever its size.
  bool written = false;   ///< Written, not read.
  double l2_hit = 0;      ///< Share of sectors that L2 serves; set by footprint.hpp.
  double write_back = 1;  ///< Share of the unique bytes written that reach DRAM while the kernel runs; footprint.hpp.
};

/// What one warp-wide access touches. Global: `sectors` of 32 bytes in `lines` of 128 bytes. Shared: `wavefronts`
/// passes of 128 bytes, bank conflicts included. Addresses matter to real tags and to channels only:
///     base + x per_cta[0] + y per_cta[1] + z per_cta[2] + warp per_warp + sum over loops of trip per_trip[loop]
/// for the first line, the others `line_stride` apart.
struct Access {
  std::uint16_t tensor = 0;      ///< Global accesses.
  std::uint16_t sectors = 0;     ///< 32-byte sectors of one warp-wide request.
  std::uint16_t lines = 0;       ///< 128-byte lines (tag lookups); 0 for shared memory.
  std::uint16_t wavefronts = 1;  ///< Passes of the data stage: shared memory with its conflicts, L1 returns, stores.
  std::uint16_t ideal_wavefronts = 1;  ///< Without bank conflicts.
  std::uint16_t bytes = 128;           ///< That lanes ask for.
  double l1_hit = 0;                   ///< Share of sectors found in L1.
  std::int64_t base = 0;
  std::array<std::int64_t, 3> per_cta{};
  std::int64_t per_warp = 0;
  std::array<std::int64_t, kLoopDepth> per_trip{};
  std::int64_t line_stride = 128;
};

/// One tensor-core instruction; the machine turns it into cycles by its rate.
struct MmaShape {
  int m = 16, n = 8, k = 16;
  DataType type = DataType::fp16;
  bool sparse = false;  ///< 2:4: `k` counts the dense elements.
  double issues = 1;    ///< Instructions that make up the shape (Volta: 4 steps of HMMA.884).
  double macs() const { return static_cast<double>(m) * n * k; }
};

struct Program {
  std::string name;
  std::vector<Instruction> code;  ///< Ends with `exit`.
  std::vector<Loop> loops;
  std::vector<Access> accesses;
  std::vector<Tensor> tensors;
  MmaShape mma;
  int warps = 4;  ///< Per CTA.
  int registers_per_thread = 32;
  double shared_bytes = 0;  ///< Per CTA.
  int ctas_per_sm = 0;      ///< Resident at most; 0: what the occupancy calculator allows.
  std::array<std::int64_t, 3> grid{1, 1, 1};
  std::int64_t ctas() const { return grid[0] * grid[1] * grid[2]; }
};

/// A kernel that the library runs as several programs (transforms around a product, the steps of a recurrent layer).
struct Part {
  Program program;
  double times = 1;   ///< How often it runs, one after another.
  double starts = 1;  ///< Kernel launches among them; 0: inside a running kernel (a persistent one's step).
};

/// Throws ConfigError "kernel NAME: expected ..., got ..." for a program that no SM can run: no CTAs, no warps, indices
/// out of range, a loop that does not close, counts that overflow.
void check(const Program& program);

}  // namespace voltaic::cycle
