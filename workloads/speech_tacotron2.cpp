// SPDX-License-Identifier: MIT
// Tacotron 2 [Shen18]: characters through three convolutions and a bidirectional LSTM, then one decoder step per mel
// frame. A step attends over the text with the context of the step before, so nothing batches over time: `--seq` frames
// are as many steps, written out one by one. Training feeds the known frames (all through the prenet at once),
// inference each step's own frame, and asks the host after each whether to stop. Simplification: the state of an LSTM
// cell passes from step to step without a tensor of its own.
#include <fmt/format.h>

#include <algorithm>

#include "arch/units/error.hpp"
#include "workloads/attention_block.hpp"
#include "workloads/speech.hpp"

namespace voltaic::workloads {
namespace {

constexpr Dim kWidth = 512;  ///< Of the encoder, and of the context.
constexpr Dim kCell = 1024;  ///< Of each decoder LSTM.
constexpr Dim kPrenet = 256;
constexpr Dim kAttention = 128;
constexpr Dim kLocations = 32;       ///< Channels of the location features...
constexpr Dim kLocationKernel = 31;  ///< ...and the reach of their filter.
constexpr Dim kMostSteps = 2000;     ///< Where the published decoder gives up.

struct Cell {
  TensorId w_ih, w_hh, b_ih, b_hh;
};

Cell make_cell(GraphWriter& w, const std::string& name, Dim in, Dim hidden) {
  return {w.parameter(name + ".weight_ih", {4 * hidden, in}), w.parameter(name + ".weight_hh", {4 * hidden, hidden}),
          w.parameter(name + ".bias_ih", {4 * hidden}), w.parameter(name + ".bias_hh", {4 * hidden})};
}

TensorId run_cell(GraphWriter& w, const std::string& name, TensorId x, const Cell& cell) {
  const TensorId h = w.apply_multiple(OpType::lstm, name, {x, cell.w_ih, cell.w_hh, cell.b_ih, cell.b_hh},
                                      attributes({{"hidden", kCell}}), 3)
                         .front();
  return w.dropout(name + ".dropout", h, 0.1);
}

/// Parameters of the decoder, each used in every step.
struct Decoder {
  explicit Decoder(GraphWriter& w)
      : prenet1(w.parameter("prenet.1.weight", {kPrenet, kMelChannels})),
        prenet2(w.parameter("prenet.2.weight", {kPrenet, kPrenet})),
        attention_cell(make_cell(w, "attention_rnn", kPrenet + kWidth, kCell)),
        query(w.parameter("query.weight", {kAttention, kCell})),
        location_conv(w.parameter("location_conv.weight", {kLocations, 2, kLocationKernel})),
        location_dense(w.parameter("location_dense.weight", {kAttention, kLocations})),
        energy(w.parameter("energy.weight", {1, kAttention})),
        decoder_cell(make_cell(w, "decoder_rnn", kCell + kWidth, kCell)),
        frame(w.parameter("frame.weight", {kMelChannels, kCell + kWidth})),
        frame_bias(w.parameter("frame.bias", {kMelChannels})),
        gate(w.parameter("gate.weight", {1, kCell + kWidth})),
        gate_bias(w.parameter("gate.bias", {1})) {}

