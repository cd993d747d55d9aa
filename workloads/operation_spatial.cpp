// SPDX-License-Identifier: MIT
// Single operations on images, sequences and volumes.
#include <string>

#include "workloads/operation_table.hpp"

namespace voltaic::workloads {

namespace {

constexpr int kMostDims = 3;
// From the outermost to the innermost of three dims.
constexpr const char* kSizes[kMostDims] = {"d", "h", "w"};
constexpr const char* kFilters[kMostDims] = {"t", "r", "s"};

Shape sized(const Keys& k, int dims, Shape shape) {
  for (int d = kMostDims - dims; d < kMostDims; ++d) shape.push_back(k.at(kSizes[d]));
  return shape;
}

void add_sizes(std::vector<KeySpec>& keys, int dims, const char* const (&names)[kMostDims]) {
  for (int d = kMostDims - dims; d < kMostDims; ++d) keys.push_back({names[d], kRequired});
}

/// Input [N, C, spatial], weight [K, C / groups, filter], or [C, K / groups, filter] of a transposed one.
TensorId convolution(GraphWriter& w, const Keys& k, OpType op, int dims, bool transposed) {
  require_divisor(k, "groups", k.at("groups"), "c");
  require_divisor(k, "groups", k.at("groups"), "k");
  const TensorId x = w.input("x", sized(k, dims, {k.at("n"), k.at("c")}));
  Shape filter = transposed ? Shape{k.at("c"), k.at("k") / k.at("groups")}  //
                            : Shape{k.at("k"), k.at("c") / k.at("groups")};
  for (int d = kMostDims - dims; d < kMostDims; ++d) filter.push_back(k.at(kFilters[d]));
  graph::Attributes attrs = attributes({{"dilation", k.at("dilation")},
                                        {"groups", k.at("groups")},
                                        {"padding", k.at("padding")},
                                        {"stride", k.at("stride")}});
  if (transposed) attrs.set("output_padding", k.at("output_padding"));
  return w.apply(op, k.op(), {x, w.parameter("weight", std::move(filter))}, std::move(attrs));
}

void add_convolution(OperationTable& table, OpType op, int dims, bool transposed) {
  std::vector<KeySpec> keys{{"n", 1}, {"c", kRequired}};
  add_sizes(keys, dims, kSizes);
  keys.push_back({"k", kRequired});
  add_sizes(keys, dims, kFilters);
  for (const KeySpec& key : std::vector<KeySpec>{{"stride", 1}, {"padding", 0, 0}, {"dilation", 1}, {"groups", 1}}) {
    keys.push_back(key);
  }
  if (transposed) keys.push_back({"output_padding", 0, 0});
  table[std::string(to_string(op))] = {
      keys, [op, dims, transposed](GraphWriter& w, const Keys& k) { return convolution(w, k, op, dims, transposed); }};
}

void add_pool(OperationTable& table, OpType op, int dims) {
  std::vector<KeySpec> keys{{"n", 1}, {"c", kRequired}};
  add_sizes(keys, dims, kSizes);
  for (const KeySpec& key : std::vector<KeySpec>{{"kernel", kRequired}, {"stride", 0, 0}, {"padding", 0, 0}}) {
    keys.push_back(key);
  }
  table[std::string(to_string(op))] = {
      keys, [op, dims](GraphWriter& w, const Keys& k) {
        const TensorId x = w.input("x", sized(k, dims, {k.at("n"), k.at("c")}));
        const std::int64_t stride = k.at("stride") == 0 ? k.at("kernel") : k.at("stride");
        return w.apply(op, k.op(), {x},
                       attributes({{"kernel", k.at("kernel")}, {"padding", k.at("padding")}, {"stride", stride}}));
      }};
}

TensorId build_roi_align(GraphWriter& w, const Keys& k) {
  const TensorId x = w.input("x", {k.at("n"), k.at("c"), k.at("h"), k.at("w")});
  constexpr std::int64_t kBox = 5;  // The image and two corners.
  const TensorId boxes = w.buffer("boxes", {k.at("regions"), kBox});
  return w.apply(OpType::roi_align, "roi_align", {x, boxes},
                 attributes({{"sampling", k.at("sampling")}, {"size", k.at("size")}}));
}

TensorId build_nms(GraphWriter& w, const Keys& k) {
  require_at_most(k, "keep", k.at("boxes"));
  const TensorId boxes = w.input("boxes", {k.at("boxes"), 4});
  return w.apply(OpType::nms, "nms", {boxes, w.input("scores", {k.at("boxes")})},
                 attributes({{"keep", k.at("keep") == 0 ? k.at("boxes") : k.at("keep")}}));
}

}  // namespace

void add_spatial_operations(OperationTable& table) {
  add_convolution(table, OpType::conv1d, 1, false);
  add_convolution(table, OpType::conv2d, 2, false);
  add_convolution(table, OpType::conv3d, 3, false);
  add_convolution(table, OpType::conv_transpose1d, 1, true);
  add_convolution(table, OpType::conv_transpose2d, 2, true);
  add_convolution(table, OpType::conv_transpose3d, 3, true);
  add_pool(table, OpType::max_pool1d, 1);
  add_pool(table, OpType::max_pool2d, 2);
  add_pool(table, OpType::max_pool3d, 3);
  add_pool(table, OpType::avg_pool1d, 1);
  add_pool(table, OpType::avg_pool2d, 2);
  add_pool(table, OpType::avg_pool3d, 3);
  const std::vector<KeySpec> image{{"n", kRequired}, {"c", kRequired}, {"h", kRequired}, {"w", kRequired}};
  table["batch_norm"] = {
      image, [](GraphWriter& w, const Keys& k) {
        const TensorId x = w.input("x", {k.at("n"), k.at("c"), k.at("h"), k.at("w")});
        const TensorId weight = w.parameter("weight", {k.at("c")});
        return w.apply(OpType::batch_norm, "batch_norm", {x, weight, w.parameter("bias", {k.at("c")})});
      }};
  std::vector<KeySpec> scaled = image;
  for (const KeySpec& key : std::vector<KeySpec>{{"scale", 2}, {"linear", 0, 0}}) scaled.push_back(key);
  table["resize"] = {scaled, [](GraphWriter& w, const Keys& k) {
                       const TensorId x = w.input("x", {k.at("n"), k.at("c"), k.at("h"), k.at("w")});
                       const std::string mode = k.at("linear") != 0 ? "bilinear" : "nearest";
                       return w.apply(OpType::resize, "resize", {x},
                                      attributes({{"mode", mode}, {"scale", static_cast<double>(k.at("scale"))}}));
                     }};
  table["roi_align"] = {{{"n", 1},
                         {"c", kRequired},
                         {"h", kRequired},
                         {"w", kRequired},
                         {"regions", kRequired},
                         {"size", 7},
                         {"sampling", 2}},
                        build_roi_align};
  table["nms"] = {{{"boxes", kRequired}, {"keep", 0, 0}}, build_nms};
}

}  // namespace voltaic::workloads
