// SPDX-License-Identifier: MIT
// The launches of one fused attention layer, as FlashAttention and CUTLASS issue them.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "sim/kernel/attention_shape.hpp"
#include "sim/kernel/conv_shape.hpp"

namespace voltaic::kernel {

namespace {

std::string kernel_name(const AttentionKernel& k, AttentionLibrary library) {
  if (k.append) return "reshape_and_cache_flash_kernel";
  if (library == AttentionLibrary::memory_efficient) {
    return fmt::format("fmha_cutlass{}_{}_64x128", k.backward ? 'B' : 'F', to_string(k.math));
  }
  const std::string_view prefix = attention_rules(library).kernel_prefix;
  if (k.backward) return fmt::format("{}flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<{}>", prefix, k.head_dim);
  if (k.split_variant) return fmt::format("{}flash_fwd_splitkv_kernel + combine<{}>", prefix, k.head_dim);
  return fmt::format("{}flash_fwd{}_kernel<{}>", prefix, k.decode ? "_splitkv" : "", k.head_dim);
}

std::string_view family_of(const AttentionKernel& k) {
  if (k.append) return "attention_append";
  if (k.decode) return "attention_decode";
  return k.backward ? "attention_backward" : "attention";
}

/// Row sums of dy*y before the gradient, or the cast of fp32 dq after it: one pass over memory.
Launch pass_over(std::string_view name, double read, double written, double elements, DataType type) {
  Launch launch;
  launch.name = name;
  launch.library = "flash-attn";
  launch.family = "elementwise";
  launch.math = type;
  launch.grid[0] = static_cast<std::int64_t>(std::clamp(std::ceil(elements / 1024), 1.0, 9e15));
  launch.cta.threads = 256;
  launch.work.other_flop = elements;
  launch.work.read = Bytes{read};
  launch.work.written = Bytes{written};
  VectorKernel vector;
  vector.rows = 1;
  vector.cols = static_cast<std::int64_t>(std::clamp(elements, 1.0, 9e15));
  vector.function = "cast";
  vector.element_bytes = bytes_per_element(type);
  launch.detail = vector;
  return launch;
}

void set_grid(const AttentionKernel& k, AttentionLibrary library, Launch& launch) {
  if (k.append) {
    launch.grid[0] =
        static_cast<std::int64_t>(std::clamp(static_cast<double>(k.batch) * static_cast<double>(k.seq_q), 1.0, 9e15));
  } else if (k.backward) {
    launch.grid[0] = ceil_div(k.seq_kv, 128);
    launch.grid[1] = k.batch;
    launch.grid[2] = k.heads;
  } else if (k.decode) {
    launch.grid[0] = k.batch;
    launch.grid[1] = k.kv_heads;
    launch.grid[2] = k.splits;
  } else {
    const AttentionTile tile = attention_tile(k, library);
    launch.grid[0] = tiles_per_group(k, tile);
    launch.grid[1] = k.batch;
    launch.grid[2] = tile.groups_per_sequence * k.splits;
  }
  for (auto& size : launch.grid) size = std::max<std::int64_t>(1, size);
}

Launch main_launch(const AttentionKernel& k, AttentionLibrary library, const arch::GpuSpec& gpu) {
  const bool warps3 = library == AttentionLibrary::flash3 || library == AttentionLibrary::flash3_dense ||
                      library == AttentionLibrary::flash3_first;
  Launch launch;
  launch.name = kernel_name(k, library);
  launch.library = attention_rules(library).package;
  launch.family = family_of(k);
  launch.math = k.math;
  launch.tensor_cores = gpu.has_tensor_path(k.math);
  launch.cta.threads = warps3 ? 384 : 128;
  launch.cta.registers_per_thread = warps3 ? 168 : 255;
  // One tile of queries and a step of keys and values; heads too large for that are cut into slices.
  const double rows = static_cast<double>(attention_tile(k, library).rows);
  const double shared = (rows + 2.0 * 64) * padded_head_dim(k) * std::min(k.element_bytes, 2.0);
  launch.cta.shared_memory = std::min(Bytes{shared}, gpu.sm.shared_memory_per_cta);
  if (k.append) {
    constexpr std::int64_t kMostThreads = 512;
    launch.library = "vLLM";
    launch.cta = {};
    const std::int64_t heads = std::min(k.kv_heads, kMostThreads);
    const std::int64_t elements = heads * std::min(k.head_dim, kMostThreads);
    launch.cta.threads = static_cast<int>(std::clamp<std::int64_t>(elements, 32, kMostThreads));
    launch.tensor_cores = false;
  }
  launch.work = attention_work(k);
  set_grid(k, library, launch);
  launch.detail = k;
  return launch;
}

}  // namespace

std::vector<Launch> attention_launches(AttentionKernel k, const arch::GpuSpec& gpu) {
  const AttentionLibrary library = attention_library(k, gpu);
  const KeySplit split = attention_splits(k, library, gpu);
  k.library = library;
  k.splits = split.splits;
  k.split_variant = split.variant;
  std::vector<Launch> out;
  if (!k.backward) {
    out.push_back(main_launch(k, library, gpu));
    return out;
  }
  out.reserve(3);
  const double result = static_cast<double>(k.batch) * static_cast<double>(k.heads) * static_cast<double>(k.seq_q);
  const double head = static_cast<double>(k.head_dim);
  const double value = static_cast<double>(k.value_dim);
  // The row sums clear fp32 dq on the way.
  out.push_back(pass_over("flash_bwd_dot_do_o_kernel", 2 * result * value * k.element_bytes,
                          4 * result + 4 * result * head, result * value, k.math));
  out.push_back(main_launch(k, library, gpu));
  out.push_back(pass_over("flash_bwd_convert_dq_kernel", 4 * result * head, result * head * k.element_bytes,
                          result * head, k.math));
  return out;
}

}  // namespace voltaic::kernel
