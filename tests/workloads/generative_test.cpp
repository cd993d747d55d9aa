// SPDX-License-Identifier: MIT
// Generative networks against published parameters and multiply-adds.
#include "tests/support/catch.hpp"
#include "tests/workloads/support.hpp"
#include "tests/workloads/training.hpp"

namespace voltaic::workloads {
namespace {

Workload of_image(const std::string& name, std::int64_t side, bool training = false, std::int64_t batch = 1) {
  BuildOptions options;
  options.training = training;
  options.batch = batch;
  options.image_height = side;
  options.image_width = side;
  return load_workload(name, options);
}

double macs_of(const Workload& workload, std::initializer_list<graph::OpFamily> families) {
  double total = 0;
  for (const auto& node : workload.graph.nodes()) {
    const bool counted = std::find(families.begin(), families.end(), graph::family(node.op)) != families.end();
    if (counted && node.op != graph::OpType::matmul) total += graph::count(workload.graph, node).mac;
  }
  return total;
}

}  // namespace

TEST_CASE("DCGAN has the parameters of its reference code", "[workloads][generative]") {
  CHECK(test::load("dcgan-generator").parameters == 3576704);
  CHECK(test::load("dcgan").parameters == 3576704 + 2765568);
}

TEST_CASE("a step of DCGAN draws once and judges three times", "[workloads][generative][mac]") {
  const double generator = 819200 + 3 * 33554432.0 + 3145728;
  const double discriminator = 1024.0 * 3 * 64 * 16 + 3 * 33554432.0 + 512 * 16;
  CHECK_THAT(test::macs(test::load("dcgan-generator")), WithinRel(generator, 1e-12));
  CHECK_THAT(test::macs(test::load("dcgan", true)), WithinRel(generator + 3 * discriminator, 1e-12));
}

TEST_CASE("StyleGAN2's generator has 30,370,060 parameters", "[workloads][generative]") {
  // 2,101,248 of them in the mapping network, as its reference code prints [Karras20].
  CHECK(test::load("stylegan2").parameters == 30370060);
}

TEST_CASE("StyleGAN2 multiplies 74 G times at 1024 and 45 G times at 256", "[workloads][generative][mac]") {
  // [LiuY21]: 74.27 G and 45.1 G, without the low-pass filters.
  CHECK_THAT(test::macs(test::load("stylegan2")), WithinRel(74.27e9, 0.02));
  CHECK_THAT(test::macs(of_image("stylegan2", 256)), WithinRel(45.1e9, 0.02));
}

TEST_CASE("a batch of StyleGAN2 is a convolution of that many groups", "[workloads][generative]") {
  const Workload four = of_image("stylegan2", 64, false, 4);
  std::int64_t grouped = 0;
  for (const auto& node : four.graph.nodes()) grouped += node.attributes.integer("groups", 1) == 4 ? 1 : 0;
  // 4x4: one layer and its colours; 8 to 64: two layers and colours each.
  CHECK(grouped == 2 + 4 * 3);
  CHECK(four.graph.tensor(four.graph.outputs.front()).shape == graph::Shape{4, 3, 64, 64});
  CHECK_THAT(test::macs(four), WithinRel(4 * test::macs(of_image("stylegan2", 64)), 1e-9));
}

TEST_CASE("the U-Net of Stable Diffusion 1.x has 859,520,964 parameters", "[workloads][generative]") {
  const Workload unet = test::load("stable-diffusion-unet");
  CHECK(unet.parameters == 859520964);
  CHECK(unet.graph.tensor(unet.graph.outputs.front()).shape == graph::Shape{1, 4, 64, 64});
}

TEST_CASE("a denoising step multiplies 339 G times outside attention products", "[workloads][generative][mac]") {
  // 338.7 G in layers with weights [Kim23]; with the products of queries, keys and values about 400 G.
  const Workload unet = test::load("stable-diffusion-unet");
  CHECK_THAT(macs_of(unet, {graph::OpFamily::convolution, graph::OpFamily::matrix}), WithinRel(338.7e9, 0.01));
  CHECK_THAT(test::macs(unet), WithinRel(401e9, 0.01));
}

TEST_CASE("fused attention leaves the work of the U-Net as it is", "[workloads][generative]") {
  BuildOptions options;
  options.attention = AttentionForm::flash;
  options.batch = 1;
  const Workload flash = load_workload("stable-diffusion-unet", options);
  CHECK_THAT(test::macs(flash), WithinRel(test::macs(test::load("stable-diffusion-unet")), 1e-9));
  CHECK(test::count_ops(flash, graph::OpType::attention) == 2 * 16);
  CHECK(test::count_ops(flash, graph::OpType::softmax) == 0);
}

TEST_CASE("training of generative networks reaches every parameter", "[workloads][generative][backward]") {
  for (const std::string name : {"dcgan", "dcgan-generator", "stylegan2", "stable-diffusion-unet"}) {
    CAPTURE(name);
    CHECK(test::untrained(test::load(name, true, 2)).empty());
  }
}

TEST_CASE("images that do not fit are refused by size", "[workloads][generative]") {
  CHECK(test::contains(test::message_of<ConfigError>([] { of_image("dcgan", 128); }), "dcgan: expected a 64x64 image"));
  CHECK(test::contains(test::message_of<ConfigError>([] { of_image("stylegan2", 100); }), "got 100x100"));
  CHECK(test::contains(test::message_of<ConfigError>([] { of_image("stylegan2", 2048); }), "got 2048x2048"));
  CHECK(test::contains(test::message_of<ConfigError>([] { of_image("stable-diffusion-unet", 500); }),
                       "multiples of 64, got 500x500"));
}

}  // namespace voltaic::workloads
