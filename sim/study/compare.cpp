// SPDX-License-Identifier: MIT
#include "sim/study/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <unordered_map>

#include "arch/units/error.hpp"
#include "sim/study/compare_layers.hpp"

namespace voltaic::study {
namespace {

constexpr std::size_t kMaxRows = 64;
constexpr std::string_view kHostClass = "host and gaps";

/// Kernel time of one class of operations in one prediction, split by what bounds its kernels.
struct ClassTime {
  double total_s = 0;
  std::array<double, kernel::kBounds> by_bound{};

  kernel::Bound bound() const {
    return static_cast<kernel::Bound>(std::max_element(by_bound.begin(), by_bound.end()) - by_bound.begin());
  }
};

std::map<std::string, ClassTime> class_times(const report::Prediction& p) {
  std::map<std::string, ClassTime> classes;
  for (const auto& row : p.nodes) {
    const auto& distinct = p.distinct[row.distinct];
    if (distinct.kernels.empty()) continue;
    ClassTime& c = classes[std::string(class_name(graph::family(p.graph.node(row.node).op)))];
    for (const auto& k : distinct.kernels) {
      const double t = row.repeats * k.cost.time.value;
      c.total_s += t;
      c.by_bound[static_cast<std::size_t>(k.cost.bound())] += t;
    }
  }
  const double exposed = p.total.value * (1 - p.share_kernels);
  if (exposed > 0) classes[std::string(kHostClass)].total_s = exposed;
  return classes;
}

/// The hardware figure behind a bound, as a plain number, and its name.
std::pair<double, std::string> resource(kernel::Bound bound, const arch::GpuSpec& gpu, const Request& request) {
  using kernel::Bound;
  const double sms = static_cast<double>(gpu.sm.count) * gpu.clocks.boost.value;
  switch (bound) {
    case Bound::dram: return {gpu.dram.peak_bandwidth.value, "DRAM bandwidth"};
    case Bound::l2: return {gpu.l2.bytes_per_cycle_per_sm * sms, "L2 bandwidth"};
    case Bound::fma: return {gpu.cuda_core_peak(DataType::fp32).value, "FP32 peak"};
    case Bound::tensor: {
      const DataType t = multiply_type(request.resolved_precision());
      const bool sparse = request.sparsity && gpu.has_sparse_path(t);
      return {(sparse ? gpu.sparse_peak(t) : gpu.tensor_peak(t)).value, "tensor-core peak"};
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
  if (name == kHostClass) return "launch and host time do not depend on the GPU's arithmetic";
  const double speedup = other.total_s > 0 ? base.total_s / other.total_s : 1;
  const auto [have, what] = resource(other.bound(), other_gpu, other_request);
  const auto [had, same] = resource(other.bound(), base_gpu, base_request);
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
  row.energy_j = p.energy_j;
  row.average_power_w = p.average_power_w;
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
  if (*name == kHostClass) return fmt::format("{:.0f} % of the time is launch and host", 100 * share);
  return fmt::format("{:.0f} % of the time is {}, bound by {}", 100 * share, *name,
                     kernel::to_string(largest->bound()));
}

/// One row of the comparison with what the reasons need of its prediction.
struct Side {
  Request request;
  std::map<std::string, ClassTime> classes;
  std::vector<NodeGroup> groups;
  const arch::GpuSpec* gpu = nullptr;
};

/// The side whose speed-up over the first the reasons explain: the last, or the last one with sparse weights where the
/// first has none.
const Side& explained(const std::vector<Side>& sides) {
  if (!sides.front().request.sparsity) {
    for (std::size_t i = sides.size(); i-- > 1;) {
      if (sides[i].request.sparsity) return sides[i];
    }
  }
  return sides.back();
}

bool by_sparsity(const Side& base, const Side& other) {
  return other.request.sparsity && !base.request.sparsity;
}

std::vector<report::LayerClass> compare_classes(std::vector<Side>& sides) {
  std::map<std::string, double> names;
  for (const auto& side : sides) {
    for (const auto& [name, c] : side.classes) names[name] = std::max(names[name], c.total_s);
  }
  std::vector<std::pair<std::string, double>> order(names.begin(), names.end());
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  const Side& base = sides.front();
  const Side& other = explained(sides);
  std::vector<report::LayerClass> out;
  for (const auto& [name, time] : order) {
    const bool host = name == kHostClass;
    report::LayerClass row;
    row.name = name;
    for (auto& side : sides) {
      const ClassTime& c = side.classes[name];
      row.time.push_back({c.total_s});
      row.bound.emplace_back(host ? "launch" : c.total_s > 0 ? kernel::to_string(c.bound()) : "-");
      row.speedup.push_back(c.total_s > 0 ? sides[0].classes[name].total_s / c.total_s : 1);
    }
    const ClassTime& had = base.classes.at(name);
    const ClassTime& has = other.classes.at(name);
    row.reason = by_sparsity(base, other) && !host
                     ? sparsity_class_reason(other.groups, name, had.total_s, has.total_s)
                     : class_reason(name, had, has, base.request, other.request, *base.gpu, *other.gpu);
    out.push_back(std::move(row));
  }
  return out;
}

ClassTime time_of(const NodeGroup* group) {
  return group == nullptr ? ClassTime{} : ClassTime{group->time_s, group->by_bound};
}

report::ComparedLayer compare_layer(const std::vector<Side>& sides, const std::vector<const NodeGroup*>& found,
                                    const NodeGroup& shown) {
  report::ComparedLayer layer{shown.name, shown.op, shown.phase, shown.count, "", {}, {}, {}, ""};
  if (const auto& p = shown.product) layer.shape = fmt::format("m = {}, n = {}, k = {}", p->m, p->n, p->k);
  const ClassTime base = time_of(found.front());
  for (const NodeGroup* group : found) {
    const ClassTime t = time_of(group);
    layer.time.push_back({t.total_s});
    layer.bound.emplace_back(t.total_s > 0 ? kernel::to_string(t.bound()) : "-");
    layer.speedup.push_back(t.total_s > 0 && base.total_s > 0 ? base.total_s / t.total_s : 1);
  }
  const Side& other = explained(sides);
  const NodeGroup* side = found[static_cast<std::size_t>(&other - sides.data())];
  if (found.front() == nullptr || side == nullptr) {
    layer.reason = "not on both sides";
  } else if (by_sparsity(sides.front(), other)) {
    layer.reason = sparsity_reason(*found.front(), *side);
  } else {
    layer.reason =
        class_reason("", base, time_of(side), sides.front().request, other.request, *sides.front().gpu, *other.gpu);
  }
  return layer;
}

/// Layer by layer, where rows differ in how they multiply.
std::vector<report::ComparedLayer> compare_layers(const std::vector<Side>& sides) {
  std::vector<report::ComparedLayer> out;
  const Request& first = sides.front().request;
  const bool multiply_alike = std::all_of(sides.begin(), sides.end(), [&](const Side& s) {
    return s.request.sparsity == first.sparsity && s.request.resolved_precision() == first.resolved_precision();
  });
  if (multiply_alike) return out;
  std::unordered_map<std::string, std::size_t> index;
  std::vector<std::vector<const NodeGroup*>> found;
  for (std::size_t i = 0; i < sides.size(); ++i) {
    for (const NodeGroup& group : sides[i].groups) {
      const auto [at, fresh] = index.try_emplace(group.key, found.size());
      if (fresh) found.emplace_back(sides.size(), nullptr);
      found[at->second][i] = &group;
    }
  }
  out.reserve(found.size());
  for (const auto& groups : found) {
    const auto shown = std::find_if(groups.begin(), groups.end(), [](const NodeGroup* g) { return g != nullptr; });
    out.push_back(compare_layer(sides, groups, **shown));
  }
  const auto longest = [](const report::ComparedLayer& l) {
    return std::max_element(l.time.begin(), l.time.end(), [](Seconds a, Seconds b) { return a < b; })->value;
  };
  std::stable_sort(out.begin(), out.end(), [&](const auto& a, const auto& b) { return longest(a) > longest(b); });
  return out;
}

std::string label_of(const report::SweepPoint& point) {
  std::string label;
  for (const auto& [name, value] : point.set) {
    const bool plain = name == "gpu" || name == "precision" || name == "framework" || name == "engine";
    label += fmt::format("{}{}{}", label.empty() ? "" : " ", plain ? "" : name + "=", value);
  }
  return label;
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
  std::vector<Side> sides;
  for (std::size_t i = 0; i < total; ++i) {
    report::SweepPoint point;
    Request request = request_at(base, axes, i, point);
    const auto p = runner.predict(request);
    result.rows.push_back(make_row(p, label_of(point)));
    const arch::GpuSpec* gpu = &runner.simulator(request)->gpu().spec;
    sides.push_back({std::move(request), class_times(p), node_groups(p), gpu});
  }
  for (std::size_t i = 0; i < total; ++i) {
    auto& row = result.rows[i];
    row.speedup = row.time.value > 0 ? result.rows[0].time.value / row.time.value : 1;
    row.reason = row_reason(sides[i].classes, row.time.value);
  }
  result.layer_classes = compare_classes(sides);
  result.layers = compare_layers(sides);
  return result;
}

}  // namespace voltaic::study
