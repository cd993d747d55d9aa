// SPDX-License-Identifier: MIT
#include "sim/graph/reader.hpp"

#include <fmt/format.h>

#include <chrono>
#include <string>
#include <vector>

#include "tests/sim/graph/graph_text.hpp"
#include "tests/support/catch.hpp"

using namespace voltaic;
using namespace voltaic::graph;
using graph::testing::kMlp;
using graph::testing::with_nodes;

TEST_CASE("the documented example reads as it stands", "[graph][reader]") {
  const OpGraph graph = read_graph(kMlp, "net.json");
  CHECK(graph.name == "tiny-mlp");
  REQUIRE(graph.nodes().size() == 2);
  CHECK(graph.nodes()[0].op == OpType::linear);
  CHECK(graph.nodes()[0].attributes.flag("transposed_weight"));  // Not stated: only [in, out] fits.
  CHECK(graph.tensor(graph.outputs.at(0)).shape == Shape{32, 4096});
  CHECK(graph.tensor(graph.outputs.at(0)).producer == 1);
  CHECK(graph.loss == UINT32_MAX);
  CHECK(parameter_count(graph) == 784 * 4096 + 4096);
}

TEST_CASE("a linear's weight is [out, in] where both layouts fit, and where the file says so", "[graph][reader]") {
  const auto linear = [](const std::string& shape, const std::string& attributes) {
    return graph::testing::refusal(R"({"schema": "voltaic.graph/1", "inputs": [{"name": "x", "shape": [2, 8]}],
      "parameters": [{"name": "w", "shape": )" +
                                   shape + R"(}], "nodes": [{"id": "a", "op": "linear", "inputs": ["x", "w"],
      "outputs": ["y"], "shape": [2, 4], "attributes": )" +
                                   attributes + "}]}");
  };
  CHECK(linear("[4, 8]", "{}") == "accepted");
  CHECK(linear("[8, 4]", "{}") == "accepted");
  CHECK(linear("[8, 4]", R"({"transposed_weight": 1})") == "accepted");
  CHECK(linear("[8, 4]", R"({"transposed_weight": 0})") ==
        "net.json: /nodes/0/inputs/1: linear: expected in features 8 in dimension 1, got [8, 4]");
  CHECK(linear("[5, 4]", "{}") ==
        "net.json: /nodes/0/inputs/1: linear: expected in features 8 in dimension 1, got [5, 4]");
  const OpGraph square =
      read_graph(with_nodes(R"({"id": "a", "op": "linear", "inputs": ["x", "w"], "outputs": ["y"]})"), "n");
  CHECK_FALSE(square.nodes()[0].attributes.has("transposed_weight"));
}

TEST_CASE("dims on the command line win over the file's", "[graph][reader]") {
  const OpGraph graph = read_graph(kMlp, "net.json", {{"batch", 5}});
  CHECK(graph.tensor(graph.outputs.at(0)).shape == Shape{5, 4096});
}

TEST_CASE("batch and seq that a graph has no dim for are noted, not refused", "[graph][reader]") {
  std::vector<std::string> notes;
  read_graph(kMlp, "net.json", {{"seq", 128}}, &notes);
  CHECK(notes == std::vector<std::string>{"seq = 128 ignored: the graph has no dim of that name"});
}

TEST_CASE("a dim is an integer, a name or a product", "[graph][reader]") {
  const OpGraph graph = read_graph(R"({"schema": "voltaic.graph/1", "dims": {"batch": 4, "seq": 3, "d.model": 8},
    "inputs": [{"name": "a", "shape": ["batch*seq", "2*seq", "2 * d.model * seq", 7, "9"]}, {"name": "s", "shape": []}],
    "nodes": [{"id": "r", "op": "reshape", "inputs": ["a"], "outputs": ["b"],
               "attributes": {"shape": ["batch", "seq", -1, "7*9"]}}]})",
                                   "net.json");
  CHECK(graph.tensor(0).shape == Shape{12, 6, 48, 7, 9});
  CHECK(graph.tensor(1).shape == Shape{});
  CHECK(graph.tensor(2).shape == Shape{4, 3, 288, 63});
  CHECK(graph.outputs == std::vector<TensorId>{2});  // Not stated: what no node reads.
}

TEST_CASE("zero-size dims are legal", "[graph][reader]") {
  const OpGraph graph = read_graph(kMlp, "net.json", {{"batch", 0}});
  CHECK(graph.tensor(graph.outputs.at(0)).shape == Shape{0, 4096});
  CHECK(count(graph, graph.nodes()[0]).flop() == 0);
}

