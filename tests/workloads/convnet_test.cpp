// SPDX-License-Identifier: MIT
// Classifiers against the parameters and multiply-adds that their publishers state.
#include "sim/graph/passes.hpp"
#include "tests/support/catch.hpp"
#include "tests/workloads/support.hpp"

namespace voltaic::workloads {

using test::load;
using test::macs;

namespace {

struct Published {
  std::string name;
  std::int64_t parameters = 0;
  double gmac = 0;
  double tolerance = 0.002;  ///< The publisher rounds, or counts a little more than products.
};

const std::vector<Published>& published() {
  // torchvision's tables of pre-trained weights (num_params and GFLOPS, which there are multiply-adds); for
  // resnext101-32x4d and se-resnext101-32x4d timm's (44.18 M, 8.01 G; 48.96 M, 8.02 G).
  static const std::vector<Published> rows{{"resnet18", 11689512, 1.814},
                                           {"resnet34", 21797672, 3.664},
                                           {"resnet50", 25557032, 4.089},
                                           {"resnet101", 44549160, 7.801},
                                           {"resnet152", 60192808, 11.514},
                                           {"resnext50-32x4d", 25028904, 4.230},
                                           {"resnext101-32x4d", 44177704, 8.01, 0.01},
                                           {"se-resnext101-32x4d", 48955416, 8.02, 0.01},
                                           {"vgg16", 138357544, 15.470},
                                           {"vgg19", 143667240, 19.632},
                                           {"densenet121", 7978856, 2.834},
                                           {"inception-v3", 27161264, 5.713},
                                           {"mobilenet-v2", 3504872, 0.301, 0.005},
                                           {"efficientnet-b0", 5288548, 0.386, 0.005},
                                           {"efficientnet-b4", 19341616, 4.394},
                                           {"efficientnet-v2-s", 21458488, 8.366}};
  return rows;
}

}  // namespace

TEST_CASE("each classifier has its published parameters, in training and in inference", "[workloads][convnet]") {
  for (const Published& row : published()) {
    CAPTURE(row.name);
    CHECK(load(row.name).parameters == row.parameters);
    CHECK(load(row.name, true).parameters == row.parameters);
  }
}

TEST_CASE("each classifier does its published multiply-adds", "[workloads][convnet][mac]") {
  for (const Published& row : published()) {
    CAPTURE(row.name);
    CHECK_THAT(macs(load(row.name)), WithinRel(row.gmac * 1e9, row.tolerance));
  }
}

TEST_CASE("each classifier gives a score per class and has a gradient", "[workloads][convnet]") {
  for (const Published& row : published()) {
    CAPTURE(row.name);
    Workload workload = load(row.name, true, 2);
    CHECK(workload.graph.tensor(workload.graph.outputs.front()).shape == graph::Shape{2, 1000});
    REQUIRE_NOTHROW(graph::append_backward(workload.graph, {}));
  }
}

TEST_CASE("wide gates cost parameters, not multiply-adds", "[workloads][convnet]") {
  // A gate of width s over c channels: 2 c s + c + s. Stage by stage of B0 (inner c, block's input i, s = i / 4 or c /
  // 4).
  const std::int64_t extra = load("efficientnet-widese-b0").parameters - load("efficientnet-b0").parameters;
  std::int64_t expected = 0;
  const std::vector<std::array<std::int64_t, 3>> blocks{{32, 32, 1},  {96, 16, 1},   {144, 24, 2},  {240, 40, 2},
                                                        {480, 80, 3}, {672, 112, 3}, {1152, 192, 4}};
  for (const auto& [c, i, count] : blocks) expected += count * (c / 4 - i / 4) * (2 * c + 1);
  CHECK(extra == expected);
  const double wide = macs(load("efficientnet-widese-b0"));
  CHECK(wide < 1.02 * macs(load("efficientnet-b0")));
}

TEST_CASE("a grouped network does a group's share of the products", "[workloads][convnet]") {
  // Its 3x3 convolutions are twice as wide and 32 times grouped: near the work of the plain network, as published.
  CHECK_THAT(macs(load("resnext101-32x4d")), WithinRel(macs(load("resnet101")), 0.03));
}

TEST_CASE("only training runs an auxiliary classifier and drops paths", "[workloads][convnet]") {
  const double difference = macs(load("inception-v3", true)) - macs(load("inception-v3"));
  // 5x5 maps: 128 of 768 channels, then 5x5 filters on one place, then 1000 classes.
  CHECK(difference == 25.0 * 768 * 128 + 25.0 * 128 * 768 + 768.0 * 1000);
  CHECK(test::count_ops(load("efficientnet-b0", true), graph::OpType::fill) == 9);  // 16 blocks, 7 of them not residual
  CHECK(test::count_ops(load("efficientnet-b0"), graph::OpType::fill) == 0);
}

TEST_CASE("image sizes that a classifier cannot take are refused by name", "[workloads][convnet]") {
  BuildOptions options;
  options.image_height = 224;
  options.image_width = 256;
  const auto refusal = [&](const char* name) {
    return test::message_of<ConfigError>([&] { load_workload(name, options); });
  };
  CHECK(refusal("vgg19") == "vgg19: expected a 224x224 image (its classifier reads 7x7 features), got 224x256");
  CHECK(refusal("resnet50").empty());
  options.image_height = options.image_width = 32;
  CHECK(test::contains(refusal("inception-v3"), "inception-v3: mixed6a.branch3x3/inputs/0: conv2d"));
  CHECK(refusal("resnet50").empty());
}

}  // namespace voltaic::workloads
