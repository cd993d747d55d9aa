// SPDX-License-Identifier: MIT
// Attributes of a node as a graph file states them, checked against the operation's schema.
#pragma once

#include "sim/graph/detail/dim_table.hpp"
#include "sim/graph/detail/json_document.hpp"
#include "sim/graph/operation.hpp"

namespace voltaic::graph::detail {

/// Refuses attributes that `op` does not know and values of another kind. Integers may be dim expressions.
Attributes read_attributes(OpType op, const Json& object, const Place& place, const DimTable& dims);

}  // namespace voltaic::graph::detail
