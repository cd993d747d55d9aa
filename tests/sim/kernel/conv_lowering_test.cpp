// SPDX-License-Identifier: MIT
#include <array>
#include <string>

#include "arch/loader.hpp"
#include "arch/units/error.hpp"
#include "sim/cost/engine.hpp"
#include "sim/kernel/lowering.hpp"
#include "tests/support/catch.hpp"

using namespace voltaic;
using kernel::ConvAlgorithm;
using kernel::ConvKernel;
using kernel::ConvPass;

namespace {

graph::TensorId tensor(graph::OpGraph& g, const char* name, graph::Shape shape, DataType type = DataType::fp32) {
  graph::Tensor t;
  t.name = name;
  t.shape = std::move(shape);
  t.dtype = type;
  t.role = graph::TensorRole::input;
  return g.add_tensor(std::move(t));
}

struct Case {
  graph::OpType op = graph::OpType::conv2d;
  std::vector<graph::Shape> inputs;
  graph::Attributes attributes;
  DataType type = DataType::fp32;
};

/// Lowers one node by itself; its output shape follows from the shape rule.
kernel::Lowered lowered(const Case& c, const arch::ResolvedGpu& gpu,
                        kernel::Framework framework = kernel::Framework::eager) {
  graph::OpGraph g;
  graph::Node node;
  node.id = "conv";
  node.op = c.op;
  node.attributes = c.attributes;
  node.compute = c.type;
  for (std::size_t i = 0; i < c.inputs.size(); ++i) {
    node.inputs.push_back(tensor(g, ("in" + std::to_string(i)).c_str(), c.inputs[i], c.type));
  }
  const std::array<std::string, 1> names{"y"};
  const auto id = graph::append(g, node, names);
  const auto library = cost::make_library(gpu);
  return kernel::lower_convolution(g, g.node(id), {gpu.spec, *library, framework});
}

graph::Attributes attributes(std::initializer_list<std::pair<const char*, graph::Attributes::Value>> list) {
  graph::Attributes a;
  for (const auto& [name, value] : list) a.set(name, value);
  return a;
}

const ConvKernel& conv(const kernel::Launch& launch) {
  return std::get<ConvKernel>(launch.detail);
}

const arch::ResolvedGpu& v100() {
  static const auto gpu = arch::resolve_gpu("v100-pcie-32gb");
  return gpu;
}

using List = std::vector<std::int64_t>;

}  // namespace

TEST_CASE("a 2-d convolution keeps its sizes and counts each operand once", "[kernel][conv]") {
  const auto out = lowered(
      {graph::OpType::conv2d, {{8, 64, 56, 56}, {128, 64, 1, 1}}, attributes({{"stride", std::int64_t{2}}})}, v100());
  REQUIRE(out.launches.size() == 1);
  const auto& launch = out.launches[0];
  const auto& p = conv(launch).problem;
  CHECK(p.out[1] == 28);
  CHECK(p.stride[2] == 2);
  CHECK(p.in[0] == 1);
  // 8 * 28 * 28 outputs * 128 filters * 64 channels.
  CHECK(launch.work.mac == 8.0 * 28 * 28 * 128 * 64);
  CHECK(launch.work.read.value == 4.0 * (8 * 64 * 56 * 56 + 128 * 64));
  CHECK(launch.work.written.value == 4.0 * 8 * 128 * 28 * 28);
  CHECK(launch.family == "conv_simt");
}

TEST_CASE("Winograd kernels count the multiplications they spend, 2.25 or 4 times fewer than the definition",
          "[kernel][conv]") {
  const auto out = lowered(
      {graph::OpType::conv2d, {{16, 256, 32, 32}, {256, 256, 3, 3}}, attributes({{"padding", std::int64_t{1}}})},
      v100());
  const double direct = 16.0 * 32 * 32 * 256 * 256 * 9;
  const auto& launch = out.launches.at(0);
  if (conv(launch).algorithm == ConvAlgorithm::winograd_fused)
    CHECK_THAT(launch.work.mac, WithinRel(direct / 2.25, 1e-12));
  if (conv(launch).algorithm == ConvAlgorithm::winograd_nonfused)
    CHECK_THAT(launch.work.mac, WithinRel(direct / 4, 1e-12));
  CHECK(launch.work.mac < direct);
}

TEST_CASE("a transposed convolution is the data gradient of its mirror, and its own data gradient runs forward",
          "[kernel][conv]") {
  const auto up = lowered(
      {graph::OpType::conv_transpose2d, {{2, 64, 16, 16}, {64, 32, 2, 2}}, attributes({{"stride", std::int64_t{2}}})},
      v100());
  const auto& p = conv(up.launches.at(0)).problem;
  CHECK(p.pass == ConvPass::dgrad);
  CHECK(p.c == 32);
  CHECK(p.k == 64);
  CHECK(p.in[1] == 32);
  CHECK(p.out[1] == 16);
  const auto back = lowered(
      {graph::OpType::conv_dgrad,
       {{2, 32, 32, 32}, {64, 32, 2, 2}},
       attributes(
           {{"stride", std::int64_t{2}}, {"transposed", std::int64_t{1}}, {"input_shape", List{2, 64, 16, 16}}})},
      v100());
  const auto& q = conv(back.launches.at(0)).problem;
  CHECK(q.pass == ConvPass::forward);
  CHECK(q.c == 32);
  CHECK(q.k == 64);
  CHECK(q.out[1] == 16);
  // Both do 2 * 16 * 16 * 64 * 32 * 4 multiply-adds.
  CHECK(up.launches[0].work.mac == 2.0 * 16 * 16 * 64 * 32 * 4);
  CHECK(back.launches[0].work.mac == up.launches[0].work.mac);
}

