// SPDX-License-Identifier: MIT
// The errors a user can cause. Only tools catch them; each carries one line that names place, expectation and finding.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace voltaic {

/// Input that cannot be read or makes no sense: exit code 3.
/// `what()` reads `FILE: PLACE: expected X, got Y`, on one line.
struct ConfigError : std::runtime_error {
  using std::runtime_error::runtime_error;
  ConfigError(const std::string& file, const std::string& place, const std::string& problem);
};

/// A valid wish that Voltaic or the hardware cannot meet (a model family, an operation, a data type): exit code 4.
struct UnsupportedError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A command line that cannot be understood: exit code 2.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A broken invariant of Voltaic itself: exit code 1.
struct InternalError : std::logic_error {
  using std::logic_error::logic_error;
};

/// Throws InternalError unless `condition` holds, in every build.
void ensure(bool condition, const char* message);

/// `text` with control characters and line ends replaced and cut to `limit` bytes, fit for one line of a terminal.
std::string one_line(std::string_view text, std::size_t limit = 120);

/// The entry of `known` nearest to `word` by edit distance, or empty when nothing is near.
std::string nearest(std::string_view word, const std::vector<std::string>& known);

}  // namespace voltaic
