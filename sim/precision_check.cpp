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

/// "fp64, fp32, fp16 (tensor cores), int8 (DP4A)".
std::string abilities(const arch::GpuSpec& gpu) {
  static constexpr std::array kOrder{DataType::fp64, DataType::fp32, DataType::tf32, DataType::fp16,
                                     DataType::bf16, DataType::fp8,  DataType::int8, DataType::int4};
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

}  // namespace voltaic
