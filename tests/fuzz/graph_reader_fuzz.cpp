// SPDX-License-Identifier: MIT
// Any bytes at all as a graph file: the reader answers with a graph or with one line, and what it read can be written,
// counted and read again. Seeds: tests/fuzz/corpus/graph.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "arch/units/error.hpp"
#include "sim/graph/reader.hpp"
#include "sim/graph/writer.hpp"

namespace {

using namespace voltaic;

void require(bool condition) {
  if (!condition) std::abort();
}

void check_line(std::string_view line) {
  require(!line.empty() && line.size() < 4096);
  for (const char c : line) require(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f);
}

void check_graph(const graph::OpGraph& g) {
  for (const graph::Node& node : g.nodes()) {
    const double flop = graph::count(g, node).flop();
    require(std::isfinite(flop) && flop >= 0);
  }
  require(graph::parameter_count(g) >= 0);
  const graph::OpGraph again = graph::read_graph(graph::write_graph(g), "again.json");
  require(again.nodes().size() == g.nodes().size() && again.tensors().size() == g.tensors().size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    check_graph(graph::read_graph(text, "fuzz.json", {{"batch", 2}}));
  } catch (const ConfigError& error) {
    check_line(error.what());
  } catch (const UnsupportedError& error) {
    check_line(error.what());
  }
  return 0;
}
