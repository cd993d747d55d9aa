// SPDX-License-Identifier: MIT
// Plays a lowered program on one GPU: a host thread that dispatches operations, streams that run their kernels in
// order.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/engine/sim_time.hpp"
#include "sim/graph/op_graph.hpp"

namespace voltaic::runtime {

/// One operation as the host meets it.
struct Dispatch {
  std::uint32_t node = 0;
  graph::Phase phase = graph::Phase::forward;
  Seconds host;                      ///< Host time of the call, including its launches.
  std::span<const Seconds> kernels;  ///< Durations in stream order; empty for views.
  int stream = 0;
};

/// Launch behaviour, from calibration (section host).
struct LaunchModel {
  Seconds launch_latency;  ///< From the driver call to the first CTA, when the stream is idle.
  Seconds kernel_gap;      ///< Between dependent kernels of one stream, back to back.
  bool recorded = false;   ///< A graph launch: the host pays once, not per operation.
  Seconds graph_launch;    ///< Host time of a graph launch.
};

struct KernelSpan {
  std::uint32_t node = 0;
  std::uint32_t kernel = 0;  ///< Index within the node.
  int stream = 0;
  engine::SimTime start, end;
};
struct HostSpan {
  std::uint32_t node = 0;
  engine::SimTime start, end;
};

/// What happened when; spans in time order.
struct Timeline {
  std::vector<HostSpan> host;
  std::vector<KernelSpan> kernels;
  engine::SimTime total;             ///< Last event of host or GPU.
  engine::SimTime phase_end[3];      ///< End of the last event of each phase, forward, backward, optimizer.
  engine::SimTime gpu_busy;          ///< Union of kernel spans.
  engine::SimTime waiting_for_host;  ///< GPU idle while the host had not yet dispatched the next kernel.
};

/// Event-driven: the host thread runs ahead of the streams; a kernel starts when dispatched, launched and its stream is
/// free.
Timeline play(std::span<const Dispatch> program, const LaunchModel& launch);

}  // namespace voltaic::runtime
