// SPDX-License-Identifier: MIT
// Convolutions of the suite: a row holds up to three calls, forward and both gradients.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "arch/units/error.hpp"
#include "sim/kernel/conv_shape.hpp"
#include "validation/compare/stack_reader.hpp"

namespace voltaic::validation {
namespace {

struct Pass {
  kernel::ConvPass pass;
  const char* column;
  const char* mode;
};
constexpr std::array<Pass, 3> kPasses{{
    {kernel::ConvPass::forward, "fwd_us", "fwd"},
    {kernel::ConvPass::dgrad, "bwd_data_us", "bwd_data"},
    {kernel::ConvPass::wgrad, "bwd_weights_us", "bwd_weights"},
}};

struct Precision {
  std::string_view word;
  DataType math;
};
constexpr std::array<Precision, 3> kPrecisions{{
    {"FP32", DataType::fp32},
    {"FP16_tensorcore_mixed", DataType::fp16},
    {"INT8_mul_INT32_acc", DataType::int8},
}};

const Precision* precision_of(std::string_view word) {
  const auto at =
      std::find_if(kPrecisions.begin(), kPrecisions.end(), [&](const Precision& p) { return p.word == word; });
  return at == kPrecisions.end() ? nullptr : &*at;
}

/// Output size along one axis; the filter lies inside the padded image.
std::int64_t out_size(const CsvTable& table, std::size_t row, const char* filter, const kernel::ConvProblem& p,
                      int axis) {
  const std::int64_t padded = p.in[axis] + 2 * p.pad[axis];
  if (padded < p.filter[axis]) {
    throw ConfigError(table.place(row), filter,
                      fmt::format("expected a filter inside the padded image of {}, got {}", padded, p.filter[axis]));
  }
  return (padded - p.filter[axis]) / p.stride[axis] + 1;
}

kernel::ConvProblem problem_of(const CsvTable& table, std::size_t row, DataType math) {
  kernel::ConvProblem p;
  p.n = size_cell(table, row, "N");
  p.c = size_cell(table, row, "C");
  p.k = size_cell(table, row, "K");
  p.in[1] = size_cell(table, row, "H");
  p.in[2] = size_cell(table, row, "W");
  p.filter[1] = size_cell(table, row, "R_filter_h");
  p.filter[2] = size_cell(table, row, "S_filter_w");
  p.stride[1] = size_cell(table, row, "stride_h");
  p.stride[2] = size_cell(table, row, "stride_w");
  p.pad[1] = size_cell(table, row, "pad_h", 0);
  p.pad[2] = size_cell(table, row, "pad_w", 0);
  p.out[1] = out_size(table, row, "R_filter_h", p, 1);
  p.out[2] = out_size(table, row, "S_filter_w", p, 2);
  check_elements(table, row, {p.n, p.c, p.in[1], p.in[2]});
  check_elements(table, row, {p.n, p.k, p.out[1], p.out[2]});
  check_elements(table, row, {p.k, p.c, p.filter[1], p.filter[2]});
  p.math = math;
  p.element_bytes = bytes_per_element(math);
  return p;
}

std::string key_of(const kernel::ConvProblem& p) {
  return fmt::format("conv|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}", p.n, p.c, p.in[1], p.in[2], p.k, p.filter[1], p.filter[2],
                     p.stride[1], p.stride[2], p.pad[1], p.pad[2]);
}

std::string label_of(const kernel::ConvProblem& p) {
  return fmt::format("{} x {} x {}x{}, {} filters {}x{} stride {}x{} pad {}x{}", p.n, p.c, p.in[1], p.in[2], p.k,
                     p.filter[1], p.filter[2], p.stride[1], p.stride[2], p.pad[1], p.pad[2]);
}

}  // namespace

void read_suite_conv_row(StackReader& reader, std::size_t row) {
  const CsvTable& table = reader.table();
  const bool superseded = reader.text(row, "status") == "superseded";
  const auto word = reader.text(row, "precision");
  const Precision* precision = precision_of(word);
  for (const Pass& pass : kPasses) {
    if (reader.text(row, pass.column).empty()) continue;  // the first layer has no gradient of its input
    if (superseded) {
      reader.leave_out(kSuperseded);
      continue;
    }
    StackRow out;
    out.op = "conv";
    out.mode = pass.mode;
    out.call = fmt::format("conv_{}", pass.mode);
    out.dtype = one_line(word);
    out.family = family_name("convolution", precision != nullptr ? to_string(precision->math) : out.dtype);
    if (reader.text(row, "gpu") == kSuiteV100) out.gpu = kSuiteV100Board;
    if (!reader.begin(row, pass.column, "deepbench", out)) continue;
    if (precision == nullptr) {
      reader.miss(fmt::format("precision {} is unknown for conv", out.dtype), out);
      continue;
    }
    if (precision->math != DataType::fp16) out.call += fmt::format("_{}", to_string(precision->math));
    kernel::ConvProblem p = problem_of(table, row, precision->math);
    p.pass = pass.pass;
    out.key = key_of(p);
    out.label = label_of(p);
    out.size = 2 * kernel::direct_mac(p);
    out.work = p;
    reader.take(std::move(out));
  }
}

}  // namespace voltaic::validation
