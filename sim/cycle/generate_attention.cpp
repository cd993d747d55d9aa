// SPDX-License-Identifier: MIT
// Which programs an attention launch runs.
#include "sim/cycle/detail/attention.hpp"
#include "sim/cycle/generate.hpp"
#include "sim/kernel/attention_shape.hpp"

namespace voltaic::cycle {

std::vector<Part> generate_attention(const kernel::Launch& launch, const kernel::AttentionKernel& k,
                                     const arch::GpuSpec& gpu) {
  if (k.append) return {detail::append_cache(launch, k, gpu)};
  if (k.backward) return {detail::flash_backward(launch, k, gpu)};
  // Flash kernels live on asynchronous copies and matrix loads.
  const bool flash = launch.tensor_cores && gpu.architecture == arch::Architecture::ampere &&
                     kernel::attention_library(k, gpu) != kernel::AttentionLibrary::memory_efficient;
  std::vector<Part> out;
  out.push_back(flash ? detail::flash_forward(launch, k, gpu) : detail::efficient_forward(launch, k, gpu));
  if (k.split_variant && k.splits > 1) out.push_back(detail::merge_splits(launch, k, gpu));
  if (flash && k.decode && kernel::group_size(k) > 1 && k.kv_heads > 1 && k.batch > 1) {
    out.push_back(detail::transpose_groups(k, gpu));
  }
  return out;
}

}  // namespace voltaic::cycle
