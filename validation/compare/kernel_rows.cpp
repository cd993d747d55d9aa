// SPDX-License-Identifier: MIT
#include "validation/compare/kernel_rows.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <map>
#include <optional>

#include "arch/loader.hpp"
#include "arch/units/error.hpp"
#include "sim/kernel/conv_shape.hpp"

namespace voltaic::validation {
namespace {

using graph::OpType;

/// The tables' words for vector operations and ours; `u` marks a Python number as second operand.
struct VectorWord {
  std::string_view word;
  OpType op;
  int tensor_inputs;
};
constexpr std::array<VectorWord, 13> kVectorWords{{
    {"add", OpType::add, 2},
    {"mul", OpType::mul, 2},
    {"div", OpType::div, 2},
    {"pow", OpType::pow, 2},
    {"addu", OpType::add_scalar, 1},
    {"mulu", OpType::mul_scalar, 1},
    {"divu", OpType::div_scalar, 1},
    {"powu", OpType::pow_scalar, 1},
    {"relu", OpType::relu, 1},
    {"gelu", OpType::gelu, 1},
    {"tanh", OpType::tanh, 1},
    {"softmax", OpType::softmax, 1},
    {"layernorm", OpType::layer_norm, 1},
}};

/// Activations and other functions of one tensor by our own names, for tables that others write.
constexpr std::array kUnaryWords{OpType::relu6, OpType::leaky_relu, OpType::elu,         OpType::gelu_tanh,
                                 OpType::silu,  OpType::hardswish,  OpType::hardsigmoid, OpType::mish,
                                 OpType::exp,   OpType::log,        OpType::sqrt,        OpType::rsqrt,
                                 OpType::neg,   OpType::abs,        OpType::sigmoid,     OpType::softplus};

std::optional<VectorWord> vector_word(std::string_view op) {
  for (const VectorWord& w : kVectorWords) {
    if (w.word == op) return w;
  }
  for (const OpType op_type : kUnaryWords) {
    if (graph::to_string(op_type) == op) return VectorWord{op, op_type, 1};
  }
  return std::nullopt;
}

bool has_all(const CsvTable& table, std::initializer_list<const char*> columns) {
  return std::all_of(columns.begin(), columns.end(), [&](const char* c) { return table.has(c); });
}
bool has_products(const CsvTable& table) {
  return has_all(table, {"b", "m", "n", "k"});
}
bool has_convolutions(const CsvTable& table) {
  return has_all(table, {"b", "c_in", "c_out", "ksize", "h_in", "stride", "pad"});
}
bool has_vectors(const CsvTable& table) {
  return has_all(table, {"rows", "cols"});
}

/// No dimension of a tensor and no tensor is larger: counts stay exact in a double and products inside an int64.
constexpr std::int64_t kLargestSize = std::int64_t{1} << 40;
constexpr double kMostElements = 1e15;

std::int64_t size_of(const CsvTable& table, std::size_t row, const char* column, std::int64_t least = 1) {
  const auto value = table.integer(row, column);
  if (!value) throw ConfigError(table.place(row), column, "expected a size, got an empty cell");
  if (*value < least || *value > kLargestSize) {
    throw ConfigError(table.place(row), column,
                      fmt::format("expected a size from {} to {}, got {}", least, kLargestSize, *value));
  }
  return *value;
}

void check_elements(const CsvTable& table, std::size_t row, std::initializer_list<std::int64_t> dims) {
  double elements = 1;
  for (const std::int64_t d : dims) elements *= static_cast<double>(d);
  if (elements > kMostElements) {
    throw ConfigError(table.place(row), "shape", fmt::format("expected tensors below 1e15 elements, got {}", elements));
  }
}

std::int64_t observed_size(const CsvTable& table, std::size_t row, const char* column) {
  return std::clamp<std::int64_t>(table.integer(row, column).value_or(0), 0, kLargestSize);
}

/// `linear` is a dense layer with weights [out, in] and bias, `bmm` a batch of plain row-major products.
void read_product(const CsvTable& table, std::size_t row, DataType type, KernelRow& out) {
  out.kind = RowKind::product;
  kernel::GemmProblem& p = out.product;
  p.linear = out.op == "linear";
  p.batch = size_of(table, row, "b");
  p.m = size_of(table, row, "m");
  p.n = size_of(table, row, "n");
  p.k = size_of(table, row, "k");
  check_elements(table, row, {p.batch, p.m, p.n});
  check_elements(table, row, {p.batch, p.m, p.k});
  check_elements(table, row, {p.batch, p.k, p.n});
  if (p.linear && p.batch != 1) {
    throw ConfigError(table.place(row), "b", fmt::format("expected 1 for a linear layer, got {}", p.batch));
  }
  p.transpose_b = p.bias = p.linear;
  p.math = type;
  p.a_bytes = p.b_bytes = bytes_per_element(type);
  p.c_bytes = type == DataType::int8 ? 4 : p.a_bytes;
  out.size = 2.0 * static_cast<double>(p.batch) * static_cast<double>(p.m) * static_cast<double>(p.n) *
             static_cast<double>(p.k);
  out.key = fmt::format("gemm|{}|{}|{}|{}", p.batch, p.m, p.n, p.k);
  out.label = fmt::format("{} x {} x {} x {}", p.batch, p.m, p.n, p.k);
  out.observed.tile_m = observed_size(table, row, "tile_m");
  out.observed.tile_n = observed_size(table, row, "tile_n");
  if (p.linear) out.observed.split_k = std::max<std::int64_t>(1, observed_size(table, row, "grid_z"));
}

void read_convolution(const CsvTable& table, std::size_t row, DataType type, KernelRow& out) {
  out.kind = RowKind::convolution;
  const std::int64_t h_in = size_of(table, row, "h_in");
  const std::int64_t ksize = size_of(table, row, "ksize");
  const std::int64_t stride = size_of(table, row, "stride");
  const std::int64_t pad = size_of(table, row, "pad", 0);
  if (h_in + 2 * pad < ksize) {
    throw ConfigError(table.place(row), "ksize",
                      fmt::format("expected a filter inside the padded image of {}, got {}", h_in + 2 * pad, ksize));
  }
  const std::int64_t h_out = (h_in + 2 * pad - ksize) / stride + 1;
  kernel::ConvProblem& p = out.convolution;
  p.n = size_of(table, row, "b");
  p.c = size_of(table, row, "c_in");
  p.k = size_of(table, row, "c_out");
  check_elements(table, row, {p.n, p.c, h_in, h_in});
  check_elements(table, row, {p.n, p.k, h_out, h_out});
  check_elements(table, row, {p.k, p.c, ksize, ksize});
  for (int axis = 1; axis < 3; ++axis) {
    p.in[axis] = h_in;
    p.filter[axis] = ksize;
    p.out[axis] = h_out;
    p.stride[axis] = stride;
    p.pad[axis] = pad;
  }
  p.math = type;
  p.element_bytes = bytes_per_element(type);
  out.size = 2 * kernel::direct_mac(p);
  out.key = fmt::format("conv|{}|{}|{}|{}|{}|{}|{}", p.n, p.c, p.k, ksize, h_in, stride, pad);
  out.label = fmt::format("{} x {} x {}^2, {} filters {}^2 stride {} pad {}", p.n, p.c, h_in, p.k, ksize, stride, pad);
  out.observed.algorithm = one_line(table.text(row, "alg"));
}

void read_vector(const CsvTable& table, std::size_t row, DataType type, const VectorWord& word, KernelRow& out) {
  out.kind = RowKind::vector;
  out.vector_op = word.op;
  out.rows = size_of(table, row, "rows");
  out.cols = size_of(table, row, "cols");
  check_elements(table, row, {out.rows, out.cols});
  constexpr std::int64_t kMostInputs = 2;  // operations of three tensors have words of their own
  out.tensor_inputs = table.integer(row, "n_in").value_or(word.tensor_inputs);
  if (out.tensor_inputs < 1 || out.tensor_inputs > kMostInputs) {
    throw ConfigError(table.place(row), "n_in", fmt::format("expected 1 or 2, got {}", out.tensor_inputs));
  }
  out.size = bytes_per_element(type) * static_cast<double>(out.rows) * static_cast<double>(out.cols) *
             static_cast<double>(out.tensor_inputs + 1);
  out.key = fmt::format("{}|{}|{}", out.op, out.rows, out.cols);
  out.label = fmt::format("{} x {}", out.rows, out.cols);
}

/// Spellings of GPUs in one table, looked up once.
class GpuNames {
 public:
  explicit GpuNames(const std::vector<std::string>& files) : files_(files) {}
  const std::string& operator()(std::string_view spelling) {
    const auto at = known_.find(spelling);
    if (at != known_.end()) return at->second;
    return known_.emplace(std::string(spelling), gpu_of(spelling, files_)).first->second;
  }

