// SPDX-License-Identifier: MIT
// What the reader refuses, word for word: each refusal is one line that names file, place, expectation and finding.
#include <string>
#include <vector>

#include "arch/units/error.hpp"
#include "tests/sim/graph/graph_text.hpp"
#include "tests/support/catch.hpp"

using namespace voltaic;
using namespace voltaic::graph;
using graph::testing::kMlp;
using graph::testing::refusal;
using graph::testing::with_nodes;

namespace {

std::string with_input(const std::string& shape, const std::string& dims = R"({"batch": 4, "seq": 3})") {
  return R"({"schema": "voltaic.graph/1", "dims": )" + dims + R"(, "inputs": [{"name": "x", "shape": )" + shape +
         R"(}], "nodes": []})";
}

const std::string kRelu = R"({"id": "a", "op": "relu", "inputs": ["x"], "outputs": ["y"]})";

}  // namespace

TEST_CASE("another schema, or none, is told what is expected", "[graph][reader][refusal]") {
  CHECK(refusal(R"({"schema": "voltaic.graph/2"})") ==
        "net.json: /schema: expected 'voltaic.graph/1', got 'voltaic.graph/2'");
  CHECK(refusal(R"({"schema": 1})") == "net.json: /schema: expected 'voltaic.graph/1', got 1");
  CHECK(refusal("{}") == "net.json: expected key 'schema', got none");
  CHECK(refusal("[]") == "net.json: expected a JSON object, got an empty list");
  CHECK(refusal(R"({"schema": "voltaic.graph/1"})") == "net.json: expected key 'nodes', got none");
}

TEST_CASE("text that is not JSON is refused with its line and column", "[graph][reader][refusal]") {
  CHECK(
      refusal("") ==
      "net.json: line 1, column 1: syntax error while parsing value - unexpected end of input; expected '[', '{', or a "
      "literal");
  const std::string cut = refusal(kMlp.substr(0, 200));
  CHECK(cut.substr(0, 25) == "net.json: line 3, column ");
  CHECK(cut.find("unexpected end of input") != std::string::npos);
  CHECK(refusal("{\"schema\": NaN}").find("line 1, column 12: syntax error while parsing value - invalid literal") !=
        std::string::npos);
  CHECK(refusal("{\"schema\": 1e999}") == "net.json: number overflow parsing '1e999'");
}

