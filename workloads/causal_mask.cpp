// SPDX-License-Identifier: MIT
#include "workloads/causal_mask.hpp"

namespace voltaic::workloads {
namespace {

constexpr double kLowest = -3.4e38;

TensorId triangle(GraphWriter& w, Dim seq) {
  const TensorId full = w.fill("mask.full", {seq, seq}, DataType::fp32);
  w.host_calls(4);
  const TensorId index = w.fill("mask.index", {seq}, DataType::int64);
  const TensorId next = w.scalar(OpType::add_scalar, "mask.next", index, 1.0);
  const TensorId column = w.reshape("mask.column", next, {seq, 1});
  const TensorId below =
      w.apply(OpType::compare, "mask.below", {index, column}, attributes({{"relation", std::string("lt")}}));
  return w.apply(OpType::masked_fill, "mask.triangle", {full, below}, attributes({{"value", 0.0}}));
}

}  // namespace

TensorId additive_causal_mask(GraphWriter& w, const TokenSizes& sizes) {
  const Shape shape{sizes.batch, 1, sizes.seq, sizes.context};
  const graph::Attributes to_bool = attributes({{"to", std::string("bool")}});
  const graph::Attributes lowest = attributes({{"value", kLowest}});
  const TensorId ones = w.fill("mask.ones", {sizes.batch, sizes.context}, DataType::fp32);
  w.host_calls(6);
  const TensorId padding =
      w.apply(OpType::expand, "mask.padding", {w.reshape("mask.view", ones, {sizes.batch, 1, 1, sizes.context})},
              attributes({{"shape", shape}}));
  w.host_calls(3);
  const TensorId inverted = w.scalar(OpType::sub_scalar, "mask.inverted", padding, 1.0);
  const TensorId invalid = w.apply(OpType::cast, "mask.invalid", {inverted}, to_bool);
  const TensorId filled = w.apply(OpType::masked_fill, "mask.expanded", {inverted, invalid}, lowest);
  if (sizes.seq == 1) return filled;  // one query sees every key: no triangle
  const TensorId causal = w.reshape("mask.causal", triangle(w, sizes.seq), {1, 1, sizes.seq, sizes.context});
  w.host_calls(3);
  const TensorId expanded = w.apply(OpType::expand, "mask.causal_expanded", {causal}, attributes({{"shape", shape}}));
  const TensorId padded = w.apply(OpType::cast, "mask.padded", {filled}, to_bool);
  return w.apply(OpType::masked_fill, "mask", {expanded, padded}, lowest);
}

}  // namespace voltaic::workloads
