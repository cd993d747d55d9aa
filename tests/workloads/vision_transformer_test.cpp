// SPDX-License-Identifier: MIT
// Vision transformers against the figures of their papers and model cards.
#include "sim/graph/passes.hpp"
#include "tests/support/catch.hpp"
#include "tests/workloads/support.hpp"

namespace voltaic::workloads {

using test::load;

TEST_CASE("Swin transformers have the published parameters and multiply-adds", "[workloads][swin]") {
  // [Liu21] table 1 rounds to 28 M and 4.5 G, 50 M and 8.7 G, 88 M and 15.4 G; torchvision's model cards give them in
  // full.
  const std::vector<std::tuple<std::string, std::int64_t, double>> published{
      {"swin-t", 28288354, 4.491}, {"swin-s", 49606258, 8.741}, {"swin-b", 87768224, 15.431}};
  for (const auto& [name, parameters, giga] : published) {
    CAPTURE(name);
    CHECK(load(name).parameters == parameters);
    CHECK(load(name, true).parameters == parameters);
    CHECK_THAT(test::macs(load(name)) / 1e9, WithinRel(giga, 2e-4));
  }
}

TEST_CASE("vision transformers of other sizes have the published parameters", "[workloads][vit]") {
  const std::vector<std::pair<std::string, std::int64_t>> published{
      {"vit-b16", 86567656}, {"vit-b32", 88224232}, {"vit-l16", 304326632}, {"vit-h14", 632045800}};
  for (const auto& [name, parameters] : published) {
    CAPTURE(name);
    CHECK(load(name).parameters == parameters);
  }
  // Multiply-adds of torchvision's model cards.
  CHECK_THAT(test::macs(load("vit-b16")) / 1e9, WithinRel(17.564, 2e-4));
  CHECK_THAT(test::macs(load("vit-b32")) / 1e9, WithinRel(4.409, 2e-4));
  CHECK_THAT(test::macs(load("vit-l16")) / 1e9, WithinRel(61.555, 2e-4));
  CHECK_THAT(test::macs(load("vit-h14")) / 1e9, WithinRel(167.295, 2e-4));
}

TEST_CASE("a shifted window costs four copies of the map and a mask; the last stage has one window and no shift",
          "[workloads][swin]") {
  const Workload workload = load("swin-t", false, 2);
  const std::vector<std::string> plain{"layer_norm", "contiguous", "linear", "mul_scalar", "contiguous",
                                       "contiguous", "matmul",     "gather", "contiguous", "add",
                                       "softmax",    "contiguous", "matmul", "contiguous", "linear",
                                       "contiguous", "add"};
  CHECK(test::kernels_of(workload, "layers.0.blocks.0.attn") == plain);
  CHECK(test::kernels_of(workload, "layers.0.blocks.1.attn").size() == plain.size() + 5);
  CHECK(test::kernels_of(workload, "layers.3.blocks.1.attn") == plain);
}

TEST_CASE("Swin training differentiates, and a shift goes back as it came", "[workloads][swin]") {
  Workload workload = load("swin-t", true, 2);
  const std::int64_t forward = test::count_ops(workload, graph::OpType::concat);
  graph::append_backward(workload.graph, {});
  // 4 copies in each of 5 shifted blocks go back as 4 concatenations; the three merges go back as padded slices.
  CHECK(forward == 5 * 4 + 3);
  CHECK(test::count_ops(workload, graph::OpType::concat) > forward + 5 * 4);
}

TEST_CASE("Swin refuses images that windows do not fill", "[workloads][swin]") {
  BuildOptions options;
  options.image_height = options.image_width = 256;
  const std::string message = test::message_of<ConfigError>([&] { load_workload("swin-t", options); });
  CHECK(test::contains(message, "swin-t: expected an image with sides that are multiples of 224"));
  CHECK(test::contains(message, "got 256x256"));
  options.image_height = options.image_width = 448;
  CHECK(load_workload("swin-t", options).parameters == 28288354);
}

}  // namespace voltaic::workloads
