// SPDX-License-Identifier: MIT
#include "validation/compare/ops_recipe.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "arch/units/error.hpp"

namespace voltaic::validation {
namespace {

using graph::Attributes;
using graph::OpType;
using graph::Shape;
using graph::TensorId;
using graph::TensorRole;

/// Numbers of the program and tensors of one element look alike in the table.
bool is_number(const Shape& shape) {
  return shape.empty() || (shape.size() == 1 && shape[0] == 1);
}

/// Writes a recipe: tensors that a gradient is wanted for, and operations on them.
class Sketch {
 public:
  Sketch(const TracedNode& node, Recipe& recipe) : node_(node), recipe_(recipe) {}

  const Shape& shape(std::size_t i) const { return node_.inputs[i]; }
  bool packed(std::size_t i) const { return i >= node_.contiguous.size() || node_.contiguous[i] != '0'; }
  std::size_t operands() const { return node_.inputs.size(); }

  TensorId tensor(Shape shape, DataType dtype = DataType::fp32, bool wanted = true) {
    constexpr std::int64_t kMost = std::int64_t{1} << 62U;
    std::int64_t elements = 1;
    for (const std::int64_t dim : shape) {
      if (__builtin_mul_overflow(elements, dim, &elements) || elements > kMost) {
        throw UnsupportedError("the shape is beyond what the model can count");
      }
    }
    // A graph without parameters is differentiated with respect to its inputs.
    const TensorRole role = wanted ? TensorRole::input : TensorRole::buffer;
    return recipe_.graph.add_tensor(
        {.name = "t" + std::to_string(count_++), .shape = std::move(shape), .dtype = dtype, .role = role});
  }
  TensorId apply(OpType op, std::vector<TensorId> inputs, Attributes attributes = {}) {
    graph::Node node;
    node.id = std::string(graph::to_string(op)) + std::to_string(count_++);
    node.op = op;
    node.attributes = std::move(attributes);
    node.inputs = std::move(inputs);
    const std::string output = "t" + std::to_string(count_++);
    const auto id = graph::append(recipe_.graph, std::move(node), std::span(&output, 1), std::string(node_.name));
    recipe_.graph.outputs = recipe_.graph.node(id).outputs;  // The last one written is the result.
    return recipe_.graph.outputs.front();
  }
  TensorId transpose(TensorId x, std::vector<std::int64_t> perm) {
    Attributes attributes;
    attributes.set("perm", std::move(perm));
    return apply(OpType::transpose, {x}, std::move(attributes));
  }
  /// Heads as attention cuts them out of [batch, seq, heads, width]: the operand's middle dims are exchanged in memory.
  TensorId heads(const Shape& s, bool keys) {
    if (keys) return transpose(tensor({s[0], s[3], s[1], s[2]}), {0, 2, 3, 1});
    return transpose(tensor({s[0], s[2], s[1], s[3]}), {0, 2, 1, 3});
  }

