// SPDX-License-Identifier: MIT
// Tiles that a CTA brings from global to shared memory: past the registers where the GPU can, else through them.
#pragma once

#include <cstdint>
#include <vector>

#include "arch/spec.hpp"
#include "sim/cycle/detail/emit.hpp"

namespace voltaic::cycle::detail {

/// Where a tile lies: bytes to the next CTA in x, y and z, to the next trip of the loop that brings it.
struct Place {
  std::array<std::int64_t, 3> per_cta{};
  std::array<std::int64_t, kLoopDepth> per_trip{};
};

/// A distance in bytes as addresses have it, bounded.
std::int64_t offset(double bytes);

/// Bytes that one warp-wide request moves of rows of `run_bytes`: up to 16 a lane, less where rows are not aligned.
double request_bytes(double run_bytes);

/// `bytes` of a CTA's tile in rows of `run_bytes`, dealt out over its warps.
class TileCopy {
 public:
  /// `warps` share the tile.
  TileCopy(Emitter& emitter, const arch::GpuSpec& gpu, std::uint16_t tensor, double bytes, double run_bytes, int warps,
           const Place& place = {});
  /// Requests leave; registers are guarded by `board` where the copy needs them.
  void start(Emitter& emitter, int board) const;
  /// Stores what came through registers; nothing for asynchronous copies, which their group waits for.
  void land(Emitter& emitter, int board) const;
  bool asynchronous() const { return asynchronous_; }
  double requests() const { return requests_; }

 private:
  bool asynchronous_ = false;
  double requests_ = 0;
  std::vector<std::uint16_t> accesses_;
  std::uint16_t shared_ = 0;
};

/// `bytes` of a CTA's tile read to or written from registers by its warps.
void emit_stream(Emitter& emitter, Op op, std::uint16_t tensor, double bytes, double run_bytes, int warps, int board,
                 const Place& place = {});

}  // namespace voltaic::cycle::detail
