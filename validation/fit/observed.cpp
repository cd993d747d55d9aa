// SPDX-License-Identifier: MIT
#include "validation/fit/observed.hpp"

#include <fmt/format.h>

#include "sim/cost/conv_choice.hpp"
#include "sim/cost/gemm_choice.hpp"

namespace voltaic::validation {
namespace {

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

std::string between(std::string_view text, std::string_view head, std::string_view tail) {
  const auto begin = text.find(head);
  if (begin == std::string_view::npos) return "";
  text.remove_prefix(begin + head.size());
  const auto end = text.find(tail);
  return std::string(text.substr(0, end));
}

std::optional<std::vector<kernel::Launch>> product_launches(const KernelRow& row, const arch::ResolvedGpu& gpu) {
  const std::string name = product_kernel_name(row.observed);
  const cost::SimtLaw law(gpu.calibration.at(row.product.linear ? "gemm_simt.linear" : "gemm_simt.bmm"));
  for (const cost::SimtKernel& kernel : law.kernels()) {
    if (kernel.name != name) continue;
    const double split = static_cast<double>(row.product.linear ? row.observed.split_k : 1);
    return kernel::gemm_launches(row.product, cost::to_tile(kernel, split), gpu.spec);
  }
  return std::nullopt;
}

std::optional<std::vector<kernel::Launch>> convolution_launches(const KernelRow& row, const arch::ResolvedGpu& gpu) {
  const std::string name = convolution_kernel_name(row.observed, row.convolution);
  const cost::SquareConv law(gpu.calibration.at("convolution"));
  const cost::SquareKernel* kernel = law.find(name);
  if (kernel == nullptr || !law.applies(row.convolution)) return std::nullopt;
  return kernel::conv_launches(cost::to_kernel(*kernel, row.convolution), gpu.spec);
}

}  // namespace

std::string product_kernel_name(const ObservedKernel& observed) {
  if (!observed.known() || observed.tile_m <= 0 || observed.tile_n <= 0) return "";
  const std::string_view suffix = contains(observed.name, "sliced")    ? "s"
                                  : contains(observed.name, "cutlass") ? "c"
                                                                       : "";
  return fmt::format("{}x{}{}", observed.tile_m, observed.tile_n, suffix);
}

std::string convolution_kernel_name(const ObservedKernel& observed, const kernel::ConvProblem& problem) {
  const std::string_view name = observed.name;
  if (contains(name, "winograd")) return contains(name, "tile442") ? "fused442" : "fused148";
  if (observed.algorithm == "winograd_nonfused") return "nonfused_" + between(name, "sgemm_", "_");
  if (observed.algorithm == "fft") return problem.in[1] <= 14 ? "fft16" : "fft32";
  if (contains(name, "explicit_convolve")) return "explicit";
  if (contains(name, "implicit_convolve")) return "implicit";
  if (!contains(name, "scudnn_") || contains(name, "nhwc")) return "";
  std::string middle = between(name, "scudnn_", "_nn");
  const auto volume = middle.find("_3dconv_fprop");
  if (volume == std::string::npos) return middle;
  return "3dconv_" + middle.substr(0, volume) + "_relu_small";
}

std::optional<std::vector<kernel::Launch>> observed_launches(const KernelRow& row, const arch::ResolvedGpu& gpu) {
  if (!row.observed.known()) return std::nullopt;
  switch (row.kind) {
    case RowKind::product: return product_launches(row, gpu);
    case RowKind::convolution: return convolution_launches(row, gpu);
    case RowKind::vector: return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace voltaic::validation
