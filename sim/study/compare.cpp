// SPDX-License-Identifier: MIT
#include "sim/study/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "arch/units/error.hpp"

namespace voltaic::study {
namespace {

constexpr std::size_t kMaxRows = 64;

/// Kernel time of one class of operations in one prediction, split by what bounds its kernels.
struct ClassTime {
  double total_s = 0;
  std::array<double, kernel::kBounds> by_bound{};

  kernel::Bound bound() const {
    return static_cast<kernel::Bound>(std::max_element(by_bound.begin(), by_bound.end()) - by_bound.begin());
  }
};

std::string_view class_name(graph::OpFamily family) {
  using graph::OpFamily;
  switch (family) {
    case OpFamily::matrix: return "matrix products";
    case OpFamily::convolution: return "convolutions";
    case OpFamily::attention: return "fused attention";
    case OpFamily::recurrent: return "recurrent layers";
    case OpFamily::normalization: return "normalisation";
    case OpFamily::pointwise: return "pointwise";
    case OpFamily::softmax: return "softmax";
    case OpFamily::reduction: return "reductions";
    case OpFamily::pooling:
    case OpFamily::resize: return "pooling and resize";
    case OpFamily::embedding:
    case OpFamily::gather_scatter: return "embedding and gather";
    case OpFamily::moe: return "expert routing";
    case OpFamily::view:
    case OpFamily::data_movement: return "copies";
    case OpFamily::random: return "dropout";
    case OpFamily::loss: return "loss";
    case OpFamily::optimizer: return "optimizer";
    case OpFamily::transfer: return "host transfers";
    case OpFamily::collective: return "collectives";
  }
  return "other";
}

std::map<std::string, ClassTime> class_times(const report::Prediction& p) {
  std::map<std::string, ClassTime> classes;
  for (const auto& row : p.nodes) {
    const auto& distinct = p.distinct[row.distinct];
    if (distinct.kernels.empty()) continue;
    ClassTime& c = classes[std::string(class_name(graph::family(p.graph.node(row.node).op)))];
    for (const auto& k : distinct.kernels) {
      c.total_s += k.cost.time.value;
      c.by_bound[static_cast<std::size_t>(k.cost.bound())] += k.cost.time.value;
    }
  }
  const double exposed = p.total.value * (1 - p.share_kernels);
  if (exposed > 0) classes["host and gaps"].total_s = exposed;
  return classes;
}

/// The hardware figure behind a bound, as a plain number, and its name.
std::pair<double, std::string> resource(kernel::Bound bound, const arch::GpuSpec& gpu, graph::Precision precision) {
  using kernel::Bound;
  const double sms = static_cast<double>(gpu.sm.count) * gpu.clocks.boost.value;
  switch (bound) {
    case Bound::dram: return {gpu.dram.peak_bandwidth.value, "DRAM bandwidth"};
    case Bound::l2: return {gpu.l2.bytes_per_cycle_per_sm * sms, "L2 bandwidth"};
    case Bound::fma: return {gpu.cuda_core_peak(DataType::fp32).value, "FP32 peak"};
    case Bound::tensor: {
      using graph::Precision;
      DataType t = DataType::fp16;
      if (precision == Precision::tf32) t = DataType::tf32;
      if (precision == Precision::bf16 || precision == Precision::mixed_bf16) t = DataType::bf16;
      if (precision == Precision::int8) t = DataType::int8;
      if (precision == Precision::fp64) t = DataType::fp64;
      if (precision == Precision::fp8) t = DataType::fp8;
      return {gpu.tensor_peak(t).value, "tensor-core peak"};
    }
    case Bound::shared: return {sms * gpu.sm.shared_bytes_per_cycle, "shared-memory bandwidth"};
    case Bound::issue: return {sms, "SMs x clock"};
    case Bound::latency: return {gpu.clocks.boost.value, "clock"};
  }
  return {0, ""};
}

std::string class_reason(const std::string& name, const ClassTime& base, const ClassTime& other,
                         const Request& base_request, const Request& other_request, const arch::GpuSpec& base_gpu,
                         const arch::GpuSpec& other_gpu) {
  if (name == "host and gaps") return "launch and host time do not depend on the GPU's arithmetic";
  const double speedup = other.total_s > 0 ? base.total_s / other.total_s : 1;
  const auto [have, what] = resource(other.bound(), other_gpu, other_request.resolved_precision());
  const auto [had, same] = resource(other.bound(), base_gpu, base_request.resolved_precision());
  std::string text = fmt::format("{:.2f}x, held by {}", speedup, what);
  if (had > 0 && have > 0 && std::abs(have / had - 1) > 0.005) text += fmt::format(" ({:.2f}x)", have / had);
  if (base.bound() != other.bound()) text += fmt::format("; was held by {}", kernel::to_string(base.bound()));
  return text;
}

report::CompareRow make_row(const report::Prediction& p, std::string label) {
  report::CompareRow row;
  row.label = std::move(label);
  row.request = p.request;
  row.time = p.total;
  row.interval = p.interval;
  row.samples_per_s = p.samples_per_s;
  row.memory_bytes = p.memory_total();
  row.fits = p.fits();
  return row;
}

/// One sentence: the class that holds most of the row's time, and what holds that class.
std::string row_reason(const std::map<std::string, ClassTime>& classes, double total_s) {
  const std::string* name = nullptr;
  const ClassTime* largest = nullptr;
  for (const auto& [n, c] : classes) {
    if (largest == nullptr || c.total_s > largest->total_s) {
      name = &n;
      largest = &c;
    }
  }
  if (largest == nullptr || total_s <= 0) return "no work";
  const double share = largest->total_s / total_s;
  if (*name == "host and gaps") return fmt::format("{:.0f} % of the time is launch and host", 100 * share);
  return fmt::format("{:.0f} % of the time is {}, bound by {}", 100 * share, *name,
                     kernel::to_string(largest->bound()));
}

}  // namespace

report::Comparison compare(Runner& runner, const Request& base, const std::vector<Axis>& axes) {
  std::size_t total = 1;
  for (const auto& axis : axes) total *= axis.values.size();
  if (total < 2)
    throw UsageError("compare: expected an option with two or more values, like --gpu v100-sxm2-16gb,a100-sxm4-40gb");
  if (total > kMaxRows)
    throw UsageError(
        fmt::format("compare: {} rows are too many to set side by side (at most {}); use sweep", total, kMaxRows));

  report::Comparison result;
  std::vector<Request> requests;
  std::vector<std::map<std::string, ClassTime>> classes;
  for (std::size_t i = 0; i < total; ++i) {
    report::SweepPoint point;
    requests.push_back(request_at(base, axes, i, point));
    std::string label;
    for (const auto& [name, value] : point.set) {
      const bool plain = name == "gpu" || name == "precision" || name == "framework" || name == "engine";
      label += fmt::format("{}{}{}", label.empty() ? "" : " ", plain ? "" : name + "=", value);
    }
    const auto p = runner.predict(requests.back());
    classes.push_back(class_times(p));
    result.rows.push_back(make_row(p, std::move(label)));
  }
  for (std::size_t i = 0; i < total; ++i) {
    auto& row = result.rows[i];
    row.speedup = row.time.value > 0 ? result.rows[0].time.value / row.time.value : 1;
    row.reason = row_reason(classes[i], row.time.value);
  }

  std::map<std::string, double> names;
  for (const auto& side : classes) {
    for (const auto& [name, c] : side) names[name] = std::max(names[name], c.total_s);
  }
  std::vector<std::pair<std::string, double>> order(names.begin(), names.end());
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  for (const auto& [name, time] : order) {
    report::LayerClass row;
    row.name = name;
    for (std::size_t i = 0; i < total; ++i) {
      const ClassTime& c = classes[i][name];
      const bool host = name == "host and gaps";
      row.time.push_back({c.total_s});
      row.bound.emplace_back(host ? "launch" : c.total_s > 0 ? kernel::to_string(c.bound()) : "-");
      row.speedup.push_back(c.total_s > 0 ? classes[0][name].total_s / c.total_s : 1);
    }
    row.reason =
        class_reason(name, classes[0][name], classes[total - 1][name], requests[0], requests[total - 1],
                     runner.simulator(requests[0])->gpu().spec, runner.simulator(requests[total - 1])->gpu().spec);
    result.layer_classes.push_back(std::move(row));
  }
  return result;
}

}  // namespace voltaic::study
