// SPDX-License-Identifier: MIT
// Programs of products with a sparse matrix.
#include "sim/kernel/sparse.hpp"

#include <random>

#include "arch/loader.hpp"
#include "sim/cycle/generate.hpp"
#include "sim/cycle/machine.hpp"
#include "tests/sim/cycle/program_work.hpp"
#include "tests/support/catch.hpp"

using namespace voltaic;
using namespace voltaic::cycle;
using namespace voltaic::cycle::test;

namespace {

kernel::SparseKernel graph(std::int64_t nodes, std::int64_t degree, std::int64_t features) {
  kernel::SparseKernel k;
  k.rows = k.cols = nodes;
  k.nnz = nodes * degree;
  k.features = features;
  return k;
}

Program program_of(const kernel::SparseKernel& k, const arch::GpuSpec& gpu) {
  auto parts = generate(kernel::sparse_launch(k), gpu);
  REQUIRE(parts.size() == 1);
  CHECK_NOTHROW(check(parts[0].program));
  return parts[0].program;
}

}  // namespace

TEST_CASE("each stored element multiplies a row of the dense operand and gathers it", "[cycle][sparse]") {
  const auto v100 = arch::resolve_gpu("v100-sxm2-16gb").spec;
  const auto k = graph(100'000, 16, 128);
  const Program p = program_of(k, v100);
  CHECK_THAT(32 * total(p, Op::ffma), WithinRel(1.6e6 * 128, 1e-9));
  CHECK_THAT(asked_bytes(p, "B"), WithinRel(1.6e6 * 512, 1e-9));
  CHECK_THAT(asked_bytes(p, "C"), WithinRel(1e5 * 512, 1e-9));
  // Indices and values are read once for each piece of 32 columns.
  CHECK_THAT(asked_bytes(p, "A", true), WithinRel(4 * 1.6e6 * 8, 0.3));
}

TEST_CASE("a mean degree between whole numbers is kept", "[cycle][sparse]") {
  const auto v100 = arch::resolve_gpu("v100-sxm2-16gb").spec;
  auto k = graph(100'000, 1, 32);
  k.nnz = 537'000;
  CHECK_THAT(asked_bytes(program_of(k, v100), "B"), WithinRel(5.37e5 * 128, 0.01));
}

TEST_CASE("sampled products read a row of each operand and store a value per element", "[cycle][sparse]") {
  const auto v100 = arch::resolve_gpu("v100-sxm2-16gb").spec;
  auto k = graph(100'000, 16, 64);
  k.sampled = true;
  const Program p = program_of(k, v100);
  CHECK_THAT(asked_bytes(p, "B"), WithinRel(1.6e6 * 256, 1e-9));
  CHECK(32 * total(p, Op::ffma) >= 1.6e6 * 64);
}

TEST_CASE("programs of sparse products are valid for any shape", "[cycle][sparse]") {
  std::mt19937 random(9);
  const auto pick = [&](std::int64_t most) { return std::uniform_int_distribution<std::int64_t>(1, most)(random); };
  for (const char* name : {"v100-sxm2-16gb", "t4", "a100-sxm4-80gb"}) {
    const auto spec = arch::resolve_gpu(name).spec;
    for (int i = 0; i < 60; ++i) {
      kernel::SparseKernel k;
      k.rows = pick(1 << pick(20)), k.cols = pick(1 << pick(20)), k.features = pick(600);
      k.nnz = pick(1 << pick(24));
      const auto mode = pick(4);
      k.sampled = mode == 1, k.column_major = mode == 2, k.transposed = mode == 3;
      if (pick(3) == 1) k.math = DataType::fp16, k.element_bytes = k.value_bytes = 2;
      const Program p = program_of(k, spec);
      CHECK_NOTHROW(make_machine(spec, spec.clocks.boost, p));
    }
  }
}