  TensorId prenet1, prenet2;
  Cell attention_cell;
  TensorId query, location_conv, location_dense, energy;
  Cell decoder_cell;
  TensorId frame, frame_bias, gate, gate_bias;
};

/// What the steps read of the text, and what each hands to the next.
struct Text {
  TensorId memory;     ///< [B, S, 512]
  TensorId processed;  ///< [B, S, 128], the memory's part of the energies.
  TensorId mask;       ///< [B, S]
};
struct State {
  TensorId context;     ///< [1, B, 512]
  TensorId weights;     ///< [B, S]
  TensorId cumulative;  ///< [B, S], their sum over the steps so far.
};

/// Dropout of the prenet stays on in inference: it gives the speech its variety.
TensorId prenet(GraphWriter& w, TensorId x, const Decoder& d) {
  for (const auto& [name, weight] : {std::pair{"prenet1", d.prenet1}, std::pair{"prenet2", d.prenet2}}) {
    const std::string prefix(name);
    x = w.apply(OpType::linear, prefix, {x, weight});
    x = w.apply(OpType::relu, prefix + ".relu", {x});
    x = w.apply_multiple(OpType::dropout, prefix + ".dropout", {x}, attributes({{"p", 0.5}}), 2).front();
  }
  return x;
}

TensorId encode(GraphWriter& w, Dim batch, Dim characters) {
  w.scope("encoder");
  const TensorId ids = w.input("text", {batch, characters}, DataType::int64);
  TensorId x = w.embedding("embedding", ids, w.parameter("embedding.weight", {kCharacters, kWidth}));
  x = w.contiguous("channels.packed", w.transpose("channels", x, {0, 2, 1}));
  for (Dim i = 1; i <= 3; ++i) {
    x = batch_norm(w, numbered("norm", i), conv(w, numbered("conv", i), x, kWidth, 5, {.bias = true}));
    x = w.apply(OpType::relu, numbered("relu", i), {x});
    x = w.dropout(numbered("dropout", i), x, 0.5);
  }
  x = w.contiguous("steps.packed", w.transpose("steps", x, {2, 0, 1}));
  const Dim half = kWidth / 2;
  std::vector<TensorId> inputs{x};
  for (const char* direction : {"forward", "reverse"}) {
    const Cell cell = make_cell(w, std::string("lstm.") + direction, kWidth, half);
    inputs.insert(inputs.end(), {cell.w_ih, cell.w_hh, cell.b_ih, cell.b_hh});
  }
  const TensorId y =
      w.apply_multiple(OpType::lstm, "lstm", inputs, attributes({{"hidden", half}, {"bidirectional", 1}}), 3).front();
  return w.contiguous("memory", w.transpose("samples_first", y, {1, 0, 2}));
}

/// Energies from the query, the text and where the attention has been; softmax; the context they choose.
void attend(GraphWriter& w, TensorId hidden, const Text& text, State& state, const Decoder& d) {
  const Dim batch = w.dim(text.memory, 0);
  const Dim characters = w.dim(text.memory, 1);
  const TensorId past = concat(w, "past",
                               {w.reshape("past.last", state.weights, {batch, 1, characters}),
                                w.reshape("past.all", state.cumulative, {batch, 1, characters})});
  const TensorId query =
      w.reshape("query.view", w.apply(OpType::linear, "query", {hidden, d.query}), {batch, 1, kAttention});
  TensorId where = w.apply(OpType::conv1d, "location_conv", {past, d.location_conv},
                           attributes({{"padding", (kLocationKernel - 1) / 2}}));
  where = w.contiguous("location.packed", w.transpose("location", where, {0, 2, 1}));
  where = w.apply(OpType::linear, "location_dense", {where, d.location_dense});
  TensorId e = w.apply(OpType::add, "with_location", {query, where});
  e = w.apply(OpType::tanh, "tanh", {w.apply(OpType::add, "with_text", {e, text.processed})});
  e = w.reshape("energies.view", w.apply(OpType::linear, "energies", {e, d.energy}), {batch, characters});
  e = w.apply(OpType::masked_fill, "masked", {e, text.mask}, attributes({{"value", -1e9}}));
  state.weights = w.apply(OpType::softmax, "weights", {e});
  const TensorId row = w.reshape("weights.row", state.weights, {batch, 1, characters});
  state.context = w.reshape("context.view", w.apply(OpType::matmul, "context", {row, text.memory}), {1, batch, kWidth});
  state.cumulative = w.apply(OpType::add, "cumulative", {state.cumulative, state.weights});
}

struct Step {
  TensorId frame;  ///< [1, B, 80]
  TensorId gate;   ///< [1, B, 1]
};

Step decode(GraphWriter& w, TensorId prenet_out, const Text& text, State& state, const Decoder& d) {
  const TensorId hidden =
      run_cell(w, "attention_rnn", concat(w, "attention_in", {prenet_out, state.context}, 2), d.attention_cell);
  attend(w, hidden, text, state, d);
  const TensorId out = run_cell(w, "decoder_rnn", concat(w, "decoder_in", {hidden, state.context}, 2), d.decoder_cell);
  const TensorId both = concat(w, "out", {out, state.context}, 2);
  const TensorId frame = w.apply(OpType::linear, "frame", {both, d.frame, d.frame_bias});
  return {frame, w.apply(OpType::linear, "gate", {both, d.gate, d.gate_bias})};
}

State start(GraphWriter& w, Dim batch, Dim characters) {
  for (const char* name : {"attention_hidden", "attention_cell", "decoder_hidden", "decoder_cell"}) {
    w.fill(name, {batch, kCell}, DataType::fp32);
  }
  return {w.fill("context", {1, batch, kWidth}, DataType::fp32), w.fill("weights", {batch, characters}, DataType::fp32),
          w.fill("cumulative", {batch, characters}, DataType::fp32)};
}

/// Frames of all steps, [T, B, 80], and their gates, [T, B, 1].
Step decode_all(GraphWriter& w, const LengthSizes& sizes, const Text& text, const Decoder& d) {
  w.scope("decoder");
  State state = start(w, sizes.batch, w.dim(text.memory, 1));
  const TensorId go = w.fill("go_frame", {1, sizes.batch, kMelChannels}, DataType::fp32);
  TensorId known = go;
  if (sizes.training) {
    const TensorId mel = w.input("mel.time_first", {sizes.length, sizes.batch, kMelChannels});
    known = prenet(w, concat(w, "known", {go, mel}, 0), d);
  }
  TensorId last = go;
  std::vector<TensorId> frames;
  std::vector<TensorId> gates;
  for (Dim t = 0; t < sizes.length; ++t) {
    w.scope(numbered("decoder.step", t));
    const TensorId in = sizes.training ? w.slice("in", known, 0, t, t + 1) : prenet(w, last, d);
    const Step step = decode(w, in, text, state, d);
    frames.push_back(last = step.frame);
    gates.push_back(step.gate);
    if (sizes.training) continue;
    const TensorId ended = w.apply(OpType::compare_scalar, "ended", {w.apply(OpType::sigmoid, "sigmoid", {step.gate})},
                                   attributes({{"relation", "gt"}, {"value", 0.5}}));
    w.apply(OpType::device_to_host, "asked", {ended});
  }
  w.scope("decoder.outputs");
  return {concat(w, "frames", frames, 0), concat(w, "gates", gates, 0)};
}

/// Five convolutions that correct the frames.
TensorId postnet(GraphWriter& w, TensorId mel) {
  w.scope("postnet");
  TensorId x = mel;
  for (Dim i = 1; i <= 5; ++i) {
    const Dim out = i < 5 ? kWidth : kMelChannels;
    x = batch_norm(w, numbered("norm", i), conv(w, numbered("conv", i), x, out, 5, {.bias = true}));
    if (i < 5) x = w.apply(OpType::tanh, numbered("tanh", i), {x});
    x = w.dropout(numbered("dropout", i), x, 0.5);
  }
  return w.apply(OpType::add, "add", {mel, x});
}

void loss(GraphWriter& w, TensorId mel, TensorId corrected, TensorId gates) {
  w.scope("loss");
  const TensorId target = w.input("mel", w.shape(mel));
  const TensorId ends = w.input("ends", w.shape(gates));
  const TensorId before = w.apply(OpType::mse_loss, "before", {mel, target});
  const TensorId after = w.apply(OpType::mse_loss, "after", {corrected, target});
  const TensorId both = w.apply(OpType::add, "mel", {before, after});
  add_loss(w, w.apply(OpType::add, "total", {both, w.apply(OpType::bce_loss, "gate", {gates, ends})}));
}

}  // namespace

TensorId tacotron2(GraphWriter& w, const LengthSizes& sizes, Dim characters) {
  if (sizes.length > kMostSteps) {
    throw ConfigError(w.graph().name, "",
                      fmt::format("expected --seq up to {} mel frames (each is a step of the decoder), got {}",
                                  kMostSteps, sizes.length));
  }
  const TensorId memory = encode(w, sizes.batch, characters);
  w.scope("attention");
  const TensorId processed = w.linear("memory", memory, kAttention, false);
  const Text text{memory, processed, w.input("text.mask", {sizes.batch, characters}, DataType::boolean)};
  w.scope("decoder");
  const Decoder decoder(w);
  const Step all = decode_all(w, sizes, text, decoder);
  const TensorId mel = w.contiguous("mel.packed", w.transpose("mel", all.frame, {1, 2, 0}));
  const TensorId corrected = postnet(w, mel);
  if (sizes.training) loss(w, mel, corrected, all.gate);
  return corrected;
}

void build_tacotron2(const BuildOptions& options, Workload& workload) {
  const LengthSizes sizes = resolve_length(options, kMeanClipFrames, "mel frames", workload, {"text"});
  workload.graph.name = workload.name;
  GraphWriter w(workload.graph, workload.name, sizes.training);
  finish(workload, tacotron2(w, sizes, resolve_dim(options, "text", kMeanClipCharacters)));
}

}  // namespace voltaic::workloads
