// SPDX-License-Identifier: MIT
// Detectors against published parameters and multiply-adds.
#include <set>

#include "sim/graph/passes.hpp"
#include "tests/support/catch.hpp"
#include "tests/workloads/support.hpp"

namespace voltaic::workloads {

using test::load;
using test::macs;

namespace {

Workload sized(const std::string& name, std::int64_t height, std::int64_t width, bool training = false) {
  BuildOptions options;
  options.training = training;
  options.batch = 1;
  options.image_height = height;
  options.image_width = width;
  return load_workload(name, options);
}

double macs_of(const Workload& workload, const std::string& layer) {
  double total = 0;
  for (const auto& node : workload.graph.nodes()) {
    if (node.layer.starts_with(layer)) total += graph::count(workload.graph, node).mac;
  }
  return total;
}

graph::Shape shape_of(const Workload& workload, const std::string& tensor) {
  for (const auto& t : workload.graph.tensors()) {
    if (t.name == tensor) return t.shape;
  }
  return {};
}

}  // namespace

TEST_CASE("detectors have their published parameters", "[workloads][detection]") {
  const std::vector<std::pair<std::string, std::int64_t>> published{
      {"ssd300", 35641826},          // torchvision ssd300_vgg16, COCO_V1
      {"retinanet", 34014999},       // torchvision retinanet_resnet50_fpn, COCO_V1
      {"mask-rcnn", 44401393},       // torchvision maskrcnn_resnet50_fpn, COCO_V1
      {"efficientdet-d0", 3880067},  // timm's tf_efficientdet_d0; 3.9 M in the paper
  };
  for (const auto& [name, parameters] : published) {
    CAPTURE(name);
    CHECK(load(name).parameters == parameters);
    CHECK(load(name, true).parameters == parameters);
  }
}

TEST_CASE("detectors do their published multiply-adds", "[workloads][detection][mac]") {
  // torchvision's table: 34.858 G for ssd300_vgg16. The paper of EfficientDet: 2.5 G.
  CHECK_THAT(macs(load("ssd300")), WithinRel(34.858e9, 0.002));
  CHECK_THAT(macs(load("efficientdet-d0")), WithinRel(2.5e9, 0.02));
  // MMDetection's model page: 260.14 G for Mask R-CNN at 1280x800 with 80 classes, the class scores of 11 more are
  // here: 1000 boxes of 5 * 11 * 1024 and 100 masks of 28 * 28 * 11 * 256.
  const double more = 1000.0 * 5 * 10 * 1024 + 100.0 * 28 * 28 * 11 * 256;
  CHECK_THAT(macs(sized("mask-rcnn", 800, 1280)) - more, WithinRel(260.14e9, 0.005));
}

TEST_CASE("SSD places 8732 default boxes, on either backbone", "[workloads][detection]") {
  CHECK(shape_of(load("ssd300"), "head.scores") == graph::Shape{1, 8732, 91});
  CHECK(shape_of(load("ssd300-resnet50", true, 2), "head.scores") == graph::Shape{2, 81, 8732});
  CHECK(shape_of(load("ssd300-resnet50"), "layer3.5.relu3") == graph::Shape{1, 1024, 38, 38});
}

TEST_CASE("the layers of SSD on ResNet-50 add up", "[workloads][detection]") {
  // ResNet-50 without its last stage and classifier; five pairs of convolutions with norms; heads of (4 + 81) values.
  const std::int64_t backbone = 25557032 - 2049000 - 14964736;
  std::int64_t expected = backbone;
  const std::vector<std::array<std::int64_t, 3>> extra{
      {1024, 256, 512}, {512, 256, 512}, {512, 128, 256}, {256, 128, 256}, {256, 128, 256}};
  for (const auto& [in, inner, out] : extra) expected += in * inner + inner * out * 9 + 2 * (inner + out);
  const std::vector<std::array<std::int64_t, 2>> heads{{1024, 4}, {512, 6}, {512, 6}, {256, 6}, {256, 4}, {256, 4}};
  for (const auto& [in, boxes] : heads) expected += (in * 9 + 1) * boxes * 85;
  CHECK(load("ssd300-resnet50").parameters == expected);
}

TEST_CASE("pyramid detectors place their anchors", "[workloads][detection]") {
  CHECK(shape_of(load("ssd320-resnet50-fpn"), "classes.boxes") == graph::Shape{1, 2134 * 6, 90});
  CHECK(shape_of(load("efficientdet-d0"), "classes.boxes") == graph::Shape{1, 49104, 90});
  CHECK(shape_of(sized("retinanet", 320, 320), "classes.boxes") == graph::Shape{1, 2134 * 9, 91});
}

TEST_CASE("Mask R-CNN has 1000 boxes and 100 masks in inference, 512 and 128 in training", "[workloads][detection]") {
  const Workload inference = load("mask-rcnn", false, 2);
  CHECK(shape_of(inference, "box_head.regions") == graph::Shape{2000, 256, 7, 7});
  CHECK(shape_of(inference, "mask_head.classes") == graph::Shape{200, 91, 28, 28});
  const Workload training = load("mask-rcnn", true, 2);
  CHECK(shape_of(training, "box_head.regions") == graph::Shape{1024, 256, 7, 7});
  CHECK(shape_of(training, "mask_head.classes") == graph::Shape{256, 91, 28, 28});
  // 1000 boxes through 12544 x 1024, 1024 x 1024 and 1024 x (91 + 364).
  CHECK(macs_of(inference, "box_head") == 2000.0 * (12544 + 1024 + 455) * 1024);
  CHECK(test::count_ops(inference, graph::OpType::nms) == 2 * 2);
}

TEST_CASE("names of tensors are unique in networks of images", "[workloads][detection]") {
  for (const std::string name : {"resnet50", "inception-v3", "ssd300", "efficientdet-d0", "mask-rcnn", "nnunet-3d"}) {
    CAPTURE(name);
    const Workload workload = load(name, true, 2);
    std::set<std::string> names;
    for (const auto& tensor : workload.graph.tensors()) CHECK(names.insert(tensor.name).second);
  }
}

TEST_CASE("frozen layers of a detector get no gradient", "[workloads][detection]") {
  Workload workload = sized("mask-rcnn", 128, 128, true);
  const auto forward = workload.graph.nodes().size();
  graph::append_backward(workload.graph, {});
  std::size_t frozen = 0;
  for (std::size_t n = forward; n < workload.graph.nodes().size(); ++n) {
    const auto& layer = workload.graph.nodes()[n].layer;
    if (layer.starts_with("stem") || layer.starts_with("layer1")) ++frozen;
  }
  CHECK(frozen == 0);
}

TEST_CASE("detectors have a gradient", "[workloads][detection]") {
  for (const std::string name :
       {"ssd300", "ssd300-resnet50", "ssd320-resnet50-fpn", "retinanet", "efficientdet-d0", "mask-rcnn"}) {
    CAPTURE(name);
    Workload workload = load(name, true, 2);
    REQUIRE_NOTHROW(graph::append_backward(workload.graph, {}));
  }
}

TEST_CASE("detectors refuse or pad the images that do not fit, by name", "[workloads][detection]") {
  const auto refusal = [](const std::string& name, std::int64_t height, std::int64_t width) {
    return test::message_of<ConfigError>([&] { sized(name, height, width); });
  };
  CHECK(refusal("ssd300", 512, 512) ==
        "ssd300: expected a 300x300 image (its default boxes are laid out for it), got 512x512");
  CHECK(refusal("efficientdet-d0", 512, 600) ==
        "efficientdet-d0: expected a width that 128 divides (512 or 640), got 600");
  CHECK(refusal("mask-rcnn", 800, 1333).empty());
  CHECK(sized("mask-rcnn", 800, 1333).assumptions.back() == "image padded to 800x1344");
  CHECK(refusal("mask-rcnn", 1, 1).empty());
  CHECK(test::message_of<ConfigError>([&] { load("mask-rcnn", false, 5000); }) ==
        "mask-rcnn: expected a batch of at most 1024 images, got 5000");
}

}  // namespace voltaic::workloads
