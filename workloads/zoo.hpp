// SPDX-License-Identifier: MIT
// The zoo's table: each file of builders hands in its models; configurations in models/*.json are listed in zoo.cpp.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "workloads/builder.hpp"

namespace voltaic::workloads {

/// A network that code builds. `build` gets a workload with its name set and fills graph and figures.
struct ZooModel {
  const char* name;
  const char* family;
  const char* description;
  void (*build)(const BuildOptions& options, Workload& workload);
};

std::span<const ZooModel> classification_models();  ///< convnet.cpp and its neighbours
std::span<const ZooModel> detection_models();
std::span<const ZooModel> segmentation_models();
std::span<const ZooModel> vision_transformer_models();
std::span<const ZooModel> language_models();
std::span<const ZooModel> translation_models();
std::span<const ZooModel> speech_models();
std::span<const ZooModel> recommendation_models();
std::span<const ZooModel> generative_models();
std::span<const ZooModel> graph_models();

/// Nothing where `name` is not in the zoo.
std::optional<Workload> build_zoo(const std::string& name, const BuildOptions& options);

}  // namespace voltaic::workloads
