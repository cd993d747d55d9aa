// SPDX-License-Identifier: MIT
#include "sim/report/trace.hpp"

#include <fmt/format.h>

#include <unordered_map>

#include "sim/report/detail/json_writer.hpp"
#include "sim/report/detail/layer_groups.hpp"

namespace voltaic::report {
namespace {

/// Whole picoseconds as microseconds, without rounding: "12.345678".
std::string microseconds(engine::SimTime t) {
  constexpr std::int64_t kPs = 1'000'000;
  std::string text = fmt::format("{}.{:06}", t.ps / kPs, t.ps % kPs);
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text;
}

std::string quoted(std::string_view text) {
  JsonWriter w(0);
  w.value(text);
  return w.take();
}

class Tracer {
 public:
  Tracer(const Prediction& p, std::ostream& out) : p_(p), out_(out), row_of_(rows_by_node(p)) {}

  void write() {
    out_ << "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
    name_tracks();
    for (const auto& span : p_.timeline.host) host(span);
    for (const auto& span : p_.timeline.kernels) kernel(span);
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
    name(0, 0, "process_name", "host");
    name(0, 0, "thread_name", "dispatch");
    name(1, 0, "process_name", "GPU " + p_.gpu);
    int streams = 1;
    for (const auto& span : p_.timeline.kernels) streams = std::max(streams, span.stream + 1);
    for (int s = 0; s < streams; ++s) name(1, s, "thread_name", fmt::format("stream {}", s));
  }

  std::string layer_args(const graph::Node& node) const {
    return fmt::format(R"("layer":{},"node":{},"op":"{}","phase":"{}")",
                       quoted(node.layer.empty() ? node.id : node.layer), quoted(node.id), graph::to_string(node.op),
                       graph::to_string(node.phase));
  }

  void host(const runtime::HostSpan& span) {
    const graph::Node& node = p_.graph.node(span.node);
    event(fmt::format(R"({{"ph":"X","pid":0,"tid":0,"cat":"host","name":"{}","ts":{},"dur":{},"args":{{{}}}}})",
                      graph::to_string(node.op), microseconds(span.start), microseconds(span.end - span.start),
                      layer_args(node)));
  }

  void kernel(const runtime::KernelSpan& span) {
    const graph::Node& node = p_.graph.node(span.node);
    const KernelRow& k = p_.distinct[p_.nodes[row_of_[span.node]].distinct].kernels[span.kernel];
    event(fmt::format(
        R"({{"ph":"X","pid":1,"tid":{},"cat":"kernel","name":{},"ts":{},"dur":{},"args":{{{},"library":{},"bound":"{}"}}}})",
        span.stream, quoted(k.launch.name), microseconds(span.start), microseconds(span.end - span.start),
        layer_args(node), quoted(k.launch.library), kernel::to_string(k.cost.bound())));
  }

  const Prediction& p_;
  std::ostream& out_;
  std::vector<std::uint32_t> row_of_;  ///< Index into p_.nodes by node.
  bool first_ = true;
};

}  // namespace

void write_trace(const Prediction& prediction, std::ostream& out) {
  Tracer(prediction, out).write();
}

}  // namespace voltaic::report
