// SPDX-License-Identifier: MIT
// Embedding tables, interactions and small dense towers: NeuMF [HeX17] and the variational autoencoder of [Liang18] on
// MovieLens-20M, and what all recommendation networks share.
#include "workloads/recommendation.hpp"

#include <array>

#include "workloads/attention_block.hpp"
#include "workloads/zoo.hpp"

namespace voltaic::workloads {
namespace {

constexpr Dim kUsers = 138493;
constexpr Dim kItems = 26744;

constexpr ZooModel kModels[] = {
    {"ncf", "recommendation", "Neural collaborative filtering (NeuMF), MovieLens-20M", build_ncf},
    {"dlrm", "recommendation", "DLRM, Criteo 1TB: 26 tables of width 128, 15.6 GiB in FP32", build_dlrm},
    {"dcn-v2", "recommendation", "DCN v2, Criteo 1TB: the tables of dlrm, 3 cross layers of rank 512", build_dcn_v2},
    {"wide-deep", "recommendation", "Wide & Deep, Outbrain: five dense layers of 1024", build_wide_deep},
    {"vae-cf", "recommendation", "Variational autoencoder over 20,108 items of MovieLens-20M", build_vae_cf},
};

}  // namespace

TensorId tower(GraphWriter& w, const std::string& scope, TensorId x, std::span<const Dim> widths, double dropout) {
  w.scope(scope);
  for (std::size_t i = 0; i < widths.size(); ++i) {
    const std::string number = std::to_string(i + 1);
    x = w.apply(OpType::relu, "relu" + number, {w.linear("fc" + number, x, widths[i], true)});
    x = w.dropout("dropout" + number, x, dropout);
  }
  return x;
}

void predict_click(GraphWriter& w, Workload& workload, TensorId scores) {
  w.scope("head");
  const TensorId flat = w.reshape("view", scores, {w.dim(scores, 0)});
  if (!w.training()) return finish(workload, w.apply(OpType::sigmoid, "sigmoid", {flat}));
  w.scope("loss");
  w.graph().loss = w.apply(OpType::bce_loss, "bce", {flat, w.input("clicked", w.shape(flat))});
  finish(workload, flat);
}

double zipf_exponent(const BuildOptions& options) {
  return static_cast<double>(resolve_dim(options, "zipf", 0)) / 100;
}

TensorId look_up(GraphWriter& w, const std::string& name, TensorId ids, Dim rows, Dim width, double zipf) {
  const Dim batch = w.dim(ids, 0);
  const Dim columns = w.dim(ids, 1);
  const TensorId table = w.parameter(name + ".weight", {rows, width});
  const TensorId single = w.reshape(name + ".ids", ids, {batch * columns, 1});
  // Only the rows that a batch met change; the backward kernel updates them where they lie.
  graph::Attributes attrs = attributes({{"fused_update", 1}, {"mode", std::string("sum")}});
  if (zipf > 0) attrs.set("zipf", zipf);
  const TensorId found = w.apply(OpType::embedding_bag, name, {single, table}, std::move(attrs));
  return w.reshape(name + ".view", found, {batch, columns, width});
}

void build_ncf(const BuildOptions& options, Workload& workload) {
  constexpr Dim kFactors = 64;
  constexpr std::array<Dim, 3> kTower{256, 128, 64};
  const Dim batch = resolve_samples(options, workload);
  GraphWriter w(workload.graph, workload.name, options.training);
  const TensorId users = w.input("users", {batch}, DataType::int64);
  const TensorId items = w.input("items", {batch}, DataType::int64);
  w.scope("factors");
  const auto row = [&](const std::string& name, TensorId ids, Dim rows, Dim width) {
    return w.embedding(name, ids, w.parameter(name + ".weight", {rows, width}));
  };
  const TensorId factors_user = row("user", users, kUsers, kFactors);
  const TensorId factors = w.apply(OpType::mul, "product", {factors_user, row("item", items, kItems, kFactors)});
  w.scope("tower.in");
  const TensorId tower_user = row("user", users, kUsers, kTower[0] / 2);
  const TensorId joined = concat(w, "concat", {tower_user, row("item", items, kItems, kTower[0] / 2)});
  const TensorId deep = tower(w, "tower", joined, kTower, 0.5);
  w.scope("head");
  const TensorId both = concat(w, "concat", {factors, deep});
  predict_click(w, workload, w.linear("fc", both, 1, true));
}

/// An item list of 73 of 20,108 (the mean of the data set) through 600 and 200 and back. The first layer reads the
/// lists as a sparse matrix.
void build_vae_cf(const BuildOptions& options, Workload& workload) {
  constexpr Dim kListed = 73;
  constexpr Dim kAllItems = 20108;
  constexpr Dim kHidden = 600;
  constexpr Dim kLatent = 200;
  const Dim batch = resolve_samples(options, workload, {"listed"});
  const Dim listed = resolve_dim(options, "listed", kListed);
  GraphWriter w(workload.graph, workload.name, options.training);
  const TensorId lists = w.input("lists", {batch * listed}, DataType::int64);
  w.scope("encoder");
  const TensorId weights = w.dropout("dropout", w.input("lists.weights", {batch * listed}), 0.5);
  const TensorId first = w.parameter("fc1.weight", {kAllItems, kHidden});
  TensorId x = w.apply(OpType::spmm, "fc1", {first, lists, weights}, attributes({{"rows", batch}}));
  x = w.apply(OpType::tanh, "tanh", {w.apply(OpType::add, "bias", {x, w.parameter("fc1.bias", {kHidden})})});
  const auto parts = w.apply_multiple(OpType::split, "halves", {w.linear("fc2", x, 2 * kLatent, true)},
                                      attributes({{"axis", 1}, {"sizes", Shape{kLatent, kLatent}}}), 2);
  const TensorId mean = parts[0];
  TensorId z = mean;
  w.scope("sample");
  if (options.training) {
    const TensorId deviation = w.apply(OpType::exp, "exp", {w.scalar(OpType::mul_scalar, "half", parts[1], 0.5)});
    z = w.apply(OpType::add, "add",
                {mean, w.apply(OpType::mul, "scaled", {deviation, w.input("noise", w.shape(mean))})});
  }
  w.scope("decoder");
  x = w.apply(OpType::tanh, "tanh", {w.linear("fc1", z, kHidden, true)});
  const TensorId logits = w.linear("fc2", x, kAllItems, true);
  if (options.training) {
    w.scope("loss");
    const TensorId scores = w.apply(OpType::log_softmax, "log_softmax", {logits});
    const TensorId chosen = w.apply(OpType::mul, "chosen", {scores, w.input("lists.dense", w.shape(scores))});
    const TensorId likelihood = w.apply(OpType::reduce_mean, "likelihood", {chosen});
    const TensorId power = w.apply(
        OpType::add, "power", {w.apply(OpType::square, "square", {mean}), w.apply(OpType::exp, "exp", {parts[1]})});
    const TensorId divergence =
        w.apply(OpType::reduce_mean, "divergence", {w.apply(OpType::sub, "excess", {power, parts[1]})});
    w.graph().loss = w.apply(OpType::sub, "total", {divergence, likelihood});
  }
  finish(workload, logits);
}

std::span<const ZooModel> recommendation_models() {
  return kModels;
}

}  // namespace voltaic::workloads
