// SPDX-License-Identifier: MIT
// Segmentation networks against published parameters and against multiply-adds counted by hand.
#include <array>
#include <cmath>
#include <utility>

#include "sim/graph/passes.hpp"
#include "tests/support/catch.hpp"
#include "tests/workloads/support.hpp"

namespace voltaic::workloads {

using test::load;
using test::macs;

namespace {

/// Padded U-Net: two convolutions of `taps` per level each way, one transposed convolution and one classifier, on
/// `places` at the finest level and 1/`shrink` of them at each next one.
double unet_macs(const std::vector<double>& filters, double channels, double classes, double places, double taps,
                 double shrink) {
  double total = classes * filters[0] * places;
  double in = channels;
  for (std::size_t i = 0; i < filters.size(); ++i) {
    const double at = places / std::pow(shrink, i);
    const double f = filters[i];
    total += (in * f + f * f) * taps * at;
    if (i + 1 < filters.size()) total += (filters[i + 1] * f + 3 * f * f * taps) * at;
    in = f;
  }
  return total;
}

}  // namespace

TEST_CASE("segmentation networks have their published parameters", "[workloads][segmentation]") {
  const std::vector<std::pair<std::string, std::int64_t>> published{
      {"unet", 31037698},          // the public PyTorch U-Net: 31.037698 M with RGB and 2 classes
      {"unet-medical", 31030658},  // 31,030,593 with one class, as often quoted; a second class adds 65
      {"nnunet-3d", 31199796},     // 31.2 M in comparisons of nnU-Net with later networks [Roy23]
  };
  for (const auto& [name, parameters] : published) {
    CAPTURE(name);
    CHECK(load(name).parameters == parameters);
    CHECK(load(name, true).parameters == parameters);
  }
  // 32 to 256 filters; a published copy of its model takes 7.45 MB in fp32, with its graph: 1.86 M.
  CHECK(load("unet-industrial").parameters == 1925025);
  CHECK_THAT(static_cast<double>(load("unet-industrial").parameters), WithinRel(1.86e6, 0.04));
  // The self-configuring network less biases in front of its norms (3,840 + 4 classifiers), one class fewer.
  CHECK(load("unet3d").parameters == 31192835);
}

TEST_CASE("multiply-adds of the U-Nets follow from their shapes", "[workloads][segmentation][mac]") {
  CHECK_THAT(macs(load("unet")), WithinRel(unet_macs({64, 128, 256, 512, 1024}, 3, 2, 512 * 512, 9, 4), 1e-12));
  CHECK_THAT(macs(load("unet-industrial")), WithinRel(unet_macs({32, 64, 128, 256}, 1, 1, 512 * 512, 9, 4), 1e-12));
  CHECK_THAT(macs(load("nnunet-2d")), WithinRel(unet_macs({32, 64, 128, 256, 512, 512}, 4, 4, 192 * 160, 9, 4), 1e-12));
  const double volume = std::pow(128.0, 3);
  const std::vector<double> filters{32, 64, 128, 256, 320, 320};
  CHECK_THAT(macs(load("nnunet-3d")), WithinRel(unet_macs(filters, 4, 4, volume, 27, 8), 1e-12));
  CHECK_THAT(macs(load("unet3d")), WithinRel(unet_macs(filters, 4, 3, volume, 27, 8), 1e-12));
}

TEST_CASE("the unpadded U-Net turns 572 pixels into 388, as published", "[workloads][segmentation]") {
  const Workload workload = load("unet-medical", true, 2);
  CHECK(workload.graph.tensor(workload.graph.outputs.front()).shape == graph::Shape{2, 2, 388, 388});
  BuildOptions options;
  options.image_height = options.image_width = 512;
  CHECK(test::message_of<ConfigError>([&] { load_workload("unet-medical", options); }) ==
        "unet-medical: expected sides of 188 + 16 k, which unpadded convolutions halve evenly (508 or 524), got 512");
  options.image_height = options.image_width = 188;
  options.training = true;
  const Workload least = load_workload("unet-medical", options);
  CHECK(least.graph.tensor(least.graph.outputs.front()).shape == graph::Shape{1, 2, 4, 4});
}

TEST_CASE("volumes take a depth, and sides that halve", "[workloads][segmentation]") {
  BuildOptions options;
  options.image_height = options.image_width = 224;
  options.dims["depth"] = 160;
  options.training = true;
  const Workload workload = load_workload("unet3d", options);
  CHECK(workload.graph.tensor(workload.graph.outputs.front()).shape == graph::Shape{1, 3, 160, 224, 224});
  options.dims["depth"] = 100;
  CHECK(test::message_of<ConfigError>([&] { load_workload("unet3d", options); }) ==
        "unet3d: expected a depth that 32 divides (96 or 128), got 100");
  options.dims.clear();
  options.image_width = 10;
  CHECK(test::message_of<ConfigError>([&] { load_workload("nnunet-2d", options); }) ==
        "nnunet-2d: expected a width that 32 divides (32), got 10");
  options.dims["depth"] = 32;
  CHECK(test::contains(test::message_of<UsageError>([&] { load_workload("nnunet-2d", options); }), "no such dim"));
}

TEST_CASE("V-Net of three levels adds up", "[workloads][segmentation]") {
  // Stages of 1, 2, 3, 3 convolutions down and 3, 2, 1 up, steps of 2x2x2, norms, three classes from 32 channels.
  std::int64_t expected = 32 * 3 + 3;
  const auto stage = [&](std::int64_t in, std::int64_t width, std::int64_t count) {
    expected += 27 * (in * width + (count - 1) * width * width) + 2 * width * count;
  };
  const auto step = [&](std::int64_t in, std::int64_t out) { expected += 8 * in * out + 2 * out; };
  stage(1, 16, 1);
  for (const auto& [width, count] : {std::pair{32, 2}, {64, 3}, {128, 3}}) {
    step(width / 2, width);
    stage(width, width, count);
  }
  for (const auto& [in, width, count] : {std::array{128, 128, 3}, {128, 64, 2}, {64, 32, 1}}) {
    step(in, width / 2);
    stage(width, width, count);
  }
  CHECK(load("vnet").parameters == expected);
  const Workload workload = load("vnet", true, 2);
  CHECK(workload.graph.tensor(workload.graph.outputs.front()).shape == graph::Shape{2, 3, 32, 32, 32});
}

TEST_CASE("deep supervision trains five resolutions and infers one", "[workloads][segmentation]") {
  CHECK(test::count_ops(load("nnunet-3d", true), graph::OpType::cross_entropy) == 5);
  CHECK(test::count_ops(load("nnunet-3d"), graph::OpType::cross_entropy) == 0);
  CHECK(test::count_ops(load("nnunet-3d", true), graph::OpType::conv3d) == 22 + 5);
  CHECK(test::count_ops(load("nnunet-3d"), graph::OpType::conv3d) == 22 + 1);
}

TEST_CASE("segmentation networks have a gradient", "[workloads][segmentation]") {
  for (const std::string name :
       {"unet", "unet-medical", "unet-industrial", "unet3d", "nnunet-2d", "nnunet-3d", "vnet"}) {
    CAPTURE(name);
    Workload workload = load(name, true, 2);
    REQUIRE_NOTHROW(graph::append_backward(workload.graph, {}));
  }
}

}  // namespace voltaic::workloads
