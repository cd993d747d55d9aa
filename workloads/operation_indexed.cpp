// SPDX-License-Identifier: MIT
// Single operations that follow an index, sort, or compare with a target.
#include <string>

#include "workloads/operation_table.hpp"

namespace voltaic::workloads {

namespace {

constexpr double kPercent = 100;

TensorId build_embedding(GraphWriter& w, const Keys& k) {
  const TensorId ids = w.input("ids", {k.at("tokens")}, DataType::int64);
  return w.embedding("embedding", ids, w.parameter("table", {k.at("rows"), k.at("cols")}));
}

/// `zipf_percent`: a hundred times the exponent of the rows' popularity.
TensorId build_embedding_bag(GraphWriter& w, const Keys& k) {
  require_at_most(k, "zipf_percent", 1000);
  const TensorId ids = w.input("ids", {k.at("batch"), k.at("lookups")}, DataType::int64);
  const TensorId table = w.parameter("table", {k.at("rows"), k.at("width")});
  graph::Attributes attrs = attributes({{"zipf", static_cast<double>(k.at("zipf_percent")) / kPercent}});
  if (k.at("fused_update") != 0) attrs.set("fused_update", std::int64_t{1});
  return w.apply(OpType::embedding_bag, "embedding_bag", {ids, table}, std::move(attrs));
}

/// A[rows, cols] with `nnz` entries times x[cols, features]; `values` 0: entries are ones.
TensorId build_spmm(GraphWriter& w, const Keys& k) {
  const TensorId x = w.input("x", {k.at("cols"), k.at("features")});
  const TensorId index = w.input("index", {k.at("nnz")}, DataType::int32);
  std::vector<TensorId> inputs{x, index};
  if (k.at("values") != 0) inputs.push_back(w.input("values", {k.at("nnz")}));
  return w.apply_all(OpType::spmm, "spmm", std::move(inputs), attributes({{"rows", k.at("rows")}}));
}

TensorId build_sddmm(GraphWriter& w, const Keys& k) {
  const TensorId left = w.input("left", {k.at("rows"), k.at("features")});
  const TensorId right = w.input("right", {k.at("cols"), k.at("features")});
  return w.apply(OpType::sddmm, "sddmm", {left, right, w.input("index", {k.at("nnz")}, DataType::int32)});
}

/// `count` rows of x[rows, cols].
TensorId build_gather(GraphWriter& w, const Keys& k) {
  const TensorId index = w.input("index", {k.at("count")}, DataType::int64);
  return w.apply(OpType::gather, "gather", {w.input("x", {k.at("rows"), k.at("cols")}), index});
}

/// `count` rows added into [rows, cols].
TensorId build_scatter_add(GraphWriter& w, const Keys& k) {
  const TensorId index = w.input("index", {k.at("count")}, DataType::int64);
  return w.apply(OpType::scatter_add, "scatter_add", {w.input("x", {k.at("count"), k.at("cols")}), index},
                 attributes({{"rows", k.at("rows")}}));
}

TensorId build_topk(GraphWriter& w, const Keys& k) {
  require_at_most(k, "k", k.at("cols"));
  const TensorId x = w.input("x", {k.at("rows"), k.at("cols")});
  return w.apply_multiple(OpType::topk, "topk", {x}, attributes({{"k", k.at("k")}}), 2).front();
}

Builder distance(OpType op) {
  return [op](GraphWriter& w, const Keys& k) {
    const Shape shape{k.at("rows"), k.at("cols")};
    const TensorId x = w.input("x", shape);
    return w.apply(op, k.op(), {x, w.buffer("target", shape)});
  };
}

TensorId build_ctc_loss(GraphWriter& w, const Keys& k) {
  const TensorId x = w.input("log_probabilities", {k.at("time"), k.at("batch"), k.at("classes")});
  return w.apply(OpType::ctc_loss, "ctc_loss",
                 {x, w.input("labels", {k.at("batch"), k.at("labels")}, DataType::int64)});
}

}  // namespace

void add_indexed_operations(OperationTable& table) {
  const std::vector<KeySpec> rows_cols{{"rows", kRequired}, {"cols", kRequired}};
  table["embedding"] = {{{"tokens", kRequired}, {"rows", kRequired}, {"cols", kRequired}}, build_embedding};
  table["embedding_bag"] = {{{"rows", kRequired},
                             {"width", kRequired},
                             {"batch", kRequired},
                             {"lookups", 1},
                             {"zipf_percent", 0, 0},
                             {"fused_update", 0, 0}},
                            build_embedding_bag};
  table["spmm"] = {
      {{"rows", kRequired}, {"cols", kRequired}, {"features", kRequired}, {"nnz", kRequired}, {"values", 1, 0}},
      build_spmm};
  table["sddmm"] = {{{"rows", kRequired}, {"cols", kRequired}, {"features", kRequired}, {"nnz", kRequired}},
                    build_sddmm};
  const std::vector<KeySpec> by_index{{"rows", kRequired}, {"cols", kRequired}, {"count", kRequired}};
  table["gather"] = {by_index, build_gather};
  table["scatter_add"] = {by_index, build_scatter_add};
  table["sort"] = {rows_cols, [](GraphWriter& w, const Keys& k) {
                     const TensorId x = w.input("x", {k.at("rows"), k.at("cols")});
                     return w.apply_multiple(OpType::sort, "sort", {x}, {}, 2).front();
                   }};
  table["topk"] = {{{"rows", kRequired}, {"cols", kRequired}, {"k", kRequired}}, build_topk};
  table["cumsum"] = {rows_cols, [](GraphWriter& w, const Keys& k) {
                       return w.apply(OpType::cumsum, "cumsum", {w.input("x", {k.at("rows"), k.at("cols")})});
                     }};
  table["mse_loss"] = {rows_cols, distance(OpType::mse_loss)};
  table["smooth_l1_loss"] = {rows_cols, distance(OpType::smooth_l1_loss)};
  table["bce_loss"] = {rows_cols, distance(OpType::bce_loss)};
  table["ctc_loss"] = {{{"time", kRequired}, {"batch", kRequired}, {"classes", kRequired}, {"labels", kRequired}},
                       build_ctc_loss};
}

}  // namespace voltaic::workloads
