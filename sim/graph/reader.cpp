// SPDX-License-Identifier: MIT
#include "sim/graph/reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "arch/units/error.hpp"
#include "sim/graph/detail/attribute_reader.hpp"
#include "sim/graph/detail/dag.hpp"
#include "sim/graph/detail/dim_table.hpp"
#include "sim/graph/detail/json_document.hpp"
#include "sim/graph/detail/op_schema.hpp"
#include "sim/graph/detail/shape_context.hpp"

namespace voltaic::graph {

namespace {

using detail::in_quotes;
using detail::Json;
using detail::member;
using detail::Place;
using detail::required;

constexpr const char* kSchema = "voltaic.graph/1";

/// The refusal's tail that names the nearest known word; names beyond the first few thousand are not worth the search.
std::string hint(std::string_view word, const std::vector<std::string>& known) {
  const std::string near = nearest(word, known);
  return near.empty() ? "" : fmt::format("; the nearest is '{}'", detail::printable(near));
}

DataType read_data_type(const Json& value, const Place& place) {
  const auto* text = value.get_ptr<const std::string*>();
  const auto type = text != nullptr ? parse_data_type(*text) : std::nullopt;
  if (!type) {
    std::vector<std::string> names;
    names.reserve(kDataTypes.size());
    for (const auto& known : kDataTypes) names.emplace_back(known.name);
    place.refuse(fmt::format("one of {}", fmt::join(names, ", ")), value);
  }
  return *type;
}

class GraphReader {
 public:
  GraphReader(const Json& document, const std::string& file, const DimValues& overrides,
              std::vector<std::string>* notes)
      : document_(document), root_(file), dims_(member(document, "dims"), root_["dims"], overrides, notes) {}

  OpGraph read() {
    read_declarations("inputs", TensorRole::input);
    read_declarations("parameters", TensorRole::parameter);
    read_declarations("buffers", TensorRole::buffer);
    read_nodes();
    infer_in_order();
    return assemble();
  }

 private:
  void read_declarations(const char* list, TensorRole role);
  void read_nodes();
  Node read_node(const Json& json, const Place& place);
  void read_outputs(const Json& json, const Place& place, NodeId id, Node& node);
  void link_inputs(const Json& json, const Place& place, Node& node);
  OpType read_op(const Json& value, const Place& place) const;
  TensorId find_tensor(const Json& value, const Place& place) const;
  TensorId add_tensor(const std::string& name, Tensor tensor, const Place& place);

  void infer_in_order();
  void infer_node(NodeId id);
  void settle_layout(Node& node) const;
  void check_statement(const Json& json, const Place& place, const Node& node) const;
  void apply_types(const Json& json, const Place& place, const Node& node);
  OpGraph assemble();
  std::vector<TensorId> graph_outputs() const;

