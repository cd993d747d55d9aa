// SPDX-License-Identifier: MIT
#include "sim/simulator.hpp"

#include <numeric>

#include "arch/units/error.hpp"
#include "sim/fill.hpp"
#include "sim/report/json.hpp"
#include "sim/report/table.hpp"
#include "sim/sensitivity.hpp"
#include "tests/support/catch.hpp"
#include "workloads/builder.hpp"

using namespace voltaic;

namespace {

std::shared_ptr<const arch::ResolvedGpu> gpu(const std::string& name,
                                             const std::vector<arch::Override>& overrides = {}) {
  return std::make_shared<const arch::ResolvedGpu>(arch::resolve_gpu(name, overrides));
}

graph::OpGraph workload(const std::string& name, bool training, std::int64_t batch) {
  workloads::BuildOptions o;
  o.training = training;
  o.batch = batch;
  o.seq = 128;
  return workloads::load_workload(name, o).graph;
}

SimulationOptions options(bool training, double samples) {
  SimulationOptions o;
  o.training = training;
  o.precision = graph::Precision::fp32;
  o.samples = samples;
  return o;
}

/// x -> view -> contiguous -> relu, `views` transposes in a row.
graph::OpGraph viewed(int views) {
  graph::OpGraph g;
  g.name = "viewed";
  graph::TensorId t = g.add_tensor({"x", {256, 256}, DataType::fp32, graph::TensorRole::input, graph::kNoNode, true});
  const auto add = [&](graph::OpType op, const std::string& id) {
    graph::Node n;
    n.id = id;
    n.op = op;
    n.inputs = {t};
    const std::vector<std::string> names{id + ".y"};
    t = g.node(graph::append(g, std::move(n), names)).outputs.front();
  };
  for (int i = 0; i < views; ++i) add(graph::OpType::transpose, "t" + std::to_string(i));
  add(graph::OpType::contiguous, "c");
  add(graph::OpType::relu, "r");
  g.outputs = {t};
  return g;
}

}  // namespace

TEST_CASE("the parts of a prediction add up", "[simulator]") {
  const Simulator simulator(gpu("a100-pcie-40gb"));
  for (const bool training : {false, true}) {
    const auto p = simulator.predict(workload("bert-base", training, 3), options(training, 3));
    CHECK(p.forward.value + p.backward.value + p.optimizer.value == p.total.value);
    if (!training) CHECK(p.forward == p.total);
    CHECK_THAT(p.share_kernels + p.share_communication_exposed + p.share_host_exposed + p.share_idle,
               WithinAbs(1, 1e-12));
    CHECK_THAT(std::accumulate(p.bound.begin(), p.bound.end(), 0.0), WithinAbs(1, 1e-12));
    CHECK(p.samples_per_s * p.total.value == 3);
    CHECK(p.flop == 2 * p.mac);
    double layers = 0, mac = 0;
    for (const auto& layer : p.layers) {
      layers += layer.time.value;
      mac += layer.mac;
    }
    CHECK_THAT(layers, WithinRel(p.share_kernels * p.total.value, 1e-6));
    CHECK_THAT(mac, WithinRel(p.mac, 1e-12));
  }
}

TEST_CASE("repeated layers are priced once", "[simulator]") {
  const Simulator simulator(gpu("v100-sxm2-16gb"));
  const auto p = simulator.predict(workload("bert-base", true, 2), options(true, 2));
  CHECK(p.nodes.size() > 1000);
  CHECK(p.distinct.size() < p.nodes.size() / 5);
}

TEST_CASE("a warm memo and a fresh simulator give the same bytes", "[simulator]") {
  const auto g = workload("bert-base", true, 2);
  const Simulator warm(gpu("a100-sxm4-80gb"));
  warm.predict(workload("bert-base", false, 2), options(false, 2));
  const std::string first = report::prediction_json(warm.predict(g, options(true, 2)), "predict", "0");
  const Simulator fresh(gpu("a100-sxm4-80gb"));
  CHECK(first == report::prediction_json(warm.predict(g, options(true, 2)), "predict", "0"));
  CHECK(first == report::prediction_json(fresh.predict(g, options(true, 2)), "predict", "0"));
}

TEST_CASE("the memo tells operands apart by the views above them", "[simulator]") {
  const Simulator simulator(gpu("a100-sxm4-80gb"));
  const auto packed = simulator.predict(viewed(0), options(false, 1));
  const auto strided = simulator.predict(viewed(1), options(false, 1));
  REQUIRE(packed.total != strided.total);
  const Simulator fresh(gpu("a100-sxm4-80gb"));
  CHECK(fresh.predict(viewed(1), options(false, 1)).total == strided.total);
  CHECK(fresh.predict(viewed(0), options(false, 1)).total == packed.total);
}

