// SPDX-License-Identifier: MIT
#include "sim/host_model.hpp"

#include <algorithm>
#include <string>

namespace voltaic {

Seconds HostModel::time(kernel::HostClass host, double calls, double launches) const {
  const double beyond = std::max(0.0, launches - std::max(1.0, calls));
  return calls * dispatch[static_cast<std::size_t>(host)] + beyond * extra_launch;
}

HostModel HostModel::scaled(double factor) const {
  HostModel out = *this;
  for (Seconds& d : out.dispatch) d = factor * d;
  out.view = factor * view;
  out.extra_launch = factor * extra_launch;
  out.launch.launch_latency = factor * launch.launch_latency;
  out.launch.kernel_gap = factor * launch.kernel_gap;
  out.launch.graph_launch = factor * launch.graph_launch;
  return out;
}

HostModel host_model(const arch::ParameterTree& calibration, kernel::Framework framework) {
  const arch::ParameterTree host = calibration.at("host");
  const auto seconds = [&host](std::string_view path) { return Seconds{host.number(path)}; };
  HostModel m;
  for (std::size_t i = 0; i < kernel::kHostClasses; ++i) {
    const auto name = kernel::to_string(static_cast<kernel::HostClass>(i));
    m.dispatch[i] = seconds(std::string("dispatch_s.").append(name));
  }
  m.view = seconds("view_s");
  m.extra_launch = seconds("extra_launch_s");
  m.launch.launch_latency = seconds("launch_latency_s");
  m.launch.kernel_gap = seconds("kernel_gap_s");
  switch (framework) {
    case kernel::Framework::eager: break;
    case kernel::Framework::xla:
    case kernel::Framework::compiled: {
      const double factor = host.number("compiled.dispatch_factor");
      for (Seconds& d : m.dispatch) d = factor * d;
      const double views = host.number("compiled.view_factor");
      m.view = views * m.view;
      Seconds& view = m.dispatch[static_cast<std::size_t>(kernel::HostClass::view)];
      view = views * view;
      break;
    }
    case kernel::Framework::graph:
    case kernel::Framework::compiled_graph:
    case kernel::Framework::tensorrt:
      m.launch.recorded = true;
      m.launch.graph_launch = seconds("graph.launch_s");
      m.launch.kernel_gap = seconds("graph.kernel_gap_s");
      break;
  }
  return m;
}

}  // namespace voltaic
