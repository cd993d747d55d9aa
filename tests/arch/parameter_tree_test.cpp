// SPDX-License-Identifier: MIT
#include "arch/parameter_tree.hpp"

#include "arch/units/error.hpp"
#include "tests/support/catch.hpp"

using voltaic::ConfigError;
using voltaic::arch::ParameterTree;

namespace {

ParameterTree toy() {
  return ParameterTree::parse(R"({
    "gemm": {"source": "toy", "phi": {"value": 0.3, "source": "toy"}, "p": 2, "rule": "first", "w": [1, 2.5, 3],
             "kernels": [{"name": "a", "tile": 128}, {"name": "b", "tile": 64}]},
    "intervals": {"gemm.simt": {"half_width": 0.12}}})",
                              "toy.json");
}

}  // namespace

TEST_CASE("a tree gives numbers, words and lists by dotted path", "[arch][parameters]") {
  const auto tree = toy();
  CHECK(tree.number("gemm.phi") == 0.3);
  CHECK(tree.number("gemm.p") == 2);
  CHECK(tree.number_or("gemm.q", 7) == 7);
  CHECK(tree.word("gemm.rule") == "first");
  CHECK(tree.numbers("gemm.w") == std::vector<double>{1, 2.5, 3});
  CHECK(tree.keys("gemm") == std::vector<std::string>{"phi", "p", "rule", "w", "kernels"});
  CHECK(tree.at("gemm").number("phi") == 0.3);
  CHECK(tree.elements("gemm.kernels")[1].number("tile") == 64);
  CHECK(tree.file() == "toy.json");
}

TEST_CASE("a member name may hold dots", "[arch][parameters]") {
  CHECK(toy().number("intervals.gemm.simt.half_width") == 0.12);
  CHECK_FALSE(toy().has("intervals.gemm"));
}

TEST_CASE("a missing or mistyped parameter names file and path", "[arch][parameters]") {
  const auto tree = toy();
  CHECK_THROWS_WITH(tree.number("gemm.q"), "toy.json: gemm.q: expected a parameter, found none");
  CHECK_THROWS_WITH(tree.number("gemm.rule"), "toy.json: gemm.rule: expected a number, got the text \"first\"");
  CHECK_THROWS_WITH(tree.at("gemm").word("phi"), "toy.json: gemm.phi: expected a word, got 0.3");
  CHECK_THROWS_AS(tree.numbers("gemm.kernels"), ConfigError);
  CHECK_THROWS_AS(tree.elements("gemm.phi"), ConfigError);
  CHECK_THROWS_AS(ParameterTree::parse("[1]", "toy.json"), ConfigError);
  CHECK_FALSE(ParameterTree().has("anything"));
}
