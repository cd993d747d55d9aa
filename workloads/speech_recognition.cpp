// SPDX-License-Identifier: MIT
// Jasper 10x5 dense residual [Li19] and QuartzNet 15x5 [Kriman20]: convolutions over 64 features per 10 ms of speech,
// halved in time by the first, and the connectionist loss over 28 characters and a blank. `--seq` counts frames of
// 10 ms, so 16.7 s are 1670. Each convolution first clears what lies behind the end of its utterance, as the reference
// code does; the features come from the input pipeline.
#include <vector>

#include "workloads/attention_block.hpp"
#include "workloads/speech.hpp"

namespace voltaic::workloads {
namespace {

constexpr Dim kFeatures = 64;
constexpr Dim kAlphabet = 29;
constexpr Dim kOwnFrames = 1670;  ///< The longest utterance of the usual training set, 16.7 s [Panayotov15].
constexpr Dim kFramesPerCharacter = 7;

/// `repeat` convolutions of one shape, the last with a shortcut added where `residual` says so.
struct Block {
  Dim repeat = 1, kernel = 1, channels = 0, stride = 1, dilation = 1;
  double dropout = 0;
  bool residual = false, separable = false;
};

/// What flows through the network: frames and how many of them are speech, by sample.
struct Frames {
  TensorId x;
  TensorId lengths;
};

Frames masked_conv(GraphWriter& w, const std::string& name, Frames in, Dim out, Dim kernel, ConvLayer layer) {
  const Dim batch = w.dim(in.x, 0);
  const Dim frames = w.dim(in.x, 2);
  const TensorId position = w.fill(name + ".position", {frames}, DataType::int64);
  const TensorId lengths = w.reshape(name + ".lengths", in.lengths, {batch, 1});
  TensorId mask = w.apply(OpType::compare, name + ".behind", {position, lengths}, attributes({{"relation", "ge"}}));
  mask = w.reshape(name + ".mask", mask, {batch, 1, frames});
  const TensorId x = w.apply(OpType::masked_fill, name + ".cleared", {in.x, mask}, attributes({{"value", 0.0}}));
  TensorId kept = w.scalar(OpType::add_scalar, name + ".reach", in.lengths, 0);
  kept = w.scalar(OpType::div_scalar, name + ".strided", kept, static_cast<double>(layer.stride));
  kept = w.scalar(OpType::add_scalar, name + ".frames", kept, 1);
  return {conv(w, name, x, out, kernel, layer), kept};
}

Frames conv_norm(GraphWriter& w, const std::string& name, Frames x, const Block& block, Dim stride) {
  if (block.separable) {
    const Dim in = w.dim(x.x, 1);
    x = masked_conv(w, name + ".depthwise", x, in, block.kernel,
                    {.stride = stride, .dilation = block.dilation, .groups = in});
    x = masked_conv(w, name + ".pointwise", x, block.channels, 1, {});
  } else {
    x = masked_conv(w, name, x, block.channels, block.kernel, {.stride = stride, .dilation = block.dilation});
  }
  return {batch_norm(w, name + ".norm", x.x), x.lengths};
}

/// `shortcuts`: what is added before the last activation, each through a 1x1 convolution and a norm.
Frames run_block(GraphWriter& w, Frames x, const Block& block, const std::vector<Frames>& shortcuts) {
  for (Dim i = 0; i < block.repeat; ++i) {
    const std::string name = numbered("conv", i + 1);
    x = conv_norm(w, name, x, block, block.stride);
    if (i + 1 == block.repeat) {
      for (std::size_t s = 0; s < shortcuts.size(); ++s) {
        const std::string pane = "shortcut" + std::to_string(s + 1);
        const Frames skip = masked_conv(w, pane, shortcuts[s], block.channels, 1, {});
        x.x = w.apply(OpType::add, pane + ".add", {x.x, batch_norm(w, pane + ".norm", skip.x)});
      }
    }
    x.x = w.apply(OpType::relu, name + ".relu", {x.x});
    x.x = w.dropout(name + ".dropout", x.x, block.dropout);
  }
  return x;
}

/// Every block of `residual` adds its own input, or, where `dense`, the inputs of all residual blocks so far.
void build(const std::vector<Block>& blocks, bool dense, const BuildOptions& options, Workload& workload) {
  const LengthSizes sizes = resolve_length(options, kOwnFrames, "frames of 10 ms", workload);
  GraphWriter w(workload.graph, workload.name, sizes.training);
  Frames x{w.input("features", {sizes.batch, kFeatures, sizes.length}),
           w.input("lengths", {sizes.batch}, DataType::int64)};
  std::vector<Frames> shortcuts;
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    w.scope("encoder.block" + std::to_string(b + 1));
    if (!dense) shortcuts.clear();
    if (blocks[b].residual) shortcuts.push_back(x);
    x = run_block(w, x, blocks[b], blocks[b].residual ? shortcuts : std::vector<Frames>{});
  }
  w.scope("decoder");
  const TensorId characters = conv(w, "conv", x.x, kAlphabet, 1, {.bias = true});
  const TensorId logits = w.transpose("frames_first", characters, {0, 2, 1});
  const TensorId scores = w.apply(OpType::log_softmax, "log_softmax", {logits});
  if (!sizes.training) return finish(workload, w.apply(OpType::argmax, "greedy", {scores}));
  w.scope("loss");
  const TensorId by_time = w.transpose("time_first", scores, {1, 0, 2});
  const Dim characters_said = std::max<Dim>(1, sizes.length / kFramesPerCharacter);
  const TensorId labels = w.input("labels", {sizes.batch, characters_said}, DataType::int64);
  w.graph().loss = w.apply(OpType::ctc_loss, "ctc_loss", {by_time, labels});
  finish(workload, scores);
}

}  // namespace

void build_jasper(const BuildOptions& options, Workload& workload) {
  std::vector<Block> blocks{{.kernel = 11, .channels = 256, .stride = 2, .dropout = 0.2}};
  struct Pair {
    Dim kernel, channels;
    double dropout;
  };
  for (const Pair& p :
       {Pair{11, 256, 0.2}, Pair{13, 384, 0.2}, Pair{17, 512, 0.2}, Pair{21, 640, 0.3}, Pair{25, 768, 0.3}}) {
    const Block block{.repeat = 5, .kernel = p.kernel, .channels = p.channels, .dropout = p.dropout, .residual = true};
    blocks.insert(blocks.end(), 2, block);
  }
  blocks.push_back({.kernel = 29, .channels = 896, .dilation = 2, .dropout = 0.4});
  blocks.push_back({.kernel = 1, .channels = 1024, .dropout = 0.4});
  build(blocks, true, options, workload);
}

void build_quartznet(const BuildOptions& options, Workload& workload) {
  std::vector<Block> blocks{{.kernel = 33, .channels = 256, .stride = 2, .separable = true}};
  struct Triple {
    Dim kernel, channels;
  };
  for (const Triple& t : {Triple{33, 256}, Triple{39, 256}, Triple{51, 512}, Triple{63, 512}, Triple{75, 512}}) {
    const Block block{.repeat = 5, .kernel = t.kernel, .channels = t.channels, .residual = true, .separable = true};
    blocks.insert(blocks.end(), 3, block);
  }
  blocks.push_back({.kernel = 87, .channels = 512, .dilation = 2, .separable = true});
  blocks.push_back({.kernel = 1, .channels = 1024});
  build(blocks, false, options, workload);
}

}  // namespace voltaic::workloads
