// SPDX-License-Identifier: MIT
// Times of fused attention computed by hand from the laws and constants, per library; and what the libraries decide.
#include "arch/loader.hpp"
#include "arch/units/error.hpp"
#include "sim/cost/attention_cost.hpp"
#include "tests/support/catch.hpp"

using namespace voltaic;
using kernel::AttentionKernel;
using kernel::AttentionLibrary;

namespace {

struct Example {
  const char* gpu;
  const char* library;
  std::int64_t batch, heads, kv_heads, seq_q, seq_kv, head_dim;
  bool causal;
  double append_us, time_us;  ///< 0: writes no cache.
  std::int64_t splits;
  bool variant;
};

/// Warm tensors, at the boost clock, without the start of the call.
constexpr Example kExamples[] = {
    {"a100-sxm4-80gb", "flash2_paged", 8, 32, 8, 1024, 1024, 128, true, 91.21, 492.96, 1, false},
    {"a100-sxm4-80gb", "flash2_paged", 64, 8, 4, 128, 128, 128, true, 77.17, 51.77, 1, false},
    {"a100-sxm4-80gb", "flash3_sm80", 16, 12, 2, 512, 512, 128, true, 9.61, 167.00, 1, true},
    {"a100-sxm4-80gb", "flash3_sm80", 4, 40, 8, 4096, 4096, 128, true, 72.92, 3517.48, 1, false},
    {"a100-sxm4-80gb", "tensorrt", 8, 32, 8, 1024, 1024, 128, true, 176.69, 535.03, 1, false},
    {"h100-sxm5-80gb", "flash3", 2, 32, 8, 4096, 4096, 128, true, 51.08, 475.65, 1, false},
    {"h100-sxm5-80gb", "flash3", 1, 64, 8, 2048, 2048, 64, true, 9.74, 90.39, 1, false},
    {"h100-sxm5-80gb", "flash3_dense", 1, 16, 16, 4096, 4096, 80, false, 0.00, 193.88, 1, false},
    {"a100-sxm4-80gb", "flash2_paged", 32, 32, 8, 1, 4096, 128, false, 0.00, 380.01, 1, false},
    {"a100-sxm4-80gb", "flash3_sm80", 16, 32, 1, 1, 32768, 128, false, 0.00, 393.82, 7, true},
    {"a100-sxm4-80gb", "flash3_sm80", 128, 32, 8, 1, 256, 128, false, 0.00, 113.13, 1, false},
    {"h100-sxm5-80gb", "flash3", 64, 64, 8, 1, 8192, 128, false, 0.00, 688.57, 1, true},
    {"a100-sxm4-80gb", "flash2_paged", 2, 32, 8, 1, 8192, 128, false, 0.00, 62.69, 13, true},
    {"h100-sxm5-80gb", "flash3", 1, 4, 1, 2048, 2048, 128, true, 2.44, 21.84, 2, true},
};

AttentionKernel kernel_of(const Example& e) {
  AttentionKernel k;
  k.batch = e.batch;
  k.heads = e.heads;
  k.kv_heads = e.kv_heads;
  k.seq_q = e.seq_q;
  k.seq_kv = e.seq_kv;
  k.head_dim = k.value_dim = e.head_dim;
  k.causal = e.causal;
  k.decode = e.seq_q == 1;
  k.math = DataType::bf16;
  k.warm = true;
  k.library = kernel::parse_attention_library(e.library).value();
  return k;
}

double microseconds(const cost::AttentionCost& cost, const AttentionKernel& k, const arch::GpuSpec& gpu) {
  const auto launch = kernel::attention_launches(k, gpu).front();
  return 1e6 * cost(launch, std::get<AttentionKernel>(launch.detail)).time.value;
}

AttentionKernel step(std::int64_t batch, std::int64_t heads, std::int64_t kv_heads, std::int64_t context) {
  AttentionKernel k;
  k.batch = batch;
  k.heads = heads;
  k.kv_heads = kv_heads;
  k.seq_kv = context;
  k.head_dim = k.value_dim = 128;
  k.decode = true;
  return k;
}

}  // namespace

