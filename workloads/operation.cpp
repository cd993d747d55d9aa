// SPDX-License-Identifier: MIT
// Single operations as workloads: "op:matmul,m=4096,n=4096,k=4096". One table row per operation.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "arch/units/error.hpp"
#include "workloads/attention_block.hpp"
#include "workloads/families.hpp"
#include "workloads/operation_table.hpp"

namespace voltaic::workloads {
namespace {

constexpr std::int64_t kLargest = std::int64_t{1} << 62U;

TensorId build_matmul(GraphWriter& w, const Keys& k) {
  Shape a{k.at("m"), k.at("k")};
  Shape b{k.at("k"), k.at("n")};
  if (k.at("batch") > 1) {
    a.insert(a.begin(), k.at("batch"));
    b.insert(b.begin(), k.at("batch"));
  }
  const TensorId left = w.input("a", a);
  return w.apply(OpType::matmul, "matmul", {left, w.input("b", b)});
}

TensorId build_copy(GraphWriter& w, const Keys& k) {
  // Whole bytes whatever the precision, so no floating type.
  const std::int64_t bytes = k.at("bytes");
  const TensorId x =
      bytes % 4 == 0 ? w.input("x", {bytes / 4}, DataType::int32) : w.input("x", {bytes}, DataType::int8);
  return w.apply(OpType::copy, "copy", {x});
}

/// One packed parameter per layer and direction would hide the widths: weights and biases as frameworks list them.
Builder recurrent(OpType op, std::int64_t gates) {
  return [op, gates](GraphWriter& w, const Keys& k) {
    const std::int64_t hidden = k.at("hidden");
    const std::int64_t width = k.at("input") == 0 ? hidden : k.at("input");
    const std::int64_t directions = k.at("bidirectional") != 0 ? 2 : 1;
    constexpr std::int64_t kMostLayers = 1024, kMostUnits = std::int64_t{1} << 28U;
    require_at_most(k, "layers", kMostLayers);
    require_at_most(k, "hidden", kMostUnits);
    std::vector<TensorId> inputs{w.input("x", {k.at("seq"), k.at("batch"), width})};
    for (std::int64_t cell = 0; cell < k.at("layers") * directions; ++cell) {
      const std::int64_t below = cell < directions ? width : hidden * directions;
      inputs.push_back(w.parameter(fmt::format("w_ih.{}", cell), {gates * hidden, below}));
      inputs.push_back(w.parameter(fmt::format("w_hh.{}", cell), {gates * hidden, hidden}));
      inputs.push_back(w.parameter(fmt::format("b_ih.{}", cell), {gates * hidden}));
      inputs.push_back(w.parameter(fmt::format("b_hh.{}", cell), {gates * hidden}));
    }
    graph::Attributes attrs = attributes({{"hidden", hidden}, {"layers", k.at("layers")}});
    if (directions > 1) attrs.set("bidirectional", std::int64_t{1});
    return w.apply_all(op, k.op(), std::move(inputs), std::move(attrs));
  };
}

TensorId build_attention(GraphWriter& w, const Keys& k) {
  const std::int64_t keys = k.at("seq_kv") == 0 ? k.at("seq") : k.at("seq_kv");
  const std::int64_t kv_heads = k.at("kv_heads") == 0 ? k.at("heads") : k.at("kv_heads");
  require_divisor(k, "kv_heads", kv_heads, "heads");
  const TensorId q = w.input("q", {k.at("batch"), k.at("heads"), k.at("seq"), k.at("head_dim")});
  const TensorId key = w.input("k", {k.at("batch"), kv_heads, keys, k.at("head_dim")});
  const TensorId value = w.input("v", {k.at("batch"), kv_heads, keys, k.at("head_dim")});
  return flash_attention(w, q, key, value, k.at("causal") != 0);
}

/// x[rows, cols] through an operation that needs nothing else.
Builder on_matrix(OpType op) {
  return [op](GraphWriter& w, const Keys& k) {
    const TensorId x = w.input("x", {k.at("rows"), k.at("cols")});
    graph::Attributes attrs;
    if (graph::family(op) == graph::OpFamily::reduction && op != OpType::cumsum) attrs.set("axis", std::int64_t{-1});
    if (op == OpType::reduce_sum || op == OpType::reduce_mean || op == OpType::reduce_max) {
      attrs = attributes({{"axes", Shape{1}}});
    }
    if (op == OpType::cast) attrs = attributes({{"to", std::string("fp16")}});
    return w.apply(op, k.op(), {x}, std::move(attrs));
  };
}

Builder on_two_matrices(OpType op) {
  return [op](GraphWriter& w, const Keys& k) {
    const Shape shape{k.at("rows"), k.at("cols")};
    const TensorId x = w.input("x", shape);
    return w.apply(op, k.op(), {x, w.input("y", shape)});
  };
}

bool is_binary(OpType op) {
  switch (op) {
    case OpType::add:
    case OpType::sub:
    case OpType::mul:
    case OpType::div:
    case OpType::pow:
    case OpType::maximum:
    case OpType::minimum:
    case OpType::compare:
    case OpType::silu_mul:
    case OpType::gelu_mul: return true;
    default: return false;
  }
}

TensorId build_where(GraphWriter& w, const Keys& k) {
  const Shape shape{k.at("rows"), k.at("cols")};
  const TensorId mask = w.input("mask", shape, DataType::boolean);
  const TensorId x = w.input("x", shape);
  if (k.op() == "masked_fill") return w.apply(OpType::masked_fill, "masked_fill", {x, mask});
  return w.apply(OpType::where, "where", {mask, x, w.input("y", shape)});
}

void add_matrix_operations(OperationTable& table) {
  const std::vector<KeySpec> rows_cols{{"rows", kRequired}, {"cols", kRequired}};
  for (const OpType op : graph::all_ops()) {
    const bool backward = op == OpType::pointwise_backward || op == OpType::fused_pointwise;
    if (graph::family(op) != graph::OpFamily::pointwise || backward) continue;
    if (op == OpType::where || op == OpType::masked_fill) {
      table[std::string(to_string(op))] = {rows_cols, build_where};
    } else {
      table[std::string(to_string(op))] = {rows_cols, is_binary(op) ? on_two_matrices(op) : on_matrix(op)};
    }
  }
  for (const OpType op :
       {OpType::softmax, OpType::log_softmax, OpType::reduce_sum, OpType::reduce_mean, OpType::reduce_max}) {
    table[std::string(to_string(op))] = {rows_cols, on_matrix(op)};
  }
  table["layer_norm"] = {rows_cols, [](GraphWriter& w, const Keys& k) {
                           return w.layer_norm("layer_norm", w.input("x", {k.at("rows"), k.at("cols")}));
                         }};
  table["rms_norm"] = {rows_cols, [](GraphWriter& w, const Keys& k) {
                         return w.rms_norm("rms_norm", w.input("x", {k.at("rows"), k.at("cols")}));
                       }};
  table["dropout"] = {rows_cols, [](GraphWriter& w, const Keys& k) {
                        const TensorId x = w.input("x", {k.at("rows"), k.at("cols")});
                        return w.apply_multiple(OpType::dropout, "dropout", {x}, attributes({{"p", 0.1}}), 2).front();
                      }};
  table["cross_entropy"] = {
      rows_cols, [](GraphWriter& w, const Keys& k) {
        const TensorId x = w.input("x", {k.at("rows"), k.at("cols")});
        return w.apply(OpType::cross_entropy, "cross_entropy", {x, w.input("labels", {k.at("rows")}, DataType::int64)});
      }};
}

OperationTable make_table() {
  OperationTable table;
  add_matrix_operations(table);
  add_spatial_operations(table);
  add_indexed_operations(table);
  table["matmul"] = {{{"m", kRequired}, {"n", kRequired}, {"k", kRequired}, {"batch", 1}}, build_matmul};
  table["linear"] = {{{"m", kRequired}, {"n", kRequired}, {"k", kRequired}, {"bias", 1, 0}},
                     [](GraphWriter& w, const Keys& k) {
                       return w.linear("linear", w.input("x", {k.at("m"), k.at("k")}), k.at("n"), k.at("bias") != 0);
                     }};
  table["copy"] = {{{"bytes", kRequired}}, build_copy};
  table["attention"] = {{{"batch", 1},
                         {"heads", kRequired},
                         {"kv_heads", 0, 0},
                         {"seq", kRequired},
                         {"seq_kv", 0, 0},
                         {"head_dim", kRequired},
                         {"causal", 0, 0}},
                        build_attention};
  const std::vector<KeySpec> sequence{{"seq", kRequired},    {"batch", 1},  {"input", 0, 0},
                                      {"hidden", kRequired}, {"layers", 1}, {"bidirectional", 0, 0}};
  table["rnn"] = {sequence, recurrent(OpType::rnn, 1)};
  table["lstm"] = {sequence, recurrent(OpType::lstm, 4)};
  table["gru"] = {sequence, recurrent(OpType::gru, 3)};
  return table;
}

const OperationTable& table() {
  static const OperationTable specs = make_table();
  return specs;
}

/// "4096", "1GiB", "2.5MB": a whole number of units (bytes).
std::int64_t parse_number(std::string_view text, const std::string& key) {
  const auto refuse = [&] {
    return UsageError(fmt::format("op: {}: expected a whole number up to 2^62, got '{}'", key, one_line(text, 40)));
  };
  static const std::pair<std::string_view, double> kUnits[] = {
      {"", 1},      {"B", 1},        {"KB", 1e3},     {"MB", 1e6},     {"GB", 1e9},
      {"TB", 1e12}, {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}};
  std::int64_t whole = 0;
  const auto exact = std::from_chars(text.data(), text.data() + text.size(), whole);
  if (exact.ec == std::errc() && exact.ptr == text.data() + text.size()) {
    if (whole > kLargest) throw refuse();
    return whole;
  }
  double value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  if (key != "bytes" || parsed.ec != std::errc()) throw refuse();
  const std::string_view unit = text.substr(static_cast<std::size_t>(parsed.ptr - text.data()));
  for (const auto& [name, factor] : kUnits) {
    if (unit != name) continue;
    const double bytes = value * factor;
    if (!(bytes >= 0 && bytes <= static_cast<double>(kLargest))) throw refuse();
    const auto rounded = static_cast<std::int64_t>(bytes);
    if (static_cast<double>(rounded) != bytes) throw refuse();
    return rounded;
  }
  throw refuse();
}

std::vector<std::string> key_names(const OperationSpec& spec) {
  std::vector<std::string> names;
  for (const KeySpec& key : spec.keys) names.emplace_back(key.name);
  return names;
}

void take_pair(std::string_view pair, const std::string& op, const OperationSpec& spec,
               std::map<std::string, std::int64_t>& given) {
  const std::size_t equals = pair.find('=');
  const std::string key(pair.substr(0, equals));
  const auto known = key_names(spec);
  if (std::find(known.begin(), known.end(), key) == known.end()) {
    const std::string near = nearest(key, known);
    throw UsageError(fmt::format("op:{}: expected keys {}, got '{}'{}", op, fmt::join(known, ", "), one_line(key, 40),
                                 near.empty() ? "" : fmt::format("; did you mean '{}'?", near)));
  }
  if (equals == std::string_view::npos)
    throw UsageError(fmt::format("op:{}: expected {}=NUMBER, got '{}'", op, key, key));
  if (!given.emplace(key, parse_number(pair.substr(equals + 1), key)).second) {
    throw UsageError(fmt::format("op:{}: expected each key once, got '{}' twice", op, key));
  }
}

Keys read_keys(std::string_view text, const std::string& op, const OperationSpec& spec) {
  std::map<std::string, std::int64_t> given;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    take_pair(text.substr(0, comma), op, spec, given);
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
  }
  for (const KeySpec& key : spec.keys) {
    const auto it = given.find(key.name);
    if (it == given.end() && key.fallback == kRequired) {
      throw UsageError(
          fmt::format("op:{}: expected keys {}, '{}' is missing", op, fmt::join(key_names(spec), ", "), key.name));
    }
    if (it == given.end()) {
      given.emplace(key.name, key.fallback);
    } else if (it->second < key.lowest) {
      throw UsageError(fmt::format("op:{}: {}: expected at least {}, got {}", op, key.name, key.lowest, it->second));
    }
  }
  return {op, std::move(given)};
}

const OperationSpec& find_operation(const std::string& op) {
  const auto it = table().find(op);
  if (it != table().end()) return it->second;
  std::vector<std::string> known;
  for (const auto& [name, spec] : table()) known.push_back(name);
  if (graph::parse_op(op)) {
    throw UnsupportedError(
        fmt::format("op:{}: not built yet as a single operation; there are: {}", op, fmt::join(known, ", ")));
  }
  const std::string near = nearest(op, known);
  throw UsageError(fmt::format("op:{}: no such operation{}", one_line(op, 40),
                               near.empty() ? "" : fmt::format("; did you mean '{}'?", near)));
}

}  // namespace

