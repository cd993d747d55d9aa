// SPDX-License-Identifier: MIT
// The launches of one fused attention layer, as FlashAttention and CUTLASS issue them.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "sim/kernel/attention_shape.hpp"
#include "sim/kernel/conv_shape.hpp"

namespace voltaic::kernel {

namespace {

std::string_view library_name(AttentionLibrary library) {
  return library == AttentionLibrary::memory_efficient ? "CUTLASS" : "flash-attn";
}

std::string kernel_name(const AttentionKernel& k, AttentionLibrary library) {
  if (library == AttentionLibrary::memory_efficient) {
    return fmt::format("fmha_cutlass{}_{}_64x128", k.backward ? 'B' : 'F', to_string(k.math));
  }
  const char* prefix = library == AttentionLibrary::flash3 ? "hopper::" : "";
  if (k.backward) return fmt::format("{}flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<{}>", prefix, k.head_dim);
  if (k.splits > 1) return fmt::format("{}flash_fwd_splitkv_kernel + combine<{}>", prefix, k.head_dim);
  return fmt::format("{}flash_fwd{}_kernel<{}>", prefix, k.decode ? "_splitkv" : "", k.head_dim);
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
  if (k.backward) {
    launch.grid[0] = std::max<std::int64_t>(1, ceil_div(k.seq_kv, 128));
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
    launch.grid[2] = (tile.pack > 1 ? k.kv_heads : k.heads) * k.splits;
  }
  for (auto& size : launch.grid) size = std::max<std::int64_t>(1, size);
}

}  // namespace

std::vector<Launch> attention_launches(AttentionKernel k, const arch::GpuSpec& gpu) {
  const AttentionLibrary library = attention_library(k, gpu);
  k.splits = k.backward ? 1 : attention_splits(k, library, gpu);
  const AttentionTile tile = attention_tile(k, library);
  const double dim = padded_head_dim(k);
  std::vector<Launch> out;
  out.reserve(k.backward ? 3 : 1);
  const double result = static_cast<double>(k.batch) * static_cast<double>(k.heads) * static_cast<double>(k.seq_q);
  const double head = static_cast<double>(k.head_dim);
  const double value = static_cast<double>(k.value_dim);
  if (k.backward) {
    out.push_back(pass_over("flash_bwd_dot_do_o_kernel", 2 * result * value * k.element_bytes, 4 * result,
                            result * value, k.math));
  }
  Launch& launch = out.emplace_back();
  launch.name = kernel_name(k, library);
  launch.library = library_name(library);
  launch.family = k.decode ? "attention_decode" : (k.backward ? "attention_backward" : "attention");
  launch.math = k.math;
  launch.tensor_cores = gpu.has_tensor_path(k.math);
  launch.cta.threads = library == AttentionLibrary::flash3 ? 384 : 128;
  launch.cta.registers_per_thread = library == AttentionLibrary::flash3 ? 168 : 255;
  // One tile of queries and a step of keys and values; heads too large for that are cut into slices.
  const double shared = (static_cast<double>(tile.rows) + 2.0 * 64) * dim * std::min(k.element_bytes, 2.0);
  launch.cta.shared_memory = std::min(Bytes{shared}, gpu.sm.shared_memory_per_cta);
  launch.work = attention_work(k);
  set_grid(k, library, launch);
  launch.detail = k;
  if (k.backward) {
    out.push_back(pass_over("flash_bwd_convert_dq_kernel", 4 * result * head, result * head * k.element_bytes,
                            result * head, k.math));
  }
  return out;
}

}  // namespace voltaic::kernel
