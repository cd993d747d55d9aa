// SPDX-License-Identifier: MIT
// Builders of the speech networks, one file each, and what they share.
#pragma once

#include <string>

#include "workloads/layers.hpp"
#include "workloads/sizes.hpp"

namespace voltaic::workloads {

/// LJSpeech [LJSpeech17], on which the synthesis networks are published: 22,050 Hz, 256 samples per mel frame, 80 mel
/// channels; a mean clip lasts 6.57 s and says 100 characters.
inline constexpr Dim kMelChannels = 80;
inline constexpr Dim kSamplesPerFrame = 256;
inline constexpr Dim kMeanClipFrames = 566;
inline constexpr Dim kMeanClipCharacters = 100;
inline constexpr Dim kCharacters = 148;
inline constexpr Dim kWaveglowChannels = 256;

/// Convolution over time with a weight kept as direction and length [Salimans16]: put together on each pass of
/// training, folded in inference. Bias included.
TensorId weight_normed_conv(GraphWriter& w, const std::string& name, TensorId x, Dim out, Dim kernel,
                            ConvLayer layer = {});
TensorId weight_normed_transposed(GraphWriter& w, const std::string& name, TensorId x, Dim out, Dim kernel,
                                  TransposedLayer layer);

/// "a.b" and a number.
std::string numbered(const std::string& name, Dim number);

/// Networks as parts of a graph. In training each sets or adds to the loss of the graph (`add_loss`).
void add_loss(GraphWriter& w, TensorId term);
TensorId tacotron2(GraphWriter& w, const LengthSizes& sizes, Dim characters);  ///< Mel frames [B, 80, T].
TensorId fastpitch(GraphWriter& w, const LengthSizes& sizes, Dim characters);  ///< Mel frames [B, T, 80].
TensorId waveglow(GraphWriter& w, TensorId mel, Dim channels);                 ///< Of mel [B, 80, T].
TensorId hifigan_generator(GraphWriter& w, TensorId mel);

void build_jasper(const BuildOptions& options, Workload& workload);
void build_quartznet(const BuildOptions& options, Workload& workload);
void build_tacotron2(const BuildOptions& options, Workload& workload);
void build_waveglow(const BuildOptions& options, Workload& workload);
void build_fastpitch(const BuildOptions& options, Workload& workload);
void build_hifigan(const BuildOptions& options, Workload& workload);
void build_hifigan_generator(const BuildOptions& options, Workload& workload);
/// Text to audio by two networks one after the other.
void build_tacotron2_waveglow(const BuildOptions& options, Workload& workload);
void build_fastpitch_waveglow(const BuildOptions& options, Workload& workload);
void build_fastpitch_hifigan(const BuildOptions& options, Workload& workload);

}  // namespace voltaic::workloads
