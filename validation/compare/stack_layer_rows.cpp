// SPDX-License-Identifier: MIT
// Layers of networks that a profiler timed by name: the shapes follow from the model, its split over GPUs and the
// tokens.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "arch/units/error.hpp"
#include "validation/compare/stack_reader.hpp"

namespace voltaic::validation {
namespace {

using graph::OpType;

/// Published shapes.
struct Shape {
  std::string_view model;
  std::int64_t hidden, inner, heads, kv_heads, head_dim, vocab;
};
constexpr std::array<Shape, 3> kModels{{
    {"Llama-3.1-8B", 4096, 14336, 32, 8, 128, 128256},
    {"Llama-3.1-70B", 8192, 28672, 64, 8, 128, 128256},
    {"Mixtral-8x7B", 4096, 14336, 32, 8, 128, 32000},
}};

const Shape* shape_of(std::string_view model) {
  const auto at =
      std::find_if(kModels.begin(), kModels.end(), [&](const Shape& s) { return model.starts_with(s.model); });
  return at == kModels.end() ? nullptr : &*at;
}

struct Product {
  std::int64_t n = 0, k = 0;  ///< 0: the layer is none.
};
/// Experts are not split: each runs whole on its GPU.
Product product_of(std::string_view layer, const Shape& s, std::int64_t gpus) {
  const std::int64_t q = s.heads * s.head_dim / gpus;
  const std::int64_t kv = std::max<std::int64_t>(1, s.kv_heads / gpus) * s.head_dim;
  if (layer == "q_proj") return {q, s.hidden};
  if (layer == "k_proj" || layer == "v_proj") return {kv, s.hidden};
  if (layer == "o_proj") return {s.hidden, q};
  if (layer == "gate_proj" || layer == "up_proj") return {s.inner / gpus, s.hidden};
  if (layer == "down_proj") return {s.hidden, s.inner / gpus};
  if (layer == "expert.w1" || layer == "expert.w3") return {s.inner, s.hidden};
  if (layer == "expert.w2") return {s.hidden, s.inner};
  if (layer == "lm_head") return {s.vocab / gpus, s.hidden};
  return {};
}

/// No widths: the layer is no vector operation.
VectorCall vector_of(std::string_view layer, const Shape& s, std::int64_t gpus, bool experts) {
  VectorCall call;
  call.type = DataType::bf16;
  if (layer.ends_with("layernorm")) {
    call.op = OpType::rms_norm;
    call.widths = {s.hidden};
  } else if (layer == "rope") {
    call.op = OpType::rope;
    call.widths = {s.heads * s.head_dim / gpus, std::max<std::int64_t>(1, s.kv_heads / gpus) * s.head_dim};
  } else if (layer == "act_fn") {
    call.op = OpType::silu_mul;  // in eager code a kernel each
    call.widths = {experts ? s.inner : s.inner / gpus};
  } else if (layer == "embedding") {
    call.op = OpType::embedding;
    call.widths = {s.hidden};
  }
  return call;
}

}  // namespace

void read_layer_row(StackReader& reader, std::size_t row) {
  const CsvTable& table = reader.table();
  StackRow out;
  out.op = out.call = one_line(reader.text(row, "layer_name"));
  out.mode = "forward";
  out.dtype = "bf16";
  if (!reader.begin(row, "latency_us", reader.text(row, "source"), out)) return;
  const auto model = reader.text(row, "model");
  const Shape* shape = shape_of(model);
  if (shape == nullptr) return reader.miss(fmt::format("model {} is unknown", one_line(model)), out);
  const std::int64_t gpus = size_cell(table, row, "tp_size");
  if (shape->heads % gpus != 0) {
    throw ConfigError(table.place(row), "tp_size",
                      fmt::format("expected a divisor of {} heads, got {}", shape->heads, gpus));
  }
  const std::int64_t tokens = size_cell(table, row, "num_tokens");
  const Product product = product_of(out.op, *shape, gpus);
  if (product.n > 0) {
    kernel::GemmProblem p;
    p.m = tokens;
    p.n = product.n;
    p.k = product.k;
    p.transpose_b = true;
    p.math = DataType::bf16;
    p.a_bytes = p.b_bytes = p.c_bytes = 2;
    check_product(table, row, p);
    describe_product(p, p.m, p.n, out);
    out.family = "layer products bf16";
    out.call = "gemm";
    out.work = ProductCall{p};
    return reader.take(std::move(out));
  }
  VectorCall call = vector_of(out.op, *shape, gpus, shape->model.starts_with("Mixtral"));
  if (call.widths.empty()) return reader.miss(fmt::format("layer {}: its kernels are not stated", out.op), out);
  call.rows = tokens;
  check_elements(table, row, {tokens, call.widths.front()});
  out.family = "layer vectors bf16";
  out.size = 4 * static_cast<double>(tokens) * static_cast<double>(call.widths.front());
  const OpType drawn = call.op == OpType::silu_mul ? OpType::silu : call.op;
  out.key = fmt::format("{}|{}|{}", graph::to_string(drawn), tokens, call.widths.front());
  out.label = fmt::format("{} x {}", tokens, call.widths.front());
  out.work = std::move(call);
  reader.take(std::move(out));
}

}  // namespace voltaic::validation