TEST_CASE("refusals stay on one printable line whatever the bytes are", "[graph][reader][refusal]") {
  const std::vector<std::string> texts{"{\"schema\": \"\xff\xfe\"}",
                                       "\xff\xfe{}",
                                       std::string("{\"schema\": \"voltaic.graph/1\0\"}", 30),
                                       "{\"schema\": \"voltaic\\ngraph\\u0007\\u0085/1\"}",
                                       "{\"schema\":\n\n\x01",
                                       R"({"schema": "voltaic.graph/1", "nodes": [], "a\nb\u001b[31m": 1})",
                                       "{\"schema\": \"" + std::string(100'000, 'x') + "\"}"};
  for (const std::string& text : texts) {
    const std::string line = refusal(text);
    CHECK(line.substr(0, 10) == "net.json: ");
    CHECK(line.size() < 400);
    for (const char c : line) CHECK(static_cast<unsigned char>(c) >= 0x20);
    CHECK(line.find('\xff') == std::string::npos);
    CHECK(line.find("\xC2\x85") == std::string::npos);
  }
}

TEST_CASE("nesting beyond 100 levels is refused before it can exhaust the stack", "[graph][reader][refusal]") {
  const std::string open = R"({"schema": "voltaic.graph/1", "nodes": )";
  CHECK(refusal(open + std::string(99, '[') + std::string(99, ']') + "}").find("nesting") == std::string::npos);
  CHECK(refusal(open + std::string(100, '[') + std::string(100, ']') + "}")
            .find("expected at most 100 levels of nesting, got more") != std::string::npos);
  CHECK(refusal(std::string(5'000'000, '[')).find("nesting") != std::string::npos);
}

TEST_CASE("a key that stands twice is refused", "[graph][reader][refusal]") {
  CHECK(refusal(R"({"schema": "voltaic.graph/1", "nodes": [], "nodes": []})") ==
        "net.json: /nodes: expected each key once, got it twice");
  CHECK(refusal(with_nodes(kRelu + R"(, {"id": "b", "id": "c"})")) ==
        "net.json: /nodes/1/id: expected each key once, got it twice");
}

TEST_CASE("unknown keys are refused with the nearest", "[graph][reader][refusal]") {
  CHECK(refusal(R"({"schema": "voltaic.graph/1", "nodes": [], "ouputs": []})") ==
        "net.json: /ouputs: expected a known key, got 'ouputs'; the nearest is 'outputs'");
  CHECK(refusal(with_nodes(R"({"id": "a", "op": "relu", "input": ["x"], "outputs": ["y"]})")) ==
        "net.json: /nodes/0/input: expected a known key, got 'input'; the nearest is 'inputs'");
  CHECK(refusal(R"({"schema": "voltaic.graph/1", "nodes": [], "a/b~": 1})") ==
        "net.json: /a~1b~0: expected a known key, got 'a/b~'");
}

TEST_CASE("cycles are refused with the ids on them", "[graph][reader][refusal]") {
  CHECK(refusal(with_nodes(kRelu + R"(, {"id": "p", "op": "add", "inputs": ["x", "t"], "outputs": ["s"]},
                                        {"id": "q", "op": "relu", "inputs": ["s"], "outputs": ["t"]})")) ==
        "net.json: /nodes/1: expected a graph without cycles, got 'p' -> 'q' -> 'p'");
  CHECK(refusal(with_nodes(R"({"id": "p", "op": "relu", "inputs": ["s"], "outputs": ["s"]})")) ==
        "net.json: /nodes/0: expected a graph without cycles, got 'p' -> 'p'");
}

TEST_CASE("names must be known, and new where they are defined", "[graph][reader][refusal]") {
  CHECK(refusal(with_nodes(R"({"id": "a", "op": "linear", "inputs": ["x", "w9"], "outputs": ["y"]})")) ==
        "net.json: /nodes/0/inputs/1: expected a known tensor, got 'w9'; the nearest is 'w'");
  CHECK(refusal(with_nodes(kRelu + "," + R"({"id": "a", "op": "relu", "inputs": ["y"], "outputs": ["z"]})")) ==
        "net.json: /nodes/1/id: expected a unique id, got 'a', the id of /nodes/0");
  CHECK(refusal(with_nodes(kRelu + "," + R"({"id": "b", "op": "relu", "inputs": ["y"], "outputs": ["y"]})")) ==
        "net.json: /nodes/1/outputs/0: expected a new tensor name, got 'y', an output of 'a'");
  CHECK(refusal(with_nodes(R"({"id": "b", "op": "relu", "inputs": ["x"], "outputs": ["w"]})")) ==
        "net.json: /nodes/0/outputs/0: expected a new tensor name, got 'w', declared before");
  CHECK(refusal(with_nodes(kRelu, R"(, "outputs": ["y", "q"])")).substr(0, 62) ==
        "net.json: /outputs/1: expected a known tensor, got 'q'; the ne");
  CHECK(refusal(with_nodes(kRelu, R"(, "loss": "lost")")) == "net.json: /loss: expected a known tensor, got 'lost'");
  CHECK(refusal(with_nodes(kRelu, R"(, "loss": "y")")) ==
        "net.json: /loss: expected a scalar tensor, got shape [4, 8]");
  CHECK(refusal(with_nodes(R"({"id": "", "op": "relu", "inputs": ["x"], "outputs": ["y"]})")) ==
        "net.json: /nodes/0/id: expected a node id, got ''");
  CHECK(refusal(with_nodes(R"({"id": "a", "op": "relu", "inputs": ["x"], "outputs": ["y"], "forward_of": "b"})")) ==
        "net.json: /nodes/0/forward_of: expected a known node, got 'b'");
}

TEST_CASE("an unknown operation is unsupported, with the nearest", "[graph][reader][refusal]") {
  const std::string text = with_nodes(R"({"id": "a", "op": "lineer", "inputs": ["x"], "outputs": ["y"]})");
  CHECK(refusal(text) == "net.json: /nodes/0/op: expected a known operation, got 'lineer'; the nearest is 'linear'");
  CHECK_THROWS_AS(read_graph(text, "net.json"), UnsupportedError);
  CHECK(refusal(with_nodes(R"({"id": "a", "op": 3})")) ==
        "net.json: /nodes/0/op: expected the name of an operation, got 3");
}

TEST_CASE("shapes that do not fit are refused at the input or statement", "[graph][reader][refusal]") {
  CHECK(refusal(with_nodes(R"({"id": "a", "op": "add", "inputs": ["x", "ids"], "outputs": ["y"]})")) ==
        "net.json: /nodes/0/inputs/1: add: expected a shape that broadcasts with [4, 8], got [4]");
  CHECK(refusal(with_nodes(R"({"id": "a", "op": "relu", "inputs": ["x", "w"], "outputs": ["y"]})")) ==
        "net.json: /nodes/0/inputs: relu: expected 1 input, got 2");
  CHECK(refusal(with_nodes(R"({"id": "a", "op": "relu", "outputs": ["y"]})")) ==
        "net.json: /nodes/0/inputs: relu: expected 1 input, got 0");
  CHECK(refusal(with_nodes(R"({"id": "a", "op": "relu", "inputs": ["x"], "outputs": ["y", "z"]})")) ==
        "net.json: /nodes/0/outputs: relu: expected 1 output, got 2");
  CHECK(refusal(with_nodes(R"({"id": "a", "op": "relu", "inputs": ["x"]})")) ==
        "net.json: /nodes/0: expected key 'outputs', got none");
  CHECK(refusal(with_nodes(R"({"id": "a", "op": "split", "inputs": ["x"], "outputs": ["y"],
                               "attributes": {"sizes": [3, 5]}})")) ==
        "net.json: /nodes/0/outputs: split: expected 2 outputs, got 1");
  const std::string relu = R"({"id": "a", "op": "relu", "inputs": ["x"], "outputs": ["y"], )";
  CHECK(refusal(with_nodes(relu + R"("shape": ["batch", 10]})")) ==
        "net.json: /nodes/0/shape: expected [4, 8] as inferred, got [4, 10]");
  CHECK(refusal(with_nodes(relu + R"("shapes": [[4]]})")) ==
        "net.json: /nodes/0/shapes/0: expected [4, 8] as inferred, got [4]");
  CHECK(refusal(with_nodes(relu + R"("shapes": []})")) ==
        "net.json: /nodes/0/shapes: expected 1 shapes, one per output, got 0");
  CHECK(refusal(with_nodes(relu + R"("shape": [4, 8], "shapes": [[4, 8]]})")) ==
        "net.json: /nodes/0/shapes: expected 'shape' or 'shapes', got both");
  CHECK(refusal(with_nodes(relu + R"("dtypes": ["fp12"]})")).substr(0, 64) ==
        "net.json: /nodes/0/dtypes/0: expected one of fp64, fp32, tf32, f");
}

TEST_CASE("attributes are checked by name and kind", "[graph][reader][refusal]") {
  const auto conv = [](const std::string& attributes) {
    return refusal(with_nodes(R"({"id": "a", "op": "softmax", "inputs": ["x"], "outputs": ["y"], "attributes": )" +
                              attributes + "}"));
  };
  CHECK(conv(R"({"axes": 1})") ==
        "net.json: /nodes/0/attributes/axes: expected an attribute of softmax, got 'axes'; the nearest is 'axis'");
  CHECK(
      conv(R"({"temperature": 1})") ==
      "net.json: /nodes/0/attributes/temperature: expected an attribute of softmax, got 'temperature'; it knows axis");
  CHECK(conv(R"({"axis": 1.0})") == "net.json: /nodes/0/attributes/axis: expected an integer, got 1.0");
  CHECK(conv(R"({"axis": [1]})") == "net.json: /nodes/0/attributes/axis: expected an integer, got a list");
  CHECK(conv(R"({"axis": 9223372036854775808})") ==
        "net.json: /nodes/0/attributes/axis: expected an integer, got 9223372036854775808");
  CHECK(conv(R"({"axis": 2})") ==
        "net.json: /nodes/0/attributes/axis: softmax: expected an axis of a rank 2 tensor, got 2");
  CHECK(conv("[]") == "net.json: /nodes/0/attributes: expected an object of attributes, got an empty list");
  CHECK(
      refusal(with_nodes(R"({"id": "a", "op": "relu", "inputs": ["x"], "outputs": ["y"], "attributes": {"p": 1}})")) ==
      "net.json: /nodes/0/attributes/p: expected no attributes for relu, got 'p'");
  CHECK(refusal(with_nodes(
            R"({"id": "a", "op": "attention", "inputs": [], "outputs": [], "attributes": {"causal": 2}})")) ==
        "net.json: /nodes/0/attributes/causal: expected 0 or 1, got 2");
  CHECK(refusal(
            with_nodes(R"({"id": "a", "op": "cast", "inputs": ["x"], "outputs": ["y"], "attributes": {"to": "f"}})")) ==
        "net.json: /nodes/0/attributes/to: expected a data type, got 'f'");
}

TEST_CASE("senseless dims are refused", "[graph][reader][refusal]") {
  const std::string expected =
      "net.json: /inputs/0/shape/0: expected an integer from 0 to 2^62, a dim name or a product like \"batch*seq\", "
      "got ";
  CHECK(refusal(with_input("[-1]")) == expected + "-1");
  CHECK(refusal(with_input("[2.5]")) == expected + "2.5");
  CHECK(refusal(with_input("[2.0]")) == expected + "2.0");
  CHECK(refusal(with_input("[null]")) == expected + "null");
  CHECK(refusal(with_input("[4611686018427387905]")) == expected + "4611686018427387905");
  CHECK(refusal(with_input("[99999999999999999999]")).find(expected) == 0);
  CHECK(refusal(with_input("[\"\"]")) == expected + "''");
  CHECK(refusal(with_input("[\"batch*\"]")) == expected + "''");
  CHECK(refusal(with_input("[\"batch+1\"]")) == expected + "'batch+1'");
  CHECK(refusal(with_input("[\"-2*seq\"]")) == expected + "'-2'");
  CHECK(refusal(with_input("[\"bacth\"]")) ==
        "net.json: /inputs/0/shape/0: expected a name from dims, got 'bacth'; the nearest is 'batch'");
  CHECK(refusal(with_input("[\"4611686018427387904*seq\"]")) ==
        "net.json: /inputs/0/shape/0: expected a product of at most 2^62, got '4611686018427387904*seq'");
  CHECK(refusal(with_input("[4294967296, 4294967296]")) ==
        "net.json: /inputs/0/shape: expected at most 2^62 elements, got shape [4294967296, 4294967296]");
  CHECK(refusal(with_input("7")) == "net.json: /inputs/0/shape: expected a shape, a list of dims, got 7");
  CHECK(refusal(with_input("[1]", R"({"batch": "4"})")) ==
        "net.json: /dims/batch: expected an integer from 0 to 2^62, got '4'");
  CHECK(refusal(with_input("[1]", R"({"batch": -4})")) ==
        "net.json: /dims/batch: expected an integer from 0 to 2^62, got -4");
  CHECK(refusal(with_input("[1]", R"({"2x": 4})")) ==
        "net.json: /dims/2x: expected a dim name of letters, digits, '_', '.' and '-', got '2x'");
}

TEST_CASE("dims on the command line must exist and make sense", "[graph][reader][refusal]") {
  CHECK(refusal(with_input("[\"batch\"]"), {{"bach", 2}}) ==
        "net.json: /dims: expected a dim of the file to set, got 'bach'; the nearest is 'batch'");
  CHECK(refusal(with_input("[\"batch\"]"), {{"batch", -2}}) ==
        "net.json: /dims/batch: expected an integer from 0 to 2^62, got -2");
}

TEST_CASE("tensors need a name, a shape and a known type", "[graph][reader][refusal]") {
  const auto parameter = [](const std::string& entry) {
    return refusal(R"({"schema": "voltaic.graph/1", "parameters": [)" + entry + R"(], "nodes": []})");
  };
  CHECK(parameter(R"({"shape": [1]})") == "net.json: /parameters/0: expected key 'name', got none");
  CHECK(parameter(R"({"name": "w"})") == "net.json: /parameters/0: expected key 'shape', got none");
  CHECK(parameter(R"("w")") == "net.json: /parameters/0: expected a tensor, an object with name and shape, got 'w'");
  CHECK(parameter(R"({"name": "w", "shape": [1], "dtype": "float"})") ==
        "net.json: /parameters/0/dtype: expected one of fp64, fp32, tf32, fp16, bf16, fp8, int64, int32, int8, int4, "
        "bool, "
        "got 'float'");
  CHECK(parameter(R"({"name": "w", "shape": [1], "trainable": 1})") ==
        "net.json: /parameters/0/trainable: expected true or false, got 1");
  CHECK(parameter(R"({"name": "w", "shape": [1]}, {"name": "w", "shape": [1]})") ==
        "net.json: /parameters/1/name: expected a new tensor name, got 'w', declared before");
}
