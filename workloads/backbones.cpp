// SPDX-License-Identifier: MIT
#include "workloads/backbones.hpp"

#include <algorithm>
#include <utility>

namespace voltaic::workloads {

TensorId image_input(GraphWriter& w, const ImageSizes& sizes, Dim channels) {
  return w.input("image", {sizes.batch, channels, sizes.height, sizes.width});
}

TensorId conv_norm(GraphWriter& w, const std::string& name, TensorId x, Dim out, Dim kernel, ConvLayer layer) {
  return batch_norm(w, name + ".bn", conv(w, name, x, out, kernel, layer));
}

TensorId conv_norm_act(GraphWriter& w, const std::string& name, TensorId x, Dim out, Dim kernel, OpType act,
                       ConvLayer layer) {
  return w.apply(act, name + ".act", {conv_norm(w, name, x, out, kernel, layer)});
}

TensorId conv_relu(GraphWriter& w, const std::string& name, TensorId x, Dim out, Dim kernel, ConvLayer layer) {
  return w.apply(OpType::relu, name + ".relu", {conv(w, name, x, out, kernel, layer)});
}

SharedConv::SharedConv(GraphWriter& w, const std::string& name, Dim in, Dim out, Dim kernel, ConvLayer layer) {
  parameters_.push_back(w.parameter(name + ".weight", {out, in / layer.groups, kernel, kernel}));
  if (layer.bias) parameters_.push_back(w.parameter(name + ".bias", {out}));
  const Dim padding = layer.padding == kSamePadding ? layer.dilation * (kernel - 1) / 2 : layer.padding;
  attributes_ = attributes({{"padding", padding}, {"stride", layer.stride}});
  if (layer.groups != 1) attributes_.set("groups", layer.groups);
  if (layer.dilation != 1) attributes_.set("dilation", layer.dilation);
}

TensorId SharedConv::apply(GraphWriter& w, const std::string& name, TensorId x) const {
  std::vector<TensorId> inputs{x};
  inputs.insert(inputs.end(), parameters_.begin(), parameters_.end());
  return w.apply_all(OpType::conv2d, name, std::move(inputs), attributes_);
}

TensorId frozen_norm(GraphWriter& w, const std::string& name, TensorId x) {
  const Shape channels{1, w.dim(x, 1), 1, 1};
  const TensorId weight = w.buffer(w.scoped(name + ".weight"), channels);
  const TensorId bias = w.buffer(w.scoped(name + ".bias"), channels);
  const TensorId mean = w.buffer(w.scoped(name + ".running_mean"), channels);
  const TensorId variance = w.buffer(w.scoped(name + ".running_var"), channels);
  const TensorId deviation = w.apply(OpType::rsqrt, name + ".rsqrt", {variance});
  const TensorId scale = w.apply(OpType::mul, name + ".scale", {weight, deviation});
  const TensorId moved = w.apply(OpType::mul, name + ".moved", {mean, scale});
  const TensorId shift = w.apply(OpType::sub, name + ".shift", {bias, moved});
  w.host_calls(4);  // reshapes of the vectors
  const TensorId scaled = w.apply(OpType::mul, name + ".mul", {x, scale});
  return w.apply(OpType::add, name, {scaled, shift});
}

void classifier_head(GraphWriter& w, Workload& workload, TensorId x, Dim classes, double dropout) {
  w.scope("head");
  x = global_pool(w, "avgpool", x);
  x = w.reshape("flatten", x, {w.dim(x, 0), w.dim(x, 1)});
  if (dropout > 0) x = w.dropout("dropout", x, dropout);
  classify(w, workload, w.linear("fc", x, classes, true));
}

std::vector<TensorId> feature_pyramid(GraphWriter& w, const std::vector<TensorId>& maps, Dim width) {
  w.scope("fpn");
  std::vector<TensorId> out(maps.size());
  TensorId above = 0;
  for (std::size_t i = maps.size(); i-- > 0;) {
    const std::string level = std::to_string(i);
    TensorId x = conv(w, "inner" + level, maps[i], width, 1, {.bias = true});
    if (i + 1 < maps.size()) {
      const graph::Attributes to_size =
          attributes({{"mode", std::string("nearest")}, {"size", Shape{w.dim(x, 2), w.dim(x, 3)}}});
      const TensorId doubled = w.apply(OpType::resize, "upsample" + level, {above}, to_size);
      x = w.apply(OpType::add, "add" + level, {x, doubled});
    }
    out[i] = conv(w, "layer" + level, x, width, 3, {.bias = true});
    above = x;
  }
  return out;
}

TensorId vgg_features(GraphWriter& w, TensorId image, const VggShape& shape) {
  TensorId x = image;
  for (std::size_t stage = 0; stage < shape.counts.size(); ++stage) {
    w.scope("features" + std::to_string(stage + 1));
    const Dim width = std::min<Dim>(Dim{64} << stage, 512);
    for (Dim i = 0; i < shape.counts.at(stage); ++i) {
      const std::string number = std::to_string(i + 1);
      x = w.apply(OpType::relu, "relu" + number, {conv(w, "conv" + number, x, width, 3, {.bias = true})});
    }
    if (shape.before_pool != nullptr) shape.before_pool->push_back(x);
    const bool last = stage + 1 == shape.counts.size();
    if (!last || shape.last_pool) x = max_pool(w, "pool", x, 2, {.ceil_mode = shape.ceil_third_pool && stage == 2});
  }
  return x;
}

}  // namespace voltaic::workloads
