// SPDX-License-Identifier: MIT
// The data files of arch/ as cmake/VoltaicEmbed.cmake compiles them in.
#pragma once

#include "arch/units/embedded.hpp"

namespace voltaic {

std::span<const EmbeddedFile> embedded_gpus();
std::span<const EmbeddedFile> embedded_chips();
std::span<const EmbeddedFile> embedded_calibrations();

}  // namespace voltaic
