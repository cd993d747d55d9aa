// SPDX-License-Identifier: MIT
#include "sim/report/warp_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "sim/report/detail/json_writer.hpp"

namespace voltaic::report {
namespace {

constexpr int kWarpsPerCta = 32;

/// A slot on the SM, as WarpSpan::warp numbers them.
struct Track {
  int partition, cta, warp;
  explicit Track(int number, int partitions)
      : partition(number / kWarpsPerCta % partitions),
        cta(number / kWarpsPerCta / partitions),
        warp(number % kWarpsPerCta) {}
  int id() const { return cta * kWarpsPerCta + warp; }
};

std::string quoted(std::string_view text) {
  JsonWriter w(0);
  w.value(text);
  return w.take();
}

class Tracer {
 public:
  Tracer(const WarpTrace& trace, std::ostream& out)
      : trace_(trace),
        partitions_(std::max(1, trace.partitions)),
        spans_(trace.spans.begin(), trace.spans.end()),
        out_(out) {
    const auto key = [](const cycle::WarpSpan& s) { return std::tuple(s.warp, s.from, s.to, s.state, s.op); };
    std::sort(spans_.begin(), spans_.end(), [&](const auto& a, const auto& b) { return key(a) < key(b); });
  }

  void write() {
    out_ << fmt::format(R"({{"displayTimeUnit":"ms","otherData":{{"kernel":{},"gpu":{},"time":"1 us is 1 SM cycle"}},)",
                        quoted(trace_.kernel), quoted(trace_.gpu))
         << "\"traceEvents\":[\n";
    name_tracks();
    for (const auto& s : spans_) span(s);
    out_ << "\n]}\n";
  }

 private:
  void event(const std::string& text) {
    if (!first_) out_ << ",\n";
    first_ = false;
    out_ << text;
  }

  void name(int pid, int tid, const char* what, const std::string& value) {
    event(fmt::format(R"({{"ph":"M","pid":{},"tid":{},"name":"{}","args":{{"name":{}}}}})", pid, tid, what,
                      quoted(value)));
  }

  void name_tracks() {
    std::map<int, std::map<int, Track>> used;
    for (const auto& s : spans_) {
      const Track t(s.warp, partitions_);
      used[t.partition].emplace(t.id(), t);
    }
    for (const auto& [partition, tracks] : used) {
      name(partition, 0, "process_name", fmt::format("sub-partition {}", partition));
      for (const auto& [id, t] : tracks) {
        name(partition, id, "thread_name", fmt::format("CTA slot {}, warp {}", t.cta, t.warp));
      }
    }
  }

  void span(const cycle::WarpSpan& s) {
    const Track t(s.warp, partitions_);
    const bool issues = s.state == cycle::Stall::selected;
    event(fmt::format(
        R"({{"ph":"X","pid":{},"tid":{},"cat":"{}","name":"{}","ts":{},"dur":{},"args":{{"instruction":"{}"}}}})",
        t.partition, t.id(), issues ? "issue" : "stall", issues ? cycle::to_string(s.op) : cycle::to_string(s.state),
        s.from, s.to - s.from, cycle::to_string(s.op)));
  }

  const WarpTrace& trace_;
  int partitions_;
  std::vector<cycle::WarpSpan> spans_;
  std::ostream& out_;
  bool first_ = true;
};

}  // namespace

void write_warp_trace(const WarpTrace& trace, std::ostream& out) {
  Tracer(trace, out).write();
}

}  // namespace voltaic::report
