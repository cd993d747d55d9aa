// SPDX-License-Identifier: MIT
// Operators of an eager framework, called over and over, with the board's mean watts: the project's own kernels for
// each call, and their energy over their time.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "arch/units/error.hpp"
#include "sim/graph/op_graph.hpp"
#include "sim/kernel/lowering.hpp"
#include "sim/report/units.hpp"
#include "validation/compare/kernel_rows.hpp"
#include "validation/compare/power_rows.hpp"
#include "validation/compare/stack_rows.hpp"

namespace voltaic::validation {
namespace {

using graph::OpType;

constexpr const char* kFamily = "watts of operators";
constexpr std::string_view kNative = "PyTorch native";

/// How the suite calls a vector operator: `inputs` tensors of the row's elements, a result of the same type or of
/// bytes, the gradient after it, or everything reduced to one number.
struct Call {
  std::string_view word;
  OpType op;
  int inputs = 1;
  enum class Form : std::uint8_t { plain, predicate, with_gradient, reduction } form = Form::plain;
};
constexpr std::array<Call, 31> kCalls{{
    {"abs", OpType::abs},
    {"neg", OpType::neg},
    {"rsqrt", OpType::rsqrt},
    {"exp", OpType::exp},
    {"reciprocal", OpType::reciprocal},
    {"cos", OpType::cos},
    {"gelu", OpType::gelu},
    {"div", OpType::div_scalar},
    {"mul", OpType::mul_scalar},
    {"pow", OpType::pow_scalar},
    {"bitwise_not", OpType::neg},  // one integer operation on each element
    {"add", OpType::add, 2},
    {"sub", OpType::sub, 2},
    {"rsub", OpType::sub, 2},
    {"bitwise_and", OpType::add, 2},
    {"bitwise_or", OpType::add, 2},
    {"eq", OpType::compare, 2, Call::Form::predicate},
    {"ne", OpType::compare, 2, Call::Form::predicate},
    {"ge", OpType::compare, 2, Call::Form::predicate},
    {"gt", OpType::compare, 2, Call::Form::predicate},
    {"le", OpType::compare, 2, Call::Form::predicate},
    {"lt", OpType::compare, 2, Call::Form::predicate},
    {"isnan", OpType::compare_scalar, 1, Call::Form::predicate},
    {"relu", OpType::relu, 1, Call::Form::with_gradient},
    {"sigmoid", OpType::sigmoid, 1, Call::Form::with_gradient},
    {"tanh", OpType::tanh, 1, Call::Form::with_gradient},
    {"silu", OpType::silu, 1, Call::Form::with_gradient},
    {"mean", OpType::reduce_mean, 1, Call::Form::reduction},
    {"prod", OpType::reduce_sum, 1, Call::Form::reduction},
    {"max", OpType::reduce_max, 1, Call::Form::reduction},
    {"min", OpType::reduce_max, 1, Call::Form::reduction},
}};

constexpr std::pair<std::string_view, DataType> kTypes[] = {
    {"FP32", DataType::fp32},
    {"FP16", DataType::fp16},
    {"BF16", DataType::bf16},
    {"INT32", DataType::int32},
};
std::optional<DataType> type_of(std::string_view word) {
  for (const auto& [theirs, ours] : kTypes) {
    if (theirs == word) return ours;
  }
  return std::nullopt;
}

/// The whole number behind "NAME=" in "M=4096;N=4096;K=4096"; 0 where there is none.
std::int64_t size_in(std::string_view shape, std::string_view name) {
  while (!shape.empty()) {
    const auto end = std::min(shape.find(';'), shape.size());
    const std::string_view part = shape.substr(0, end);
    shape.remove_prefix(std::min(end + 1, shape.size()));
    const auto equals = part.find('=');
    if (equals == std::string_view::npos || part.substr(0, equals) != name) continue;
    std::int64_t value = 0;
    const std::string_view digits = part.substr(equals + 1);
    const auto [last, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    constexpr std::int64_t kLargest = 1 << 20;
    const bool whole = error == std::errc() && last == digits.data() + digits.size();
    return whole && value > 0 && value <= kLargest ? value : 0;
  }
  return 0;
}

graph::TensorId tensor(graph::OpGraph& g, std::int64_t elements, DataType type) {
  graph::Tensor t;
  t.name = fmt::format("t{}", g.tensors().size());
  t.shape = {elements};
  t.dtype = type;
  return g.add_tensor(t);
}

void lower_node(graph::OpGraph& g, graph::Node node, const kernel::Target& target, std::vector<kernel::Launch>& out) {
  node.id = fmt::format("call{}", g.nodes().size());
  const graph::NodeId id = g.add_node(node);
  auto lowered = kernel::lower(g, g.node(id), target);
  std::move(lowered.launches.begin(), lowered.launches.end(), std::back_inserter(out));
}

std::vector<kernel::Launch> lower_call(const Call& call, std::int64_t elements, DataType type,
                                       const kernel::Target& target) {
  graph::OpGraph g;
  std::vector<kernel::Launch> out;
  graph::Node node;
  node.op = call.op;
  node.compute = type;
  for (int i = 0; i < call.inputs; ++i) node.inputs.push_back(tensor(g, elements, type));
  const bool reduces = call.form == Call::Form::reduction;
  const DataType result = call.form == Call::Form::predicate ? DataType::int8 : type;
  node.outputs.push_back(tensor(g, reduces ? 1 : elements, result));
  if (call.op == OpType::pow_scalar) node.attributes.set("value", 2.0);
  lower_node(g, node, target, out);
  if (call.form != Call::Form::with_gradient) return out;
  graph::Node gradient;
  gradient.op = OpType::pointwise_backward;
  gradient.compute = type;
  gradient.attributes.set("of", std::string(graph::to_string(call.op)));
  gradient.inputs = {tensor(g, elements, type), node.outputs.front()};
  gradient.outputs.push_back(tensor(g, elements, type));
  lower_node(g, gradient, target, out);
  return out;
}

/// Nullopt where the shape is none of a product.
std::optional<kernel::GemmProblem> product_of(std::string_view op, std::string_view shape, DataType type) {
  constexpr std::array<std::string_view, 4> kProducts{"mm", "addmm", "bmm", "linear"};
  if (std::find(kProducts.begin(), kProducts.end(), op) == kProducts.end()) return std::nullopt;
  kernel::GemmProblem p;
  p.m = size_in(shape, "M");
  p.n = size_in(shape, "N");
  p.k = size_in(shape, "K");
  p.batch = op == "bmm" ? size_in(shape, "BS") : 1;
  if (p.m < 1 || p.n < 1 || p.k < 1 || p.batch < 1) return std::nullopt;
  p.math = type;
  p.a_bytes = p.b_bytes = p.c_bytes = bytes_per_element(type);
  p.transpose_b = op == "linear";
  p.linear = op != "bmm";
  p.bias = op == "addmm";
  return p;
}

struct Row {
  std::string op, shape, gpu;
  DataType type{};
};

/// Empty where no kernels are known for the row.
std::vector<kernel::Launch> lower_operator(const Row& row, const Simulator& on) {
  if (const auto p = product_of(row.op, row.shape, row.type)) {
    return kernel::gemm_launches(*p, on.library().choose(*p), on.gpu().spec);
  }
  // Elements are counted in units of 2^20; predicates name them M.
  const std::int64_t counted = size_in(row.shape, "Melements");
  const bool bare = row.op == "isnan" && row.shape.find(';') == std::string::npos;
  const std::int64_t elements = (bare ? size_in(row.shape, "M") : counted) << 20;
  const auto* call = std::find_if(kCalls.begin(), kCalls.end(), [&](const Call& c) { return c.word == row.op; });
  if (call == kCalls.end() || elements < 1) return {};
  return lower_call(*call, elements, row.type, {on.gpu().spec, on.library(), kernel::Framework::eager});
}

/// Empty, or why the row is left out.
std::string read_row(PowerReader& reader, std::size_t row, Row& out) {
  const CsvTable& table = reader.table();
  out.op = one_line(table.text(row, "op"));
  out.shape = std::string(table.text(row, "shape_from_config"));
  const auto type = type_of(table.text(row, "precision"));
  if (!type) return fmt::format("precision {} is unknown for {}", one_line(table.text(row, "precision")), out.op);
  out.type = *type;
  out.gpu = reader.gpu(row);
  if (out.gpu.empty()) return fmt::format("GPU {} is unknown", one_line(table.text(row, "gpu")));
  // A sensor averages over tens of milliseconds, gaps between short calls included.
  constexpr double kShortestUs = 100;
  const auto us = reader.figure(row, "kernel_us");
  if (!us) return "no measured time";
  return *us < kShortestUs ? std::string(kIdleInside) : std::string();
}

/// Another operator is the same product at the same rate and draws half as much again: this one's mean holds idle time.
bool contradicted(PowerReader& reader, std::size_t row, const Row& at, double watts) {
  const auto problem = product_of(at.op, at.shape, at.type);
  const auto us = reader.figure(row, "kernel_us");
  if (!problem || !us) return false;
  constexpr double kAlike = 0.15, kMore = 1.5;
  const CsvTable& table = reader.table();
  for (std::size_t other = 0; other < table.rows(); ++other) {
    if (table.text(other, "gpu") != table.text(row, "gpu")) continue;
    if (table.text(other, "precision") != table.text(row, "precision")) continue;
    if (table.text(other, "implementation") != table.text(row, "implementation")) continue;
    const auto twin = product_of(table.text(other, "op"), table.text(other, "shape_from_config"), at.type);
    if (!twin || twin->batch != problem->batch || twin->m != problem->m || twin->n != problem->n ||
        twin->k != problem->k) {
      continue;
    }
    const auto w = reader.figure(other, "gpu_avg_W");
    const auto t = reader.figure(other, "kernel_us");
    if (w && t && *w > kMore * watts && std::abs(*t / *us - 1) < kAlike) return true;
  }
  return false;
}

void predict_row(PowerReader& reader, std::size_t row) {
  const CsvTable& table = reader.table();
  if (table.text(row, "implementation") != kNative) return reader.skip(std::string(kCompiling));
  const auto measured = reader.figure(row, "gpu_avg_W");
  if (!measured) return reader.skip(std::string(kNoWatts));
  const std::string key = fmt::format("{}|{}", table.text(row, "op"), table.text(row, "precision"));
  if (!reader.wants(table.text(row, "op"), key)) return;
  Row at;
  const std::string reason = read_row(reader, row, at);
  if (reason == kIdleInside || (reason.empty() && contradicted(reader, row, at, *measured))) {
    return reader.skip(std::string(kIdleInside));
  }
  if (!reason.empty()) return reader.miss(reason, kFamily, row);
  const auto simulator = reader.runner().simulator(reader.request(at.gpu));
  Seconds time;
  Joules energy;
  Pair pair;
  try {
    const auto launches = lower_operator(at, *simulator);
    if (launches.empty()) {
      return reader.miss(fmt::format("what {} does to its shape is not stated", at.op), kFamily, row);
    }
    for (const kernel::Launch& launch : launches) {
      const kernel::KernelCost cost = simulator->cost(launch);
      time += cost.time;
      energy += cost.energy;
    }
    pair.explanation = fmt::format("{} {}", launches.front().name, report::format_time(time));
  } catch (const UnsupportedError& e) {
    return reader.miss(e.what(), kFamily, row);
  }
  pair.unit = Unit::watts;
  pair.gpu = one_line(table.text(row, "gpu"));
  pair.op = at.op;
  pair.dtype = std::string(to_string(at.type));
  pair.mode = "watts";
  pair.label = one_line(at.shape);
  pair.measured = *measured;
  pair.fit = is_fit_key(key);
  pair.family = kFamily;
  answer(pair, (energy / time).value, power_half_width(simulator->gpu(), "power"));
  reader.out().pairs.push_back(std::move(pair));
}

}  // namespace

void predict_operator_rows(PowerReader& reader) {
  for (std::size_t row = 0; row < reader.table().rows(); ++row) predict_row(reader, row);
}

}  // namespace voltaic::validation
