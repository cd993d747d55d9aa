// SPDX-License-Identifier: MIT
// From a played timeline and priced nodes to the figures of a Prediction: sums and quotients, no physics.
#pragma once

#include <span>

#include "sim/interval.hpp"
#include "sim/node_memo.hpp"
#include "sim/simulator.hpp"

namespace voltaic {

struct FillInput {
  const arch::ResolvedGpu& gpu;
  const SimulationOptions& options;
  const IntervalModel& intervals;
  std::span<const std::shared_ptr<const PricedNode>> priced;  ///< By NodeRow::distinct.
  Watts gap;                                                  ///< While no kernel runs.
};

/// Needs graph, timeline, nodes and distinct of `p`; computes all the rest.
void fill(report::Prediction& p, const FillInput& input);

/// Layers by name and phase, in program order.
std::vector<report::LayerRow> layer_rows(const report::Prediction& p,
                                         std::span<const std::shared_ptr<const PricedNode>> priced);

/// A rate whose product with `total` is exactly `count`, when such a double is near; 0 when `total` is 0.
double exact_rate(double count, double total);

}  // namespace voltaic
