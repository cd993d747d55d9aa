// SPDX-License-Identifier: MIT
// DCGAN [Radford16] for 64x64 images: five transposed convolutions from 100 numbers to an image, five strided ones from
// an image to a verdict. A training step of `dcgan` holds what the usual script runs: the discriminator on real images
// and on generated ones that no gradient leaves, then the generator through the discriminator.
#include <array>

#include "arch/units/error.hpp"
#include "workloads/attention_block.hpp"
#include "workloads/generative.hpp"
#include "workloads/shared_layers.hpp"
#include "workloads/sizes.hpp"

namespace voltaic::workloads {
namespace {

constexpr Dim kImage = 64;
constexpr Dim kLatent = 100;
constexpr Dim kWidth = 64;

ImageSizes own_size(const BuildOptions& options, Workload& workload) {
  const ImageSizes sizes = resolve_image(options, kImage, workload);
  if (sizes.height == kImage && sizes.width == kImage) return sizes;
  throw ConfigError(workload.name, "",
                    "expected a 64x64 image (five layers double 4x4 four times), got " + std::to_string(sizes.height) +
                        "x" + std::to_string(sizes.width));
}

TensorId generate(GraphWriter& w, Dim batch) {
  w.scope("generator");
  TensorId x = w.input("noise", {batch, kLatent, 1, 1});
  for (Dim i = 1; i <= 5; ++i) {
    const std::string number = std::to_string(i);
    const Dim out = i < 5 ? kWidth << (4 - i) : 3;
    x = conv_transpose(w, "conv" + number, x, out, 4,
                       i == 1 ? TransposedLayer{} : TransposedLayer{.stride = 2, .padding = 1});
    if (i == 5) break;
    x = w.apply(OpType::relu, "relu" + number, {batch_norm(w, "norm" + number, x)});
  }
  return w.apply(OpType::tanh, "tanh", {x});
}

TensorId judge(GraphWriter& w, SharedNetwork& net, const std::string& run, TensorId image) {
  net.run(run);
  TensorId x = image;
  for (Dim i = 1; i <= 4; ++i) {
    const std::string number = std::to_string(i);
    x = net.conv("conv" + number, x, kWidth << (i - 1), {4, 4}, {.stride = 2, .padding = 1});
    if (i > 1) x = net.batch_norm("norm" + number, x);
    x = w.scalar(OpType::leaky_relu, "relu" + number, x, 0.2);
  }
  x = net.conv("conv5", x, 1, {4, 4}, {.padding = 0});
  return w.apply(OpType::sigmoid, "sigmoid", {w.reshape("view", x, {w.dim(image, 0)})});
}

TensorId verdict_loss(GraphWriter& w, const std::string& name, TensorId verdicts) {
  const TensorId wanted = w.fill(name + ".wanted", w.shape(verdicts), DataType::fp32);
  return w.apply(OpType::bce_loss, name, {verdicts, wanted});
}

}  // namespace

void build_dcgan(const BuildOptions& options, Workload& workload) {
  const ImageSizes sizes = own_size(options, workload);
  GraphWriter w(workload.graph, workload.name, sizes.training);
  const TensorId image = generate(w, sizes.batch);
  SharedNetwork discriminator(w, "discriminator");
  if (!sizes.training) return finish(workload, judge(w, discriminator, "generated", image));
  const TensorId real = judge(w, discriminator, "real", w.input("image", w.shape(image)));
  const TensorId fake = judge(w, discriminator, "detached", w.input("image.generated", w.shape(image)));
  const TensorId fooled = judge(w, discriminator, "generated", image);
  w.scope("loss");
  const TensorId own =
      w.apply(OpType::add, "discriminator", {verdict_loss(w, "real", real), verdict_loss(w, "detached", fake)});
  w.graph().loss = w.apply(OpType::add, "total", {own, verdict_loss(w, "generated", fooled)});
  finish(workload, fooled);
}

void build_dcgan_generator(const BuildOptions& options, Workload& workload) {
  const ImageSizes sizes = own_size(options, workload);
  GraphWriter w(workload.graph, workload.name, sizes.training);
  const TensorId image = generate(w, sizes.batch);
  if (sizes.training) {
    w.scope("loss");
    w.graph().loss = w.apply(OpType::reduce_mean, "mean", {image});  // Stands for what a discriminator hands back.
  }
  finish(workload, image);
}

}  // namespace voltaic::workloads