TEST_CASE("a graph without work takes no time and divides by nothing", "[simulator]") {
  graph::OpGraph g;
  g.name = "empty";
  const Simulator simulator(gpu("t4"));
  const auto p = simulator.predict(g, options(false, 4));
  CHECK(p.total.value == 0);
  CHECK(p.samples_per_s == 0);
  CHECK(p.share_idle == 1);
  CHECK(p.bound[kernel::kBounds] == 1);
  CHECK_NOTHROW(report::prediction_json(p, "predict", "0"));
  CHECK_NOTHROW(report::predict_page(p, {}));
}

TEST_CASE("a recorded step pays no host between kernels", "[simulator]") {
  const Simulator simulator(gpu("a100-sxm4-80gb"));
  auto eager = options(false, 1);
  eager.precision = graph::Precision::fp16;
  auto recorded = eager;
  recorded.framework = kernel::Framework::graph;
  const auto g = workload("bert-base", false, 1);
  const auto e = simulator.predict(g, eager);
  const auto r = simulator.predict(g, recorded);
  // A single short sequence is host-bound when dispatched one by one; recorded, the host shows only before the first
  // kernel.
  CHECK(e.share_host_exposed > 0.3);
  CHECK(r.total < e.total);
  CHECK(r.share_host_exposed * r.total.value < 20e-6);
}

TEST_CASE("precisions that a GPU lacks are refused with what it has", "[simulator][precision]") {
  const auto v100 = gpu("v100-sxm2-16gb");
  using graph::Precision;
  try {
    check_precision(v100->spec, Precision::bf16);
    FAIL("bf16 on V100 was accepted");
  } catch (const UnsupportedError& e) {
    CHECK(std::string(e.what()) ==
          "v100-sxm2-16gb has no BF16 tensor cores: it multiplies in fp64, fp32, fp16 (tensor cores), int8 (DP4A)");
  }
  CHECK_THROWS_AS(check_precision(v100->spec, Precision::tf32), UnsupportedError);
  CHECK_THROWS_AS(check_precision(v100->spec, Precision::fp8), UnsupportedError);
  CHECK(check_precision(v100->spec, Precision::int8) == "int8 runs on DP4A, not on tensor cores");
  CHECK(check_precision(gpu("a100-sxm4-80gb")->spec, Precision::bf16).empty());
  SimulationOptions sparse = options(false, 1);
  sparse.sparsity = true;
  CHECK_THROWS_AS(Simulator(v100).predict(viewed(0), sparse), UnsupportedError);
}

TEST_CASE("a rate times its time gives the count back", "[simulator]") {
  CHECK(exact_rate(4, 0) == 0);
  CHECK(exact_rate(8, 2) == 4);
  for (const double t : {0.1, 1.0 / 3, 0.183, 7e-6}) CHECK_THAT(exact_rate(8, t) * t, WithinRel(8.0, 1e-15));
}

TEST_CASE("intervals are wider on boards that were not measured", "[simulator][interval]") {
  const auto relative = [](const std::string& name) {
    const auto p = Simulator(gpu(name)).predict(workload("bert-base", false, 8), options(false, 8));
    return std::pair{(p.interval.high.value - p.total.value) / p.total.value, p.interval.evidence};
  };
  const auto measured = relative("a100-pcie-40gb");
  const auto sister = relative("a100-sxm4-40gb");
  CHECK(measured.second == "interpolated");
  CHECK(sister.second == "extrapolated");
  CHECK(sister.first > measured.first);
}

TEST_CASE("what helps most comes first, and more bandwidth never hurts", "[simulator][sensitivity]") {
  const std::string name = "a100-sxm4-80gb";
  const Simulator simulator(gpu(name));
  const auto g = workload("bert-base", false, 8);
  const auto base = simulator.predict(g, options(false, 8));
  SensitivityInputs inputs;
  inputs.resolve = [&](const std::vector<arch::Override>& o) { return gpu(name, o); };
  inputs.double_batch = [&] { return std::optional(std::pair{workload("bert-base", false, 16), options(false, 16)}); };
  const auto all = sensitivities(g, options(false, 8), simulator, base.total, inputs);
  REQUIRE(all.size() == 6);
  for (std::size_t i = 1; i < all.size(); ++i) CHECK(all[i - 1].time_ratio <= all[i].time_ratio);
  for (const auto& s : all) {
    if (s.path == "gpu.dram.peak_bandwidth" || s.path == "host.launch_cost") CHECK(s.time_ratio <= 1 + 1e-9);
  }
}
