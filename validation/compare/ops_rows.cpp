// SPDX-License-Identifier: MIT
#include "validation/compare/ops_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <memory>
#include <optional>

#include "arch/units/error.hpp"
#include "sim/cost/engine.hpp"
#include "sim/cost/single_op.hpp"
#include "sim/graph/passes.hpp"
#include "sim/interval.hpp"
#include "sim/kernel/vector.hpp"
#include "validation/compare/kernel_rows.hpp"
#include "validation/compare/ops_recipe.hpp"

namespace voltaic::validation {
namespace {

constexpr std::string_view kSession = "operations";
constexpr std::string_view kHostModel = "bert_large";  ///< Its rows gave the session's host times.

constexpr double kHostDecides = 0.9;  ///< Share of the host's floor in a call from which on a row tells that floor.

/// Sizes beyond this are no tensor of any network.
constexpr std::int64_t kMostElements = std::int64_t{1} << 48;

struct OpsRow {
  TracedNode node;
  std::string gpu, table_gpu, mode, origin, label;
  std::string place;  ///< File and line.
  std::string model;
  std::int64_t seq = 0, batch = 0;
  double repeat = 1;
  double forward_s = 0, backward_s = 0;
  bool clock_rising = false;
  bool fit_side = false;
};

/// "16x512x1024": dims of at least 1.
graph::Shape shape_of(std::string_view text, const CsvTable& table, std::size_t row, const char* column) {
  graph::Shape shape;
  std::int64_t elements = 1;
  const std::string_view whole = text;
  while (!text.empty()) {
    std::int64_t dim = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), dim);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    const bool more = text.size() > 1 && text.front() == 'x';
    if (error != std::errc{} || dim < 1 || dim > kMostElements / elements || (!text.empty() && !more)) {
      throw ConfigError(table.place(row), column,
                        fmt::format("expected dims such as 16x512x1024, got '{}'", one_line(whole, 40)));
    }
    if (more) text.remove_prefix(1);
    elements *= dim;
    shape.push_back(dim);
  }
  return shape;
}

std::vector<graph::Shape> shapes_of(std::string_view text, const CsvTable& table, std::size_t row) {
  std::vector<graph::Shape> shapes;
  while (!text.empty()) {
    const std::size_t cut = std::min(text.find(';'), text.size());
    shapes.push_back(shape_of(text.substr(0, cut), table, row, "in_shapes"));
    text.remove_prefix(std::min(cut + 1, text.size()));
  }
  return shapes;
}

double time_of(const CsvTable& table, std::size_t row, const char* column) {
  const double us = table.number(row, column).value_or(0);
  constexpr double kMostUs = 1e9;
  if (!(us >= 0 && us <= kMostUs)) {
    throw ConfigError(table.place(row), column, fmt::format("expected a time in microseconds, got {}", us));
  }
  return us * 1e-6;
}

std::int64_t count_of(const CsvTable& table, std::size_t row, const char* column) {
  const auto value = table.integer(row, column);
  if (!value || *value < 1) throw ConfigError(table.place(row), column, "expected a count of at least 1");
  return *value;
}

OpsRow read_row(const CsvTable& table, std::size_t row) {
  OpsRow r;
  r.place = table.place(row);
  r.model = table.text(row, "model");
  r.table_gpu = table.text(row, "gpu");
  r.gpu = gpu_of(r.table_gpu);
  r.mode = table.text(row, "mode");
  if (r.mode != "inf" && r.mode != "train") {
    throw ConfigError(table.place(row), "mode", fmt::format("expected inf or train, got '{}'", one_line(r.mode)));
  }
  r.seq = count_of(table, row, "seq");
  r.batch = count_of(table, row, "batch");
  r.repeat = static_cast<double>(count_of(table, row, "repeat"));
  r.clock_rising = table.integer(row, "clk_ramp").value_or(0) != 0;
  r.origin = r.clock_rising ? r.mode + " clk_ramp" : r.mode;
  r.forward_s = time_of(table, row, "fw_us");
  r.backward_s = time_of(table, row, "bw_us");
  r.node = TracedNode{.name = table.text(row, "name"),
                      .call = table.text(row, "call"),
                      .target = table.text(row, "target"),
                      .kind = table.text(row, "kind"),
                      .inputs = shapes_of(table.text(row, "in_shapes"), table, row),
                      .contiguous = table.text(row, "in_contig"),
                      .output = shape_of(table.text(row, "out_shape"), table, row, "out_shape"),
                      .dtype = table.text(row, "dtype"),
                      .backward_work = table.text(row, "bw_work"),
                      .no_gpu_work = table.integer(row, "host_only").value_or(0) != 0,
                      .differentiated = r.mode == "train" && r.backward_s > 0};
  // Accumulation is part of backward; a row without an autograd node has none.
  if (r.node.differentiated) r.backward_s += time_of(table, row, "acc_us");
  r.label = fmt::format("{} seq {} batch {} {}", one_line(r.model), r.seq, r.batch, one_line(r.node.name));
  r.fit_side = r.model == kHostModel && is_fit_key(fmt::format("{}|{}|fp32|{}", r.model, r.mode, r.batch));
  return r;
}

