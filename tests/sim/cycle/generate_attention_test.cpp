// SPDX-License-Identifier: MIT
// Programs of fused attention: the work that the layer needs, whatever its shape.
#include <random>

#include "arch/loader.hpp"
#include "sim/cycle/generate.hpp"
#include "sim/cycle/machine.hpp"
#include "sim/kernel/attention_shape.hpp"
#include "tests/sim/cycle/program_work.hpp"
#include "tests/support/catch.hpp"

using namespace voltaic;
using namespace voltaic::cycle;
using namespace voltaic::cycle::test;
using voltaic::kernel::AttentionKernel;

namespace {

arch::GpuSpec gpu(const std::string& name) {
  return arch::resolve_gpu(name).spec;
}

AttentionKernel prompt(std::int64_t batch, std::int64_t heads, std::int64_t kv_heads, std::int64_t tokens,
                       std::int64_t dim, bool causal) {
  AttentionKernel k;
  k.batch = batch, k.heads = heads, k.kv_heads = kv_heads;
  k.seq_q = k.seq_kv = tokens;
  k.head_dim = k.value_dim = dim;
  k.causal = causal;
  return k;
}

struct Generated {
  std::vector<kernel::Launch> launches;
  std::vector<Part> parts;
};

/// Of the launch that multiplies.
Generated generate_all(const AttentionKernel& k, const arch::GpuSpec& spec) {
  Generated out;
  out.launches = kernel::attention_launches(k, spec);
  const std::size_t main = k.backward ? 1 : 0;
  out.parts = generate(out.launches.at(main), spec);
  return out;
}

}  // namespace

TEST_CASE("a prompt's program multiplies and exponentiates what its tiles hold", "[cycle][attention]") {
  const auto a100 = gpu("a100-sxm4-80gb");
  const auto made = generate_all(prompt(2, 16, 16, 1024, 64, false), a100);
  REQUIRE(made.parts.size() == 1);
  const Program& p = made.parts[0].program;
  CHECK_NOTHROW(check(p));
  // 2 x 16 heads x 1024 x 1024 pairs x (64 + 64), no padding.
  CHECK_THAT(mma_macs(p), WithinRel(32.0 * 1024 * 1024 * 128, 1e-9));
  // One exponential per pair; two rows of a thread per step on top.
  CHECK_THAT(32 * total(p, Op::mufu), WithinRel(32.0 * 1024 * 1024, 0.05));
}

TEST_CASE("causal trips add up to the triangle of key blocks", "[cycle][attention]") {
  const auto a100 = gpu("a100-sxm4-80gb");
  for (const std::int64_t tokens : {512, 1000, 2048, 4096}) {
    for (const std::int64_t dim : {64, 128, 256}) {
      const AttentionKernel k = prompt(1, 8, 8, tokens, dim, true);
      const auto made = generate_all(k, a100);
      const auto library = kernel::attention_library(k, a100);
      const auto tile = kernel::attention_tile(k, library);
      double keys = 0;
      for (std::int64_t i = 0; i < kernel::tiles_per_group(k, tile); ++i) keys += kernel::tile_keys(k, tile, i);
      const double macs = 8 * keys * static_cast<double>(tile.rows) * 2 * static_cast<double>(dim);
      CHECK_THAT(mma_macs(made.parts[0].program), WithinRel(macs, 1e-9));
    }
  }
}

TEST_CASE("a sliding window bounds what a long prompt multiplies", "[cycle][attention]") {
  const auto a100 = gpu("a100-sxm4-80gb");
  AttentionKernel k = prompt(1, 8, 8, 16384, 128, true);
  k.window = 1024;
  const auto made = generate_all(k, a100);
  const auto tile = kernel::attention_tile(k, kernel::attention_library(k, a100));
  double keys = 0;
  for (std::int64_t i = 0; i < kernel::tiles_per_group(k, tile); ++i) keys += kernel::tile_keys(k, tile, i);
  CHECK_THAT(mma_macs(made.parts[0].program), WithinRel(8 * keys * static_cast<double>(tile.rows) * 256, 0.02));
}

