// SPDX-License-Identifier: MIT
#include "workloads/shared_layers.hpp"

#include <utility>

#include "arch/units/error.hpp"

namespace voltaic::workloads {

TensorId conv_with(GraphWriter& w, const std::string& name, TensorId x, TensorId weight, TensorId bias,
                   const ConvLayer& layer) {
  const Shape& filter = w.shape(weight);
  const std::size_t dims = filter.size() - 2;
  if (dims < 1 || dims > 3) throw InternalError("a convolution has one to three spatial dims");
  Shape padding(dims, layer.padding);
  if (layer.padding == kSamePadding) {
    for (std::size_t d = 0; d < dims; ++d) padding[d] = layer.dilation * (filter[d + 2] - 1) / 2;
  }
  graph::Attributes attrs = attributes({{"padding", std::move(padding)}, {"stride", layer.stride}});
  if (layer.dilation != 1) attrs.set("dilation", layer.dilation);
  if (layer.groups != 1) attrs.set("groups", layer.groups);
  std::vector<TensorId> inputs{x, weight};
  if (bias != kNoBias) inputs.push_back(bias);
  const OpType op = dims == 1 ? OpType::conv1d : dims == 2 ? OpType::conv2d : OpType::conv3d;
  return w.apply_all(op, name, std::move(inputs), std::move(attrs));
}

void SharedNetwork::run(const std::string& name) {
  run_ = network_ + "." + name;
  w_->scope(run_);
}

TensorId SharedNetwork::made(const std::string& name, const Shape& shape, bool buffer) {
  if (const auto found = made_.find(name); found != made_.end()) return found->second;
  w_->scope(network_);
  const TensorId made = buffer ? w_->buffer(network_ + "." + name, shape) : w_->parameter(name, shape);
  w_->scope(run_);
  made_.emplace(name, made);
  return made;
}

TensorId SharedNetwork::parameter(const std::string& name, const Shape& shape) {
  return made(name, shape, false);
}

TensorId SharedNetwork::conv(const std::string& name, TensorId x, Dim out, const Shape& kernel,
                             const ConvLayer& layer) {
  Shape filter{out, w_->dim(x, 1) / layer.groups};
  filter.insert(filter.end(), kernel.begin(), kernel.end());
  const TensorId weight = parameter(name + ".weight", filter);
  const TensorId bias = layer.bias ? parameter(name + ".bias", {out}) : kNoBias;
  return conv_with(*w_, name, x, weight, bias, layer);
}

TensorId SharedNetwork::batch_norm(const std::string& name, TensorId x) {
  const Shape channels{w_->dim(x, 1)};
  const TensorId weight = parameter(name + ".weight", channels);
  const TensorId bias = parameter(name + ".bias", channels);
  const TensorId mean = made(name + ".running_mean", channels, true);
  const TensorId variance = made(name + ".running_var", channels, true);
  graph::Attributes attrs;
  if (w_->training()) attrs.set("training", std::int64_t{1});
  return w_->apply(OpType::batch_norm, name, {x, weight, bias, mean, variance}, std::move(attrs));
}

}  // namespace voltaic::workloads
