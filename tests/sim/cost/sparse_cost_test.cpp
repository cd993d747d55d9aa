// SPDX-License-Identifier: MIT
#include "sim/cost/sparse_cost.hpp"

#include "sim/cost/engine.hpp"
#include "sim/cost/roofline.hpp"
#include "sim/kernel/sparse.hpp"
#include "tests/support/catch.hpp"

using namespace voltaic;
using kernel::SparseKernel;

namespace {

SparseKernel graph_product(std::int64_t nodes, std::int64_t degree, std::int64_t features) {
  SparseKernel k;
  k.rows = k.cols = nodes;
  k.features = features;
  k.nnz = nodes * degree;
  k.index_bytes = 8;
  return k;
}

double microseconds(const SparseKernel& k, const char* name = "v100-sxm2-16gb") {
  const auto gpu = arch::resolve_gpu(name);
  return 1e6 * cost::SparseCost(gpu)(kernel::sparse_launch(k), k).time.value;
}

}  // namespace

TEST_CASE("pruned weights against many columns are bound by the sectors gathered from L2", "[cost][sparse]") {
  SparseKernel k;
  k.rows = 7680;
  k.cols = 2560;
  k.features = 3000;
  k.nnz = 1966080;
  k.column_major = true;
  // 3000 (1966080 * 14.3 + 7680 * 1208) bytes at 22.2 B * 80 SMs * 1.53 GHz, 4 us before.
  CHECK_THAT(microseconds(k), WithinRel(41282.9 + 4, 1e-3));
}

TEST_CASE("a row of features costs whole sectors", "[cost][sparse]") {
  const double narrow = microseconds(graph_product(2000, 50, 1));
  CHECK_THAT(microseconds(graph_product(2000, 50, 8)), WithinRel(narrow, 0.05));
  CHECK(microseconds(graph_product(2000, 50, 512)) > 2 * narrow);
}

TEST_CASE("a dense operand that leaves L2 is read again from DRAM", "[cost][sparse]") {
  const auto gpu = arch::resolve_gpu("v100-sxm2-16gb");
  const auto per_edge = [&](std::int64_t nodes) {
    const auto k = graph_product(nodes, 50, 128);
    return cost::SparseCost(gpu)(kernel::sparse_launch(k), k).dram_traffic.value / static_cast<double>(k.nnz);
  };
  CHECK(per_edge(4000) < 64);      // 2 MB stay
  CHECK(per_edge(1000000) > 400);  // of 512 bytes an edge
}

TEST_CASE("more edges, features or rows are never faster; bandwidth never hurts", "[cost][sparse][property]") {
  for (const bool column_major : {false, true}) {
    double before = 0;
    for (std::int64_t degree = 1; degree < 600; degree += degree / 3 + 1) {
      auto k = graph_product(20000, degree, 64);
      k.column_major = column_major;
      CHECK(microseconds(k) >= before);
      before = microseconds(k);
    }
    before = 0;
    for (std::int64_t features = 1; features < 700; features += features / 3 + 1) {
      auto k = graph_product(20000, 10, features);
      k.column_major = column_major;
      CHECK(microseconds(k) >= before);
      before = microseconds(k);
    }
  }
  const auto slow = arch::resolve_gpu("a100-sxm4-40gb");
  const auto fast = arch::resolve_gpu("a100-sxm4-40gb", {arch::parse_override("gpu.dram.peak_bandwidth*=1.5")});
  const auto engine = cost::make_engine(cost::EngineKind::analytic, slow);
  const auto fast_engine = cost::make_engine(cost::EngineKind::analytic, fast);
  for (const std::int64_t nodes : {1, 2708, 169343, 2449029}) {
    for (const std::int64_t features : {16, 100, 602}) {
      for (const bool sampled : {false, true}) {
        auto k = graph_product(nodes, 25, features);
        k.sampled = sampled;
        const auto launch = kernel::sparse_launch(k);
        const auto c = engine->cost(launch);
        CHECK(c.time >= cost::roofline_cost(launch, slow.spec).time);
        for (const auto& leg : c.legs) CHECK(leg <= c.time);
        CHECK(fast_engine->cost(launch).time.value <= c.time.value * (1 + 1e-9));
      }
    }
  }
}
