// SPDX-License-Identifier: MIT
// Tables of single operations: one row is one framework call on one GPU, timed with events around it.
//
// Recognised by their columns; others are ignored, and so are `kernel`, `grid_*`, `tile_*` where they are absent:
//     products      op (linear|bmm), gpu, b, m, n, k, latency_us
//     convolutions  op (conv), gpu, b, c_in, c_out, ksize, h_in, stride, pad, latency_us     square images, NCHW
//     vector        op (add, relu, softmax, layernorm, ...), gpu, rows, cols, latency_us
// Optional: dtype (default fp32), origin (the measuring session), n_in (tensor inputs of a pointwise operation).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/graph/operation.hpp"
#include "sim/kernel/lowering.hpp"
#include "validation/compare/csv_table.hpp"

namespace voltaic::validation {

enum class RowKind : std::uint8_t { product, convolution, vector };

/// What a profiler saw beside the time; empty where the table does not say. Used by fits, never by predictions.
struct ObservedKernel {
  std::string name;       ///< Main kernel.
  std::string algorithm;  ///< Convolutions: the table's class.
  std::int64_t tile_m = 0, tile_n = 0;
  std::int64_t split_k = 1;
  bool known() const { return !name.empty(); }
};

struct KernelRow {
  RowKind kind = RowKind::vector;
  std::string table_gpu;  ///< The table's spelling.
  std::string gpu;        ///< Our name for it.
  std::string op, dtype, origin;
  std::string label;     ///< The shape in words: "64 x 512 x 64 x 512" (batch, m, n, k).
  std::string key;       ///< What the split is drawn from: "gemm|64|512|64|512".
  bool fit = false;      ///< crc32(key) mod 10 below 6.
  std::size_t line = 0;  ///< Row of the table, for messages: CsvTable::place(line).
  double measured_s = 0;
  double size = 0;  ///< FLOP of a product or convolution by definition, bytes moved by a vector operation.
  kernel::GemmProblem product;
  kernel::ConvProblem convolution;
  graph::OpType vector_op{};
  std::int64_t rows = 0, cols = 0, tensor_inputs = 1;
  ObservedKernel observed;
};

/// True where zlib crc32 of the key modulo 10 is 0 to 5.
bool is_fit_key(std::string_view key);

/// Our name of a GPU as tables spell it ("V100-PCIE-32GB" -> "v100-pcie-32gb"); empty when it is none of ours. GPU
/// files come first: "my/L99.json" describes the rows of "L99".
std::string gpu_of(std::string_view table_gpu, const std::vector<std::string>& files = {});
/// True for what names a GPU file rather than a GPU.
bool is_gpu_file(std::string_view name);
/// What tables call the GPU of a name or file, in lower case.
std::string table_word(std::string_view name_or_file);

bool is_kernel_table(const CsvTable& table);

struct KernelRows {
  std::vector<KernelRow> rows;                                ///< In table order.
  std::vector<std::pair<std::string, std::int64_t>> skipped;  ///< Reason and rows.
  std::vector<std::size_t> skipped_lines;                     ///< Those rows of the table.
};
/// Rows that can be predicted; throws ConfigError naming file, line and column for values that make no sense (a size
/// below 1, a time that is not positive).
KernelRows read_kernel_rows(const CsvTable& table, const std::vector<std::string>& gpu_files = {});

/// The launches of one row with the kernel that `library` takes.
std::vector<kernel::Launch> lower_row(const KernelRow& row, const arch::GpuSpec& gpu,
                                      const kernel::LibraryChoice& library);

}  // namespace voltaic::validation