TEST_CASE("nodes may stand in any order", "[graph][reader]") {
  const OpGraph graph =
      read_graph(with_nodes(R"({"id": "c", "op": "relu", "inputs": ["b1"], "outputs": ["c1"], "shape": ["batch", 8]},
                    {"id": "b", "op": "gelu", "inputs": ["a1"], "outputs": ["b1"]},
                    {"id": "a", "op": "linear", "inputs": ["x", "w"], "outputs": ["a1"]})"),
                 "net.json");
  CHECK(graph.nodes()[0].id == "a");
  CHECK(graph.nodes()[1].id == "b");
  CHECK(graph.nodes()[2].id == "c");
  CHECK(graph.tensor(graph.outputs.at(0)).shape == Shape{4, 8});
}

TEST_CASE("a parameter used by two nodes is one parameter", "[graph][reader]") {
  const OpGraph graph = read_graph(with_nodes(R"({"id": "a", "op": "linear", "inputs": ["x", "w"], "outputs": ["h"]},
                                                 {"id": "b", "op": "linear", "inputs": ["h", "w"], "outputs": ["y"]})"),
                                   "net.json");
  CHECK(parameter_count(graph) == 64);
  CHECK(graph.nodes()[0].inputs[1] == graph.nodes()[1].inputs[1]);
  CHECK(graph.consumers()[graph.nodes()[0].inputs[1]].size() == 2);
}

TEST_CASE("optional keys of nodes and tensors are kept", "[graph][reader]") {
  const OpGraph graph = read_graph(R"({"schema": "voltaic.graph/1",
    "inputs": [{"name": "x", "shape": [4, 8], "dtype": "bf16"}],
    "parameters": [{"name": "w", "shape": [8, 8], "dtype": "bf16", "trainable": false}],
    "buffers": [{"name": "m", "shape": [4, 8], "dtype": "bool"}],
    "nodes": [{"id": "a", "op": "linear", "inputs": ["x", "w"], "outputs": ["h"], "layer": "block.0", "compute": "bf16",
               "extra_host_calls": 2.5, "dtypes": ["fp32"], "shapes": [[4, 8]]},
              {"id": "b", "op": "dropout", "inputs": ["h"], "outputs": ["y", "mask"], "phase": "backward",
               "attributes": {"p": 0}, "forward_of": "a"},
              {"id": "c", "op": "reduce_sum", "inputs": ["y"], "outputs": ["l"], "attributes": {"keepdims": true}},
              {"id": "d", "op": "reshape", "inputs": ["l"], "outputs": ["l0"], "attributes": {"shape": []}}],
    "outputs": ["y", "mask"], "loss": "l0"})",
                                   "net.json");
  const Node& a = graph.nodes()[0];
  CHECK(a.layer == "block.0");
  CHECK(a.compute == DataType::bf16);
  CHECK(a.extra_host_calls == 2.5);
  CHECK(graph.tensor(a.outputs[0]).dtype == DataType::fp32);
  CHECK_FALSE(graph.tensor(1).trainable);
  CHECK(graph.tensor(2).role == TensorRole::buffer);
  const Node& b = graph.nodes()[1];
  CHECK(b.phase == Phase::backward);
  CHECK(b.forward_of == 0);
  CHECK(b.attributes.number("p", 1) == 0);
  CHECK(graph.tensor(b.outputs[1]).dtype == DataType::boolean);
  CHECK(graph.tensor(graph.loss).name == "l0");
  CHECK(graph.outputs.size() == 2);
}

TEST_CASE("a byte order mark and CRLF line ends are no obstacle", "[graph][reader]") {
  std::string text = "\xEF\xBB\xBF";
  for (const char c : kMlp) text += c == '\n' ? "\r\n" : std::string(1, c);
  CHECK(read_graph(text, "net.json").nodes().size() == 2);
}

TEST_CASE("100,000 nodes are read in well under two seconds", "[graph][reader]") {
  constexpr int kNodes = 100'000;
  std::string nodes;
  for (int i = kNodes; i-- > 0;) {  // Last first: the order has to be found.
    nodes += fmt::format("{}{{\"id\": \"n{}\", \"op\": \"{}\", \"inputs\": [\"{}\"], \"outputs\": [\"t{}\"]}}",
                         i == kNodes - 1 ? "" : ",\n", i, i % 2 == 0 ? "relu" : "gelu",
                         i == 0 ? "x" : fmt::format("t{}", i - 1), i);
  }
  const std::string text = with_nodes(nodes);
  const auto start = std::chrono::steady_clock::now();
  const OpGraph graph = read_graph(text, "net.json");
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  CHECK(graph.nodes().size() == kNodes);
  CHECK(graph.nodes().back().id == "n99999");
  CHECK(graph.tensor(graph.outputs.at(0)).shape == Shape{4, 8});
  CHECK(taken.count() < 20);  // Sanitizers are slow; anything quadratic is slower still.
}
