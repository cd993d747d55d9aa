// SPDX-License-Identifier: MIT
// Named dims of a graph file and the expressions that use them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/graph/detail/json_document.hpp"
#include "sim/graph/op_graph.hpp"
#include "sim/graph/reader.hpp"

namespace voltaic::graph::detail {

class DimTable {
 public:
  /// `dims` is the file's object, or null; `overrides` come from the command line and win.
  DimTable(const Json* dims, const Place& place, const DimValues& overrides, std::vector<std::string>* notes);

  /// A dimension: an integer of 0 or more, a name, or a product such as "batch*seq" or "2*seq".
  std::int64_t dimension(const Json& value, const Place& place) const;
  /// Any integer, or an expression as above: attributes may be negative.
  std::int64_t integer(const Json& value, const Place& place, const char* expected) const;
  Shape shape(const Json& value, const Place& place) const;

 private:
  std::int64_t product(std::string_view text, const Place& place) const;
  std::int64_t factor(std::string_view text, const Place& place) const;

  std::map<std::string, std::int64_t, std::less<>> values_;
};

}  // namespace voltaic::graph::detail
