// SPDX-License-Identifier: MIT
// Which GPU multiplies in which precision, and on what.
#include <fmt/format.h>

#include <array>

#include "arch/units/error.hpp"
#include "sim/simulator.hpp"

namespace voltaic {
namespace {

std::string_view upper(DataType t) {
  switch (t) {
    case DataType::tf32: return "TF32";
    case DataType::bf16: return "BF16";
    case DataType::fp16: return "FP16";
    case DataType::fp8: return "FP8";
    case DataType::int8: return "INT8";
    case DataType::int4: return "INT4";
    default: return to_string(t);
  }
}

constexpr std::array kOrder{DataType::fp64, DataType::fp32, DataType::tf32, DataType::fp16,
                            DataType::bf16, DataType::fp8,  DataType::int8, DataType::int4};

/// "fp64, fp32, fp16 (tensor cores), int8 (DP4A)".
std::string abilities(const arch::GpuSpec& gpu) {
  std::string out;
  for (const DataType t : kOrder) {
    std::string_view how;
    if (gpu.has_tensor_path(t)) {
      how = " (tensor cores)";
    } else if (gpu.sm.cuda_core[t] > 0) {
      how = t == DataType::int8 ? " (DP4A)" : "";
    } else {
      continue;
    }
    out += fmt::format("{}{}{}", out.empty() ? "" : ", ", to_string(t), how);
  }
  return out;
}

}  // namespace

DataType multiply_type(graph::Precision precision) {
  switch (precision) {
    case graph::Precision::fp64: return DataType::fp64;
    case graph::Precision::fp32: return DataType::fp32;
    case graph::Precision::tf32: return DataType::tf32;
    case graph::Precision::fp16:
    case graph::Precision::w8a16:
    case graph::Precision::w4a16:
    case graph::Precision::mixed_fp16: return DataType::fp16;
    case graph::Precision::bf16:
    case graph::Precision::mixed_bf16: return DataType::bf16;
    case graph::Precision::int8: return DataType::int8;
    case graph::Precision::int4: return DataType::int4;
    case graph::Precision::fp8: return DataType::fp8;
  }
  return DataType::fp32;
}

std::string check_precision(const arch::GpuSpec& gpu, graph::Precision precision) {
  const DataType t = multiply_type(precision);
  if (gpu.has_tensor_path(t)) return {};
  if (graph::is_weight_only(precision)) {
    throw UnsupportedError(
        fmt::format("{} has no FP16 tensor cores, which the kernels of {} expand weights for: it multiplies in {}",
                    gpu.name, graph::to_string(precision), abilities(gpu)));
  }
  if (gpu.sm.cuda_core[t] > 0) {
    if (t == DataType::int8) return "int8 runs on DP4A, not on tensor cores";
    if (t == DataType::fp16 || t == DataType::bf16) {
      return fmt::format("{} runs on the FMA pipes: {} has no tensor cores for it", to_string(t), gpu.name);
    }
    return {};
  }
  const std::string_view unit = t == DataType::fp64 || t == DataType::fp32 ? "units" : "tensor cores";
  throw UnsupportedError(fmt::format("{} has no {} {}: it multiplies in {}", gpu.name, upper(t), unit, abilities(gpu)));
}

graph::SparsePaths sparse_paths(const arch::GpuSpec& gpu) {
  graph::SparsePaths paths{};
  for (const auto& type : kDataTypes) paths[static_cast<std::size_t>(type.type)] = gpu.has_sparse_path(type.type);
  return paths;
}

std::string check_sparsity(const arch::GpuSpec& gpu, graph::Precision precision) {
  std::string types;
  for (const DataType t : kOrder) {
    if (gpu.has_sparse_path(t)) types += fmt::format("{}{}", types.empty() ? "" : ", ", to_string(t));
  }
  if (types.empty()) {
    throw UnsupportedError(fmt::format("{} has no 2:4 sparse tensor cores (they came with Ampere): it multiplies in {}",
                                       gpu.name, abilities(gpu)));
  }
  const DataType t = multiply_type(precision);
  if (gpu.has_sparse_path(t)) return {};
  return fmt::format("--sparsity 2:4 changes nothing in {}: {} multiplies sparse weights in {}",
                     graph::to_string(precision), gpu.name, types);
}

void check_inference_only(bool training, graph::Precision precision, bool sparsity) {
  if (training && graph::is_weight_only(precision)) {
    throw UnsupportedError(
        fmt::format("--precision {} quantises finished weights and has no gradients: --mode training runs in fp32, "
                    "tf32, fp16, bf16, mixed-fp16 or mixed-bf16",
                    graph::to_string(precision)));
  }
  if (training && sparsity) {
    throw UnsupportedError("--sparsity 2:4 prunes finished weights: --mode training updates dense ones");
  }
  if (sparsity && graph::is_weight_only(precision)) {
    throw UnsupportedError(
        fmt::format("--sparsity 2:4 multiplies fp16, int8 or fp8 weights as they are stored: no kernel expands {} "
                    "weights that are sparse",
                    graph::to_string(precision)));
  }
}

}  // namespace voltaic
