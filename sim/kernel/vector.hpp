// SPDX-License-Identifier: MIT
// Building blocks of vector launches: byte counts from tensors, and the grids that ATen's kernels use.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/kernel/launch.hpp"
#include "sim/kernel/lowering.hpp"

namespace voltaic::kernel::vector {

/// Views above a tensor that are looked at; longer chains (no framework makes them) are cut here, so that a graph of
/// views alone stays linear.
inline constexpr int kMaxViews = 64;

/// Bytes of a tensor as stored: an expanded view holds no more than its source.
double stored_bytes(const graph::OpGraph& graph, graph::TensorId id);
/// Bytes of the distinct tensors of a list, as stored.
double stored_bytes(const graph::OpGraph& graph, std::span<const graph::TensorId> ids);

/// What a launch reads, writes and computes, per element of `elements`.
struct Pass {
  double elements = 0;
  double read = 0;     ///< Bytes.
  double written = 0;  ///< Bytes.
  int inputs = 1;
  double element_bytes = 4;
};

/// A pass over all elements of a node's first output (first input when it has none): reads inputs, writes outputs.
Pass pass_of(const graph::OpGraph& graph, const graph::Node& node);

/// `vectorized_elementwise_kernel<4>`: 128 threads, four elements each. `function` must be a static name.
Launch elementwise(std::string_view function, const Pass& pass, VectorKind kind = VectorKind::elementwise);
/// Operands smaller than the result are read once per repeat. What passes in between decides whether L2 still holds
/// them.
void add_broadcast(const graph::OpGraph& graph, const graph::Node& node, Launch& launch);
/// One CTA per row.
Launch rowwise(std::string name, VectorKind kind, std::int64_t rows, std::int64_t cols, int threads, const Pass& pass);
/// `reduce_kernel`: rows of `cols` elements folded to one each.
Launch reduce(std::int64_t rows, std::int64_t cols, double read, double written, double element_bytes);
/// `FillFunctor`: writes only.
Launch fill(double bytes, double element_bytes);

/// Appends `launch` unless it does nothing: kernels over empty tensors are not launched.
void push(std::vector<Launch>& launches, Launch launch);

/// The product of the dims of a shape from `from` on.
std::int64_t product(const graph::Shape& shape, std::size_t from, std::size_t to);

/// A negative axis counted from the end, held inside the rank.
std::size_t axis_of(std::int64_t axis, std::size_t rank);

}  // namespace voltaic::kernel::vector

namespace voltaic::kernel {

/// Dropout and its gradient.
Lowered lower_random(const graph::OpGraph& graph, const graph::Node& node, const Target& target);

}  // namespace voltaic::kernel