 private:
  const TracedNode& node_;
  Recipe& recipe_;
  int count_ = 0;
};

Attributes number(std::string_view name, double value) {
  Attributes attributes;
  attributes.set(name, value);
  return attributes;
}
Attributes flag(std::string_view name) {
  Attributes attributes;
  attributes.set(name, std::int64_t{1});
  return attributes;
}

/// The types the table names.
DataType dtype_of(std::string_view name) {
  if (name == "int64") return DataType::int64;
  if (name == "bool") return DataType::boolean;
  return DataType::fp32;
}

void linear(const TracedNode& node, Sketch& s, Recipe& r) {
  if (node.inputs.empty() || node.output.empty() || s.shape(0).empty()) {
    r.reason = "shapes are missing";
    return;
  }
  if (node.target == "addmm") {  // bias, x[m, k], w[k, n]
    if (s.operands() != 3 || s.shape(2).size() != 2) {
      r.reason = "shapes are missing";
      return;
    }
    s.apply(OpType::linear, {s.tensor(s.shape(1)), s.tensor(s.shape(2)), s.tensor(s.shape(0))},
            flag("transposed_weight"));
    r.accumulated = {s.shape(2)};
    return;
  }
  const std::int64_t width = node.output.back();
  const Shape weight{width, s.shape(0).back()};
  s.apply(OpType::linear, {s.tensor(s.shape(0)), s.tensor(weight), s.tensor({width})});
  r.autograd_nodes = 1;  // The weight is transposed; forward that is part of every call of a layer.
  if (s.shape(0).size() > 2) {
    r.views = 1;  // Leading dims are folded before the product, and unfolded behind it.
    r.autograd_nodes += 2;
  }
  r.accumulated = {weight};
}

/// torch.matmul folds the batch dims of both operands; where the strides do not allow that it copies them first, so
/// that the product sees packed operands. A batch of one folds.
void matmul_of_heads(const TracedNode& node, Sketch& s, Recipe& r) {
  const bool folds = s.shape(0)[0] == 1 || s.shape(0)[1] == 1;
  const bool keys = !s.packed(0) && !s.packed(1);
  TensorId a = s.packed(0) ? s.tensor(s.shape(0)) : s.heads(s.shape(0), false);
  r.views = 4;  // Expanded and folded, both operands.
  r.autograd_nodes = node.differentiated ? 5 : 0;
  if (!s.packed(0) && !folds) {
    a = s.apply(OpType::contiguous, {a});
    r.autograd_nodes += 1;
  }
  if (s.packed(1)) {
    s.apply(OpType::matmul, {a, s.tensor(s.shape(1))});
    return;
  }
  if (keys && folds) {
    const Shape& b = s.shape(1);
    s.apply(OpType::matmul, {a, s.transpose(s.tensor({b[0], b[3], b[1], b[2]}), {0, 2, 1, 3})}, flag("transpose_b"));
    return;
  }
  TensorId b = s.heads(s.shape(1), keys);
  if (!folds) {
    b = s.apply(OpType::contiguous, {b});
    r.autograd_nodes += 1;
  }
  s.apply(OpType::matmul, {a, b});
}

void product(const TracedNode& node, Sketch& s, Recipe& r) {
  if (s.operands() != 2 || s.shape(0).size() != s.shape(1).size()) {
    r.reason = "a product of other than two equally deep operands";
    return;
  }
  if (s.shape(0).size() == 4) return matmul_of_heads(node, s, r);
  if (s.shape(0).size() != 3 || !s.packed(0)) {
    r.reason = "a product with strides that the table does not tell";
    return;
  }
  const Shape& b = s.shape(1);
  if (s.packed(1)) {
    s.apply(OpType::matmul, {s.tensor(s.shape(0)), s.tensor(b)});
  } else {
    s.apply(OpType::matmul, {s.tensor(s.shape(0)), s.tensor({b[0], b[2], b[1]})}, flag("transpose_b"));
  }
}

/// "MEM(30522x1024);...": rows of the table whose gradient is made.
std::int64_t table_rows(std::string_view work) {
  if (!work.starts_with("MEM(")) return 0;
  work.remove_prefix(4);
  std::int64_t rows = 0;
  const auto [end, error] = std::from_chars(work.data(), work.data() + work.size(), rows);
  return error == std::errc{} && end != work.data() + work.size() && *end == 'x' ? rows : 0;
}

void embedding(const TracedNode& node, Sketch& s, Recipe& r) {
  if (node.inputs.empty() || node.output.empty()) {
    r.reason = "shapes are missing";
    return;
  }
  const std::int64_t width = node.output.back();
  std::int64_t rows = table_rows(node.backward_work);
  if (s.operands() > 1 && s.shape(1).size() == 2) rows = s.shape(1)[0];
  if (rows <= 0) r.backward_reason = "rows of the embedding table are not stated";
  const Shape table{std::max<std::int64_t>(rows, 1), width};
  s.apply(OpType::embedding, {s.tensor(s.shape(0), DataType::int64, false), s.tensor(table)});
  if (node.call == "module") r.accumulated = {table};
}

/// A tensor and a number, or two tensors. A second argument of one element is a number unless `device`: then it lies on
/// the GPU, and the kernel is the one of two tensors.
void arithmetic(const TracedNode& node, Sketch& s, OpType tensors, OpType scalar, bool device = false) {
  const DataType type = dtype_of(node.dtype);
  if (device && s.operands() > 1 && is_number(s.shape(1))) {
    s.apply(tensors, {s.tensor(s.shape(0), type), s.tensor({1}, type, false)});
    return;
  }
  if (s.operands() > 1 && !is_number(s.shape(1))) {
    s.apply(tensors, {s.tensor(s.shape(0), type), s.tensor(s.shape(1), type)});
    return;
  }
  const double exponent = 3;  // The only power that these networks take: the cube of an approximated gelu.
  s.apply(scalar, {s.tensor(s.shape(0), type)}, number("value", scalar == OpType::pow_scalar ? exponent : 2));
}

/// A copy out of the order in which heads are cut, or of a transposed matrix.
void packed_copy(Sketch& s, Recipe& r) {
  const Shape& shape = s.shape(0);
  if (s.packed(0)) {
    r.op = "host";
  } else if (shape.size() == 4) {
    s.apply(OpType::contiguous, {s.heads(shape, false)});
  } else if (shape.size() >= 2) {
    Shape source = shape;
    std::swap(source[source.size() - 1], source[source.size() - 2]);
    s.apply(OpType::contiguous, {s.apply(OpType::transpose, {s.tensor(source)})});
  } else {
    r.reason = "strides that the table does not tell";
  }
}

void fill(const TracedNode& node, Sketch& s) {
  Attributes attributes;
  attributes.set("shape", node.output);
  attributes.set("dtype", std::string(to_string(dtype_of(node.dtype))));
  s.apply(OpType::fill, {}, std::move(attributes));
}

void dropout(const TracedNode& node, Sketch& s, Recipe& r) {
  if (!node.differentiated) {  // Inference, or a probability of zero: the input is handed back.
    r.views = node.call == "module" ? 1 : 0;
    return;
  }
  s.apply(OpType::dropout, {s.tensor(s.shape(0))}, number("p", 0.1));
}

/// Conversions: the table tells the type of the result alone.
void conversion(const TracedNode& node, Sketch& s, Recipe& r) {
  if (node.dtype == "bool") {
    Attributes attributes;
    attributes.set("to", std::string("bool"));
    s.apply(OpType::cast, {s.tensor(s.shape(0))}, std::move(attributes));
  } else if (node.target == "long") {
    r.reason = "a conversion whose source type is not stated";
  } else {
    r.op = "host";  // Of its own type already.
  }
}

/// Nodes that the table leaves without a class of their own.
void miscellaneous(const TracedNode& node, Sketch& s, Recipe& r) {
  const std::string_view t = node.target;
  if (node.inputs.empty()) {
    r.reason = "shapes are missing";
  } else if (t == "embedding" || (node.call == "module" && node.output.size() == s.shape(0).size() + 1)) {
    embedding(node, s, r);
  } else if (t == "dropout" || (node.call == "module" && node.output == s.shape(0))) {
    r.op = "dropout";
    dropout(node, s, r);
  } else if (t == "ones" || t == "full" || t == "arange" || t == "zeros") {
    fill(node, s);
  } else if (t == "sub") {
    arithmetic(node, s, OpType::sub, OpType::sub_scalar);
  } else if (t == "lt" && s.operands() == 2) {
    s.apply(OpType::compare,
            {s.tensor(s.shape(0), DataType::int64, false), s.tensor(s.shape(1), DataType::int64, false)});
  } else if ((t == "masked_fill" || t == "masked_fill_") && s.operands() >= 2) {
    s.apply(OpType::masked_fill, {s.tensor(s.shape(0)), s.tensor(s.shape(1), DataType::boolean, false)});
    r.one_kernel = t == "masked_fill_";
  } else if (t == "max" && s.operands() == 2) {
    s.apply(OpType::maximum, {s.tensor(s.shape(0)), s.tensor({1}, DataType::fp32, false)});
  } else if (t == "reshape") {
    packed_copy(s, r);
    if (s.packed(0)) r.views = 1;
  } else if (t == "to" || t == "type" || t == "type_as" || t == "bool" || t == "long") {
    conversion(node, s, r);
  } else {
    r.reason = "operation " + std::string(t) + " is not modelled";
  }
}

/// Calls that make views: as many as dims are added, dropped or cut.
double views_of(const TracedNode& node) {
  const std::string_view t = node.target;
  if (t == "view" || t == "permute" || t == "transpose" || t == "expand" || t == "unsqueeze" || t == "reshape")
    return 1;
  if (t == "split") return 3;
  if (t != "getitem" || node.inputs.empty() || is_number(node.inputs[0])) return 0;
  const auto in = static_cast<double>(node.inputs[0].size());
  const auto out = static_cast<double>(node.output.size());
  const auto bounds = static_cast<double>(node.inputs.size() - 1);
  if (out < in) return in - out + 1;  // Cut, then selected.
  return std::max({1.0, out - in, bounds});
}

OpType pointwise_op(std::string_view kind) {
  if (kind == "VECgelu") return OpType::gelu;
  if (kind == "VECrelu") return OpType::relu;
  return OpType::tanh;
}

}  // namespace

Recipe recipe_of(const TracedNode& node) {
  Recipe r;
  r.op = node.kind;
  if (node.no_gpu_work || node.kind == "getitem") {
    r.op = "host";
    r.views = views_of(node);
    if (node.target == "full" || node.target == "tensor") r.reason = "a tensor made of host data";
    return r;
  }
  Sketch s(node, r);
  const std::string_view kind = node.kind;
  if (kind == "misc") {
    miscellaneous(node, s, r);
    return r;
  }
  if (node.inputs.empty()) {
    r.reason = "shapes are missing";
  } else if (kind == "Linear") {
    linear(node, s, r);
  } else if (kind == "BMM") {
    product(node, s, r);
  } else if (kind == "EMBEDDING") {
    embedding(node, s, r);
  } else if (kind == "VECadd" || kind == "VECaddu") {
    arithmetic(node, s, OpType::add, OpType::add_scalar);
  } else if (kind == "VECmul" || kind == "VECmulu") {
    arithmetic(node, s, OpType::mul, OpType::mul_scalar);
  } else if (kind == "VECdiv" || kind == "VECdivu") {
    arithmetic(node, s, OpType::div, OpType::div_scalar, kind == "VECdiv");
  } else if (kind == "VECpowu") {
    arithmetic(node, s, OpType::pow, OpType::pow_scalar);
  } else if (kind == "VECgelu" || kind == "VECrelu" || kind == "VECtanh") {
    s.apply(pointwise_op(kind), {s.tensor(s.shape(0))});
  } else if (kind == "VECsoftmax") {
    s.apply(OpType::softmax, {s.tensor(s.shape(0))});
  } else if (kind == "VECln") {
    const Shape row{s.shape(0).empty() ? 1 : s.shape(0).back()};
    s.apply(OpType::layer_norm, {s.tensor(s.shape(0)), s.tensor(row), s.tensor(row)});
    r.accumulated = {row, row};
  } else if (kind == "contiguous") {
    packed_copy(s, r);
  } else if (kind == "cumsum") {
    s.apply(OpType::cumsum, {s.tensor(s.shape(0), DataType::int64, false)});
  } else if (kind == "dropout") {
    dropout(node, s, r);
  } else if (kind == "where" && s.operands() >= 2) {
    const TensorId other = s.tensor({1}, DataType::fp32, false);
    s.apply(OpType::where, {s.tensor(s.shape(0), DataType::boolean, false), s.tensor(s.shape(1)), other});
  } else {
    r.reason = "operation " + std::string(kind) + " is not modelled";
  }
  return r;
}

}  // namespace voltaic::validation
