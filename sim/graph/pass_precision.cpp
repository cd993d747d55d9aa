// SPDX-License-Identifier: MIT
// Precision assignment: which type every tensor is stored in and every product is multiplied in.
#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "sim/graph/detail/rebuild.hpp"
#include "sim/graph/detail/weights.hpp"
#include "sim/graph/passes.hpp"

namespace voltaic::graph {
namespace {

constexpr std::array<std::pair<Precision, std::string_view>, 12> kNames{{{Precision::fp64, "fp64"},
                                                                         {Precision::fp32, "fp32"},
                                                                         {Precision::tf32, "tf32"},
                                                                         {Precision::fp16, "fp16"},
                                                                         {Precision::bf16, "bf16"},
                                                                         {Precision::int8, "int8"},
                                                                         {Precision::int4, "int4"},
                                                                         {Precision::w8a16, "w8a16"},
                                                                         {Precision::w4a16, "w4a16"},
                                                                         {Precision::fp8, "fp8"},
                                                                         {Precision::mixed_fp16, "mixed-fp16"},
                                                                         {Precision::mixed_bf16, "mixed-bf16"}}};

bool is_dense_product(OpType op) {
  const OpFamily f = family(op);
  return f == OpFamily::matrix || f == OpFamily::convolution;
}

bool is_kv_cache(const Tensor& tensor) {
  return tensor.role == TensorRole::buffer && tensor.name.starts_with("kv_cache");
}

/// The type an explicit cast asks for.
DataType cast_target(const Node& node, DataType fallback) {
  return parse_data_type(node.attributes.word("to", "")).value_or(fallback);
}

/// Stores every floating tensor as `storage`. Explicit casts keep their target and views the type of their source.
void store_as(OpGraph& graph, DataType storage) {
  for (TensorId t = 0; t < graph.tensors().size(); ++t) {
    Tensor& tensor = graph.tensor(t);
    if (is_floating(tensor.dtype)) tensor.dtype = storage;
  }
  for (NodeId n = 0; n < graph.nodes().size(); ++n) {
    Node& node = graph.node(n);
    node.compute = storage;
    if (node.outputs.empty()) continue;
    if (node.op == OpType::cast) {
      graph.tensor(node.outputs[0]).dtype = cast_target(node, storage);
    } else if (family(node.op) == OpFamily::view && !node.inputs.empty()) {
      for (const TensorId t : node.outputs) graph.tensor(t).dtype = graph.tensor(node.inputs[0]).dtype;
    } else if (node.op == OpType::fill && is_floating(graph.tensor(node.outputs[0]).dtype)) {
      node.attributes.set("dtype", std::string(to_string(storage)));
    }
  }
}

void multiply_in(OpGraph& graph, DataType math) {
  for (NodeId n = 0; n < graph.nodes().size(); ++n) {
    Node& node = graph.node(n);
    if (is_dense_product(node.op) || family(node.op) == OpFamily::recurrent) node.compute = math;
  }
}

/// Moves the nodes of `graph` one by one into a new graph, with cast nodes in front of those that need other input
/// types.
class CastInserter {
 public:
  explicit CastInserter(OpGraph& graph) : old_(graph), new_(detail::without_nodes(graph)) {
    new_id_.reserve(old_.nodes().size());
  }

  OpGraph& graph() { return new_; }
  std::size_t nodes() const { return old_.nodes().size(); }
  Node take(NodeId n) { return std::move(old_.node(n)); }

  /// Input `i` of `node` as `type`: a new tensor, or the one made before when `cached`.
  void cast_input(Node& node, std::size_t i, DataType type, bool cached) {
    const TensorId source = node.inputs[i];
    if (new_.tensor(source).dtype == type) return;
    if (cached && cache_.size() <= source) cache_.resize(new_.tensors().size(), kNone);
    if (cached && cache_[source] != kNone && new_.tensor(cache_[source]).dtype == type) {
      node.inputs[i] = cache_[source];
      return;
    }
    const std::string type_name(to_string(type));
    const Tensor& from = new_.tensor(source);
    const TensorId result = new_.add_tensor({.name = from.name + "." + type_name, .shape = from.shape, .dtype = type});
    Node cast;
    cast.id = node.id + ".cast" + std::to_string(i);
    cast.op = OpType::cast;
    cast.attributes.set("to", type_name);
    cast.inputs = {source};
    cast.outputs = {result};
    cast.phase = node.phase;
    cast.compute = type;
    cast.layer = node.layer.empty() ? node.id : node.layer;
    new_.add_node(std::move(cast));
    if (cached) cache_[source] = result;
    node.inputs[i] = result;
  }

  void put(Node node) {
    if (node.forward_of != kNoNode && node.forward_of < new_id_.size()) node.forward_of = new_id_[node.forward_of];
    new_id_.push_back(new_.add_node(std::move(node)));
  }

  OpGraph finish() { return std::move(new_); }