TEST_CASE("decoding streams the cache once per head of the cache", "[cycle][attention]") {
  const auto a100 = gpu("a100-sxm4-80gb");
  AttentionKernel k = prompt(8, 32, 8, 4096, 128, false);
  k.seq_q = 1;
  k.decode = true;
  const auto made = generate_all(k, a100);
  REQUIRE(!made.parts.empty());
  const Program& p = made.parts[0].program;
  const double keys = 8.0 * 8 * 4096 * 128 * 2;
  // One block more per CTA is fetched ahead than used.
  CHECK(asked_bytes(p, "k") >= keys);
  CHECK(asked_bytes(p, "k") < 1.35 * keys);
  CHECK_THAT(asked_bytes(p, "v"), WithinRel(keys, 0.15));
  if (k.heads > k.kv_heads && made.parts.size() == 2)
    CHECK(made.parts[1].program.name.find("combine") != std::string::npos);
}

TEST_CASE("the gradient's program multiplies five times", "[cycle][attention]") {
  const auto a100 = gpu("a100-sxm4-80gb");
  AttentionKernel k = prompt(4, 16, 16, 1024, 64, false);
  k.backward = true;
  const auto made = generate_all(k, a100);
  CHECK_THAT(mma_macs(made.parts[0].program), WithinRel(64.0 * 1024 * 1024 * 5 * 64, 1e-9));
  // dq is added in fp32 once per block of 128 keys.
  CHECK_THAT(asked_bytes(made.parts[0].program, "dq"), WithinRel(64.0 * 1024 * 64 * 4 * 8, 1e-9));
}

TEST_CASE("Volta multiplies in quad pairs, without matrix loads or asynchronous copies", "[cycle][attention]") {
  const auto v100 = gpu("v100-sxm2-16gb");
  const auto made = generate_all(prompt(2, 16, 16, 512, 64, false), v100);
  const Program& p = made.parts[0].program;
  CHECK_THAT(mma_macs(p), WithinRel(32.0 * 512 * 512 * 128, 1e-9));
  CHECK(total(p, Op::load_matrix) == 0);
  CHECK(total(p, Op::copy_async) == 0);
  AttentionKernel single = prompt(2, 16, 16, 512, 64, false);
  single.math = DataType::fp32;
  single.element_bytes = 4;
  const auto lanes = generate_all(single, v100);
  CHECK(total(lanes.parts[0].program, Op::mma) == 0);
  CHECK(32 * total(lanes.parts[0].program, Op::ffma) > 32.0 * 512 * 512 * 128);
}

TEST_CASE("programs of attention are valid for any shape", "[cycle][attention]") {
  std::mt19937 random(11);
  const auto pick = [&](std::int64_t most) { return std::uniform_int_distribution<std::int64_t>(1, most)(random); };
  for (const char* name : {"v100-sxm2-16gb", "t4", "a100-sxm4-80gb", "a10"}) {
    const auto spec = gpu(name);
    for (int i = 0; i < 60; ++i) {
      const std::int64_t group = pick(8);
      AttentionKernel k = prompt(pick(64), 1, pick(16), pick(1 << pick(14)), pick(300), pick(2) == 1);
      k.heads = k.kv_heads * group;
      k.window = pick(3) == 1 ? pick(2000) : 0;
      const auto mode = pick(5);
      k.decode = mode == 1, k.backward = mode == 2, k.append = mode == 3;
      if (k.decode) k.seq_q = 1;
      if (const auto type = pick(4); type <= 2) {
        k.math = type == 1 ? DataType::fp32 : DataType::fp64;
        k.element_bytes = bytes_per_element(k.math);
      }
      const auto made = generate_all(k, spec);
      for (const Part& part : made.parts) {
        CHECK_NOTHROW(check(part.program));
        CHECK_NOTHROW(make_machine(spec, spec.clocks.boost, part.program));
        const double work = made.launches.at(k.backward ? 1 : 0).work.mac;
        const bool first = &part == &made.parts[0];
        if (first && !k.append && total(part.program, Op::mma) > 0) CHECK(mma_macs(part.program) >= 0.98 * work);
      }
    }
  }
}
