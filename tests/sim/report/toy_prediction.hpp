// SPDX-License-Identifier: MIT
// A prediction with round figures, made by hand: two layers, three kernels, two of them equal.
#pragma once

#include "sim/report/prediction.hpp"

namespace voltaic::test {

inline report::KernelRow toy_kernel(const char* name, double microseconds, kernel::Bound bound) {
  report::KernelRow k;
  k.launch.name = name;
  k.launch.library = "toy";
  k.launch.family = "toy";
  k.launch.grid[0] = 12;
  k.launch.work.mac = 1000;
  k.launch.work.other_flop = 10;
  k.cost.time = Seconds{microseconds / 1e6};
  k.cost.roofline = k.cost.time / 2.0;
  k.cost.leg(bound) = k.cost.time / 2.0;
  k.cost.clock = Hertz{1e9};
  k.cost.waves = 0.5;
  k.cost.ctas_per_sm = 2;
  k.cost.occupancy = 0.25;
  k.cost.dram_traffic = Bytes{4096};
  return k;
}

/// 40 us: host exposed 10, kernels 10 + 10 + 8 = 28, idle 2. Both linears are one distinct node.
inline report::Prediction toy_prediction() {
  report::Prediction p;
  p.graph.name = "toy \"net\"";
  graph::Tensor x{"x", {4, 8}, DataType::fp32, graph::TensorRole::input, graph::kNoNode, true};
  auto t = p.graph.add_tensor(x);
  const auto add = [&](const char* id, graph::OpType op, const char* layer) {
    graph::Node n;
    n.id = id;
    n.op = op;
    n.layer = layer;
    n.inputs = {t};
    graph::Tensor y = x;
    y.name = std::string(id) + ".y";
    y.role = graph::TensorRole::activation;
    t = p.graph.add_tensor(y);
    n.outputs = {t};
    p.graph.add_node(std::move(n));
  };
  add("fc1", graph::OpType::linear, "block.0");
  add("fc2", graph::OpType::linear, "block.1");
  add("act", graph::OpType::gelu, "block.1");
  p.distinct.resize(2);
  p.distinct[0].kernels = {toy_kernel("toy_gemm", 10, kernel::Bound::fma)};
  p.distinct[0].gpu_time = Seconds{10e-6};
  p.distinct[1].kernels = {toy_kernel("toy_gelu", 8, kernel::Bound::dram)};
  p.distinct[1].gpu_time = Seconds{8e-6};
  p.nodes = {{0, 0}, {1, 0}, {2, 1}};
  p.layers = {{"block.0", "linear", graph::Phase::forward, {0}, Seconds{10e-6}, 2000, 1000, 10},
              {"block.1", "block", graph::Phase::forward, {1, 2}, Seconds{18e-6}, 2000, 1000, 10}};
  const auto us = [](std::int64_t t_us) { return engine::SimTime{t_us * 1'000'000}; };
  p.timeline.host = {{0, us(0), us(6)}, {1, us(6), us(12)}, {2, us(12), us(18)}};
  p.timeline.kernels = {{0, 0, 0, us(10), us(20)}, {1, 0, 0, us(21), us(31)}, {2, 0, 0, us(32), us(40)}};
  p.timeline.total = us(40);
  p.workload = p.graph.name;
  p.gpu = "toy-gpu";
  p.calibration_id = "toy 2026-11-30";
  p.request = {{"workload", "toy"}, {"batch", "4"}, {"quiet", "true"}, {"precision", "fp32"}, {"version", "01"}};
  p.assumptions = {"everything"};
  p.total = p.forward = Seconds{40e-6};
  p.share_kernels = 0.7;
  p.share_host_exposed = 0.25;
  p.share_idle = 0.05;
  p.interval = {Seconds{36e-6}, Seconds{44e-6}, 0.9, "interpolated"};
  p.samples_per_s = 1e5;
  p.global_batch = 4;
  p.mac = 2000;
  p.flop = 4000;
  p.peak = FlopsPerSecond{1e12};
  p.peak_name = "fp32";
  p.model_flop_utilization = 1e-4;
  p.memory.weights = 1 << 20;
  p.memory.capacity = std::int64_t{1} << 34;
  p.energy_j.reason = p.average_power_w.reason = p.co2_g.reason = "no power model";
  p.cost_usd.value = 1.5e-8;
  p.bound[static_cast<std::size_t>(kernel::Bound::fma)] = 0.5;
  p.bound[static_cast<std::size_t>(kernel::Bound::dram)] = 0.2;
  p.bound[kernel::kBounds] = 0.3;
  p.unmodelled = {{"topk", 2, "no rule", 128}};
  return p;
}

}  // namespace voltaic::test
