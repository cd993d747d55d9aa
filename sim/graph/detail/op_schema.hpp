// SPDX-License-Identifier: MIT
// How many inputs and outputs each operation takes and which attributes it knows: the checkable half of README.md's
// table.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "sim/graph/operation.hpp"

namespace voltaic::graph::detail {

enum class AttributeKind : std::uint8_t {
  integer,
  flag,    ///< 0 or 1; files may also say true and false.
  number,  ///< Finite.
  word,
  data_type,  ///< A word that names a DataType.
  operation,  ///< A word that names an OpType.
  integers,
  integer_or_integers,
};
std::string_view describe(AttributeKind kind);  ///< "an integer or a list of integers"

struct AttributeSpec {
  std::string_view name;
  AttributeKind kind;
};

inline constexpr int kMany = 1 << 30;

struct OpSchema {
  int min_inputs = 1;
  int max_inputs = 1;
  int min_outputs = 1;
  int max_outputs = 1;
  std::span<const AttributeSpec> attributes = {};
};

OpSchema schema(OpType op);

}  // namespace voltaic::graph::detail
