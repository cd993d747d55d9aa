// SPDX-License-Identifier: MIT
// Matrix products of serving stacks and of the suite whose tables are column-major.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "arch/units/error.hpp"
#include "validation/compare/stack_reader.hpp"

namespace voltaic::validation {
namespace {

/// What is multiplied and what is stored; `call` names the protocol's numbers.
struct ProductType {
  std::string_view word;
  DataType math;
  double a_bytes, b_bytes, c_bytes;
  std::string_view call = "gemm";
};
/// Quantised products of a stack end in the network's two-byte type; weights alone are expanded inside the kernel.
constexpr std::array<ProductType, 10> kTypes{{
    {"fp64", DataType::fp64, 8, 8, 8},
    {"fp32", DataType::fp32, 4, 4, 4},
    {"tf32", DataType::tf32, 4, 4, 4},
    {"fp16", DataType::fp16, 2, 2, 2},
    {"bf16", DataType::bf16, 2, 2, 2},
    {"fp8", DataType::fp8, 1, 1, 2, "gemm_fp8"},
    {"int8", DataType::int8, 1, 1, 2, "gemm_int8"},
    {"w8a16", DataType::fp16, 2, 1, 2, "gemm_w8a16"},
    {"w4a16", DataType::fp16, 2, 0.5, 2, "gemm_w4a16"},
    {"w4a8", DataType::int8, 1, 0.5, 2, "gemm_w4a8"},
}};
constexpr std::array<ProductType, 4> kSuiteTypes{{
    {"FP32", DataType::fp32, 4, 4, 4, "gemm_fp32"},
    {"FP16_tensorcore_mixed", DataType::fp16, 2, 2, 2},
    {"FP32_in_tensorcore_FP16_mul", DataType::fp16, 4, 4, 4},
    {"INT8_mul_INT32_acc", DataType::int8, 1, 1, 4, "gemm_int8"},
}};

template <std::size_t N>
const ProductType* find(const std::array<ProductType, N>& types, std::string_view word) {
  const auto at = std::find_if(types.begin(), types.end(), [&](const ProductType& t) { return t.word == word; });
  return at == types.end() ? nullptr : &*at;
}

/// BLAS letters of the column-major call, which a row-major product with swapped operands makes too.
struct Layout {
  bool transpose_a = false, transpose_b = false;
};
Layout layout_of(const CsvTable& table, std::size_t row, const char* column, std::string_view letters) {
  const bool known =
      letters.size() == 2 && std::all_of(letters.begin(), letters.end(), [](char c) { return c == 'N' || c == 'T'; });
  if (!known) {
    throw ConfigError(table.place(row), column, fmt::format("expected N or T, got '{}'", one_line(letters)));
  }
  return {letters[1] == 'T', letters[0] == 'T'};
}

kernel::GemmProblem problem_of(const ProductType& type, const Layout& layout) {
  kernel::GemmProblem p;
  p.math = type.math;
  p.a_bytes = type.a_bytes;
  p.b_bytes = type.b_bytes;
  p.c_bytes = type.c_bytes;
  p.dequantise = type.b_bytes < type.a_bytes;
  p.transpose_a = layout.transpose_a;
  p.transpose_b = layout.transpose_b;
  return p;
}

void set_sizes(kernel::GemmProblem& p, std::int64_t m, std::int64_t n, std::int64_t k, bool column_major) {
  p.m = column_major ? n : m;
  p.n = column_major ? m : n;
  p.k = k;
}

/// Rates that a search came upon.
bool is_ceiling(std::string_view method) {
  return method.starts_with("best_of") || method.starts_with("peak_");
}

/// The board's mean power beside the time. A sensor that averages over tens of milliseconds sees the gaps between short
/// replays. Of products this deep the operands are not known: they run faster at fewer watts than random ones.
void read_watts(StackReader& reader, std::size_t row, const kernel::GemmProblem& p, StackRow& out) {
  constexpr double kShortest = 100e-6, kLeastWatts = 1, kMostWatts = 1e5;
  constexpr std::int64_t kDeep = 30000;
  const auto watts = reader.table().number(row, "power_w");
  if (!watts) return;
  if (!(*watts >= kLeastWatts && *watts <= kMostWatts)) {
    throw ConfigError(reader.table().place(row), "power_w", fmt::format("expected watts, got {}", *watts));
  }
  if (out.measured_s < kShortest) return reader.leave_out(kIdleInside);
  if (p.k >= kDeep) return reader.leave_out(kUnknownOperands);
  out.measured_w = *watts;
}

}  // namespace

void read_gemm_row(StackReader& reader, std::size_t row) {
  const CsvTable& table = reader.table();
  if (is_ceiling(reader.text(row, "method"))) return reader.leave_out(kCeiling);
  StackRow out;
  out.op = "gemm";
  out.mode = "forward";
  out.dtype = one_line(reader.text(row, "dtype"));
  out.family = family_name("products", out.dtype);
  if (!reader.begin(row, "latency_us", reader.text(row, "source"), out)) return;
  const ProductType* type = find(kTypes, out.dtype);
  if (type == nullptr) return reader.miss(fmt::format("dtype {} is unknown for gemm", out.dtype), out);
  out.call = type->call;
  const auto letters = reader.text(row, "layout");
  kernel::GemmProblem p = problem_of(*type, layout_of(table, row, "layout", letters.empty() ? "TN" : letters));
  const std::int64_t m = size_cell(table, row, "m");
  const std::int64_t n = size_cell(table, row, "n");
  set_sizes(p, m, n, size_cell(table, row, "k"), out.protocol.column_major);
  p.batch = size_cell(table, row, "batch");
  p.linear = p.batch == 1;
  check_product(table, row, p);
  describe_product(p, m, n, out);
  read_watts(reader, row, p, out);
  out.work = ProductCall{p};
  reader.take(std::move(out));
}

void read_suite_gemm_row(StackReader& reader, std::size_t row) {
  const CsvTable& table = reader.table();
  if (reader.text(row, "status") == "superseded") return reader.leave_out(kSuperseded);
  StackRow out;
  out.op = "gemm";
  out.mode = "forward";
  out.dtype = one_line(reader.text(row, "precision"));
  const ProductType* type = find(kSuiteTypes, out.dtype);
  out.family = family_name("products", type != nullptr ? to_string(type->math) : out.dtype);
  if (reader.text(row, "gpu") == kSuiteV100) out.gpu = kSuiteV100Board;
  if (!reader.begin(row, "time_us", "deepbench", out)) return;
  if (type == nullptr) return reader.miss(fmt::format("precision {} is unknown for gemm", out.dtype), out);
  out.call = type->call;
  const std::string letters = std::string(reader.text(row, "a_trans")) + std::string(reader.text(row, "b_trans"));
  kernel::GemmProblem p = problem_of(*type, layout_of(table, row, "a_trans", letters));
  const std::int64_t m = size_cell(table, row, "M");
  const std::int64_t n = size_cell(table, row, "N");
  set_sizes(p, m, n, size_cell(table, row, "K"), true);
  check_product(table, row, p);
  describe_product(p, m, n, out);
  out.label += " " + letters;
  out.work = ProductCall{p};
  reader.take(std::move(out));
}

}  // namespace voltaic::validation
