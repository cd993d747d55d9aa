// SPDX-License-Identifier: MIT
#include "sim/graph/writer.hpp"

#include <nlohmann/json.hpp>
#include <variant>

namespace voltaic::graph {

namespace {

using Json = nlohmann::ordered_json;

/// Compact text; bytes that are not UTF-8 are replaced, for names may come from anywhere.
std::string dump(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json declaration(const Tensor& tensor) {
  Json json{{"name", tensor.name}, {"shape", tensor.shape}, {"dtype", to_string(tensor.dtype)}};
  if (tensor.role == TensorRole::parameter && !tensor.trainable) json["trainable"] = false;
  return json;
}

Json attributes(const Attributes& given) {
  Json json = Json::object();
  for (const auto& [name, value] : given.entries()) {
    std::visit([&json, &key = name](const auto& v) { json[key] = v; }, value);
  }
  return json;
}

Json names(const OpGraph& graph, const std::vector<TensorId>& ids) {
  Json list = Json::array();
  for (const TensorId id : ids) list.push_back(graph.tensor(id).name);
  return list;
}

Json node_json(const OpGraph& graph, const Node& node) {
  Json json{{"id", node.id}, {"op", to_string(node.op)}, {"inputs", names(graph, node.inputs)}};
  if (!node.attributes.entries().empty()) json["attributes"] = attributes(node.attributes);
  json["outputs"] = names(graph, node.outputs);
  Json shapes = Json::array();
  Json types = Json::array();
  for (const TensorId id : node.outputs) {
    shapes.push_back(graph.tensor(id).shape);
    types.push_back(to_string(graph.tensor(id).dtype));
  }
  json["shapes"] = std::move(shapes);
  json["dtypes"] = std::move(types);
  if (!node.layer.empty()) json["layer"] = node.layer;
  if (node.phase != Phase::forward) json["phase"] = to_string(node.phase);
  if (node.compute != DataType::fp32) json["compute"] = to_string(node.compute);
  if (node.extra_host_calls > 0) json["extra_host_calls"] = node.extra_host_calls;
  if (node.forward_of != kNoNode) json["forward_of"] = graph.node(node.forward_of).id;
  return json;
}

/// `"key": [` one entry a line `],` onto `text`.
void write_list(std::string& text, const char* key, const std::vector<std::string>& entries) {
  text += "  \"" + std::string(key) + "\": [";
  const char* separator = "\n";
  for (const std::string& entry : entries) {
    text += separator;
    text += "    " + entry;
    separator = ",\n";
  }
  text += entries.empty() ? "],\n" : "\n  ],\n";
}

}  // namespace

std::string write_graph(const OpGraph& graph) {
  std::vector<std::string> inputs;
  std::vector<std::string> parameters;
  std::vector<std::string> buffers;
  for (const Tensor& tensor : graph.tensors()) {
    if (tensor.producer != kNoNode) continue;
    auto& list = tensor.role == TensorRole::input       ? inputs
                 : tensor.role == TensorRole::parameter ? parameters
                                                        : buffers;
    list.push_back(dump(declaration(tensor)));
  }
  std::vector<std::string> nodes;
  nodes.reserve(graph.nodes().size());
  for (const Node& node : graph.nodes()) nodes.push_back(dump(node_json(graph, node)));

  std::string text = "{\n  \"schema\": \"voltaic.graph/1\",\n";
  if (!graph.name.empty()) text += "  \"name\": " + dump(graph.name) + ",\n";
  write_list(text, "inputs", inputs);
  write_list(text, "parameters", parameters);
  if (!buffers.empty()) write_list(text, "buffers", buffers);
  write_list(text, "nodes", nodes);
  text += "  \"outputs\": " + dump(names(graph, graph.outputs)) + ",\n";
  const bool has_loss = graph.loss < graph.tensors().size();
  text += "  \"loss\": " + (has_loss ? dump(graph.tensor(graph.loss).name) : "null") + "\n}\n";
  return text;
}

}  // namespace voltaic::graph