  const Json& document_;
  Place root_;
  detail::DimTable dims_;
  std::vector<Tensor> tensors_;
  std::vector<Node> nodes_;  ///< In file order until assemble().
  std::vector<NodeId> order_;
  std::unordered_map<std::string_view, TensorId> tensor_by_name_;  ///< Keys are strings of the document.
  std::unordered_map<std::string_view, NodeId> node_by_id_;
};

TensorId GraphReader::add_tensor(const std::string& name, Tensor tensor, const Place& place) {
  const auto id = static_cast<TensorId>(tensors_.size());
  const auto [known, fresh] = tensor_by_name_.emplace(name, id);
  if (!fresh) {
    const NodeId producer = tensors_[known->second].producer;
    const std::string before =
        producer == kNoNode ? "declared before" : fmt::format("an output of {}", in_quotes(nodes_[producer].id));
    place.refuse(fmt::format("expected a new tensor name, got {}, {}", in_quotes(name), before));
  }
  tensor.name = name;
  tensors_.push_back(std::move(tensor));
  return id;
}

void GraphReader::read_declarations(const char* list, TensorRole role) {
  const Json* entries = member(document_, list);
  if (entries == nullptr) return;
  const Place place = root_[list];
  detail::require_array(*entries, place, "a list of tensors");
  for (std::size_t i = 0; i < entries->size(); ++i) {
    const Json& entry = (*entries)[i];
    const Place here = place[i];
    detail::require_object(entry, here, "a tensor, an object with name and shape");
    Tensor tensor;
    tensor.role = role;
    if (role == TensorRole::parameter) {
      detail::require_known_keys(entry, here, {"name", "shape", "dtype", "trainable"});
      if (const Json* trainable = member(entry, "trainable")) {
        if (!trainable->is_boolean()) here["trainable"].refuse("true or false", *trainable);
        tensor.trainable = trainable->get<bool>();
      }
    } else {
      detail::require_known_keys(entry, here, {"name", "shape", "dtype"});
    }
    const std::string& name = detail::read_name(required(entry, "name", here), here["name"], "a tensor name");
    tensor.shape = dims_.shape(required(entry, "shape", here), here["shape"]);
    if (const Json* dtype = member(entry, "dtype")) tensor.dtype = read_data_type(*dtype, here["dtype"]);
    add_tensor(name, std::move(tensor), here["name"]);
  }
}

OpType GraphReader::read_op(const Json& value, const Place& place) const {
  const std::string& name = detail::read_name(value, place, "the name of an operation");
  const auto op = parse_op(name);
  if (!op) {
    std::vector<std::string> known;
    for (const OpType each : all_ops()) known.emplace_back(to_string(each));
    throw UnsupportedError(fmt::format("{}: {}: expected a known operation, got {}{}", place.file(), place.pointer(),
                                       in_quotes(name), hint(name, known)));
  }
  return *op;
}

/// All of a node except its inputs, which may be outputs of later nodes, and its shapes.
Node GraphReader::read_node(const Json& json, const Place& place) {
  detail::require_object(json, place, "a node, an object with id, op, inputs and outputs");
  detail::require_known_keys(json, place,
                             {"id", "op", "inputs", "outputs", "attributes", "shape", "shapes", "dtypes", "layer",
                              "phase", "compute", "extra_host_calls", "forward_of"});
  Node node;
  node.id = detail::read_name(required(json, "id", place), place["id"], "a node id");
  node.op = read_op(required(json, "op", place), place["op"]);
  if (const Json* attributes = member(json, "attributes")) {
    node.attributes = detail::read_attributes(node.op, *attributes, place["attributes"], dims_);
  }
  if (const Json* layer = member(json, "layer"))
    node.layer = detail::read_name(*layer, place["layer"], "the name of a layer");
  if (const Json* phase = member(json, "phase")) {
    const auto all = {Phase::forward, Phase::backward, Phase::optimizer};
    const auto found =
        std::find_if(all.begin(), all.end(), [&](Phase p) { return *phase == std::string(to_string(p)); });
    if (found == all.end()) place["phase"].refuse("forward, backward or optimizer", *phase);
    node.phase = *found;
  }
  if (const Json* compute = member(json, "compute")) node.compute = read_data_type(*compute, place["compute"]);
  if (const Json* calls = member(json, "extra_host_calls")) {
    if (!calls->is_number() || calls->get<double>() < 0)
      place["extra_host_calls"].refuse("a number of 0 or more", *calls);
    node.extra_host_calls = calls->get<double>();
  }
  return node;
}

void GraphReader::read_outputs(const Json& json, const Place& place, NodeId id, Node& node) {
  const Json* outputs = member(json, "outputs");
  if (outputs == nullptr) {
    if (detail::schema(node.op).min_outputs > 0) place.refuse("expected key 'outputs', got none");
    return;
  }
  const Place list = place["outputs"];
  detail::require_array(*outputs, list, "a list of tensor names");
  for (std::size_t i = 0; i < outputs->size(); ++i) {
    Tensor tensor;
    tensor.producer = id;
    const std::string& name = detail::read_name((*outputs)[i], list[i], "a tensor name");
    node.outputs.push_back(add_tensor(name, std::move(tensor), list[i]));
  }
}

TensorId GraphReader::find_tensor(const Json& value, const Place& place) const {
  const std::string& name = detail::read_name(value, place, "a tensor name");
  const auto found = tensor_by_name_.find(name);
  if (found == tensor_by_name_.end()) {
    constexpr std::size_t kSearched = 5000;
    std::vector<std::string> known;
    for (std::size_t i = 0; i < std::min(tensors_.size(), kSearched); ++i) {
      if (tensors_[i].name.size() <= 2 * name.size() + 2) known.push_back(tensors_[i].name);
    }
    place.refuse(fmt::format("expected a known tensor, got {}{}", in_quotes(name), hint(name, known)));
  }
  return found->second;
}

void GraphReader::link_inputs(const Json& json, const Place& place, Node& node) {
  if (const Json* inputs = member(json, "inputs")) {
    const Place list = place["inputs"];
    detail::require_array(*inputs, list, "a list of tensor names");
    node.inputs.reserve(inputs->size());
    for (std::size_t i = 0; i < inputs->size(); ++i) node.inputs.push_back(find_tensor((*inputs)[i], list[i]));
  }
  if (const Json* forward = member(json, "forward_of")) {
    const std::string& id = detail::read_name(*forward, place["forward_of"], "a node id");
    const auto found = node_by_id_.find(id);
    if (found == node_by_id_.end()) place["forward_of"].refuse("expected a known node, got " + in_quotes(id));
    node.forward_of = found->second;
  }
}

void GraphReader::read_nodes() {
  const Json& list = required(document_, "nodes", root_);
  const Place place = root_["nodes"];
  detail::require_array(list, place, "a list of nodes");
  nodes_.reserve(list.size());
  node_by_id_.reserve(list.size());
  tensor_by_name_.reserve(tensors_.size() + list.size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Place here = place[i];
    Node node = read_node(list[i], here);
    const auto id = static_cast<NodeId>(i);
    const std::string& name = list[i].find("id")->get_ref<const std::string&>();
    const auto [known, fresh] = node_by_id_.emplace(name, id);
    if (!fresh) {
      here["id"].refuse(
          fmt::format("expected a unique id, got {}, the id of /nodes/{}", in_quotes(node.id), known->second));
    }
    nodes_.push_back(std::move(node));
    read_outputs(list[i], here, id, nodes_.back());
  }
  for (std::size_t i = 0; i < list.size(); ++i) link_inputs(list[i], place[i], nodes_[i]);
}

void GraphReader::infer_in_order() {
  auto order = detail::topological_order(nodes_, tensors_);
  if (!order) {
    const auto cycle = detail::find_cycle(nodes_, tensors_);
    constexpr std::size_t kShown = 8;
    std::string path;
    for (std::size_t i = 0; i < std::min(cycle.size(), kShown); ++i) path += in_quotes(nodes_[cycle[i]].id) + " -> ";
    if (cycle.size() > kShown) path += fmt::format("... ({} nodes) -> ", cycle.size());
    root_["nodes"][std::size_t{cycle.front()}].refuse("expected a graph without cycles, got " + path +
                                                      in_quotes(nodes_[cycle.front()].id));
  }
  order_ = std::move(*order);
  for (const NodeId id : order_) infer_node(id);
}

/// A linear that does not state its layout may hold its weight as [out, in] or as [in, out]; where only the second
/// fits, it is the second.
void GraphReader::settle_layout(Node& node) const {
  if (node.op != OpType::linear || node.inputs.size() < 2 || node.attributes.has("transposed_weight")) return;
  const Shape& x = tensors_[node.inputs[0]].shape;
  const Shape& w = tensors_[node.inputs[1]].shape;
  if (x.empty() || w.size() != 2) return;
  if (w[1] != x.back() && w[0] == x.back()) node.attributes.set("transposed_weight", std::int64_t{1});
}

void GraphReader::infer_node(NodeId id) {
  Node& node = nodes_[id];
  settle_layout(node);
  const Place nodes = root_["nodes"];
  const Place place = nodes[std::size_t{id}];
  try {
    auto types = detail::infer_outputs(tensors_, node, node.outputs.size());
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      tensors_[node.outputs[i]].shape = std::move(types[i].shape);
      tensors_[node.outputs[i]].dtype = types[i].dtype;
    }
  } catch (const ShapeError& error) {
    const std::string below = error.place.empty() ? "" : "/" + error.place;
    throw ConfigError(place.file(), place.pointer() + below, error.what());
  }
  const Json& json = document_.find("nodes")->at(id);
  check_statement(json, place, node);
  apply_types(json, place, node);
}

void GraphReader::check_statement(const Json& json, const Place& place, const Node& node) const {
  const auto agree = [&](const Json& stated, const Place& here, TensorId output) {
    const Shape shape = dims_.shape(stated, here);
    const Shape& inferred = tensors_[output].shape;
    if (shape != inferred) {
      here.refuse(fmt::format("expected {} as inferred, got {}", to_string(inferred), to_string(shape)));
    }
  };
  const Json* one = member(json, "shape");
  const Json* each = member(json, "shapes");
  if (one != nullptr && each != nullptr) place["shapes"].refuse("expected 'shape' or 'shapes', got both");
  if (one != nullptr) {
    if (node.outputs.size() != 1)
      place["shape"].refuse("expected 'shapes' for a node with several outputs, got 'shape'");
    agree(*one, place["shape"], node.outputs[0]);
  }
  if (each != nullptr) {
    const Place list = place["shapes"];
    detail::require_array(*each, list, "a list of shapes");
    if (each->size() != node.outputs.size()) {
      list.refuse(fmt::format("expected {} shapes, one per output, got {}", node.outputs.size(), each->size()));
    }
    for (std::size_t i = 0; i < each->size(); ++i) agree((*each)[i], list[i], node.outputs[i]);
  }
}

/// A file may give its outputs other types than the rules do: a library may keep a sum in more bits.
void GraphReader::apply_types(const Json& json, const Place& place, const Node& node) {
  const Json* types = member(json, "dtypes");
  if (types == nullptr) return;
  const Place list = place["dtypes"];
  detail::require_array(*types, list, "a list of data types");
  if (types->size() != node.outputs.size()) {
    list.refuse(fmt::format("expected {} data types, one per output, got {}", node.outputs.size(), types->size()));
  }
  for (std::size_t i = 0; i < types->size(); ++i)
    tensors_[node.outputs[i]].dtype = read_data_type((*types)[i], list[i]);
}

std::vector<TensorId> GraphReader::graph_outputs() const {
  std::vector<TensorId> result;
  if (const Json* outputs = member(document_, "outputs")) {
    const Place list = root_["outputs"];
    detail::require_array(*outputs, list, "a list of tensor names");
    for (std::size_t i = 0; i < outputs->size(); ++i) result.push_back(find_tensor((*outputs)[i], list[i]));
    return result;
  }
  std::vector<bool> read(tensors_.size(), false);  // Not stated: whatever no node reads.
  for (const Node& node : nodes_) {
    for (const TensorId input : node.inputs) read[input] = true;
  }
  for (std::size_t t = 0; t < tensors_.size(); ++t) {
    if (tensors_[t].producer != kNoNode && !read[t]) result.push_back(static_cast<TensorId>(t));
  }
  return result;
}

OpGraph GraphReader::assemble() {
  OpGraph graph;
  graph.name = root_.file();
  if (const Json* name = member(document_, "name")) {
    graph.name = detail::read_name(*name, root_["name"], "the name of the graph");
  }
  graph.outputs = graph_outputs();
  if (const Json* loss = member(document_, "loss"); loss != nullptr && !loss->is_null()) {
    graph.loss = find_tensor(*loss, root_["loss"]);
    const Shape& shape = tensors_[graph.loss].shape;
    if (elements(shape) != 1) root_["loss"].refuse("expected a scalar tensor, got shape " + to_string(shape));
  }
  std::vector<NodeId> position(nodes_.size());
  for (std::size_t i = 0; i < order_.size(); ++i) position[order_[i]] = static_cast<NodeId>(i);
  for (Tensor& tensor : tensors_) graph.add_tensor(std::move(tensor));
  for (const NodeId id : order_) {
    Node& node = nodes_[id];
    if (node.forward_of != kNoNode) node.forward_of = position[node.forward_of];
    graph.add_node(std::move(node));
  }
  return graph;
}

void check_schema(const Json& document, const Place& root) {
  detail::require_object(document, root, "a JSON object");
  const Json& schema = required(document, "schema", root);
  if (schema != kSchema) root["schema"].refuse(fmt::format("'{}'", kSchema), schema);
  detail::require_known_keys(document, root,
                             {"schema", "name", "dims", "inputs", "parameters", "buffers", "nodes", "outputs", "loss"});
}

}  // namespace

OpGraph read_graph(std::string_view text, const std::string& file, const DimValues& dims,
                   std::vector<std::string>* notes) {
  const Json document = detail::parse_document(text, file);
  check_schema(document, Place(file));
  return GraphReader(document, file, dims, notes).read();
}

}  // namespace voltaic::graph