TEST_CASE("attention of each library takes what its law and constants give by hand", "[cost][attention]") {
  // Constants are written with four digits; a product of three of them and a smooth maximum in single precision.
  constexpr double kTolerance = 2e-3;
  for (const Example& e : kExamples) {
    const auto gpu = arch::resolve_gpu(e.gpu);
    const cost::AttentionCost cost(gpu);
    AttentionKernel k = kernel_of(e);
    const auto chosen = std::get<AttentionKernel>(kernel::attention_launches(k, gpu.spec).front().detail);
    INFO(e.library << " batch " << e.batch << " context " << e.seq_kv);
    CHECK(chosen.splits == e.splits);
    CHECK(chosen.split_variant == e.variant);
    CHECK_THAT(microseconds(cost, k, gpu.spec), WithinRel(e.time_us, kTolerance));
    k.append = true;
    if (e.append_us > 0)
      CHECK_THAT(microseconds(cost, k, gpu.spec), WithinAbs(e.append_us, kTolerance * e.append_us + 0.01));
  }
}

TEST_CASE("FlashAttention-3 splits by one sequence's tiles, then by each SM's share of the key blocks",
          "[kernel][attention]") {
  const auto gpu = arch::resolve_gpu("a100-sxm4-80gb");
  const auto split = [&](const AttentionKernel& k) {
    return kernel::attention_splits(k, AttentionLibrary::flash3_sm80, gpu.spec);
  };
  // 32 heads of one KV head fill a tile: one block of 86.4 needed. 256 key blocks in 16 sequences: 1.1 * 4096 / 108
  // = 41.7 blocks per SM, 256 / 42 = 6.1.
  CHECK(split(step(16, 32, 1, 32768)).splits == 7);
  CHECK(split(step(32, 32, 1, 32768)).splits == 4);  // 84 blocks per SM: 3.05
  CHECK(split(step(64, 32, 1, 32768)).splits == 2);  // 167: 1.53
  const auto many = split(step(4096, 32, 1, 32768));
  CHECK(many.splits == 1);
  CHECK(many.variant);                              // Chosen on the host, which does not know the batch.
  CHECK_FALSE(split(step(1, 32, 1, 256)).variant);  // Four blocks of 64 keys.
}

TEST_CASE("splits stay between 1 and 128 for all libraries and sizes", "[kernel][attention]") {
  constexpr std::int64_t kHuge = std::int64_t{1} << 40;
  for (const char* name : {"a100-sxm4-80gb", "h100-sxm5-80gb", "v100-sxm2-16gb"}) {
    const auto gpu = arch::resolve_gpu(name);
    for (int i = 0; i <= static_cast<int>(AttentionLibrary::memory_efficient); ++i) {
      const auto library = static_cast<AttentionLibrary>(i);
      for (const std::int64_t batch : {std::int64_t{1}, std::int64_t{7}, std::int64_t{1000}, kHuge}) {
        for (const std::int64_t context : {std::int64_t{1}, std::int64_t{100}, std::int64_t{70000}, kHuge}) {
          for (const std::int64_t group : {1, 3, 64}) {
            auto k = step(batch, 2 * group, 2, context);
            k.library = library;
            const auto decode = kernel::attention_splits(k, kernel::attention_library(k, gpu.spec), gpu.spec).splits;
            REQUIRE(decode >= 1);
            REQUIRE(decode <= 128);
            k.decode = false;
            k.seq_q = context;
            const auto prompt = kernel::attention_splits(k, kernel::attention_library(k, gpu.spec), gpu.spec).splits;
            REQUIRE(prompt >= 1);
            REQUIRE(prompt <= 128);
          }
        }
      }
    }
  }
}

TEST_CASE("a library that nobody timed on a GPU is refused by name", "[cost][attention]") {
  const auto gpu = arch::resolve_gpu("a100-sxm4-80gb");
  const cost::AttentionCost cost(gpu);
  auto k = step(1, 8, 8, 128);
  k.decode = false;
  k.seq_q = 128;
  k.library = AttentionLibrary::flash3;
  const auto launch = kernel::attention_launches(k, gpu.spec).front();
  try {
    cost(launch, std::get<AttentionKernel>(launch.detail));
    FAIL("expected a refusal");
  } catch (const UnsupportedError& e) {
    CHECK(std::string(e.what()).find("flash3") != std::string::npos);
    CHECK(std::string(e.what()).find(gpu.spec.name) != std::string::npos);
  }
}

TEST_CASE("names of libraries are read back", "[kernel][attention]") {
  for (int i = 0; i <= static_cast<int>(AttentionLibrary::memory_efficient); ++i) {
    const auto library = static_cast<AttentionLibrary>(i);
    CHECK(kernel::parse_attention_library(kernel::to_string(library)) == library);
  }
  CHECK_FALSE(kernel::parse_attention_library("flash9"));
}
