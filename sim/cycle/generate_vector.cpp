// SPDX-License-Identifier: MIT
#include "sim/cycle/detail/vector.hpp"
#include "sim/cycle/generate.hpp"

namespace voltaic::cycle {
namespace {

using Generator = Part (*)(const kernel::Launch&, const kernel::VectorKernel&, const arch::GpuSpec&);

Generator generator_of(const kernel::VectorKernel& kernel) {
  using kernel::VectorKind;
  switch (kernel.kind) {
    case VectorKind::elementwise:
    case VectorKind::elementwise_broadcast:
    case VectorKind::half_elementwise:
    case VectorKind::half_activation:
    case VectorKind::copy:
    case VectorKind::copy_strided:
    case VectorKind::fill:
    case VectorKind::dropout:
    case VectorKind::optimizer: return detail::pointwise;
    case VectorKind::softmax_warp: return detail::softmax_in_warps;
    case VectorKind::softmax_block: return detail::softmax_in_ctas;
    case VectorKind::layer_norm:
    case VectorKind::half_layer_norm:
    case VectorKind::norm_backward:
    case VectorKind::batch_norm: return detail::norm_rows;
    case VectorKind::serving_norm:
    case VectorKind::serving_rope:
    case VectorKind::serving_gate: return detail::serving_rows;
    case VectorKind::norm_param_grad: return detail::column_sums;
    case VectorKind::reduction: return detail::reduction;
    case VectorKind::embedding:
    case VectorKind::scatter:
    case VectorKind::index_select_small:
    case VectorKind::index_select_large: return detail::lookup;
    case VectorKind::pooling: return detail::windows;
    case VectorKind::cross_entropy: return detail::walk;
  }
  return detail::pointwise;
}

}  // namespace

std::vector<Part> generate_vector(const kernel::Launch& launch, const kernel::VectorKernel& kernel,
                                  const arch::GpuSpec& gpu) {
  return {generator_of(kernel)(launch, kernel, gpu)};
}

}  // namespace voltaic::cycle