 private:
  static constexpr TensorId kNone = UINT32_MAX;
  OpGraph& old_;
  OpGraph new_;
  std::vector<NodeId> new_id_;
  std::vector<TensorId> cache_;  ///< By source tensor: its cast made for the whole step.
};

/// Quantised products read both operands alike. An embedding reads whatever its table holds.
detail::Use use_of_quantised(const Node& node, std::size_t input) {
  if (is_dense_product(node.op) && input < 2) return detail::Use::multiplied;
  return node.op == OpType::embedding ? detail::Use::indifferent : detail::Use::kept;
}

/// Products read `type` and write fp16; activations are quantised by a cast node, once for all products that read them.
void quantise_products(OpGraph& graph, DataType type) {
  store_as(graph, DataType::fp16);
  detail::store_weights_as(graph, type, detail::multiplied_weights(graph, use_of_quantised));
  CastInserter inserter(graph);
  for (NodeId n = 0; n < inserter.nodes(); ++n) {
    Node node = inserter.take(n);
    if (is_dense_product(node.op)) {
      node.compute = type;
      for (std::size_t i = 0; i < node.inputs.size() && i < 2; ++i) {
        if (is_floating(inserter.graph().tensor(node.inputs[i]).dtype)) inserter.cast_input(node, i, type, true);
      }
    }
    inserter.put(std::move(node));
  }
  graph = inserter.finish();
}

/// Activations and arithmetic stay fp16; each quantised weight gets a buffer of its scales.
void quantise_weights(OpGraph& graph, DataType type) {
  store_as(graph, DataType::fp16);
  detail::store_weights_as(graph, type, detail::multiplied_weights(graph, detail::use_of_weights));
  std::vector<bool> scaled(graph.tensors().size(), false);
  for (const Node& node : graph.nodes()) {
    const std::optional<TensorId> weight = weight_of(graph, node);
    if (!weight || scaled[*weight] || graph.tensor(*weight).dtype != type) continue;
    scaled[*weight] = true;
    const Tensor& w = graph.tensor(*weight);
    const std::int64_t k = detail::inner_size(graph, node);
    if (w.elements() == 0 || k < 1) continue;
    const std::int64_t group = scale_group(type, k);
    const Shape shape{w.elements() / k, (k + group - 1) / group};
    graph.add_tensor({.name = w.name + ".scale", .shape = shape, .dtype = DataType::fp16, .role = TensorRole::buffer});
  }
}

/// What autocast does with an operation's inputs. The lists are those of torch/aten autocast_mode [PyTorchAMP].
enum class Autocast : std::uint8_t {
  half,         ///< Cast to 16 bit.
  full,         ///< Cast to fp32 by a kernel of its own.
  full_output,  ///< Asks the operation for an fp32 output; it reads 16 bit itself where it can.
  first,        ///< Runs in the type of its first input.
  widest,       ///< Promotes while reading, without a kernel.
  widest_cast,  ///< Promotes by casts.
};

Autocast autocast_rule(OpType op) {
  switch (op) {
    case OpType::layer_norm:
    case OpType::rms_norm:
    case OpType::group_norm:
    case OpType::cross_entropy:
    case OpType::mse_loss:
    case OpType::smooth_l1_loss:
    case OpType::bce_loss:
    case OpType::ctc_loss:
    case OpType::nms:        // torchvision's own rule, as for regions.
    case OpType::roi_align:
    case OpType::pow:
    case OpType::pow_scalar:
    case OpType::exp:
    case OpType::log:
    case OpType::rsqrt:
    case OpType::reciprocal:
    case OpType::softplus:
    case OpType::cumsum: return Autocast::full;
    case OpType::softmax:
    case OpType::log_softmax:
    case OpType::reduce_sum: return Autocast::full_output;
    case OpType::concat: return Autocast::widest_cast;
    default: break;
  }
  switch (family(op)) {
    case OpFamily::matrix:
    case OpFamily::convolution:
    case OpFamily::attention:
    case OpFamily::recurrent: return Autocast::half;
    case OpFamily::pointwise:
    case OpFamily::moe:
    case OpFamily::embedding: return Autocast::widest;
    default: return Autocast::first;  // Batch norm reads fp32 weights beside a 16-bit input and stays in 16 bit.
  }
}

DataType wider(DataType a, DataType b) {
  if (a == b) return a;
  if (info(a).bits == info(b).bits) return DataType::fp32;  // fp16 meets bf16.
  return info(a).bits > info(b).bits ? a : b;
}

/// The widest floating type among the inputs; a tensor without dimensions widens only its like.
DataType widest_input(const OpGraph& graph, const Node& node, DataType none) {
  std::optional<DataType> widest;
  std::optional<DataType> widest_scalar;
  for (const TensorId t : node.inputs) {
    const Tensor& tensor = graph.tensor(t);
    if (!is_floating(tensor.dtype)) continue;
    std::optional<DataType>& so_far = tensor.shape.empty() ? widest_scalar : widest;
    so_far = so_far ? wider(*so_far, tensor.dtype) : tensor.dtype;
  }
  return widest.value_or(widest_scalar.value_or(none));
}

DataType first_input(const OpGraph& graph, const Node& node, DataType none) {
  for (const TensorId t : node.inputs) {
    if (is_floating(graph.tensor(t).dtype)) return graph.tensor(t).dtype;
  }
  return none;
}

void cast_inputs(CastInserter& inserter, Node& node, DataType type) {
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const Tensor& tensor = inserter.graph().tensor(node.inputs[i]);
    // Autocast remembers the 16-bit copies of weights until the step ends; activations are cast at every use.
    const bool cached = tensor.role == TensorRole::parameter && type != DataType::fp32;
    if (is_floating(tensor.dtype)) inserter.cast_input(node, i, type, cached);
  }
}

/// Applies the autocast rule to the inputs of `node`; gives the type of its floating outputs.
DataType autocast(CastInserter& inserter, Node& node, DataType half) {
  const OpGraph& graph = inserter.graph();
  // No list of the framework's knows the fused kernel of a table: it reads fp32 rows and hands on 16 bits.
  if (node.op == OpType::embedding_bag && node.attributes.flag("fused_update")) return half;
  switch (autocast_rule(node.op)) {
    case Autocast::half: cast_inputs(inserter, node, half); return half;
    case Autocast::full: cast_inputs(inserter, node, DataType::fp32); return DataType::fp32;
    case Autocast::full_output:
      // Softmax converts while it reads for fp16 only; bf16 goes through a cast kernel.
      if (half == DataType::bf16 && node.op != OpType::reduce_sum) cast_inputs(inserter, node, DataType::fp32);
      return DataType::fp32;
    case Autocast::first: return first_input(graph, node, DataType::fp32);
    case Autocast::widest: return widest_input(graph, node, DataType::fp32);
    case Autocast::widest_cast: {
      const DataType type = widest_input(graph, node, DataType::fp32);
      cast_inputs(inserter, node, type);
      return type;
    }
  }
  return DataType::fp32;
}

void assign_mixed(OpGraph& graph, DataType half) {
  store_as(graph, DataType::fp32);
  for (TensorId t = 0; t < graph.tensors().size(); ++t) {
    if (is_kv_cache(graph.tensor(t))) graph.tensor(t).dtype = half;
  }
  CastInserter inserter(graph);
  for (NodeId n = 0; n < inserter.nodes(); ++n) {
    Node node = inserter.take(n);
    DataType type = autocast(inserter, node, half);
    if (node.op == OpType::cast) type = cast_target(node, type);
    node.compute = is_floating(type) ? type : DataType::fp32;
    for (const TensorId t : node.outputs) {
      Tensor& output = inserter.graph().tensor(t);
      if (is_floating(output.dtype)) output.dtype = type;
    }
    inserter.put(std::move(node));
  }
  graph = inserter.finish();
}

}  // namespace