TEST_CASE("forward, data gradient and filter gradient of one layer need equal arithmetic", "[kernel][conv]") {
  const graph::Shape x{4, 24, 30, 30};
  const graph::Shape w{48, 24, 5, 1};
  const graph::Shape y{4, 48, 26, 30};
  const auto mac = [&](Case c) { return lowered(c, v100()).launches.at(0).work.mac; };
  const double forward = mac({graph::OpType::conv2d, {x, w}, {}});
  CHECK(forward == 4.0 * 26 * 30 * 48 * 24 * 5);
  CHECK(mac({graph::OpType::conv_dgrad, {y, w}, attributes({{"input_shape", List{4, 24, 30, 30}}})}) == forward);
  CHECK(mac({graph::OpType::conv_wgrad, {x, y}, attributes({{"filter_shape", List{48, 24, 5, 1}}})}) == forward);
}

TEST_CASE("1-d and 3-d convolutions, groups and depthwise have their kernels", "[kernel][conv]") {
  const auto speech = lowered(
      {graph::OpType::conv1d, {{4, 80, 3000}, {384, 80, 3}}, attributes({{"padding", std::int64_t{1}}})}, v100());
  CHECK(speech.launches.at(0).work.mac == 4.0 * 3000 * 384 * 80 * 3);
  const auto volume = lowered({graph::OpType::conv3d, {{1, 4, 16, 32, 32}, {8, 4, 3, 3, 3}}, {}}, v100());
  CHECK(volume.launches.at(0).work.mac == 14.0 * 30 * 30 * 8 * 4 * 27);
  const auto grouped = lowered({graph::OpType::conv2d,
                                {{4, 128, 28, 28}, {128, 4, 3, 3}},
                                attributes({{"groups", std::int64_t{32}}, {"padding", std::int64_t{1}}})},
                               v100());
  CHECK(grouped.launches.at(0).grid[2] == 32);
  CHECK(grouped.launches[0].work.mac == 4.0 * 28 * 28 * 128 * 4 * 9);
  const auto depthwise = lowered({graph::OpType::conv2d,
                                  {{4, 128, 28, 28}, {128, 1, 3, 3}},
                                  attributes({{"groups", std::int64_t{128}}, {"padding", std::int64_t{1}}}),
                                  DataType::fp16},
                                 v100());
  CHECK(conv(depthwise.launches.at(0)).algorithm == ConvAlgorithm::direct_depthwise);
  CHECK_FALSE(depthwise.launches[0].tensor_cores);
  CHECK(depthwise.launches[0].family == "conv_depthwise");
}

TEST_CASE("a bias is one more kernel in eager mode and none where a compiler fuses it", "[kernel][conv]") {
  const Case c{graph::OpType::conv2d, {{2, 8, 16, 16}, {16, 8, 3, 3}, {16}}, {}};
  const auto eager = lowered(c, v100());
  REQUIRE(eager.launches.size() == 2);
  // Reads and writes 2 * 16 * 14 * 14 outputs, and 16 biases.
  CHECK(eager.launches[1].work.traffic().value == 4.0 * (2 * 2 * 16 * 14 * 14 + 16));
  CHECK(lowered(c, v100(), kernel::Framework::compiled).launches.size() == 1);
}

TEST_CASE("half precision takes tensor cores and their names, unless they are switched off", "[kernel][conv]") {
  const Case c{graph::OpType::conv2d,
               {{32, 64, 56, 56}, {64, 64, 3, 3}},
               attributes({{"padding", std::int64_t{1}}}),
               DataType::fp16};
  const auto on = lowered(c, v100());
  CHECK(on.launches.at(0).tensor_cores);
  CHECK(on.launches[0].name.find("volta_fp16_s884cudnn") == 0);
  const auto off = arch::resolve_gpu("v100-pcie-32gb", {arch::parse_override("gpu.sm.tensor_cores=0")});
  CHECK_FALSE(lowered(c, off).launches.at(0).tensor_cores);
}

TEST_CASE("a type the GPU cannot multiply is refused by name with what it has", "[kernel][conv]") {
  const Case c{graph::OpType::conv2d, {{1, 8, 8, 8}, {8, 8, 3, 3}}, {}, DataType::fp8};
  try {
    lowered(c, v100());
    FAIL("expected UnsupportedError");
  } catch (const UnsupportedError& e) {
    CHECK(std::string(e.what()).find("cannot multiply in fp8; it multiplies in") != std::string::npos);
  }
}

TEST_CASE("an empty batch launches nothing", "[kernel][conv]") {
  CHECK(lowered({graph::OpType::conv2d, {{0, 8, 8, 8}, {8, 8, 3, 3}}, {}}, v100()).launches.empty());
}
