// SPDX-License-Identifier: MIT
#include "workloads/layers.hpp"

#include <array>
#include <utility>

#include "arch/units/error.hpp"
#include "workloads/attention_block.hpp"

namespace voltaic::workloads {
namespace {

/// Spatial dims of [N, C, spatial].
std::size_t spatial_dims(const GraphWriter& w, TensorId x) {
  const std::size_t rank = w.shape(x).size();
  if (rank < 3 || rank > 5) throw InternalError("a layer over images needs one to three spatial dims");
  return rank - 2;
}

OpType of_rank(const std::array<OpType, 3>& ops, std::size_t dims) {
  return ops.at(dims - 1);
}

graph::Attributes pool_attributes(Dim kernel, const PoolLayer& layer) {
  graph::Attributes attrs = attributes(
      {{"kernel", kernel}, {"padding", layer.padding}, {"stride", layer.stride == 0 ? kernel : layer.stride}});
  if (layer.ceil_mode) attrs.set("ceil_mode", std::int64_t{1});
  return attrs;
}

}  // namespace

TensorId conv(GraphWriter& w, const std::string& name, TensorId x, Dim out, Dim kernel, ConvLayer layer) {
  return conv(w, name, x, out, Shape(spatial_dims(w, x), kernel), layer);
}

TensorId conv(GraphWriter& w, const std::string& name, TensorId x, Dim out, const Shape& kernel, ConvLayer layer) {
  constexpr std::array<OpType, 3> kOps{OpType::conv1d, OpType::conv2d, OpType::conv3d};
  const std::size_t dims = spatial_dims(w, x);
  if (kernel.size() != dims) throw InternalError("a convolution needs a kernel size per spatial dim");
  Shape filter{out, w.dim(x, 1) / layer.groups};
  filter.insert(filter.end(), kernel.begin(), kernel.end());
  Shape padding(dims, layer.padding);
  if (layer.padding == kSamePadding) {
    for (std::size_t d = 0; d < dims; ++d) padding[d] = layer.dilation * (kernel[d] - 1) / 2;
  }
  graph::Attributes attrs = attributes({{"padding", std::move(padding)}, {"stride", layer.stride}});
  if (layer.dilation != 1) attrs.set("dilation", layer.dilation);
  if (layer.groups != 1) attrs.set("groups", layer.groups);
  std::vector<TensorId> inputs{x, w.parameter(name + ".weight", std::move(filter))};
  if (layer.bias) inputs.push_back(w.parameter(name + ".bias", {out}));
  return w.apply_all(of_rank(kOps, dims), name, std::move(inputs), std::move(attrs));
}

TensorId conv_transpose(GraphWriter& w, const std::string& name, TensorId x, Dim out, Dim kernel,
                        TransposedLayer layer) {
  constexpr std::array<OpType, 3> kOps{OpType::conv_transpose1d, OpType::conv_transpose2d, OpType::conv_transpose3d};
  const std::size_t dims = spatial_dims(w, x);
  Shape filter{w.dim(x, 1), out};
  filter.insert(filter.end(), dims, kernel);
  std::vector<TensorId> inputs{x, w.parameter(name + ".weight", std::move(filter))};
  if (layer.bias) inputs.push_back(w.parameter(name + ".bias", {out}));
  return w.apply_all(
      of_rank(kOps, dims), name, std::move(inputs),
      attributes({{"output_padding", layer.output_padding}, {"padding", layer.padding}, {"stride", layer.stride}}));
}

TensorId batch_norm(GraphWriter& w, const std::string& name, TensorId x) {
  const Shape channels{w.dim(x, 1)};
  const TensorId weight = w.parameter(name + ".weight", channels);
  const TensorId bias = w.parameter(name + ".bias", channels);
  const TensorId mean = w.buffer(w.scoped(name + ".running_mean"), channels);
  const TensorId variance = w.buffer(w.scoped(name + ".running_var"), channels);
  graph::Attributes attrs;
  if (w.training()) attrs.set("training", std::int64_t{1});
  return w.apply(OpType::batch_norm, name, {x, weight, bias, mean, variance}, std::move(attrs));
}

TensorId group_norm(GraphWriter& w, const std::string& name, TensorId x, Dim groups) {
  const Shape channels{w.dim(x, 1)};
  const TensorId weight = w.parameter(name + ".weight", channels);
  const TensorId bias = w.parameter(name + ".bias", channels);
  return w.apply(OpType::group_norm, name, {x, weight, bias}, attributes({{"groups", groups}}));
}

TensorId instance_norm(GraphWriter& w, const std::string& name, TensorId x) {
  const Dim images = w.dim(x, 0);
  const Dim channels = w.dim(x, 1);
  const auto repeated = [&](const std::string& parameter) {
    const TensorId own = w.reshape(parameter + ".row", w.parameter(parameter, {channels}), {1, channels});
    const TensorId rows =
        w.apply(OpType::expand, parameter + ".rows", {own}, attributes({{"shape", Shape{images, channels}}}));
    return w.reshape(parameter + ".view", w.contiguous(parameter + ".repeat", rows), {images * channels});
  };
  const TensorId weight = repeated(name + ".weight");
  const TensorId bias = repeated(name + ".bias");
  Shape maps = w.shape(x);
  maps[0] = 1;
  maps[1] = images * channels;
  const TensorId flat = w.reshape(name + ".maps", x, maps);
  const TensorId y =
      w.apply(OpType::batch_norm, name, {flat, weight, bias}, attributes({{"training", std::int64_t{1}}}));
  return w.reshape(name + ".images", y, w.shape(x));
}

TensorId max_pool(GraphWriter& w, const std::string& name, TensorId x, Dim kernel, PoolLayer layer) {
  constexpr std::array<OpType, 3> kOps{OpType::max_pool1d, OpType::max_pool2d, OpType::max_pool3d};
  return w.apply(of_rank(kOps, spatial_dims(w, x)), name, {x}, pool_attributes(kernel, layer));
}

TensorId avg_pool(GraphWriter& w, const std::string& name, TensorId x, Dim kernel, PoolLayer layer) {
  constexpr std::array<OpType, 3> kOps{OpType::avg_pool1d, OpType::avg_pool2d, OpType::avg_pool3d};
  return w.apply(of_rank(kOps, spatial_dims(w, x)), name, {x}, pool_attributes(kernel, layer));
}

TensorId global_pool(GraphWriter& w, const std::string& name, TensorId x) {
  const std::size_t dims = spatial_dims(w, x);
  if (dims == 2) return w.apply(OpType::global_avg_pool2d, name, {x});
  Shape axes{2};
  if (dims == 3) axes = {2, 3, 4};
  return w.apply(OpType::reduce_mean, name, {x}, attributes({{"axes", axes}, {"keepdims", std::int64_t{1}}}));
}

TensorId concat(GraphWriter& w, const std::string& name, const std::vector<TensorId>& parts, Dim axis) {
  return w.apply_all(OpType::concat, name, parts, attributes({{"axis", axis}}));
}

TensorId upsample(GraphWriter& w, const std::string& name, TensorId x, double scale, const std::string& mode) {
  return w.apply(OpType::resize, name, {x}, attributes({{"mode", mode}, {"scale", scale}}));
}

TensorId squeeze_excite(GraphWriter& w, const std::string& name, TensorId x, Dim squeezed, OpType inner, OpType gate) {
  const Dim channels = w.dim(x, 1);
  TensorId s = global_pool(w, name + ".pool", x);
  s = w.apply(inner, name + ".inner", {conv(w, name + ".reduce", s, squeezed, 1, {.bias = true})});
  s = w.apply(gate, name + ".gate", {conv(w, name + ".expand", s, channels, 1, {.bias = true})});
  return w.apply(OpType::mul, name + ".scale", {x, s});
}

void classify(GraphWriter& w, Workload& workload, TensorId logits) {
  if (w.training()) {
    w.scope("loss");
    const TensorId labels = w.input("labels", {w.dim(logits, 0)}, DataType::int64);
    w.graph().loss = w.apply(OpType::cross_entropy, "cross_entropy", {logits, labels});
  }
  finish(workload, logits);
}

}  // namespace voltaic::workloads
