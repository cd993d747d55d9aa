// SPDX-License-Identifier: MIT
#include "sim/cycle/detail/copy.hpp"

#include <algorithm>
#include <cmath>

namespace voltaic::cycle::detail {
namespace {

constexpr double kLanes = 32;
constexpr double kMostApart = 16;  ///< Requests that get an address of their own; more share the last one's.

/// One access per request, each further on in the tile.
std::vector<std::uint16_t> accesses_of(Emitter& e, std::uint16_t tensor, double requests, double run_bytes, int warps,
                                       const Place& place) {
  const double request = request_bytes(run_bytes);
  const double run = std::min(run_bytes, request);
  std::vector<std::uint16_t> out;
  for (double i = 0; i < std::min(requests, kMostApart); ++i) {
    Access a = global_access(tensor, std::max(1.0, std::floor(request / run)), run);
    a.base = offset(i * request * warps);
    a.per_warp = offset(request);
    a.per_cta = place.per_cta;
    a.per_trip = place.per_trip;
    out.push_back(e.access(a));
  }
  return out;
}

void emit_all(Emitter& e, Op op, const std::vector<std::uint16_t>& accesses, double requests, int board) {
  const double apart = static_cast<double>(accesses.size());
  for (std::size_t i = 0; i < accesses.size(); ++i) {
    const bool last = i + 1 == accesses.size();
    e.memory(op, accesses[i], last ? requests - apart + 1 : 1, board);
  }
}

double requests_of(double bytes, double run_bytes, int warps) {
  if (!(bytes > 0)) return 0;
  const double request = request_bytes(run_bytes);
  const double run = std::min(run_bytes, request);
  return std::ceil(bytes / (std::floor(request / run) * run * warps) - 1e-9);
}

}  // namespace

std::int64_t offset(double bytes) {
  constexpr double kFarthest = 1e15;
  return static_cast<std::int64_t>(std::clamp(bytes, -kFarthest, kFarthest));
}

double request_bytes(double run_bytes) {
  double lane = 16;
  while (lane > 2 && std::fmod(run_bytes, lane) != 0) lane /= 2;
  return lane * kLanes;
}

TileCopy::TileCopy(Emitter& e, const arch::GpuSpec& gpu, std::uint16_t tensor, double bytes, double run_bytes,
                   int warps, const Place& place)
    : asynchronous_(gpu.architecture == arch::Architecture::ampere && request_bytes(run_bytes) >= 4 * kLanes),
      requests_(requests_of(bytes, run_bytes, warps)),
      accesses_(accesses_of(e, tensor, requests_, run_bytes, warps, place)) {
  if (!asynchronous_) shared_ = e.access(shared_access(request_bytes(run_bytes)));
}

void TileCopy::start(Emitter& e, int board) const {
  emit_all(e, asynchronous_ ? Op::copy_async : Op::load_global, accesses_, requests_,
           asynchronous_ ? kNoScoreboard : board);
}

void TileCopy::land(Emitter& e, int board) const {
  if (asynchronous_ || !(requests_ > 0)) return;
  e.wait(bit(board)).memory(Op::store_shared, shared_, requests_);
}

void emit_stream(Emitter& e, Op op, std::uint16_t tensor, double bytes, double run_bytes, int warps, int board,
                 const Place& place) {
  const double requests = requests_of(bytes, run_bytes, warps);
  emit_all(e, op, accesses_of(e, tensor, requests, run_bytes, warps, place), requests, board);
}

}  // namespace voltaic::cycle::detail
