// SPDX-License-Identifier: MIT
#include "sim/graph/writer.hpp"

#include <nlohmann/json.hpp>
#include <string>

#include "sim/graph/reader.hpp"
#include "tests/sim/graph/graph_text.hpp"
#include "tests/support/catch.hpp"

using namespace voltaic;
using namespace voltaic::graph;
using graph::testing::with_nodes;

namespace {

/// Everything that a file carries; tensors are compared by name because their numbering follows the file.
void check_same(const OpGraph& a, const OpGraph& b) {
  CHECK(a.name == b.name);
  REQUIRE(a.tensors().size() == b.tensors().size());
  REQUIRE(a.nodes().size() == b.nodes().size());
  const auto names = [](const OpGraph& graph, const std::vector<TensorId>& ids) {
    std::string text;
    for (const TensorId id : ids) {
      const Tensor& t = graph.tensor(id);
      text += t.name + to_string(t.shape) + std::string(to_string(t.dtype)) + (t.trainable ? "" : "!") +
              std::to_string(static_cast<int>(t.role)) + " ";
    }
    return text;
  };
  for (std::size_t i = 0; i < a.nodes().size(); ++i) {
    const Node& x = a.nodes()[i];
    const Node& y = b.nodes()[i];
    CAPTURE(x.id);
    CHECK(x.id == y.id);
    CHECK(x.op == y.op);
    CHECK(x.attributes == y.attributes);
    CHECK(names(a, x.inputs) == names(b, y.inputs));
    CHECK(names(a, x.outputs) == names(b, y.outputs));
    CHECK(x.phase == y.phase);
    CHECK(x.compute == y.compute);
    CHECK(x.layer == y.layer);
    CHECK(x.extra_host_calls == y.extra_host_calls);
    CHECK(x.forward_of == y.forward_of);
  }
  CHECK(names(a, a.outputs) == names(b, b.outputs));
  CHECK((a.loss == UINT32_MAX) == (b.loss == UINT32_MAX));
}

}  // namespace

TEST_CASE("what is written reads back as the same graph, and writes the same bytes", "[graph][writer]") {
  const OpGraph graph = read_graph(with_nodes(R"(
      {"id": "a", "op": "linear", "inputs": ["x", "w"], "outputs": ["h"], "layer": "block.0", "compute": "tf32",
       "extra_host_calls": 1.5, "attributes": {"transposed_weight": true}},
      {"id": "s", "op": "split", "inputs": ["h"], "outputs": ["p", "q"], "attributes": {"sizes": [3, 5]}},
      {"id": "d", "op": "dropout", "inputs": ["q"], "outputs": ["r", "mask"], "attributes": {"p": 0.25}},
      {"id": "c", "op": "cast", "inputs": ["r"], "outputs": ["r16"], "attributes": {"to": "fp16"}, "dtypes": ["bf16"]},
      {"id": "g", "op": "pointwise_backward", "inputs": ["r16"], "outputs": ["dr"], "phase": "backward",
       "attributes": {"of": "gelu", "shape": ["batch", 5]}, "forward_of": "c"},
      {"id": "m", "op": "mse_loss", "inputs": ["x", "h"], "outputs": ["l"]})",
                                              R"(, "name": "a \"quoted\" name", "outputs": ["p", "dr"], "loss": "l")"),
                                   "net.json");
  const std::string text = write_graph(graph);
  const OpGraph again = read_graph(text, "again.json");
  check_same(graph, again);
  CHECK(write_graph(again) == text);
}

TEST_CASE("one-shot builders' graphs write valid files", "[graph][writer]") {
  OpGraph graph;
  graph.name = "empty";
  CHECK(nlohmann::json::parse(write_graph(graph))["schema"] == "voltaic.graph/1");
  CHECK(read_graph(write_graph(graph), "net.json").nodes().empty());
  Tensor odd;
  odd.name = "bytes \xff";
  odd.role = TensorRole::input;
  graph.add_tensor(odd);
  CHECK(read_graph(write_graph(graph), "net.json").tensors().size() == 1);
}
