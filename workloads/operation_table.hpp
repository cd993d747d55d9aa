// SPDX-License-Identifier: MIT
// One row per operation that is a workload by itself: its keys and how its graph is built.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "workloads/graph_writer.hpp"

namespace voltaic::workloads {

class Keys {
 public:
  Keys(std::string op, std::map<std::string, std::int64_t> given) : op_(std::move(op)), given_(std::move(given)) {}
  const std::string& op() const { return op_; }
  std::int64_t at(const std::string& key) const { return given_.at(key); }

 private:
  std::string op_;
  std::map<std::string, std::int64_t> given_;
};

/// A key with its default; kRequired: must be given. Keys that may be 0 (flags, padding) have `lowest` 0.
struct KeySpec {
  const char* name;
  std::int64_t fallback;
  std::int64_t lowest = 1;
};
inline constexpr std::int64_t kRequired = -1;

using Builder = std::function<TensorId(GraphWriter&, const Keys&)>;
struct OperationSpec {
  std::vector<KeySpec> keys;
  Builder build;
};
using OperationTable = std::map<std::string, OperationSpec>;

/// Refuses key `key` unless its value divides that of `of`.
void require_divisor(const Keys& k, const char* key, std::int64_t value, const char* of);
/// Refuses key `key` where it is larger than `most`.
void require_at_most(const Keys& k, const char* key, std::int64_t most);

/// Convolutions, pooling, resizing, regions of images.
void add_spatial_operations(OperationTable& table);
/// Tables, gathers, sparse products, sorting and losses.
void add_indexed_operations(OperationTable& table);

}  // namespace voltaic::workloads
