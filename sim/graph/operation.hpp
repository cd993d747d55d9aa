// SPDX-License-Identifier: MIT
// The operations a layer graph may contain, by the names used in voltaic.graph/1 files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace voltaic::graph {

/// What kind of work an operation is; a family shares its shape rules, its gradient rules and its lowering file.
enum class OpFamily : std::uint8_t {
  matrix,
  convolution,
  attention,
  recurrent,
  normalization,
  pointwise,
  softmax,
  reduction,
  pooling,
  resize,
  embedding,
  gather_scatter,
  sparse,  ///< Products with a sparse matrix: graph networks, pruned weights.
  moe,
  view,  ///< Metadata only: no kernel, a little host time.
  data_movement,
  random,
  loss,
  optimizer,
  transfer,
  collective,
};

// clang-format off
// name, family
#define VOLTAIC_OPERATIONS(X)                                                                        \
  X(linear, matrix) X(matmul, matrix) X(grouped_linear, matrix)                                      \
  X(conv1d, convolution) X(conv2d, convolution) X(conv3d, convolution)                               \
  X(conv_transpose1d, convolution) X(conv_transpose2d, convolution) X(conv_transpose3d, convolution) \
  X(conv_dgrad, convolution) X(conv_wgrad, convolution)                                              \
  X(attention, attention) X(attention_backward, attention)                                           \
  X(rnn, recurrent) X(lstm, recurrent) X(gru, recurrent)                                             \
  X(rnn_backward, recurrent) X(rnn_wgrad, recurrent)                                                 \
  X(layer_norm, normalization) X(rms_norm, normalization)                                            \
  X(batch_norm, normalization) X(group_norm, normalization)                                          \
  X(layer_norm_backward, normalization) X(rms_norm_backward, normalization)                          \
  X(batch_norm_backward, normalization) X(group_norm_backward, normalization)                        \
  X(norm_param_grad, normalization) X(fused_norm, normalization)                                     \
  X(relu, pointwise) X(relu6, pointwise) X(leaky_relu, pointwise) X(elu, pointwise)                  \
  X(gelu, pointwise) X(gelu_tanh, pointwise) X(silu, pointwise) X(hardswish, pointwise)              \
  X(hardsigmoid, pointwise) X(mish, pointwise) X(softplus, pointwise)                                \
  X(tanh, pointwise) X(sigmoid, pointwise) X(exp, pointwise) X(log, pointwise) X(sqrt, pointwise)    \
  X(rsqrt, pointwise) X(neg, pointwise) X(abs, pointwise) X(erf, pointwise) X(sin, pointwise)        \
  X(cos, pointwise) X(square, pointwise) X(reciprocal, pointwise) X(clamp, pointwise)                \
  X(cast, pointwise) X(logical_not, pointwise)                                                       \
  X(add_scalar, pointwise) X(mul_scalar, pointwise) X(div_scalar, pointwise)                         \
  X(sub_scalar, pointwise) X(pow_scalar, pointwise) X(maximum_scalar, pointwise)                     \
  X(compare_scalar, pointwise)                                                                       \
  X(add, pointwise) X(sub, pointwise) X(mul, pointwise) X(div, pointwise) X(pow, pointwise)          \
  X(maximum, pointwise) X(minimum, pointwise) X(compare, pointwise)                                  \
  X(where, pointwise) X(masked_fill, pointwise) X(silu_mul, pointwise) X(gelu_mul, pointwise)        \
  X(rope, pointwise) X(pointwise_backward, pointwise) X(fused_pointwise, pointwise)                  \
  X(softmax, softmax) X(log_softmax, softmax) X(softmax_backward, softmax)                           \
  X(log_softmax_backward, softmax) X(fused_softmax, softmax)                                         \
  X(reduce_sum, reduction) X(reduce_mean, reduction) X(reduce_max, reduction) X(argmax, reduction)   \
  X(sort, reduction) X(nms, reduction)                                                               \
  X(cumsum, reduction) X(topk, reduction)                                                            \
  X(max_pool2d, pooling) X(avg_pool2d, pooling) X(global_avg_pool2d, pooling)                        \
  X(max_pool1d, pooling) X(avg_pool1d, pooling) X(max_pool3d, pooling) X(avg_pool3d, pooling)        \
  X(pool_backward, pooling)                                                                          \
  X(resize, resize) X(resize_backward, resize)                                                       \
  X(embedding, embedding) X(embedding_backward, embedding)                                           \
  X(embedding_bag, embedding) X(embedding_bag_backward, embedding)                                   \
  X(gather, gather_scatter) X(scatter_add, gather_scatter)                                           \
  X(roi_align, gather_scatter) X(roi_align_backward, gather_scatter)                                 \
  X(spmm, sparse) X(sddmm, sparse)                                                                   \
  X(moe_dispatch, moe) X(moe_combine, moe)                                                           \
  X(reshape, view) X(transpose, view) X(split, view) X(slice, view) X(expand, view)                  \
  X(contiguous, data_movement) X(copy, data_movement) X(concat, data_movement)                       \
  X(pad, data_movement) X(fill, data_movement)                                                       \
  X(dropout, random) X(dropout_backward, random)                                                     \
  X(cross_entropy, loss) X(cross_entropy_backward, loss) X(mse_loss, loss)                           \
  X(mse_loss_backward, loss)                                                                         \
  X(smooth_l1_loss, loss) X(smooth_l1_loss_backward, loss)                                           \
  X(bce_loss, loss) X(bce_loss_backward, loss)                                                       \
  X(ctc_loss, loss) X(ctc_loss_backward, loss)                                                       \
  X(optimizer_step, optimizer) X(grad_accumulate, optimizer) X(zero_grad, optimizer)                 \
  X(grad_scale, optimizer)                                                                           \
  X(host_to_device, transfer) X(device_to_host, transfer)                                            \
  X(all_reduce, collective) X(all_gather, collective) X(reduce_scatter, collective)                  \
  X(all_to_all, collective) X(broadcast, collective) X(send_recv, collective)
// clang-format on

enum class OpType : std::uint8_t {
#define X(name, family) name,
  VOLTAIC_OPERATIONS(X)
#undef X
};

std::string_view to_string(OpType op);
std::string_view to_string(OpFamily family);
OpFamily family(OpType op);
/// The gradient of a loss with respect to its first input.
bool is_loss_gradient(OpType op);
std::optional<OpType> parse_op(std::string_view name);
/// Every operation in declaration order.
const std::vector<OpType>& all_ops();

/// Small ordered map of an operation's attributes; names and meaning per operation stand in sim/graph/README.md.
class Attributes {
 public:
  using Value = std::variant<std::int64_t, double, std::string, std::vector<std::int64_t>>;

  void set(std::string_view name, Value value);
  const Value* find(std::string_view name) const;
  bool has(std::string_view name) const { return find(name) != nullptr; }
  /// Absent names give the fallback; a value of another kind gives the fallback too (readers check kinds on input).
  std::int64_t integer(std::string_view name, std::int64_t fallback) const;
  double number(std::string_view name, double fallback) const;
  std::string word(std::string_view name, std::string_view fallback) const;
  std::vector<std::int64_t> integers(std::string_view name) const;
  bool flag(std::string_view name) const { return integer(name, 0) != 0; }
  const std::vector<std::pair<std::string, Value>>& entries() const { return entries_; }
  friend bool operator==(const Attributes&, const Attributes&) = default;

 private:
  std::vector<std::pair<std::string, Value>> entries_;  ///< Sorted by name.
};

}  // namespace voltaic::graph
