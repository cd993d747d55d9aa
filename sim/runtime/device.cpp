// SPDX-License-Identifier: MIT
#include "sim/runtime/device.hpp"

#include <algorithm>
#include <limits>

#include "arch/units/error.hpp"
#include "sim/engine/event_queue.hpp"

namespace voltaic::runtime {
namespace {

using engine::SimTime;

SimTime later(SimTime a, SimTime b) {
  if (b.ps > std::numeric_limits<std::int64_t>::max() - a.ps) {
    throw UnsupportedError("a run of more than 9e6 simulated seconds (104 days) is out of range");
  }
  return a + b;
}

/// A kernel in its stream's queue.
struct Queued {
  std::uint32_t call = 0;  ///< Index into the program.
  std::uint32_t kernel = 0;
  SimTime ready;  ///< Dispatched and launched.
  SimTime duration;
};

/// First in, first out; `next` walks over `queue` so that nothing is ever moved.
struct Stream {
  std::vector<Queued> queue;
  std::size_t next = 0;
  bool running = false;
  bool used = false;
  SimTime last_end;
};

struct Event {
  enum class Kind : std::uint8_t { host_call, kernel_end } kind = Kind::host_call;
  std::uint32_t index = 0;  ///< Call or stream.
};

class Player {
 public:
  Player(std::span<const Dispatch> program, const LaunchModel& launch)
      : program_(program),
        latency_(engine::to_sim_time(launch.launch_latency)),
        gap_(engine::to_sim_time(launch.kernel_gap)),
        graph_launch_(engine::to_sim_time(launch.graph_launch)),
        recorded_(launch.recorded) {
    ensure(program.size() < std::numeric_limits<std::uint32_t>::max(), "a program is limited to 2^32 calls");
    reserve();
  }

  Timeline play() {
    if (program_.empty()) return std::move(out_);
    if (recorded_) {
      launch_graph();
    } else {
      events_.schedule(SimTime{}, {Event::Kind::host_call, 0});
    }
    while (!events_.empty()) {
      const Event event = events_.pop();
      if (event.kind == Event::Kind::host_call) {
        host_call(event.index);
      } else {
        streams_[event.index].running = false;
        start_next(event.index);
      }
    }
    account();
    return std::move(out_);
  }

 private:
  void reserve() {
    std::size_t kernels = 0;
    int streams = 1;
    for (const Dispatch& call : program_) {
      ensure(call.stream >= 0 && call.stream < kMaxStreams, "a stream number must lie in 0..1023");
      kernels += call.kernels.size();
      streams = std::max(streams, call.stream + 1);
    }
    streams_.resize(static_cast<std::size_t>(streams));
    out_.kernels.reserve(kernels);
    ready_.reserve(kernels);
    out_.host.reserve(recorded_ ? 1 : program_.size());
  }

  /// The host meets call `index` now: its launches leave at even distances within the call, the last one at its end.
  void host_call(std::uint32_t index) {
    const Dispatch& call = program_[index];
    const SimTime start = events_.now();
    const SimTime host = engine::to_sim_time(call.host);
    const SimTime end = later(start, host);
    const auto count = static_cast<std::int64_t>(call.kernels.size());
    for (std::int64_t k = 0; k < count; ++k) {
      const SimTime left{host.ps / count * (count - 1 - k)};
      enqueue(index, static_cast<std::uint32_t>(k), later(end - left, latency_));
    }
    if (host.ps > 0) out_.host.push_back({call.node, start, end});
    reach(call.phase, end);
    if (index + 1 < program_.size()) events_.schedule(end, {Event::Kind::host_call, index + 1});
  }

  /// A recorded graph: one call launches everything; the streams then run without the host.
  void launch_graph() {
    out_.host.push_back({program_[0].node, SimTime{}, graph_launch_});
    reach(program_[0].phase, graph_launch_);
    const SimTime ready = later(graph_launch_, latency_);
    for (std::uint32_t i = 0; i < program_.size(); ++i) {
      for (std::uint32_t k = 0; k < program_[i].kernels.size(); ++k) enqueue(i, k, ready);
    }
  }

  void enqueue(std::uint32_t call, std::uint32_t kernel, SimTime ready) {
    const auto stream = static_cast<std::uint32_t>(program_[call].stream);
    streams_[stream].queue.push_back({call, kernel, ready, engine::to_sim_time(program_[call].kernels[kernel])});
    if (!streams_[stream].running) start_next(stream);
  }

  void start_next(std::uint32_t index) {
    Stream& stream = streams_[index];
    if (stream.next == stream.queue.size()) return;
    const Queued& kernel = stream.queue[stream.next++];
    const SimTime free = stream.used ? later(stream.last_end, gap_) : SimTime{};
    const SimTime start = std::max(kernel.ready, free);
    const SimTime end = later(start, kernel.duration);
    stream.running = true;
    stream.used = true;
    stream.last_end = end;
    const Dispatch& call = program_[kernel.call];
    out_.kernels.push_back({call.node, kernel.kernel, static_cast<int>(index), start, end});
    ready_.push_back(kernel.ready);
    reach(call.phase, end);
    events_.schedule(end, {Event::Kind::kernel_end, index});
  }

  void reach(graph::Phase phase, SimTime at) {
    SimTime& end = out_.phase_end[static_cast<std::size_t>(phase)];
    end = std::max(end, at);
    out_.total = std::max(out_.total, at);
  }

  /// Kernel spans into time order; then the idle stretches between them, each split at the moment the next kernel was
  /// ready.
  void account() {
    if (streams_.size() > 1) sort_spans();
    SimTime busy_until;
    for (std::size_t i = 0; i < out_.kernels.size(); ++i) {
      const KernelSpan& span = out_.kernels[i];
      if (span.start > busy_until) {
        const SimTime ready = std::clamp(ready_[i], busy_until, span.start);
        out_.waiting_for_host = out_.waiting_for_host + (ready - busy_until);
        busy_until = span.start;
      }
      if (span.end > busy_until) {
        out_.gpu_busy = out_.gpu_busy + (span.end - busy_until);
        busy_until = span.end;
      }
    }
    out_.waiting_for_host = out_.waiting_for_host + (out_.total - busy_until);
  }

  void sort_spans() {
    std::vector<std::uint32_t> order(out_.kernels.size());
    for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return out_.kernels[a].start < out_.kernels[b].start; });
    std::vector<KernelSpan> spans;
    std::vector<SimTime> ready;
    spans.reserve(order.size());
    ready.reserve(order.size());
    for (const std::uint32_t i : order) {
      spans.push_back(out_.kernels[i]);
      ready.push_back(ready_[i]);
    }
    out_.kernels = std::move(spans);
    ready_ = std::move(ready);
  }

  static constexpr int kMaxStreams = 1024;
  std::span<const Dispatch> program_;
  SimTime latency_, gap_, graph_launch_;
  bool recorded_;
  engine::EventQueue<Event> events_;
  std::vector<Stream> streams_;
  std::vector<SimTime> ready_;  ///< Of out_.kernels, same index.
  Timeline out_;
};

}  // namespace

Timeline play(std::span<const Dispatch> program, const LaunchModel& launch) {
  return Player(program, launch).play();
}

}  // namespace voltaic::runtime
