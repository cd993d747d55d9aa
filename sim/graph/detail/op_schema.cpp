// SPDX-License-Identifier: MIT
#include "sim/graph/detail/op_schema.hpp"

namespace voltaic::graph::detail {

namespace {

using K = AttributeKind;
using Specs = std::span<const AttributeSpec>;

constexpr AttributeSpec kTransposedWeight[] = {{"transposed_weight", K::flag}};
constexpr AttributeSpec kGrouped[] = {{"transposed_weight", K::flag},
                                      {"rows", K::integer},
                                      {"top_k", K::integer},
                                      {"total_experts", K::integer},
                                      {"side_by_side", K::integer}};
constexpr AttributeSpec kMatmul[] = {{"transpose_a", K::flag}, {"transpose_b", K::flag}, {"linear", K::flag}};
constexpr AttributeSpec kConv[] = {{"stride", K::integer_or_integers},   {"padding", K::integer_or_integers},
                                   {"dilation", K::integer_or_integers}, {"groups", K::integer},
                                   {"channels_last", K::flag},           {"residual", K::flag}};
constexpr AttributeSpec kConvTranspose[] = {{"stride", K::integer_or_integers},
                                            {"padding", K::integer_or_integers},
                                            {"dilation", K::integer_or_integers},
                                            {"output_padding", K::integer_or_integers},
                                            {"groups", K::integer},
                                            {"channels_last", K::flag}};
constexpr AttributeSpec kConvGradient[] = {{"stride", K::integer_or_integers},
                                           {"padding", K::integer_or_integers},
                                           {"dilation", K::integer_or_integers},
                                           {"output_padding", K::integer_or_integers},
                                           {"groups", K::integer},
                                           {"channels_last", K::flag},
                                           {"transposed", K::flag},
                                           {"input_shape", K::integers},
                                           {"filter_shape", K::integers}};
constexpr AttributeSpec kAttention[] = {{"causal", K::flag}, {"window", K::integer}};
constexpr AttributeSpec kRecurrent[] = {{"hidden", K::integer}, {"layers", K::integer}, {"bidirectional", K::flag}};
constexpr AttributeSpec kRecurrentGradient[] = {
    {"of", K::operation}, {"hidden", K::integer}, {"layers", K::integer}, {"bidirectional", K::flag}};
constexpr AttributeSpec kTrailingNorm[] = {{"axes", K::integer}};
constexpr AttributeSpec kGroupNorm[] = {{"groups", K::integer}};
constexpr AttributeSpec kBatchNorm[] = {{"training", K::flag}};
constexpr AttributeSpec kNormParamGrad[] = {{"axes", K::integer}, {"groups", K::integer}, {"bias", K::flag}};
constexpr AttributeSpec kValue[] = {{"value", K::number}};
constexpr AttributeSpec kClamp[] = {{"low", K::number}, {"high", K::number}};
constexpr AttributeSpec kCompare[] = {{"relation", K::word}};
constexpr AttributeSpec kCompareScalar[] = {{"relation", K::word}, {"value", K::number}};
constexpr AttributeSpec kCast[] = {{"to", K::data_type}};
constexpr AttributeSpec kPointwiseBackward[] = {{"of", K::operation}, {"shape", K::integers}};
constexpr AttributeSpec kFused[] = {{"functions", K::word}, {"to", K::data_type}, {"shape", K::integers}};
constexpr AttributeSpec kFusedRows[] = {{"functions", K::word},     {"to", K::data_type},       {"shape", K::integers},
                                        {"row_inputs", K::integer}, {"parameters", K::integer}, {"cols", K::integer}};
constexpr AttributeSpec kAxis[] = {{"axis", K::integer}};
constexpr AttributeSpec kReduce[] = {{"axes", K::integer_or_integers}, {"keepdims", K::flag}};
constexpr AttributeSpec kArgmax[] = {{"axis", K::integer}, {"keepdims", K::flag}};
constexpr AttributeSpec kTopk[] = {{"k", K::integer}};
constexpr AttributeSpec kPool[] = {{"kernel", K::integer_or_integers},
                                   {"stride", K::integer_or_integers},
                                   {"padding", K::integer_or_integers},
                                   {"ceil_mode", K::flag}};
constexpr AttributeSpec kPoolBackward[] = {{"of", K::operation},
                                           {"input_shape", K::integers},
                                           {"kernel", K::integer_or_integers},
                                           {"stride", K::integer_or_integers},
                                           {"padding", K::integer_or_integers},
                                           {"ceil_mode", K::flag}};
constexpr AttributeSpec kResize[] = {{"scale", K::number}, {"size", K::integer_or_integers}, {"mode", K::word}};
constexpr AttributeSpec kResizeBackward[] = {{"input_shape", K::integers}, {"mode", K::word}};
constexpr AttributeSpec kRows[] = {{"rows", K::integer}};
constexpr AttributeSpec kBag[] = {{"mode", K::word}, {"zipf", K::number}, {"fused_update", K::flag}};
constexpr AttributeSpec kBagBackward[] = {
    {"rows", K::integer}, {"mode", K::word}, {"zipf", K::number}, {"fused_update", K::flag}};
constexpr AttributeSpec kRoiAlign[] = {{"size", K::integer_or_integers}, {"sampling", K::integer}};
constexpr AttributeSpec kRoiAlignBackward[] = {{"input_shape", K::integers}, {"sampling", K::integer}};
constexpr AttributeSpec kSpmm[] = {{"rows", K::integer}, {"reduce", K::word}, {"transposed", K::flag}};
constexpr AttributeSpec kNms[] = {{"keep", K::integer}};
constexpr AttributeSpec kDispatch[] = {{"experts", K::integer},
                                       {"capacity", K::integer},
                                       {"rows", K::integer},
                                       {"top_k", K::integer},
                                       {"total_experts", K::integer}};
constexpr AttributeSpec kCombine[] = {{"rows", K::integer}, {"top_k", K::integer}, {"total_experts", K::integer}};
constexpr AttributeSpec kShape[] = {{"shape", K::integers}};
constexpr AttributeSpec kPerm[] = {{"perm", K::integers}};
constexpr AttributeSpec kSplit[] = {{"axis", K::integer}, {"sizes", K::integers}};
constexpr AttributeSpec kSlice[] = {
    {"axis", K::integer}, {"start", K::integer}, {"end", K::integer}, {"step", K::integer}};
constexpr AttributeSpec kPad[] = {{"pads", K::integers}, {"value", K::number}};
constexpr AttributeSpec kFill[] = {{"shape", K::integers}, {"dtype", K::data_type}, {"value", K::number}};
constexpr AttributeSpec kDropout[] = {{"p", K::number}};
constexpr AttributeSpec kOptimizer[] = {
    {"optimizer", K::word},    {"elements", K::integer},     {"tensors", K::integer}, {"state_bytes", K::number},
    {"read_bytes", K::number}, {"written_bytes", K::number}, {"value", K::number}};
constexpr AttributeSpec kTransfer[] = {{"pinned", K::flag}};
constexpr AttributeSpec kCollective[] = {{"ranks", K::integer}};

OpSchema one_input(Specs attributes) {
  return {1, 1, 1, 1, attributes};
}
OpSchema two_inputs(Specs attributes) {
  return {2, 2, 1, 1, attributes};
}

OpSchema pointwise_schema(OpType op) {
  switch (op) {
    case OpType::add_scalar:
    case OpType::mul_scalar:
    case OpType::div_scalar:
    case OpType::sub_scalar:
    case OpType::pow_scalar:
    case OpType::maximum_scalar:
    case OpType::leaky_relu:
    case OpType::elu: return one_input(kValue);
    case OpType::compare_scalar: return one_input(kCompareScalar);
    case OpType::clamp: return one_input(kClamp);
    case OpType::cast: return one_input(kCast);
    case OpType::compare: return two_inputs(kCompare);
    case OpType::add:
    case OpType::sub:
    case OpType::mul:
    case OpType::div:
    case OpType::pow:
    case OpType::maximum:
    case OpType::minimum:
    case OpType::silu_mul:
    case OpType::gelu_mul: return two_inputs({});
    case OpType::masked_fill: return two_inputs(kValue);
    case OpType::where: return {3, 3, 1, 1, {}};
    case OpType::rope: return {1, 3, 1, 1, {}};
    case OpType::pointwise_backward: return {1, kMany, 1, 1, kPointwiseBackward};
    case OpType::fused_pointwise: return {1, kMany, 1, 1, kFused};
    default: return one_input({});
  }
}

OpSchema normalization_schema(OpType op) {
  switch (op) {
    case OpType::layer_norm:
    case OpType::rms_norm: return {1, 3, 1, 1, kTrailingNorm};
    case OpType::group_norm: return {1, 3, 1, 1, kGroupNorm};
    case OpType::batch_norm: return {3, 5, 1, 1, kBatchNorm};
    case OpType::layer_norm_backward:
    case OpType::rms_norm_backward: return {2, 3, 1, 1, kTrailingNorm};
    case OpType::group_norm_backward: return {2, 3, 1, 1, kGroupNorm};
    case OpType::norm_param_grad: return {2, 2, 1, 2, kNormParamGrad};
    case OpType::fused_norm: return {1, kMany, 1, 1, kFusedRows};
    default: return {3, 3, 3, 3, kBatchNorm};  // batch_norm_backward
  }
}

OpSchema reduction_schema(OpType op) {
  switch (op) {
    case OpType::argmax: return one_input(kArgmax);
    case OpType::cumsum: return one_input(kAxis);
    case OpType::topk: return {1, 1, 1, 2, kTopk};
    case OpType::sort: return {1, 1, 1, 2, kAxis};
    case OpType::nms: return two_inputs(kNms);
    default: return one_input(kReduce);
  }
}

OpSchema convolution_schema(OpType op) {
  switch (op) {
    case OpType::conv_dgrad:
    case OpType::conv_wgrad: return two_inputs(kConvGradient);
    case OpType::conv_transpose1d:
    case OpType::conv_transpose2d:
    case OpType::conv_transpose3d: return {2, 3, 1, 1, kConvTranspose};
    default: return {2, 4, 1, 1, kConv};
  }
}

OpSchema movement_schema(OpType op) {
  switch (op) {
    case OpType::reshape:
    case OpType::expand: return one_input(kShape);
    case OpType::transpose: return one_input(kPerm);
    case OpType::split: return {1, 1, 1, kMany, kSplit};
    case OpType::slice: return one_input(kSlice);
    case OpType::concat: return {1, kMany, 1, 1, kAxis};
    case OpType::pad: return one_input(kPad);
    case OpType::fill: return {0, 0, 1, 1, kFill};
    default: return one_input({});  // contiguous, copy
  }
}

OpSchema loss_schema(OpType op) {
  return {2, is_loss_gradient(op) ? 3 : 2, 1, 1, {}};
}

OpSchema recurrent_schema(OpType op) {
  switch (op) {
    case OpType::rnn_backward: return {3, kMany, 1, 1, kRecurrentGradient};
    case OpType::rnn_wgrad: return {3, kMany, 1, kMany, kRecurrentGradient};
    default: return {2, kMany, 1, op == OpType::lstm ? 3 : 2, kRecurrent};
  }
}

OpSchema embedding_schema(OpType op) {
  switch (op) {
    case OpType::embedding: return two_inputs({});
    case OpType::embedding_bag: return two_inputs(kBag);
    case OpType::embedding_bag_backward: return two_inputs(kBagBackward);
    default: return two_inputs(kRows);
  }
}

OpSchema gather_scatter_schema(OpType op) {
  switch (op) {
    case OpType::gather: return two_inputs({});
    case OpType::roi_align: return two_inputs(kRoiAlign);
    case OpType::roi_align_backward: return two_inputs(kRoiAlignBackward);
    default: return two_inputs(kRows);
  }
}

}  // namespace

std::string_view describe(AttributeKind kind) {
  switch (kind) {
    case K::integer: return "an integer";
    case K::flag: return "0 or 1";
    case K::number: return "a finite number";
    case K::word: return "a string";
    case K::data_type: return "a data type";
    case K::operation: return "the name of an operation";
    case K::integers: return "a list of integers";
    case K::integer_or_integers: return "an integer or a list of integers";
  }
  return "a value";
}

OpSchema schema(OpType op) {
  switch (family(op)) {
    case OpFamily::matrix:
      if (op == OpType::matmul) return two_inputs(kMatmul);
      if (op == OpType::grouped_linear) return two_inputs(kGrouped);
      return {2, 3, 1, 1, kTransposedWeight};
    case OpFamily::convolution: return convolution_schema(op);
    case OpFamily::attention:
      if (op == OpType::attention) return {3, 3, 1, 1, kAttention};
      return {5, 5, 3, 3, kAttention};
    case OpFamily::recurrent: return recurrent_schema(op);
    case OpFamily::normalization: return normalization_schema(op);
    case OpFamily::pointwise: return pointwise_schema(op);
    case OpFamily::softmax:
      if (op == OpType::fused_softmax) return {1, kMany, 1, 1, kFusedRows};
      return op == OpType::softmax || op == OpType::log_softmax ? one_input(kAxis) : two_inputs(kAxis);
    case OpFamily::reduction: return reduction_schema(op);
    case OpFamily::pooling:
      if (op == OpType::global_avg_pool2d) return one_input({});
      return op == OpType::pool_backward ? OpSchema{1, 2, 1, 1, kPoolBackward} : one_input(kPool);
    case OpFamily::resize: return one_input(op == OpType::resize ? Specs(kResize) : Specs(kResizeBackward));
    case OpFamily::embedding: return embedding_schema(op);
    case OpFamily::gather_scatter: return gather_scatter_schema(op);
    case OpFamily::sparse: return op == OpType::spmm ? OpSchema{2, 3, 1, 1, kSpmm} : OpSchema{3, 3, 1, 1, {}};
    case OpFamily::moe: return op == OpType::moe_dispatch ? two_inputs(kDispatch) : OpSchema{3, 3, 1, 1, kCombine};
    case OpFamily::view:
    case OpFamily::data_movement: return movement_schema(op);
    case OpFamily::random: return op == OpType::dropout ? OpSchema{1, 1, 1, 2, kDropout} : two_inputs(kDropout);
    case OpFamily::loss: return loss_schema(op);
    case OpFamily::optimizer: return {0, kMany, 0, 0, kOptimizer};
    case OpFamily::transfer: return one_input(kTransfer);
    case OpFamily::collective: return one_input(kCollective);
  }
  return {};
}

}  // namespace voltaic::graph::detail