struct Predicted {
  double time_s = 0, low_s = 0, high_s = 0;
  double size = 0;  ///< FLOP of products, else bytes.
  bool host_decides = false;
  std::string explanation;
};

/// One GPU under the protocol of these tables.
class Bench {
 public:
  explicit Bench(const arch::ResolvedGpu& gpu)
      : gpu_(arch::in_session(gpu, kSession)), single_(gpu_), library_(cost::make_library(gpu_)), intervals_(gpu_) {
    const arch::ParameterTree tree = gpu_.calibration.at("single_op");
    nothing_s_ = tree.number_or("nothing.floor_s", tree.number("default.floor_s"));
    view_s_ = tree.number_or("view.floor_s", nothing_s_);
    idle_low_ = tree.number_or("nothing.measured_over_predicted.low", idle_low_);
    idle_high_ = tree.number_or("nothing.measured_over_predicted.high", idle_high_);
    for (const auto& name : tree.keys("")) {
      if (tree.has(name + ".floor_s")) floors_.emplace(name, tree.number(name + ".floor_s"));
    }
  }

  /// A call that launches nothing, `views` views inside.
  Predicted idle(double views) const {
    Predicted p;
    p.time_s = nothing_s_ + views * (view_s_ - nothing_s_);
    p.low_s = idle_low_ * p.time_s;
    p.high_s = idle_high_ * p.time_s;
    p.host_decides = true;
    p.explanation = "host alone";
    return p;
  }

  /// Nodes of one phase as the framework calls of one timed call. `one_kernel` leaves the last launch alone.
  Predicted call(const graph::OpGraph& graph, graph::Phase phase, double views, bool one_kernel) const {
    std::vector<std::vector<kernel::Launch>> calls;
    for (const graph::Node& node : graph.nodes()) {
      if (node.phase != phase || summed_between_nodes(node)) continue;
      kernel::Lowered lowered = kernel::lower(graph, node, {gpu_.spec, *library_});
      if (!lowered.unmodelled_reason.empty()) throw UnsupportedError(lowered.unmodelled_reason);
      auto& launches = lowered.launches;
      if (one_kernel && launches.size() > 1) launches.erase(launches.begin(), launches.end() - 1);
      if (!launches.empty()) calls.push_back(std::move(launches));
    }
    return price(calls, views);
  }

  Predicted call(kernel::Launch launch) const { return price({{std::move(launch)}}, 0); }

 private:
  /// The sum that folds a gradient onto a broadcast operand (a bias) is made by autograd between its nodes, so the
  /// nodes' own times lack it.
  static bool summed_between_nodes(const graph::Node& node) {
    return node.phase == graph::Phase::backward && node.op == graph::OpType::reduce_sum;
  }

  double floor_of(const kernel::Launch& launch) const {
    const auto at = floors_.find(floor_key(launch));
    return at != floors_.end() ? at->second : floors_.find("default")->second;
  }
  /// A plain product of two matrices (a gradient) is called as a batched one is, without a bias.
  static std::string floor_key(const kernel::Launch& launch) {
    const auto* gemm = std::get_if<kernel::GemmKernel>(&launch.detail);
    if (gemm != nullptr && !gemm->problem.bias) return "bmm";
    const auto* vector = std::get_if<kernel::VectorKernel>(&launch.detail);
    if (vector != nullptr && vector->function.empty()) {
      if (vector->kind == kernel::VectorKind::embedding || vector->kind == kernel::VectorKind::dropout ||
          vector->kind == kernel::VectorKind::norm_backward) {
        return std::string(kernel::to_string(vector->kind));
      }
    }
    return std::string(cost::SingleOp::key(launch));
  }

