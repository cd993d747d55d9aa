// SPDX-License-Identifier: MIT
// Reading an input whole, with the refusals that files deserve.
#pragma once

#include <string>

namespace voltaic::workloads {

/// The bytes of a file, or of standard input for "-". Throws ConfigError for what is missing, no file, unreadable
/// or larger than 1 GiB.
std::string read_source(const std::string& path);

}  // namespace voltaic::workloads
