// SPDX-License-Identifier: MIT
// JSON as this project accepts it: no duplicate keys, bounded nesting, finite numbers, errors on one line.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace voltaic::arch::detail {

/// Parses `text`; throws ConfigError naming `file` and the place. A UTF-8 byte order mark and CRLF are legal.
nlohmann::ordered_json parse_strict(std::string_view text, const std::string& file);

/// The same for files compiled in, which a test has already parsed strictly: one pass instead of two.
nlohmann::ordered_json parse_trusted(std::string_view text, const std::string& file);

/// Whole contents of a regular file of at most 64 MB; throws ConfigError for a missing file, a folder or a device.
std::string read_text_file(const std::string& path);

/// What a JSON value is, for "expected X, got Y": "a number", "a string \"abc\"".
std::string describe(const nlohmann::ordered_json& value);

/// One member name escaped for a JSON pointer.
std::string pointer_token(std::string_view key);

}  // namespace voltaic::arch::detail
