// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <random>
#include <string>

#include "arch/loader.hpp"
#include "sim/cycle/detail/sample_plan.hpp"
#include "sim/cycle/detail/vector.hpp"
#include "sim/cycle/footprint.hpp"
#include "sim/cycle/generate.hpp"
#include "sim/kernel/vector.hpp"
#include "tests/support/catch.hpp"

namespace voltaic::cycle {
namespace {

using kernel::VectorKernel;
using kernel::VectorKind;

/// Trips that differ between CTAs are counted at 4096 of them.
constexpr double kSampled = 2e-4;
constexpr auto kLast = static_cast<int>(VectorKind::index_select_large);

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed) {}
  double real(double low, double high) { return std::uniform_real_distribution<double>(low, high)(random_); }
  std::int64_t whole(double low, double high) {
    return static_cast<std::int64_t>(std::exp(real(std::log(low), std::log(high))));
  }
  bool flip() { return real(0, 1) < 0.5; }

 private:
  std::mt19937_64 random_;
};

bool by_rows(VectorKind kind) {
  return (kind >= VectorKind::softmax_warp && kind <= VectorKind::batch_norm) || kind == VectorKind::half_layer_norm ||
         (kind >= VectorKind::serving_norm && kind <= VectorKind::index_select_large);
}

/// A launch such as lowering makes, with sizes at random.
kernel::Launch random_launch(VectorKind kind, Draw& draw) {
  const double element = draw.flip() ? 4 : 2;
  const bool warp = kind == VectorKind::softmax_warp;
  const std::int64_t rows = draw.whole(1, 20000), cols = draw.whole(1, warp ? 1024 : 20000);
  const double n = static_cast<double>(rows) * static_cast<double>(cols);
  const int inputs = kind == VectorKind::fill ? 0 : static_cast<int>(draw.whole(1, 4));
  const kernel::vector::Pass pass{n, inputs * element * n, element * n, std::max(1, inputs), element};
  if (kind == VectorKind::reduction)
    return kernel::vector::reduce(rows, cols, pass.read, element * static_cast<double>(rows), element);
  kernel::Launch launch =
      by_rows(kind) ? kernel::vector::rowwise("rows", kind, rows, cols, 32 * static_cast<int>(draw.whole(1, 32)), pass)
                    : kernel::vector::elementwise(draw.flip() ? "pow" : "gelu", pass, kind);
  auto& detail = std::get<VectorKernel>(launch.detail);
  if (warp) launch.grid[0] = (rows + 3) / 4;
  if (kind == VectorKind::norm_param_grad) launch.grid[0] = (cols + 31) / 32;
  if (kind == VectorKind::dropout)
    launch.grid[0] = std::min<std::int64_t>(launch.grid[0], 640), launch.cta.threads = 256;
  if (kind == VectorKind::copy_strided)
    detail.cols = draw.whole(1, 64), detail.rows = std::max<std::int64_t>(1, detail.rows / detail.cols);
  if (kind == VectorKind::softmax_block) detail.reread_bytes = 2 * pass.read;
  if (kind == VectorKind::layer_norm) detail.reread_bytes = pass.read;
  if (kind == VectorKind::embedding && draw.flip()) detail.reread_bytes = pass.read, detail.far_bytes = 0.3 * pass.read;
  if (kind == VectorKind::elementwise_broadcast && draw.flip())
    detail.reread_bytes = pass.read, detail.reuse_bytes = draw.real(1, 1e8);
  detail.backward = draw.flip() && kind >= VectorKind::softmax_warp && kind <= VectorKind::batch_norm;
  if (draw.flip()) detail.fused = {"gelu", "add", "tanh"};
  if (draw.flip()) launch.work.special = n;
  launch.work.other_flop = draw.real(0, 12) * n;
  return launch;
}

/// Issued by the whole grid, each with 32 lanes.
double lane_instructions(const Program& p, Op op) {
  const detail::LoopNest nest(p);
  const detail::Plan plan = detail::make_plan(p, 1 << 20, 1);
  double sum = 0;
  for (std::size_t i = 0; i < p.code.size(); ++i) {
    if (p.code[i].op == op) sum += 32 * nest.issues(i, plan.mean);
  }
  return sum * static_cast<double>(p.ctas());
}

double stored_bytes(const Program& p) {
  double sum = 0;
  for (std::size_t t = 0; t < p.tensors.size(); ++t) {
    if (p.tensors[t].written) sum += requested_bytes(p, t);
  }
  return sum;
}

