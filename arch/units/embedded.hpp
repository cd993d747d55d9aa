// SPDX-License-Identifier: MIT
// Data files compiled into the program by cmake/VoltaicEmbed.cmake, so that the binary needs no data folder.
#pragma once

#include <span>
#include <string_view>

namespace voltaic {

struct EmbeddedFile {
  std::string_view name;  ///< File name without folder: "a100-sxm4-40gb.json".
  std::string_view text;
};

}  // namespace voltaic