void require_divisor(const Keys& k, const char* key, std::int64_t value, const char* of) {
  if (k.at(of) % value == 0) return;
  throw UsageError(fmt::format("op:{}: {}: expected a divisor of {} {}, got {}", k.op(), key, of, k.at(of), value));
}

void require_at_most(const Keys& k, const char* key, std::int64_t most) {
  if (k.at(key) <= most) return;
  throw UsageError(fmt::format("op:{}: {}: expected up to {}, got {}", k.op(), key, most, k.at(key)));
}

Workload build_operation(std::string_view text, const BuildOptions& options) {
  std::string_view rest = text.starts_with("op:") ? text.substr(3) : text;
  const std::size_t comma = rest.find(',');
  const std::string op(rest.substr(0, comma));
  rest.remove_prefix(comma == std::string_view::npos ? rest.size() : comma + 1);
  const OperationSpec& spec = find_operation(op);
  const Keys keys = read_keys(rest, op, spec);
  Workload workload;
  workload.name = one_line(text, 200);
  workload.kind = "operation";
  if (options.phase != RunPhase::whole)
    throw UnsupportedError(fmt::format("op:{}: a single operation has no phases; leave --phase out", op));
  if (options.batch || options.seq || options.context) {
    workload.warnings.emplace_back("--batch, --seq and --context have no effect: the operation states its sizes");
  }
  GraphWriter writer(workload.graph, workload.name, options.training);
  const TensorId output = spec.build(writer, keys);
  finish(workload, output);
  return workload;
}

}  // namespace voltaic::workloads
