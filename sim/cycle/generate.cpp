// SPDX-License-Identifier: MIT
#include "sim/cycle/generate.hpp"

#include <variant>

namespace voltaic::cycle {
namespace {

struct Families {
  const kernel::Launch& launch;
  const arch::GpuSpec& gpu;
  std::vector<Part> operator()(const kernel::GemmKernel& k) const { return generate_gemm(launch, k, gpu); }
  std::vector<Part> operator()(const kernel::ConvKernel& k) const { return generate_conv(launch, k, gpu); }
  std::vector<Part> operator()(const kernel::VectorKernel& k) const { return generate_vector(launch, k, gpu); }
  std::vector<Part> operator()(const kernel::AttentionKernel& k) const { return generate_attention(launch, k, gpu); }
  std::vector<Part> operator()(const kernel::ExpertKernel& k) const { return generate_experts(launch, k, gpu); }
  std::vector<Part> operator()(const kernel::RecurrentKernel& k) const { return generate_recurrent(launch, k, gpu); }
  std::vector<Part> operator()(const kernel::SparseKernel& k) const { return generate_sparse(launch, k, gpu); }
  std::vector<Part> operator()(const kernel::TransferKernel&) const { return {}; }
};

}  // namespace

std::vector<Part> generate(const kernel::Launch& launch, const arch::GpuSpec& gpu) {
  return std::visit(Families{launch, gpu}, launch.detail);
}

}  // namespace voltaic::cycle
