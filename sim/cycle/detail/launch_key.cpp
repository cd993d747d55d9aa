// SPDX-License-Identifier: MIT
#include "sim/cycle/detail/launch_key.hpp"

#include <array>
#include <string_view>
#include <type_traits>
#include <vector>

namespace voltaic::cycle::detail {
namespace {

/// Structs are taken apart by structured bindings, so that a member more does not compile until it is in the key.
class Key {
 public:
  template <class... Ts>
  void add(const Ts&... values) {
    (one(values), ...);
  }
  std::string take() { return std::move(bytes_); }

 private:
  template <class T>
  requires(std::is_arithmetic_v<T> || std::is_enum_v<T>) void one(const T& value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void one(std::string_view text) {
    one(text.size());
    bytes_.append(text);
  }
  void one(const std::string& text) { one(std::string_view(text)); }
  void one(Bytes bytes) { one(bytes.value); }
  template <class T, std::size_t N>
  void one(const T (&values)[N]) {
    for (const T& v : values) one(v);
  }
  template <class T, std::size_t N>
  void one(const std::array<T, N>& values) {
    for (const T& v : values) one(v);
  }
  void one(const std::vector<std::string_view>& texts) {
    one(texts.size());
    for (const auto text : texts) one(text);
  }
  void one(const kernel::GemmProblem& p) {
    const auto& [batch, m, n, k, ta, tb, linear, bias, math, a, b, c, dequantise, sparse] = p;
    add(batch, m, n, k, ta, tb, linear, bias, math, a, b, c, dequantise, sparse);
  }
  void one(const kernel::GemmTile& t) {
    const auto& [name, m, n, k, warps, stages, ctas, split, tensor, scale] = t;
    add(name, m, n, k, warps, stages, ctas, split, tensor, scale);
  }
  void one(const kernel::GemmKernel& k) {
    const auto& [problem, tile] = k;
    add(problem, tile);
  }
  void one(const kernel::ConvProblem& p) {
    const auto& [pass, n, c, k, groups, in, filter, out, stride, pad, dilation, math, bytes, bias, last, more] = p;
    add(pass, n, c, k, groups, in, filter, out, stride, pad, dilation, math, bytes, bias, last, more);
  }
  void one(const kernel::ConvKernel& k) {
    const auto& [problem, algorithm, tile] = k;
    add(problem, algorithm, tile);
  }
  void one(const kernel::VectorKernel& k) {
    const auto& [kind, rows, cols, inputs, reread, reuse, far, cold, function, fused, bytes, backward, passes, warp] =
        k;
    add(kind, rows, cols, inputs, reread, reuse, far, cold, function, fused, bytes, backward, passes, warp);
  }
  void one(const kernel::AttentionKernel& k) {
    const auto& [batch, heads, kv_heads, seq_q, seq_kv, dim, value_dim, causal, decode, backward, window, math, bytes,
                 splits, variant, append, warm, library] = k;
    add(batch, heads, kv_heads, seq_q, seq_kv, dim, value_dim, causal, decode, backward, window, math, bytes, splits,
        variant, append, warm, library);
  }
  void one(const kernel::RoutedLoad& load) {
    const auto& [slots, touched, hit, blocks, foreign] = load;
    add(slots, touched, hit, blocks, foreign);
  }
  void one(const kernel::ExpertKernel& k) {
    const auto& [part, stack, tokens, hidden, inner, top_k, local, gate, gathered, activation, weight, share, load] = k;
    add(part, stack, tokens, hidden, inner, top_k, local, gate, gathered, activation, weight, share, load);
  }
  void one(const kernel::RecurrentKernel& k) {
    const auto& [cell, pass, hidden, batch, steps, layers, directions, math, bytes, persistent, captured] = k;
    add(cell, pass, hidden, batch, steps, layers, directions, math, bytes, persistent, captured);
  }
  void one(const kernel::SparseKernel& k) {
    const auto& [rows, cols, features, nnz, math, value, index, element, transposed, sampled, column_major] = k;
    add(rows, cols, features, nnz, math, value, index, element, transposed, sampled, column_major);
  }
  void one(const kernel::TransferKernel& k) {
    const auto& [bytes, to_device, pinned] = k;
    add(bytes, to_device, pinned);
  }
  void one(const kernel::CtaResources& cta) {
    const auto& [threads, registers, shared] = cta;
    add(threads, registers, shared);
  }
  void one(const kernel::Work& w) {
    const auto& [mac, other, special, read, written] = w;
    add(mac, other, special, read, written);
  }
  void one(const kernel::KernelDetail& d) {
    add(d.index());
    std::visit([this](const auto& k) { one(k); }, d);
  }

  std::string bytes_;
};

}  // namespace

std::string launch_key(const kernel::Launch& launch) {
  const auto& [name, library, family, grid, cta, math, tensor_cores, sparse, work, detail] = launch;
  Key key;
  key.add(name, library, family, grid, cta, math, tensor_cores, sparse, work, detail);
  return key.take();
}

}  // namespace voltaic::cycle::detail