std::string_view to_string(Precision precision) {
  return kNames[static_cast<std::size_t>(precision)].second;
}

std::optional<Precision> parse_precision(std::string_view name) {
  for (const auto& [precision, known] : kNames) {
    if (known == name) return precision;
  }
  return std::nullopt;
}

const std::vector<Precision>& all_precisions() {
  static const std::vector<Precision> all = [] {
    std::vector<Precision> list;
    list.reserve(std::size(kNames));
    for (const auto& entry : kNames) list.push_back(entry.first);
    return list;
  }();
  return all;
}

bool is_weight_only(Precision precision) {
  return precision == Precision::w8a16 || precision == Precision::w4a16;
}

std::int64_t scale_group(DataType stored, std::int64_t k) {
  constexpr std::int64_t kGroupOf4Bits = 128;
  return info(stored).bits > 4 ? std::max<std::int64_t>(k, 1) : kGroupOf4Bits;
}

void assign_precision(OpGraph& graph, Precision precision) {
  switch (precision) {
    case Precision::fp64: return store_as(graph, DataType::fp64);
    case Precision::fp32: return store_as(graph, DataType::fp32);
    case Precision::tf32: store_as(graph, DataType::fp32); return multiply_in(graph, DataType::tf32);
    case Precision::fp16: return store_as(graph, DataType::fp16);
    case Precision::bf16: return store_as(graph, DataType::bf16);
    case Precision::int8: return quantise_products(graph, DataType::int8);
    case Precision::int4: return quantise_products(graph, DataType::int4);
    case Precision::w8a16: return quantise_weights(graph, DataType::int8);
    case Precision::w4a16: return quantise_weights(graph, DataType::int4);
    case Precision::fp8: return quantise_products(graph, DataType::fp8);
    case Precision::mixed_fp16: return assign_mixed(graph, DataType::fp16);
    case Precision::mixed_bf16: return assign_mixed(graph, DataType::bf16);
  }
}

}  // namespace voltaic::graph
