// SPDX-License-Identifier: MIT
// What the programs of fused attention share: how one layer is cut into CTAs, and its tensors.
#pragma once

#include <vector>

#include "arch/spec.hpp"
#include "sim/cycle/detail/copy.hpp"
#include "sim/cycle/detail/emit.hpp"
#include "sim/cycle/detail/product.hpp"
#include "sim/kernel/launch.hpp"

namespace voltaic::cycle::detail {

struct AttentionPlan {
  double rows = 64;              ///< Query rows of one CTA,
  double valid_rows = 64;        ///< of which queries exist, in the mean.
  double keys = 64;              ///< Keys of one step.
  double head = 64, value = 64;  ///< Padded as kernels are compiled.
  double element = 2;            ///< Bytes in global memory.
  int warps = 4;
  int resident = 1;
  double splits = 1;
  bool paged = false;
  std::array<std::int64_t, 3> grid{1, 1, 1};
  /// Steps of the CTA in x: first + per_x x when `rising`, else `mean`.
  bool rising = false;
  double first = 1, per_x = 0, mean = 1;
  double kv_groups = 1;  ///< Pairs of a sequence and a head of the cache.
  double sharing = 1;    ///< CTAs in z that read the same one.
  double kv_tokens = 1;  ///< Of one group, as far as they are read.
  double queries = 1;    ///< Rows of all heads and sequences.
};
AttentionPlan forward_plan(const kernel::Launch& launch, const kernel::AttentionKernel& kernel,
                           const arch::GpuSpec& gpu);
AttentionPlan backward_plan(const kernel::Launch& launch, const kernel::AttentionKernel& kernel,
                            const arch::GpuSpec& gpu);

/// Sets the trips of the loop over steps that was just opened.
void set_steps(Emitter& emitter, const AttentionPlan& plan);

/// Keys or values: what one CTA streams and others of its wave share.
Tensor streamed_tensor(std::string name, const AttentionPlan& plan, double width, double resident_ctas, bool cold);
Tensor whole_tensor(std::string name, double bytes, bool cold, bool written);

/// The online softmax over `scores` elements of each thread in `row_sets` rows, rescaling `outputs` elements.
struct SoftmaxStep {
  double scores = 64, row_sets = 2, outputs = 64;
};
void emit_softmax(Emitter& emitter, const SoftmaxStep& step, int board);

Part flash_forward(const kernel::Launch& launch, const kernel::AttentionKernel& kernel, const arch::GpuSpec& gpu);
Part efficient_forward(const kernel::Launch& launch, const kernel::AttentionKernel& kernel, const arch::GpuSpec& gpu);
Part flash_backward(const kernel::Launch& launch, const kernel::AttentionKernel& kernel, const arch::GpuSpec& gpu);
Part merge_splits(const kernel::Launch& launch, const kernel::AttentionKernel& kernel, const arch::GpuSpec& gpu);
/// Query heads of one KV head became rows of its tile: their results are moved back to their places.
Part transpose_groups(const kernel::AttentionKernel& kernel, const arch::GpuSpec& gpu);
Part append_cache(const kernel::Launch& launch, const kernel::AttentionKernel& kernel, const arch::GpuSpec& gpu);

}  // namespace voltaic::cycle::detail
