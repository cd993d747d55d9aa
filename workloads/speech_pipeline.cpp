// SPDX-License-Identifier: MIT
// Text to audio: a network that draws mel frames, then a vocoder that turns them into samples. Training runs both end
// to end and adds their losses.
#include "workloads/attention_block.hpp"
#include "workloads/speech.hpp"

namespace voltaic::workloads {
namespace {

/// Draws the frames, [B, 80, T], and hands them to `vocode`.
template <class Draw, class Vocode>
void build(const BuildOptions& options, Workload& workload, const std::vector<std::string>& dims, const Draw& draw,
           const Vocode& vocode) {
  const LengthSizes sizes = resolve_length(options, kMeanClipFrames, "mel frames of 256 samples", workload, dims);
  workload.graph.name = workload.name;
  GraphWriter w(workload.graph, workload.name, sizes.training);
  const TensorId mel = draw(w, sizes, resolve_dim(options, "text", kMeanClipCharacters));
  finish(workload, vocode(w, mel));
}

TensorId frames_of_fastpitch(GraphWriter& w, const LengthSizes& sizes, Dim characters) {
  const TensorId steps = fastpitch(w, sizes, characters);
  w.scope("mel");
  return w.contiguous("packed", w.transpose("channels", steps, {0, 2, 1}));
}

}  // namespace

void add_loss(GraphWriter& w, TensorId term) {
  graph::OpGraph& graph = w.graph();
  if (graph.loss != UINT32_MAX) {
    w.scope("both");
    term = w.apply(OpType::add, "loss", {graph.loss, term});
  }
  graph.loss = term;
}

void build_tacotron2_waveglow(const BuildOptions& options, Workload& workload) {
  const Dim channels = resolve_dim(options, "channels", kWaveglowChannels);
  build(options, workload, {"text", "channels"}, tacotron2,
        [&](GraphWriter& w, TensorId mel) { return waveglow(w, mel, channels); });
}

void build_fastpitch_waveglow(const BuildOptions& options, Workload& workload) {
  const Dim channels = resolve_dim(options, "channels", kWaveglowChannels);
  build(options, workload, {"text", "channels"}, frames_of_fastpitch,
        [&](GraphWriter& w, TensorId mel) { return waveglow(w, mel, channels); });
}

void build_fastpitch_hifigan(const BuildOptions& options, Workload& workload) {
  build(options, workload, {"text"}, frames_of_fastpitch, hifigan_generator);
}

}  // namespace voltaic::workloads