double loaded_bytes(const Program& p) {
  double sum = 0;
  for (std::size_t t = 0; t < p.tensors.size(); ++t) {
    if (!p.tensors[t].written) sum += requested_bytes(p, t);
  }
  return sum;
}

TEST_CASE("programs of vector kernels are valid and move the bytes of their launch", "[cycle][vector]") {
  for (const char* name : {"v100-pcie-32gb", "t4", "a100-pcie-40gb"}) {
    const arch::GpuSpec gpu = arch::resolve_gpu(name).spec;
    Draw draw(11);
    for (int round = 0; round < 15 * (kLast + 1); ++round) {
      const auto kind = static_cast<VectorKind>(round % (kLast + 1));
      const kernel::Launch launch = random_launch(kind, draw);
      const auto& detail = std::get<VectorKernel>(launch.detail);
      std::vector<Part> parts = generate(launch, gpu);
      REQUIRE(parts.size() == 1);
      Program& p = parts[0].program;
      INFO(name << " " << kernel::to_string(kind) << " rows " << detail.rows << " cols " << detail.cols);
      CHECK_NOTHROW(check(p));
      CHECK(p.ctas() == static_cast<std::int64_t>(launch.ctas()));
      const double read = launch.work.read.value, written = launch.work.written.value;
      const bool strided = kind == VectorKind::copy_strided;
      CHECK(loaded_bytes(p) >= read * (1 - kSampled));
      if (!strided) CHECK(loaded_bytes(p) <= (read + detail.reread_bytes) * (1 + kSampled));
      CHECK(stored_bytes(p) >= written * (1 - kSampled));
      // Requests are whole sectors: rows that begin inside one, and few lanes, touch more.
      const double stores = lane_instructions(p, Op::store_global) + lane_instructions(p, Op::atomic);
      CHECK(stored_bytes(p) <= written + 2 * stores);
      CHECK(lane_instructions(p, Op::mufu) >= launch.work.special * (1 - kSampled));
      CHECK(lane_instructions(p, Op::ffma) >= launch.work.other_flop * (1 - kSampled) - 1);
      set_l2_hits(p, gpu);
      for (const Tensor& t : p.tensors) {
        CHECK((t.l2_hit >= 0 && t.l2_hit <= 1 && t.write_back >= 0 && t.write_back <= 1));
      }
    }
  }
}

TEST_CASE("a contiguous pointwise kernel loads vectors of four elements and computes its function", "[cycle][vector]") {
  // 128 threads of four elements: 2048 CTAs, each warp loads and stores 512 bytes in 16 sectors.
  const kernel::Launch launch = kernel::vector::elementwise("add", {1 << 20, 8 << 20, 4 << 20, 2, 4});
  const Program p = generate(launch, arch::resolve_gpu("v100-pcie-32gb").spec)[0].program;
  CHECK(p.grid[0] == 2048);
  CHECK(lane_instructions(p, Op::load_global) == 2 * (1 << 18));
  CHECK(lane_instructions(p, Op::ffma) == 1 << 20);
  for (const Access& a : p.accesses) CHECK((a.sectors == 16 && a.lines == 4 && a.l1_hit == 0));
}

TEST_CASE("the block softmax reads long rows again from L2, short ones from L1", "[cycle][vector]") {
  const arch::GpuSpec gpu = arch::resolve_gpu("a100-pcie-40gb").spec;
  const auto requested = [&](std::int64_t cols) {
    const double n = 4096.0 * static_cast<double>(cols);
    kernel::Launch launch =
        kernel::vector::rowwise("softmax", VectorKind::softmax_block, 4096, cols, 512, {n, 4 * n, 4 * n, 1, 4});
    std::get<VectorKernel>(launch.detail).reread_bytes = 8 * n;
    return requested_bytes(generate(launch, gpu)[0].program, 0) / (4 * n);
  };
  CHECK_THAT(requested(2048), WithinRel(1.0, 1e-6));
  CHECK_THAT(requested(65536), WithinRel(3.0, 1e-6));
}

TEST_CASE("copies of single elements touch a sector for each lane", "[cycle][vector]") {
  kernel::Launch launch = kernel::vector::elementwise("", {1 << 16, 4 << 16, 4 << 16, 1, 4}, VectorKind::copy_strided);
  const Program p = generate(launch, arch::resolve_gpu("a100-pcie-40gb").spec)[0].program;
  CHECK(p.accesses[0].sectors == 32);
  CHECK_THAT(requested_bytes(p, 0), WithinRel(32.0 * (1 << 16), 1e-9));
  CHECK_THAT(requested_bytes(p, 1), WithinRel(4.0 * (1 << 16), 1e-9));
}

}  // namespace
}  // namespace voltaic::cycle
