// SPDX-License-Identifier: MIT
#include <algorithm>

#include "sim/study/compare.hpp"
#include "sim/study/compare_layers.hpp"
#include "tests/support/catch.hpp"

using namespace voltaic;

namespace {

report::Comparison compared(const std::string& workload, const std::string& option, std::vector<std::string> values,
                            std::int64_t batch, kernel::Framework framework = kernel::Framework::eager) {
  Runner runner;
  Request base;
  base.workload = workload;
  base.batch = batch;
  base.framework = framework;
  if (workload != "resnet50") base.seq = 128;
  return study::compare(runner, base, {study::Axis{option, option, std::move(values)}});
}

const report::ComparedLayer& layer(const report::Comparison& c, const std::string& part) {
  const auto found = std::find_if(c.layers.begin(), c.layers.end(),
                                  [&](const auto& l) { return l.name.find(part) != std::string::npos; });
  REQUIRE(found != c.layers.end());
  return *found;
}

std::string class_reason(const report::Comparison& c, const std::string& name) {
  for (const auto& row : c.layer_classes) {
    if (row.name == name) return row.reason;
  }
  return "no such class";
}

study::NodeGroup product(std::int64_t m, double seconds, kernel::Bound bound, bool sparse) {
  study::NodeGroup g;
  g.family = graph::OpFamily::matrix;
  g.count = g.launches = 1;
  g.time_s = seconds;
  g.roofline_s = 0.8 * seconds;
  g.by_bound[static_cast<std::size_t>(bound)] = seconds;
  kernel::GemmProblem p;
  p.m = m;
  p.n = p.k = 4096;
  p.math = DataType::fp16;
  p.a_bytes = p.b_bytes = p.c_bytes = 2;
  p.sparse = sparse;
  if (sparse) p.b_bytes = 1.125;
  g.product = p;
  return g;
}

}  // namespace

TEST_CASE("2:4 against dense says for each layer what it gives or why nothing", "[study][sparsity]") {
  const auto c = compared("bert-base", "sparsity", {"none", "2:4"}, 32);
  REQUIRE(c.rows.size() == 2);
  CHECK(c.rows[1].memory_bytes < c.rows[0].memory_bytes);
  for (const auto& l : c.layers) {
    INFO(l.name);
    CHECK_FALSE(l.reason.empty());
    CHECK(l.time.size() == 2);
    if (l.op != "linear") CHECK_THAT(l.speedup[1], WithinRel(1, 1e-9));
  }
  CHECK(layer(c, "attention").count == 12);
  CHECK(layer(c, "norm").reason == "not a matrix product");
  CHECK(class_reason(c, "matrix products").find("sparse weights in") != std::string::npos);
  CHECK(class_reason(c, "normalisation") == "not a matrix product");
  CHECK(class_reason(c, "fused attention").find("both operands are activations") != std::string::npos);
}

TEST_CASE("convolutions stay dense and say so", "[study][sparsity]") {
  const auto c = compared("resnet50", "sparsity", {"none", "2:4"}, 8);
  CHECK(class_reason(c, "convolutions").find("stay dense") != std::string::npos);
  CHECK_THAT(c.rows[1].speedup, WithinRel(1, 0.02));  // The last layer alone is a product.
}

TEST_CASE("an inference engine never loses by sparse weights", "[study][sparsity]") {
  const auto c = compared("bert-base", "sparsity", {"none", "2:4"}, 1, kernel::Framework::tensorrt);
  for (const auto& l : c.layers) {
    INFO(l.name << ": " << l.reason);
    CHECK(l.speedup[1] >= 1 - 1e-9);
  }
}

TEST_CASE("layers are listed where products multiply differently, not for two GPUs", "[study]") {
  CHECK(compared("bert-base", "gpu", {"v100-sxm2-16gb", "a100-sxm4-80gb"}, 1).layers.empty());
  const auto c = compared("bert-base", "precision", {"fp16", "w8a16"}, 1);
  CHECK_FALSE(c.layers.empty());
  CHECK(c.rows[1].memory_bytes < c.rows[0].memory_bytes);
}

TEST_CASE("what holds a sparse product back is named", "[study][sparsity]") {
  using kernel::Bound;
  const auto base = product(4096, 2e-4, Bound::tensor, false);
  CHECK(study::sparsity_reason(base, product(4096, 1.25e-4, Bound::tensor, true)) ==
        "1.60x, bound by the tensor cores");
  CHECK(study::sparsity_reason(base, product(1 << 20, 2e-4, Bound::dram, true)) ==
        "no gain: bound by activations in memory, which stay dense");
  CHECK(study::sparsity_reason(base, product(16, 1.25e-4, Bound::dram, true)) ==
        "1.60x, bound by weights in memory, which take 56 % of their dense bytes");
  CHECK(study::sparsity_reason(base, product(16, 2.5e-4, Bound::latency, true)) ==
        "0.80x, sparse is slower: small m (16): launch and latency bound");
  auto kept = product(16, 2e-4, Bound::latency, false);
  kept.dense = std::string(study::sparsity_reason(base, kept));  // No reason, no text.
  CHECK(kept.dense.empty());
  kept.dense = "unsupported shape: k = 27 is no multiple of 16";
  CHECK(study::sparsity_reason(base, kept) == kept.dense);
}