  /// The host issues the calls one after another; each takes its floor less what the events alone take. The GPU runs
  /// their kernels in order, none before its launch. One call alone: SingleOp's law.
  Predicted price(const std::vector<std::vector<kernel::Launch>>& calls, double views) const {
    if (calls.empty()) return idle(views);
    Predicted p;
    double host = views * (view_s_ - nothing_s_);
    double gpu = 0;
    double kernels = 0;
    kernel::KernelCost main;
    const kernel::Launch* longest = nullptr;
    std::vector<FamilyTime> families;
    for (const auto& launches : calls) {
      const cost::SingleOp::Timing timing = single_.time(launches);
      const double floor = floor_of(launches.front());
      gpu = std::max(gpu + timing.kernel.value, host + timing.time.value);
      host += floor - nothing_s_;
      kernels += timing.kernel.value;
      families.push_back({launches.front().family, launches.front().math, timing.kernel, timing.kernel});
      if (longest == nullptr || timing.main.time > main.time) {
        main = timing.main;
        longest = &launches.front();
      }
      for (const auto& launch : launches) p.size += 2 * launch.work.mac;
    }
    host += nothing_s_;
    p.time_s = std::max(gpu, host);
    std::vector<std::string> notes;
    const Seconds rest{std::max(0.0, p.time_s - kernels)};
    const report::Interval interval = intervals_.combine(families, rest, Seconds{p.time_s}, notes);
    p.low_s = interval.low.value;
    p.high_s = interval.high.value;
    p.host_decides = host >= kHostDecides * p.time_s;
    if (!(p.size > 0)) p.size = bytes_of(calls);
    p.explanation = fmt::format("{} call{}, {:.1f} us of kernels, mostly {}, {} bound; host {:.1f} us", calls.size(),
                                calls.size() == 1 ? "" : "s", 1e6 * kernels, longest->name,
                                kernel::to_string(main.bound()), 1e6 * host);
    return p;
  }

  static double bytes_of(const std::vector<std::vector<kernel::Launch>>& calls) {
    double bytes = 0;
    for (const auto& launches : calls) {
      for (const auto& launch : launches) bytes += launch.work.traffic().value;
    }
    return bytes;
  }

  arch::ResolvedGpu gpu_;
  cost::SingleOp single_;
  std::unique_ptr<kernel::LibraryChoice> library_;
  std::map<std::string, double, std::less<>> floors_;
  IntervalModel intervals_;
  double nothing_s_ = 0, view_s_ = 0;
  double idle_low_ = 0.9, idle_high_ = 1.1;
};

void add(Predicted& sum, const Predicted& p) {
  sum.time_s += p.time_s;
  sum.low_s += p.low_s;
  sum.high_s += p.high_s;
  sum.size += p.size;
  sum.host_decides = sum.host_decides && p.host_decides;
  if (sum.explanation.empty()) sum.explanation = p.explanation;
}

/// With gradients recorded, dropout's gradient takes the formula that can be differentiated again: the mask converted,
/// scaled and multiplied, three kernels where a training step runs one [ATEN].
graph::OpGraph recorded_dropout_gradient(const graph::Shape& shape) {
  graph::OpGraph g;
  const auto input = [&](const char* name, DataType dtype) {
    return g.add_tensor({.name = name, .shape = shape, .dtype = dtype, .role = graph::TensorRole::input});
  };
  const auto dy = input("dy", DataType::fp32);
  const auto mask = input("mask", DataType::boolean);
  const auto apply = [&](graph::OpType op, std::vector<graph::TensorId> inputs, const std::string& output) {
    graph::Node node;
    node.id = output;
    node.op = op;
    node.inputs = std::move(inputs);
    node.phase = graph::Phase::backward;
    if (op == graph::OpType::cast) node.attributes.set("to", std::string("fp32"));
    return g.node(graph::append(g, std::move(node), std::span(&output, 1))).outputs.front();
  };
  const auto converted = apply(graph::OpType::cast, {mask}, "converted");
  apply(graph::OpType::mul, {dy, apply(graph::OpType::mul_scalar, {converted}, "scaled")}, "dx");
  return g;
}

Predicted backward(const Bench& bench, const Recipe& recipe, const graph::OpGraph& trained) {
  Predicted sum;
  sum.host_decides = true;
  const auto nodes = recipe.graph.nodes();
  const bool dropout = !nodes.empty() && nodes.back().op == graph::OpType::dropout;
  if (dropout) {
    const auto& shape = recipe.graph.tensor(nodes.back().outputs.front()).shape;
    add(sum, bench.call(recorded_dropout_gradient(shape), graph::Phase::backward, 0, false));
  } else {
    add(sum, bench.call(trained, graph::Phase::backward, 0, false));
  }
  const auto idle_calls = static_cast<std::int64_t>(std::ceil(recipe.autograd_nodes));
  for (std::int64_t i = 0; i < idle_calls; ++i) add(sum, bench.idle(0));
  for (const auto& shape : recipe.accumulated) {
    const double n = static_cast<double>(graph::elements(shape));
    add(sum, bench.call(kernel::vector::elementwise("add", {n, 8 * n, 4 * n, 2, 4})));
  }
  return sum;
}

class Table {
 public:
  Table(Runner& runner, const std::string& split, Validation& out) : runner_(runner), split_(split), out_(out) {}

