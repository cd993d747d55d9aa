// SPDX-License-Identifier: MIT
#include "sim/kernel/recurrent.hpp"

#include <string>
#include <variant>

#include "arch/loader.hpp"
#include "arch/units/error.hpp"
#include "sim/cost/engine.hpp"
#include "sim/kernel/lowering.hpp"
#include "tests/support/catch.hpp"

using namespace voltaic;
using kernel::GemmKernel;
using kernel::RecurrentCell;
using kernel::RecurrentKernel;
using kernel::RecurrentPass;

namespace {

struct Layers {
  graph::OpType op = graph::OpType::lstm;
  std::int64_t steps = 10, batch = 4, input = 32, hidden = 64, layers = 1, directions = 1;
  DataType type = DataType::fp32;
  bool bias = true;
};

graph::TensorId tensor(graph::OpGraph& g, graph::Shape shape, DataType type) {
  graph::Tensor t;
  t.name = "t" + std::to_string(g.tensors().size());
  t.shape = std::move(shape);
  t.dtype = type;
  t.role = graph::TensorRole::input;
  return g.add_tensor(std::move(t));
}

/// A forward layer, or one of its gradients, lowered by itself.
kernel::Lowered lowered(const Layers& l, graph::OpType op, const arch::ResolvedGpu& gpu,
                        kernel::Framework framework = kernel::Framework::eager) {
  graph::OpGraph g;
  graph::Node node;
  node.id = "layer";
  node.op = op;
  node.compute = l.type;
  const std::int64_t gates = l.op == graph::OpType::lstm ? 4 : l.op == graph::OpType::gru ? 3 : 1;
  if (op != l.op) {
    node.attributes.set("of", std::string(graph::to_string(l.op)));
    node.inputs.push_back(tensor(g, {l.steps, l.batch, l.hidden * l.directions}, l.type));
  }
  node.inputs.push_back(tensor(g, {l.steps, l.batch, l.input}, l.type));
  for (std::int64_t cell = 0; cell < l.layers * l.directions; ++cell) {
    const std::int64_t below = cell < l.directions ? l.input : l.hidden * l.directions;
    node.inputs.push_back(tensor(g, {gates * l.hidden, below}, l.type));
    node.inputs.push_back(tensor(g, {gates * l.hidden, l.hidden}, l.type));
    for (int b = 0; l.bias && b < 2; ++b) node.inputs.push_back(tensor(g, {gates * l.hidden}, l.type));
  }
  node.attributes.set("hidden", l.hidden);
  node.attributes.set("layers", l.layers);
  if (l.directions > 1) node.attributes.set("bidirectional", std::int64_t{1});
  std::vector<std::string> names{"y"};
  if (op == graph::OpType::rnn_wgrad) {
    names.clear();
    for (std::size_t i = 2; i < node.inputs.size(); ++i) names.push_back("d" + std::to_string(i));
  }
  const auto id = graph::append(g, std::move(node), names);
  const auto library = cost::make_library(gpu);
  return kernel::lower(g, g.node(id), {gpu.spec, *library, framework});
}

std::vector<kernel::GemmProblem> products(const kernel::Lowered& l) {
  std::vector<kernel::GemmProblem> out;
  for (const auto& launch : l.launches) {
    const auto* k = std::get_if<GemmKernel>(&launch.detail);
    if (k != nullptr && launch.family != "gemm_reduce") out.push_back(k->problem);
  }
  return out;
}

std::vector<RecurrentKernel> recurrent(const kernel::Lowered& l) {
  std::vector<RecurrentKernel> out;
  for (const auto& launch : l.launches) {
    if (const auto* k = std::get_if<RecurrentKernel>(&launch.detail)) out.push_back(*k);
  }
  return out;
}

double mac(const kernel::Lowered& l) {
  double sum = 0;
  for (const auto& launch : l.launches) sum += launch.work.mac;
  return sum;
}

const arch::ResolvedGpu& v100() {
  static const auto gpu = arch::resolve_gpu("v100-sxm2-16gb");
  return gpu;
}

}  // namespace

TEST_CASE("the input enters all steps in one product and the steps follow", "[kernel][recurrent]") {
  const auto out = lowered({}, graph::OpType::lstm, v100());
  const auto gemms = products(out);
  REQUIRE(gemms.size() == 1);
  CHECK(gemms[0].m == 40);   // 10 steps of 4
  CHECK(gemms[0].n == 256);  // 4 gates of 64
  CHECK(gemms[0].k == 32);
  CHECK(gemms[0].bias);
  const auto steps = recurrent(out);
  REQUIRE(steps.size() == 1);
  CHECK(steps[0].cell == RecurrentCell::lstm);
  CHECK(steps[0].pass == RecurrentPass::forward);
  CHECK(steps[0].steps == 10);
  CHECK(out.launches.back().library == "cuDNN");
  // 10 * 4 rows * 4 gates * 64 * (32 + 64)
  CHECK_THAT(mac(out), WithinRel(983040.0, 1e-12));
}

