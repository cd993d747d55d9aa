// SPDX-License-Identifier: MIT
#include "validation/compare/predict_stack.hpp"

#include <fmt/format.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <memory>

#include "arch/units/error.hpp"
#include "sim/engines.hpp"
#include "sim/graph/op_graph.hpp"
#include "sim/kernel/attention_shape.hpp"
#include "sim/kernel/recurrent.hpp"
#include "sim/kernel/sparse.hpp"
#include "sim/report/units.hpp"
#include "validation/compare/drawn_rows.hpp"
#include "validation/compare/kernel_rows.hpp"
#include "validation/compare/power_rows.hpp"

namespace voltaic::validation {
namespace {

/// Boards under protocols, made once each.
class Stacks {
 public:
  Stacks(Runner& runner, const ValidateOptions& options) : runner_(runner), options_(options) {}

  const cost::StackCall& operator()(const std::string& gpu, const cost::CallProtocol& protocol) {
    auto& held =
        held_[fmt::format("{}|{}|{}|{}|{}|{}", gpu, protocol.stack, protocol.release, cost::to_string(protocol.timing),
                          static_cast<int>(protocol.contents), static_cast<int>(protocol.operands))];
    if (!held) {
      Request request;
      request.gpu = gpu;
      request.calibration = options_.calibration;
      held = std::make_unique<cost::StackCall>(
          runner_.simulator(request)->gpu(), protocol,
          [this](const arch::ResolvedGpu& board) { return make_engine(options_.engine, board, options_.sampling); });
    }
    return *held;
  }

