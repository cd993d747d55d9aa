// SPDX-License-Identifier: MIT
// Networks that predict clicks: DLRM [Naumov19] and DCN v2 [Wang21] on Criteo's terabyte, Wide & Deep [Cheng16] on
// Outbrain. `--dim zipf=105` makes popular rows popular, see recommendation.hpp.
#include <array>
#include <numeric>

#include "workloads/attention_block.hpp"
#include "workloads/recommendation.hpp"

namespace voltaic::workloads {
namespace {

constexpr Dim kNumbers = 13;  ///< Numerical features of Criteo.
constexpr Dim kWidth = 128;

/// Rows of the 26 tables when values seen fewer than 15 times share a row: 32,709,138, 15.6 GiB in fp32.
constexpr std::array<Dim, 26> kCriteoRows{7912889, 33823,   17139,   7339,    20046,  4,     7105, 1382, 63,
                                          5554114, 582469,  245828,  11,      2209,   10667, 104,  4,    968,
                                          15,      8165896, 2675940, 7156453, 302516, 12022, 97,   35};
constexpr std::array<Dim, 3> kBottom{512, 256, 128};
constexpr std::array<Dim, 4> kTop{1024, 1024, 512, 256};

struct CriteoFeatures {
  TensorId numbers;  ///< [B, 128]
  TensorId rows;     ///< [B, 26, 128]
};

CriteoFeatures criteo_features(GraphWriter& w, Dim batch, double zipf) {
  const TensorId numbers = tower(w, "bottom", w.input("numbers", {batch, kNumbers}), kBottom);
  w.scope("tables");
  const auto columns = static_cast<Dim>(kCriteoRows.size());
  const Dim rows = std::accumulate(kCriteoRows.begin(), kCriteoRows.end(), Dim{0});
  const TensorId offsets = w.buffer("tables.offsets", {columns}, DataType::int64);
  const TensorId ids =
      w.apply(OpType::add, "joint_ids", {w.input("categories", {batch, columns}, DataType::int64), offsets});
  return {numbers, look_up(w, "lookup", ids, rows, kWidth, zipf)};
}

/// Dot products of all pairs of the 27 vectors, beside the numbers' own, filled up to a multiple of 8.
TensorId interact(GraphWriter& w, const CriteoFeatures& features) {
  w.scope("interaction");
  const Dim batch = w.dim(features.numbers, 0);
  const Dim vectors = w.dim(features.rows, 1) + 1;
  const TensorId all =
      concat(w, "vectors", {w.reshape("numbers", features.numbers, {batch, 1, kWidth}), features.rows});
  const TensorId products = w.apply(OpType::matmul, "products", {all, all}, attributes({{"transpose_b", 1}}));
  // Pairs below the diagonal are picked from a view with all products of a sample in one row.
  const Dim pairs = vectors * (vectors - 1) / 2;
  const TensorId by_pair = w.transpose("by_pair", w.reshape("view", products, {batch, vectors * vectors}), {1, 0});
  const TensorId places = w.input("pairs", {pairs}, DataType::int64);
  const TensorId picked = w.transpose("by_sample", w.apply(OpType::gather, "picked", {by_pair, places}), {1, 0});
  const Dim missing = (8 - (pairs + kWidth) % 8) % 8;
  return concat(w, "out", {features.numbers, picked, w.fill("padding", {batch, missing}, DataType::fp32)});
}

/// x0 * (U (V x) + b) + x, with a rank between.
TensorId cross(GraphWriter& w, TensorId x, Dim layers, Dim rank) {
  const TensorId start = x;
  for (Dim i = 1; i <= layers; ++i) {
    w.scope("cross" + std::to_string(i));
    const TensorId y = w.linear("up", w.linear("down", x, rank, false), w.dim(x, 1), true);
    x = w.apply(OpType::add, "add", {w.apply(OpType::mul, "scaled", {start, y}), x});
  }
  return x;
}

/// A column of Outbrain's pages and adverts, hashed to so many rows of so wide a vector.
struct Column {
  Dim rows, width;
};
constexpr std::array<Column, 13> kOutbrain{{{250000, 128},
                                            {300000, 128},
                                            {4, 19},
                                            {100000, 128},
                                            {5000, 128},
                                            {2500, 128},
                                            {4000, 128},
                                            {2500, 128},
                                            {300, 64},
                                            {2000, 64},
                                            {1000, 128},
                                            {4000, 128},
                                            {1000, 128}}};
constexpr Dim kOutbrainNumbers = 13;

}  // namespace

void build_dlrm(const BuildOptions& options, Workload& workload) {
  const Dim batch = resolve_samples(options, workload, {"zipf"});
  GraphWriter w(workload.graph, workload.name, options.training);
  const CriteoFeatures features = criteo_features(w, batch, zipf_exponent(options));
  const TensorId deep = tower(w, "top", interact(w, features), kTop);
  predict_click(w, workload, w.linear("out", deep, 1, true));
}

void build_dcn_v2(const BuildOptions& options, Workload& workload) {
  constexpr Dim kLayers = 3;
  constexpr Dim kRank = 512;
  const Dim batch = resolve_samples(options, workload, {"zipf"});
  GraphWriter w(workload.graph, workload.name, options.training);
  const CriteoFeatures features = criteo_features(w, batch, zipf_exponent(options));
  w.scope("cross.in");
  const Dim columns = w.dim(features.rows, 1);
  const TensorId joined =
      concat(w, "concat", {features.numbers, w.reshape("view", features.rows, {batch, columns * kWidth})});
  const TensorId deep = tower(w, "top", cross(w, joined, kLayers, kRank), kTop);
  predict_click(w, workload, w.linear("out", deep, 1, true));
}

void build_wide_deep(const BuildOptions& options, Workload& workload) {
  constexpr std::array<Dim, 5> kDeep{1024, 1024, 1024, 1024, 1024};
  const Dim batch = resolve_samples(options, workload, {"zipf"});
  workload.assumptions.emplace_back("13 hashed columns of 4 to 300,000 rows, 19 to 128 wide");
  const double zipf = zipf_exponent(options);
  GraphWriter w(workload.graph, workload.name, options.training);
  const TensorId numbers = w.input("numbers", {batch, kOutbrainNumbers});
  std::vector<TensorId> deep{numbers};
  std::vector<TensorId> wide;
  Dim column = 0;
  for (const auto& [rows, width] : kOutbrain) {
    const std::string number = std::to_string(++column);
    const TensorId ids = w.input("column" + number, {batch, 1}, DataType::int64);
    w.scope("tables");
    const TensorId found = look_up(w, "column" + number, ids, rows, width, zipf);
    deep.push_back(w.reshape("column" + number + ".row", found, {batch, width}));
    w.scope("wide");
    const TensorId weight = look_up(w, "column" + number, ids, rows, 1, zipf);
    wide.push_back(w.reshape("column" + number + ".row", weight, {batch, 1}));
  }
  w.scope("wide");
  TensorId score = w.linear("numbers", numbers, 1, true);
  for (std::size_t i = 0; i < wide.size(); ++i) {
    score = w.apply(OpType::add, "sum" + std::to_string(i + 1), {score, wide[i]});
  }
  w.scope("deep.in");
  const TensorId x = tower(w, "deep", concat(w, "concat", deep), kDeep);
  const TensorId deep_score = w.linear("out", x, 1, true);
  w.scope("head");
  predict_click(w, workload, w.apply(OpType::add, "add", {deep_score, score}));
}

}  // namespace voltaic::workloads