 private:
  const std::vector<std::string>& files_;
  std::map<std::string, std::string, std::less<>> known_;
};

/// Empty where the row can be predicted, else the reason why not.
std::string read_row(const CsvTable& table, std::size_t row, GpuNames& gpus, KernelRow& out) {
  out.table_gpu = one_line(table.text(row, "gpu"));
  out.gpu = gpus(table.text(row, "gpu"));
  if (out.gpu.empty()) return fmt::format("GPU {} is unknown", out.table_gpu);
  out.op = one_line(table.text(row, "op"));
  const bool product = has_products(table) && (out.op == "linear" || out.op == "bmm");
  const bool convolution = has_convolutions(table) && out.op == "conv";
  const auto word = has_vectors(table) ? vector_word(table.text(row, "op")) : std::nullopt;
  if (!product && !convolution && !word) return fmt::format("op {} is unknown", out.op);
  out.dtype = table.has("dtype") ? one_line(table.text(row, "dtype")) : "fp32";
  const auto type = parse_data_type(out.dtype);
  if (!type || !(is_floating(*type) || (product && *type == DataType::int8))) {
    return fmt::format("dtype {} is unknown for {}", out.dtype, out.op);
  }
  const auto measured = table.number(row, "latency_us");
  if (!measured) return "no measured time";
  constexpr double kShortestUs = 1e-3;  // one nanosecond: no call is faster
  constexpr double kLongestUs = 1e12;
  if (!(*measured >= kShortestUs && *measured <= kLongestUs)) {
    throw ConfigError(table.place(row), "latency_us",
                      fmt::format("expected a time in microseconds, got {}", *measured));
  }
  out.measured_s = *measured * 1e-6;
  out.origin = one_line(table.text(row, "origin"));
  out.line = row;
  out.observed.name = one_line(table.text(row, "kernel"));
  if (product) read_product(table, row, *type, out);
  if (convolution) read_convolution(table, row, *type, out);
  if (word) read_vector(table, row, *type, *word, out);
  out.fit = is_fit_key(out.key);
  return "";
}

/// A graph of the one operation: lowering knows which kernels the framework launches for it.
std::vector<kernel::Launch> lower_vector(const KernelRow& row, DataType type, const arch::GpuSpec& gpu,
                                         const kernel::LibraryChoice& library) {
  graph::OpGraph g;
  const auto tensor = [&](std::string name) {
    graph::Tensor t;
    t.name = std::move(name);
    t.shape = {row.rows, row.cols};
    t.dtype = type;
    return g.add_tensor(t);
  };
  graph::Node node;
  node.id = "call";
  node.op = row.vector_op;
  for (std::int64_t i = 0; i < row.tensor_inputs; ++i) node.inputs.push_back(tensor(fmt::format("x{}", i)));
  // An exponent that is no small integer or half: the general power.
  if (node.op == OpType::pow_scalar) node.attributes.set("value", 2.5);
  node.outputs.push_back(tensor("y"));
  g.add_node(node);
  return kernel::lower(g, g.node(0), {gpu, library}).launches;
}

/// Boards that laboratories name shorter or otherwise than `voltaic list gpus`.
constexpr std::pair<std::string_view, std::string_view> kSpellings[] = {
    {"a100-80gb", "a100-sxm4-80gb"},     {"a100-sxm-80gb", "a100-sxm4-80gb"},   {"h100-80gb", "h100-sxm5-80gb"},
    {"h100-sxm-80gb", "h100-sxm5-80gb"}, {"h200-sxm-141gb", "h200-sxm5-141gb"}, {"h200-141gb", "h200-sxm5-141gb"},
};

}  // namespace

bool is_fit_key(std::string_view key) {
  const auto crc = crc32(0, reinterpret_cast<const Bytef*>(key.data()), static_cast<uInt>(key.size()));
  return crc % 10 < 6;
}

bool is_gpu_file(std::string_view name) {
  return name.find('/') != std::string_view::npos || name.ends_with(".json");
}

std::string table_word(std::string_view name_or_file) {
  std::string word =
      is_gpu_file(name_or_file) ? std::filesystem::path(name_or_file).stem().string() : std::string(name_or_file);
  std::transform(word.begin(), word.end(), word.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return word;
}

std::string gpu_of(std::string_view table_gpu, const std::vector<std::string>& files) {
  const std::string name = table_word(table_gpu);
  for (const auto& file : files) {
    if (table_word(file) == name) return file;
  }
  for (const auto& [theirs, ours] : kSpellings) {
    if (theirs == name) return std::string(ours);
  }
  const auto names = arch::gpu_names();
  return std::find(names.begin(), names.end(), name) != names.end() ? name : std::string();
}

bool is_kernel_table(const CsvTable& table) {
  if (!has_all(table, {"op", "gpu", "latency_us"})) return false;
  return has_products(table) || has_convolutions(table) || has_vectors(table);
}

KernelRows read_kernel_rows(const CsvTable& table, const std::vector<std::string>& gpu_files) {
  KernelRows out;
  out.rows.reserve(table.rows());
  std::map<std::string, std::int64_t> skipped;
  GpuNames gpus(gpu_files);
  for (std::size_t row = 0; row < table.rows(); ++row) {
    KernelRow read;
    const std::string reason = read_row(table, row, gpus, read);
    if (reason.empty()) {
      out.rows.push_back(std::move(read));
    } else {
      ++skipped[reason];
      out.skipped_lines.push_back(row);
    }
  }
  out.skipped.assign(skipped.begin(), skipped.end());
  return out;
}

std::vector<kernel::Launch> lower_row(const KernelRow& row, const arch::GpuSpec& gpu,
                                      const kernel::LibraryChoice& library) {
  switch (row.kind) {
    case RowKind::product: return kernel::gemm_launches(row.product, library.choose(row.product), gpu);
    case RowKind::convolution: return kernel::conv_launches(library.choose(row.convolution), gpu);
    case RowKind::vector: break;
  }
  return lower_vector(row, parse_data_type(row.dtype).value_or(DataType::fp32), gpu, library);
}

}  // namespace voltaic::validation