 private:
  Runner& runner_;
  const ValidateOptions& options_;
  std::map<std::string, std::unique_ptr<cost::StackCall>> held_;
};

/// What a call and its protocol give; rows with equal ones share it.
struct Answer {
  const StackRow* row = nullptr;
  const cost::StackCall* stack = nullptr;
  cost::StackCall::Timing timing;
  Watts watts;  ///< Of products.
  std::string explanation, refused;
};

/// Shapes tell all other kinds of work apart.
std::string_view library_of(const StackWork& work) {
  const auto* attention = std::get_if<AttentionCall>(&work);
  return attention == nullptr ? "" : kernel::to_string(attention->kernel.library);
}

std::string explain(const std::vector<kernel::Launch>& launches, const cost::StackCall::Timing& timing) {
  if (launches.empty()) return "no kernel";
  const std::string more = launches.size() > 1 ? fmt::format(" and {} more", launches.size() - 1) : "";
  return fmt::format("{}{} {}, {} bound", launches.front().name, more, report::format_time(timing.kernel),
                     kernel::to_string(timing.main.bound()));
}

void answer(Answer& a) {
  try {
    const auto launches = lower_stack(a.row->work, {a.stack->gpu().spec, a.stack->library()});
    a.timing = a.stack->time(launches, a.row->call);
    a.explanation = explain(launches, a.timing);
    if (std::holds_alternative<ProductCall>(a.row->work)) a.watts = a.stack->lasting_power(launches);
  } catch (const UnsupportedError& e) {
    a.refused = e.what();
    return;
  } catch (const ConfigError& e) {  // a kernel that no SM can run
    a.refused = e.what();
    return;
  }
  const auto& t = a.timing;
  if (!std::isfinite(t.time.value) || !std::isfinite(t.low.value) || !std::isfinite(t.high.value)) {
    a.refused = "the shape is beyond what the model can count";
  }
}

Pair pair_of(const StackRow& row, const Answer& a) {
  Pair pair;
  pair.gpu = row.table_gpu;
  pair.op = row.op;
  pair.dtype = row.dtype;
  pair.mode = row.mode;
  pair.origin = row.origin;
  pair.label = row.label;
  pair.measured = row.measured_s;
  pair.predicted = a.timing.time.value;
  pair.low = a.timing.low.value;
  pair.high = a.timing.high.value;
  pair.size = row.size;
  pair.fit = row.fit;
  pair.family = row.family;
  pair.explanation = a.explanation;
  return pair;
}

/// Mean power of the board while calls follow each other.
Pair watts_pair(const StackRow& row, const Answer& a) {
  Pair pair = pair_of(row, a);
  pair.unit = Unit::watts;
  pair.mode = "watts";
  pair.measured = *row.measured_w;
  pair.family = "watts of " + row.family;
  answer(pair, a.watts.value, power_half_width(a.stack->gpu(), "power"));
  return pair;
}

/// Operations of one stack on rows of features; tables and positions have the sizes that networks give them.
std::vector<kernel::Launch> lower_vector(const VectorCall& call, const kernel::Target& target) {
  constexpr std::int64_t kVocabulary = 32000, kHeadDim = 128;
  graph::OpGraph g;
  const auto tensor = [&](graph::Shape shape, DataType type) {
    graph::Tensor t;
    t.name = fmt::format("t{}", g.tensors().size());
    t.shape = std::move(shape);
    t.dtype = type;
    return g.add_tensor(t);
  };
  std::vector<kernel::Launch> out;
  for (const std::int64_t cols : call.widths) {
    graph::Node node;
    node.id = fmt::format("call{}", cols) + std::to_string(g.nodes().size());
    node.op = call.op;
    node.compute = call.type;
    const graph::Shape rows{call.rows, cols};
    switch (call.op) {
      case graph::OpType::embedding:
        node.inputs = {tensor({call.rows}, DataType::int64), tensor({kVocabulary, cols}, call.type)};
        break;
      case graph::OpType::rope: {
        const std::int64_t head = std::min(cols, kHeadDim);
        node.inputs = {tensor(rows, call.type), tensor({call.rows, head}, call.type),
                       tensor({call.rows, head}, call.type)};
        if (call.query_cols > 0) node.attributes.set("query_cols", call.query_cols);
        break;
      }
      case graph::OpType::rms_norm: node.inputs = {tensor(rows, call.type), tensor({cols}, call.type)}; break;
      case graph::OpType::layer_norm:
        node.inputs = {tensor(rows, call.type), tensor({cols}, call.type), tensor({cols}, call.type)};
        break;
      case graph::OpType::add:
      case graph::OpType::mul:
      case graph::OpType::silu_mul: node.inputs = {tensor(rows, call.type), tensor(rows, call.type)}; break;
      default: node.inputs = {tensor(rows, call.type)}; break;
    }
    node.outputs.push_back(tensor(rows, call.type));
    const graph::NodeId id = g.add_node(node);
    auto lowered = kernel::lower(g, g.node(id), target);
    std::move(lowered.launches.begin(), lowered.launches.end(), std::back_inserter(out));
  }
  return out;
}

std::vector<kernel::Launch> lower_product(const ProductCall& call, const kernel::Target& target) {
  const kernel::GemmProblem& p = call.problem;
  const kernel::GemmTile tile = target.library.choose(p);
  return kernel::gemm_launches(p, tile, target.gpu);
}

std::vector<kernel::Launch> lower_attention_call(const AttentionCall& call, const kernel::Target& target) {
  if (!target.gpu.has_tensor_path(call.kernel.math) && !(target.gpu.sm.cuda_core[call.kernel.math] > 0)) {
    throw UnsupportedError(fmt::format("{} cannot multiply in {}", target.gpu.name, to_string(call.kernel.math)));
  }
  std::vector<kernel::Launch> out;
  const auto add = [&](const kernel::AttentionKernel& k) {
    auto more = kernel::attention_launches(k, target.gpu);
    std::move(more.begin(), more.end(), std::back_inserter(out));
  };
  if (call.appends) {
    kernel::AttentionKernel append = call.kernel;
    append.append = true;
    add(append);
  }
  add(call.kernel);
  if (call.with_backward) {
    kernel::AttentionKernel gradient = call.kernel;
    gradient.backward = true;
    add(gradient);
  }
  return out;
}

std::vector<kernel::Launch> lower_recurrent_call(const kernel::RecurrentKernel& k, const kernel::Target& target) {
  std::vector<kernel::Launch> out;
  if (k.pass == kernel::RecurrentPass::backward_weights) {
    ProductCall product;
    kernel::GemmProblem& p = product.problem;
    p.m = static_cast<std::int64_t>(kernel::gates(k.cell)) * k.hidden;
    p.n = k.hidden;
    p.k = k.batch * k.steps;
    p.transpose_a = true;
    p.math = k.math;
    p.a_bytes = p.b_bytes = p.c_bytes = k.element_bytes;
    out = lower_product(product, target);
  }
  out.push_back(kernel::recurrent_launch(k, target.gpu));
  return out;
}

/// Of the rows of the split that was asked for.
std::vector<bool> draw(const std::vector<StackRow>& rows, const ValidateOptions& options) {
  std::vector<std::string> kinds;
  kinds.reserve(rows.size());
  for (const StackRow& row : rows) {
    kinds.push_back(fmt::format("{}|{}|{}|{}|{}|{}", row.table_gpu, row.op, row.dtype, row.mode, row.origin, row.fit));
  }
  return draw_rows(kinds, options.rows, options.seed);
}

}  // namespace

std::vector<kernel::Launch> lower_stack(const StackWork& work, const kernel::Target& target) {
  if (const auto* call = std::get_if<ProductCall>(&work)) return lower_product(*call, target);
  if (const auto* p = std::get_if<kernel::ConvProblem>(&work)) {
    return kernel::conv_launches(target.library.choose(*p), target.gpu);
  }
  if (const auto* call = std::get_if<AttentionCall>(&work)) return lower_attention_call(*call, target);
  if (const auto* call = std::get_if<VectorCall>(&work)) {
    return lower_vector(*call, {target.gpu, target.library, call->framework});
  }
  if (const auto* k = std::get_if<kernel::RecurrentKernel>(&work)) return lower_recurrent_call(*k, target);
  if (const auto* k = std::get_if<kernel::SparseKernel>(&work)) return {kernel::sparse_launch(*k)};
  return lower_moe(std::get<MoeCall>(work), {target.gpu, target.library, kernel::Framework::tensorrt});
}

void predict_stack_rows(Runner& runner, const CsvTable& table, StackTable kind,
                        const std::function<bool(std::string_view)>& wants, Validation& out) {
  std::vector<std::string> files;
  std::copy_if(out.options.gpus.begin(), out.options.gpus.end(), std::back_inserter(files), is_gpu_file);
  const StackRows read = read_stack_rows(table, kind, files);
  for (const auto& [reason, times] : read.skipped) skip(out, reason, times);
  for (const auto& [line, times] : read.missed) out.missed[line] += times;

  Stacks stacks(runner, out.options);
  const std::vector<bool> drawn = draw(read.rows, out.options);
  std::vector<Answer> answers;
  std::map<std::string, std::size_t> known;
  std::vector<std::pair<const StackRow*, std::size_t>> wanted;
  for (const StackRow& row : read.rows) {
    if (!wants(row.op)) {
      skip(out, "left out by --op");
    } else if (row.fit ? out.options.split == "report" : out.options.split == "fit") {
      skip(out, row.fit ? "fit row" : "report row");
    } else if (!drawn[static_cast<std::size_t>(&row - read.rows.data())]) {
      skip(out, std::string(kNotDrawn));
    } else {
      const cost::StackCall* made = nullptr;
      try {
        made = &stacks(row.gpu, row.protocol.call);
      } catch (const UnsupportedError& e) {
        skip(out, e.what());
        if (!row.family.empty()) ++out.missed[{row.family, row.table_gpu}];
        continue;
      }
      const cost::StackCall& stack = *made;
      // The protocol's own name stands for the stack: its address is stable and unique.
      const auto id = fmt::format("{}|{}|{}|{}|{}|{}|{}", fmt::ptr(&stack), row.call, row.dtype, row.op, row.key,
                                  row.label, library_of(row.work));
      const auto [at, fresh] = known.emplace(id, answers.size());
      if (fresh) answers.push_back({&row, &stack, {}, {}, {}, {}});
      wanted.emplace_back(&row, at->second);
    }
  }
  tbb::parallel_for(std::size_t{0}, answers.size(), [&](std::size_t i) { answer(answers[i]); });
  for (const auto& [row, index] : wanted) {
    const Answer& a = answers[index];
    if (a.refused.empty()) {
      out.pairs.push_back(pair_of(*row, a));
      if (row->measured_w && a.watts > Watts{0}) out.pairs.push_back(watts_pair(*row, a));
      continue;
    }
    skip(out, a.refused);
    if (!row->family.empty()) ++out.missed[{row->family, row->table_gpu}];
  }
}

}  // namespace voltaic::validation
