// SPDX-License-Identifier: MIT
#include "arch/loader.hpp"
#include "sim/kernel/attention_shape.hpp"
#include "tests/support/catch.hpp"

using namespace voltaic;
using kernel::AttentionKernel;

namespace {

const arch::ResolvedGpu& a100() {
  static const auto gpu = arch::resolve_gpu("a100-sxm4-80gb");
  return gpu;
}

AttentionKernel prompt(std::int64_t seq, bool causal) {
  AttentionKernel k;
  k.heads = k.kv_heads = 16;
  k.seq_q = k.seq_kv = seq;
  k.causal = causal;
  return k;
}

}  // namespace

TEST_CASE("a causal mask shows n(n+1)/2 pairs, a window at most w keys per query", "[kernel][attention]") {
  auto k = prompt(100, false);
  CHECK(kernel::visible_pairs(k) == 100 * 100);
  k.causal = true;
  CHECK(kernel::visible_pairs(k) == 100 * 101 / 2);
  k.window = 10;  // 1 + 2 + ... + 9, then 91 rows of 10.
  CHECK(kernel::visible_pairs(k) == 45 + 91 * 10);
  k.window = 0;
  k.seq_kv = 300;  // The last query sees all: rows see 201 ... 300 keys.
  CHECK(kernel::visible_pairs(k) == 100 * (201 + 300) / 2);
  k.seq_kv = 40;  // Sixty queries see nothing, the others 1 ... 40.
  CHECK(kernel::visible_pairs(k) == 40 * 41 / 2);
}

TEST_CASE("a prompt needs four operations per pair and dimension, and touches each tensor once",
          "[kernel][attention]") {
  const auto work = kernel::attention_work(prompt(1024, false));
  CHECK(work.mac == 16.0 * 1024 * 1024 * (64 + 64));
  CHECK(work.read.value == 2.0 * 16 * 1024 * 64 * 3);
  CHECK(work.written.value == 2.0 * 16 * 1024 * 64);
  auto back = prompt(1024, false);
  back.backward = true;
  CHECK(kernel::attention_work(back).mac == 2.5 * work.mac);
}

TEST_CASE("Llama-3.1-8B reads 1 GiB of cache per decoding step at context 8192", "[kernel][attention]") {
  AttentionKernel k;
  k.heads = 32;
  k.kv_heads = 8;
  k.seq_q = 1;
  k.seq_kv = 8192;
  k.head_dim = k.value_dim = 128;
  k.decode = true;
  const double query = 2.0 * 32 * 128;
  // 32 layers * 8 heads * 8192 tokens * (128 + 128) * 2 bytes = 2^30.
  CHECK(32 * (kernel::attention_work(k).read.value - query) == 1024.0 * 1024 * 1024);
  k.window = 4096;
  CHECK(32 * (kernel::attention_work(k).read.value - query) == 512.0 * 1024 * 1024);
}

TEST_CASE("decoding splits long caches of grouped heads until the SMs are busy, not those of full batches",
          "[kernel][attention]") {
  AttentionKernel k;
  k.heads = 32;
  k.kv_heads = 8;
  k.seq_q = 1;
  k.seq_kv = 8192;
  k.head_dim = k.value_dim = 128;
  k.decode = true;
  const auto one = kernel::attention_splits(k, kernel::AttentionLibrary::flash2_paged, a100().spec).splits;
  // 8 blocks on 216 slots, 64 blocks of keys: 8 s / 216 within 85 % of the best.
  CHECK(one > 16);
  CHECK(one <= 64);
  k.batch = 64;
  CHECK(kernel::attention_splits(k, kernel::AttentionLibrary::flash2_paged, a100().spec).splits == 1);
  const auto launches = kernel::attention_launches(k, a100().spec);
  REQUIRE(launches.size() == 1);
  CHECK(launches[0].grid[0] == 64);
  CHECK(launches[0].grid[1] == 8);
}

TEST_CASE("the library follows the GPU and the type", "[kernel][attention]") {
  using kernel::AttentionLibrary;
  auto k = prompt(512, true);
  CHECK(kernel::attention_library(k, a100().spec) == AttentionLibrary::flash2_paged);
  CHECK(kernel::attention_library(k, arch::resolve_gpu("h100-sxm5-80gb").spec) == AttentionLibrary::flash3);
  CHECK(kernel::attention_library(k, arch::resolve_gpu("v100-sxm2-16gb").spec) == AttentionLibrary::memory_efficient);
  k.math = DataType::fp32;
  CHECK(kernel::attention_library(k, a100().spec) == AttentionLibrary::memory_efficient);
  const auto launch = kernel::attention_launches(k, a100().spec).at(0);
  CHECK_FALSE(launch.tensor_cores);
  CHECK(launch.library == "CUTLASS");
}

TEST_CASE("backward is the gradient kernel between its row sums and the cast of dq", "[kernel][attention]") {
  auto k = prompt(1024, true);
  k.backward = true;
  const auto launches = kernel::attention_launches(k, a100().spec);
  REQUIRE(launches.size() == 3);
  CHECK(launches[1].family == "attention_backward");
  CHECK(launches[2].work.read.value == 4.0 * 16 * 1024 * 64);
}
