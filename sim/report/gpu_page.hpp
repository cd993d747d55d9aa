// SPDX-License-Identifier: MIT
// What a GPU is, for people and for programs: `voltaic list gpus`, `voltaic show gpu NAME`.
#pragma once

#include <string>
#include <vector>

#include "arch/loader.hpp"

namespace voltaic::report {

/// One line per GPU: name, architecture, SMs, peaks, memory, bandwidth, power. `width` 0: as wide as it wants.
std::string gpu_table(const std::vector<arch::ResolvedGpu>& gpus, int width = 100);

/// Every number of one GPU beside its source, at most 100 columns wide; `color` dims the sources.
std::string gpu_page(const arch::ResolvedGpu& gpu, bool color = false);

/// The `result` of `show gpu --json`: identity, peaks, every field with path, value, unit and source, MIG profiles.
std::string gpu_json(const arch::ResolvedGpu& gpu);

}  // namespace voltaic::report
