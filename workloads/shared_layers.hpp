// SPDX-License-Identifier: MIT
// Layers over weights at hand: made by other operations, or used more than once in a step.
#pragma once

#include <map>
#include <string>

#include "workloads/layers.hpp"

namespace voltaic::workloads {

inline constexpr TensorId kNoBias = UINT32_MAX;

/// Convolution of x[N, C, spatial] with weight[K, C / groups, filter]; the padding of kSamePadding is that of conv().
TensorId conv_with(GraphWriter& w, const std::string& name, TensorId x, TensorId weight, TensorId bias,
                   const ConvLayer& layer);

/// A network that runs several times in a step: the first run makes its parameters, the others find them.
/// Nodes are named NETWORK.RUN.name, parameters NETWORK.name.
class SharedNetwork {
 public:
  SharedNetwork(GraphWriter& writer, std::string network) : w_(&writer), network_(std::move(network)) {}

  void run(const std::string& name);
  TensorId parameter(const std::string& name, const Shape& shape);
  TensorId conv(const std::string& name, TensorId x, Dim out, const Shape& kernel, const ConvLayer& layer);
  TensorId batch_norm(const std::string& name, TensorId x);

 private:
  TensorId made(const std::string& name, const Shape& shape, bool buffer);

  GraphWriter* w_;
  std::string network_;
  std::string run_;
  std::map<std::string, TensorId> made_;
};

}  // namespace voltaic::workloads
