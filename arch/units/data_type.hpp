// SPDX-License-Identifier: MIT
// Element types of tensors and of the arithmetic done on them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace voltaic {

/// tf32 is a way to multiply, not to store: a tf32 operand occupies four bytes.
enum class DataType : std::uint8_t { fp64, fp32, tf32, fp16, bf16, fp8, int64, int32, int8, int4, boolean };

struct DataTypeInfo {
  DataType type;
  std::string_view name;
  int bits;  ///< Storage of one element.
};

inline constexpr std::array<DataTypeInfo, 11> kDataTypes{{
    {DataType::fp64, "fp64", 64},
    {DataType::fp32, "fp32", 32},
    {DataType::tf32, "tf32", 32},
    {DataType::fp16, "fp16", 16},
    {DataType::bf16, "bf16", 16},
    {DataType::fp8, "fp8", 8},
    {DataType::int64, "int64", 64},
    {DataType::int32, "int32", 32},
    {DataType::int8, "int8", 8},
    {DataType::int4, "int4", 4},
    {DataType::boolean, "bool", 8},
}};

constexpr const DataTypeInfo& info(DataType t) {
  return kDataTypes[static_cast<std::size_t>(t)];
}
constexpr std::string_view to_string(DataType t) {
  return info(t).name;
}
constexpr double bytes_per_element(DataType t) {
  return info(t).bits / 8.0;
}
constexpr bool is_floating(DataType t) {
  return t <= DataType::fp8;
}

constexpr std::optional<DataType> parse_data_type(std::string_view name) {
  for (const auto& d : kDataTypes) {
    if (d.name == name) return d.type;
  }
  return std::nullopt;
}

}  // namespace voltaic