  void take(const OpsRow& row) {
    if (row.gpu.empty()) return skip(out_, fmt::format("GPU {} is unknown", one_line(row.table_gpu)));
    if (!(row.forward_s > 0)) return skip(out_, "host only");
    try {
      predict(row);
    } catch (const UnsupportedError& e) {
      missed(row, "forward", e.what());
    } catch (const ConfigError& e) {
      throw ConfigError(row.place, "in_shapes", e.what());  // Operands that do not fit each other.
    }
  }

 private:
  void predict(const OpsRow& row) {
    Recipe recipe = recipe_of(row.node);
    if (!recipe.reason.empty()) return missed(row, "forward", recipe.reason);
    const Bench& on = bench(row.gpu);
    graph::OpGraph trained = recipe.graph;
    const bool gradient = row.node.differentiated && !trained.nodes().empty();
    if (gradient) graph::append_backward(trained);
    const Predicted forward = trained.nodes().empty()
                                  ? on.idle(recipe.views)
                                  : on.call(trained, graph::Phase::forward, recipe.views, recipe.one_kernel);
    record(row, recipe, "forward", row.forward_s, forward);
    if (!gradient) return;
    if (!recipe.backward_reason.empty()) return missed(row, "backward", recipe.backward_reason);
    record(row, recipe, "backward", row.backward_s, backward(on, recipe, trained));
  }

  void missed(const OpsRow& row, const char* mode, const std::string& reason) {
    skip(out_, reason);
    ++out_.missed[{fmt::format("traced {}", mode), row.table_gpu}];
  }

  void record(const OpsRow& row, const Recipe& recipe, const char* mode, double measured_s, const Predicted& p) {
    const bool fit = row.fit_side && p.host_decides;
    if (split_ == "report" && fit) return skip(out_, "fit row");
    if (split_ == "fit" && !fit) return skip(out_, "report row");
    if (!std::isfinite(p.time_s) || !std::isfinite(p.low_s) || !std::isfinite(p.high_s)) {
      return missed(row, mode, "the shape is beyond what the model can count");
    }
    Pair pair;
    pair.gpu = row.table_gpu;
    pair.op = recipe.op;
    pair.dtype = "fp32";
    pair.mode = mode;
    pair.origin = row.origin;
    pair.label = row.label;
    pair.measured = measured_s;
    pair.predicted = p.time_s;
    pair.low = p.low_s;
    pair.high = p.high_s;
    pair.size = p.size;
    pair.fit = fit;
    pair.explanation = p.explanation;
    if (recipe.op != "host" && !row.clock_rising) count_error(row, pair);
    out_.pairs.push_back(std::move(pair));
  }

  /// Calls without GPU work hide behind the kernels of a network, and a rising clock is the measurement's: neither
  /// counts.
  void count_error(const OpsRow& row, const Pair& pair) {
    const auto same = [&](const OpsError& e) {
      return e.model == row.model && e.gpu == row.table_gpu && e.mode == row.mode && e.seq == row.seq &&
             e.batch == row.batch;
    };
    auto at = std::find_if(out_.ops_errors.begin(), out_.ops_errors.end(), same);
    if (at == out_.ops_errors.end()) {
      at = out_.ops_errors.insert(at, OpsError{row.model, row.table_gpu, row.mode, row.seq, row.batch, 0, 0, 0});
    }
    const double error = pair.predicted - pair.measured;
    at->signed_s += row.repeat * error;
    at->absolute_s += row.repeat * std::abs(error);
    at->measured_s += row.repeat * pair.measured;
  }

  const Bench& bench(const std::string& gpu) {
    std::unique_ptr<Bench>& held = benches_[gpu];
    if (!held) {
      Request request;
      request.gpu = gpu;
      request.calibration = out_.options.calibration;
      held = std::make_unique<Bench>(runner_.simulator(request)->gpu());
    }
    return *held;
  }

  Runner& runner_;
  const std::string& split_;
  Validation& out_;
  std::map<std::string, std::unique_ptr<Bench>> benches_;
};

}  // namespace

bool is_ops_table(const CsvTable& table) {
  for (const char* column : {"model", "gpu", "mode", "seq", "batch", "name", "call", "target", "kind", "in_shapes",
                             "in_contig", "out_shape", "dtype", "host_only", "repeat", "fw_us", "bw_us", "acc_us"}) {
    if (!table.has(column)) return false;
  }
  return true;
}

void predict_ops_rows(Runner& runner, const CsvTable& table, const std::string& split, Validation& out) {
  Table predictions(runner, split, out);
  for (std::size_t row = 0; row < table.rows(); ++row) predictions.take(read_row(table, row));
}

}  // namespace voltaic::validation
