// SPDX-License-Identifier: MIT
// Reads `voltaic.graph/1` files.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sim/graph/op_graph.hpp"

namespace voltaic::graph {

/// Values for named dims given on the command line (--batch, --seq, --dim name=N); they override the file's.
using DimValues = std::map<std::string, std::int64_t>;

/// Parses and checks `text`; `file` names it in errors. Every refusal is a ConfigError with the JSON pointer of the
/// place: `net.json: /nodes/3/inputs/1: expected a known tensor, got 'w9'`; only an unknown operation is an
/// UnsupportedError. Overriding a dim the file lacks is refused too, except "batch" and "seq", which are ignored with a
/// note in `notes`.
OpGraph read_graph(std::string_view text, const std::string& file, const DimValues& dims = {},
                   std::vector<std::string>* notes = nullptr);

}  // namespace voltaic::graph
