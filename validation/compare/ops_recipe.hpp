// SPDX-License-Identifier: MIT
// What one node of a traced network does, as a graph of one operation with the strides of its operands.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/graph/op_graph.hpp"

namespace voltaic::validation {

/// One row of a table of traced nodes, without its times.
struct TracedNode {
  std::string_view name, call, target, kind;
  std::vector<graph::Shape> inputs;  ///< Arguments; numbers of the program read "1".
  std::string_view contiguous;       ///< One letter per argument: 1 where its elements are packed.
  graph::Shape output;
  std::string_view dtype;          ///< Of the result: float32, int64, bool; empty where it is no tensor.
  std::string_view backward_work;  ///< "MEM(30522x1024);...": the gradient's shapes.
  bool no_gpu_work = false;        ///< The table's own remark: a number, a view.
  bool differentiated = false;     ///< Autograd made a node for it.
};

/// A graph of one operation, preceded by the views and copies that bring its operands into the stated strides.
struct Recipe {
  std::string op;                         ///< The table's word; "host" for calls that launch nothing.
  graph::OpGraph graph;                   ///< Empty: nothing is launched.
  double views = 0;                       ///< Calls inside that make a view.
  double autograd_nodes = 0;              ///< Nodes of autograd beside the operation's own; none launches anything.
  bool one_kernel = false;                ///< Works in place: the copy that comes before is not made.
  std::vector<graph::Shape> accumulated;  ///< Parameters whose gradients are added to those kept.
  std::string reason;                     ///< Not empty: cannot be predicted.
  std::string backward_reason;            ///< The same of the backward time alone.
};

Recipe recipe_of(const TracedNode& node);

}  // namespace voltaic::validation
