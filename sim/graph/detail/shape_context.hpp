// SPDX-License-Identifier: MIT
// What a shape rule sees of a node, with the checks and the refusals that rules have in common.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/graph/op_graph.hpp"
#include "sim/graph/operation.hpp"
#include "sim/graph/shape_rules.hpp"

namespace voltaic::graph::detail {

/// A type by reference: rules read the shapes of existing tensors without copying them.
struct TypeRef {
  const Shape* shape = nullptr;
  DataType dtype = DataType::fp32;
};

using Types = std::vector<TensorType>;

/// Largest element count, and largest single dimension, that is accepted.
inline constexpr std::int64_t kMaxElements = std::int64_t{1} << 62;
/// Most dimensions a tensor may have: bounds the work a hostile file can ask for.
inline constexpr std::size_t kMaxRank = 64;

/// Checked arithmetic on dimensions: throws ShapeError where the result leaves 64 bits.
std::int64_t plus(std::int64_t a, std::int64_t b);
std::int64_t times(std::int64_t a, std::int64_t b);

/// Throws ShapeError unless there are at most kMaxRank dims, all at least 0, and the product of the non-zero ones is at
/// most 2^62.
void check_shape(const Shape& shape, std::string_view place = {});

/// The type that holds both, as frameworks promote: floating beats integer, then the wider, fp16 with bf16 gives fp32.
DataType promote(DataType a, DataType b);

class RuleContext {
 public:
  RuleContext(OpType operation, const Attributes& given, std::span<const TypeRef> inputs)
      : op(operation), attributes(given), inputs_(inputs) {}

  const OpType op;
  const Attributes& attributes;

  std::size_t input_count() const { return inputs_.size(); }
  const Shape& shape(std::size_t i) const { return *inputs_[i].shape; }
  DataType dtype(std::size_t i) const { return inputs_[i].dtype; }
  std::size_t rank(std::size_t i) const { return shape(i).size(); }
  TensorType like(std::size_t i) const { return {shape(i), dtype(i)}; }

  [[noreturn]] void refuse_input(std::size_t i, const std::string& expected) const;
  [[noreturn]] void refuse_attribute(std::string_view name, const std::string& expected, const std::string& got) const;
  void require_rank(std::size_t i, std::size_t rank, std::string_view meaning) const;
  void require_min_rank(std::size_t i, std::size_t rank) const;
  void require_shape(std::size_t i, const Shape& expected) const;
  void require_integer_type(std::size_t i, std::string_view meaning) const;
  /// Checks dimension `dim` of input `i`.
  void require_dim(std::size_t i, std::size_t dim, std::int64_t expected, std::string_view meaning) const;

  std::int64_t integer(std::string_view name, std::int64_t fallback, std::int64_t minimum) const;
  std::int64_t required_integer(std::string_view name, std::int64_t minimum) const;
  Shape required_shape(std::string_view name) const;
  DataType data_type(std::string_view name, DataType fallback) const;
  /// Attribute `name` as an axis of a tensor of this rank; negative values count from the end.
  std::size_t axis(std::string_view name, std::int64_t fallback, std::size_t rank) const;
  /// One value per spatial dimension from an integer or a list; at most three dimensions.
  std::array<std::int64_t, 3> spatial(std::string_view name, std::size_t dims, std::int64_t fallback,
                                      std::int64_t minimum) const;

 private:
  std::span<const TypeRef> inputs_;
};

// One rule per family, in shape_rules_*.cpp.
Types matrix_rule(const RuleContext& c);
Types convolution_rule(const RuleContext& c);
Types attention_rule(const RuleContext& c);
Types recurrent_rule(const RuleContext& c);
Types normalization_rule(const RuleContext& c);
Types pointwise_rule(const RuleContext& c);
Types softmax_rule(const RuleContext& c);
Types reduction_rule(const RuleContext& c);
Types pooling_rule(const RuleContext& c);
Types resize_rule(const RuleContext& c);
Types embedding_rule(const RuleContext& c);
Types gather_scatter_rule(const RuleContext& c);
Types sparse_rule(const RuleContext& c);
Types moe_rule(const RuleContext& c);
Types movement_rule(const RuleContext& c);  ///< Views and data movement.
Types random_rule(const RuleContext& c);
Types loss_rule(const RuleContext& c);
Types collective_rule(const RuleContext& c);

/// Runs the rule of the operation after checking the number of inputs.
Types infer(const RuleContext& c);
/// The same for a node over `tensors` that has, or is about to get, `output_count` outputs, which is checked too.
Types infer_outputs(std::span<const Tensor> tensors, const Node& node, std::size_t output_count);

}  // namespace voltaic::graph::detail