TEST_CASE("a gradient is the steps back in time, then products over all steps", "[kernel][recurrent]") {
  const Layers l{graph::OpType::gru, 10, 4, 32, 64, 2, 2};
  const double forward = mac(lowered(l, graph::OpType::gru, v100()));
  const auto data = lowered(l, graph::OpType::rnn_backward, v100());
  CHECK(recurrent(data).at(0).pass == RecurrentPass::backward_data);
  CHECK(recurrent(data).at(0).cell == RecurrentCell::gru);
  CHECK(products(data).size() == 4);
  CHECK_THAT(mac(data), WithinRel(forward, 1e-12));
  const auto weights = lowered(l, graph::OpType::rnn_wgrad, v100());
  CHECK(recurrent(weights).at(0).pass == RecurrentPass::backward_weights);
  const auto gemms = products(weights);
  REQUIRE(gemms.size() == 8);  // w_ih and w_hh of 4 cells
  CHECK(gemms[0].k == 40);
  CHECK(gemms[0].n == 32);
  CHECK(gemms[1].n == 64);
  CHECK(gemms[4].n == 128);  // the second layer reads both directions
  CHECK(gemms[0].transpose_a);
  CHECK_THAT(mac(weights), WithinRel(forward, 1e-12));
}

TEST_CASE("layers overlap one step apart, directions side by side", "[kernel][recurrent]") {
  RecurrentKernel k;
  k.steps = 10;
  k.layers = 4;
  CHECK_THAT(kernel::wavefront(k).diagonals, WithinRel(13.0, 1e-12));
  CHECK_THAT(kernel::wavefront(k).cells, WithinRel(40.0 / 13, 1e-12));
  k.directions = 2;  // a layer needs both directions of the one below
  CHECK_THAT(kernel::wavefront(k).diagonals, WithinRel(40.0, 1e-12));
  CHECK_THAT(kernel::wavefront(k).cells, WithinRel(2.0, 1e-12));
}

TEST_CASE("frameworks ask for persistent kernels by shape, type and GPU", "[kernel][recurrent]") {
  Layers l{graph::OpType::lstm, 50, 32, 512, 512};
  const auto persistent = [&](const arch::ResolvedGpu& gpu) {
    return recurrent(lowered(l, l.op, gpu)).at(0).persistent;
  };
  CHECK_FALSE(persistent(v100()));
  l.type = DataType::fp16;
  CHECK(persistent(v100()));
  CHECK_FALSE(persistent(arch::resolve_gpu("t4")));
  CHECK(persistent(arch::resolve_gpu("a100-sxm4-40gb")));
  CHECK_FALSE(persistent(arch::resolve_gpu("a10")));
  l.steps = 5;
  CHECK_FALSE(persistent(v100()));
  l.steps = 50;
  l.layers = 2;
  CHECK_FALSE(persistent(v100()));
  l.layers = 1;
  l.hidden = 1152;
  CHECK_FALSE(persistent(v100()));
  l.hidden = 512;
  l.op = graph::OpType::gru;
  CHECK(persistent(v100()));
  CHECK_FALSE(persistent(arch::resolve_gpu("a100-sxm4-40gb")));
}

TEST_CASE("a cell that is called step by step is two products and a pointwise kernel", "[kernel][recurrent]") {
  const Layers l{graph::OpType::lstm, 1, 4, 32, 64};
  const auto forward = lowered(l, graph::OpType::lstm, v100());
  CHECK(recurrent(forward).empty());
  const auto gemms = products(forward);
  REQUIRE(gemms.size() == 2);
  CHECK(gemms[0].k == 32);
  CHECK(gemms[1].k == 64);
  CHECK(forward.launches.back().name == "lstm_cell_forward");
  CHECK_THAT(forward.host_calls, WithinRel(3.0, 1e-12));
  for (const auto op : {graph::OpType::rnn_backward, graph::OpType::rnn_wgrad}) {
    const auto gradient = lowered(l, op, v100());
    CHECK(products(gradient).size() == 2);
    CHECK_THAT(mac(gradient), WithinRel(mac(forward), 1e-12));
  }
}

TEST_CASE("no steps launch nothing and countless layers are refused in one line", "[kernel][recurrent]") {
  CHECK_THROWS_AS(lowered({graph::OpType::lstm, 2000000000, 2000000000, 1, 1}, graph::OpType::lstm, v100()),
                  UnsupportedError);
  CHECK(lowered({graph::OpType::gru, 0}, graph::OpType::gru, v100()).launches.empty());
  Layers l;
  graph::OpGraph g;
  graph::Node node;
  node.id = "deep";
  node.op = graph::OpType::lstm;
  node.inputs = {tensor(g, {1, 1, 8}, DataType::fp32), tensor(g, {100}, DataType::fp32)};  // packed parameters
  node.attributes.set("hidden", std::int64_t{8});
  node.attributes.set("layers", std::int64_t{1} << 40U);
  const std::vector<std::string> names{"y"};
  const auto id = graph::append(g, std::move(node), names);
  const auto library = cost::make_library(v100());
  try {
    kernel::lower(g, g.node(id), {v100().spec, *library});
    FAIL("accepted");
  } catch (const UnsupportedError& e) {
    CHECK(std::string(e.what()).find("node 'deep': expected up to 4096 layers") != std::string::npos);
  }
}
