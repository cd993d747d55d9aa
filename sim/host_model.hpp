// SPDX-License-Identifier: MIT
// What the host pays per framework call, and how launches behave, by framework. Calibration section `host`.
#pragma once

#include <array>

#include "arch/parameter_tree.hpp"
#include "sim/kernel/lowering.hpp"
#include "sim/runtime/device.hpp"

namespace voltaic {

struct HostModel {
  std::array<Seconds, kernel::kHostClasses>
      dispatch{};        ///< One framework call of this class, its first launch included.
  Seconds view;          ///< A call beside the operation that launches nothing.
  Seconds extra_launch;  ///< Each launch of a call after its first.
  runtime::LaunchModel launch;

  /// Host time of one node: its calls, and the launches beyond one per call.
  Seconds time(kernel::HostClass host, double calls, double launches) const;
  /// All host costs times `factor`: what a faster or slower host would give.
  HostModel scaled(double factor) const;
};

HostModel host_model(const arch::ParameterTree& calibration, kernel::Framework framework);

}  // namespace voltaic
