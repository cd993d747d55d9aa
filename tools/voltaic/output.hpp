// SPDX-License-Identifier: MIT
// Where answers go: standard output or a file, whole or not at all.
#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <string_view>

#include "sim/report/text_table.hpp"

namespace voltaic::tools {

/// Writes all of `text` to standard output. A closed pipe is no error: the reader has what it wanted.
void write_stdout(std::string_view text);

/// One line on standard error; a closed standard error is no error.
void say(std::string_view text);

/// Writes into a temporary file beside `path` and renames it when complete; "-" is standard output.
/// An interrupted or failed write leaves neither a partial file nor the temporary one. Throws ConfigError.
void write_file(const std::string& path, std::string_view text);
void write_file(const std::string& path, const std::function<void(std::ostream&)>& writer);

/// Makes Ctrl-C end the program with 130 after removing a file being written; a closed pipe ends writing, not the
/// program.
void install_signal_handlers();

/// Width and colour of standard output. NO_COLOR and `no_color` turn colour off; without a terminal there is none.
report::PageStyle page_style(bool no_color);
bool stderr_is_terminal();

/// "linear,bmm" as two words; throws UsageError naming the option for empty ones and for doubles.
std::vector<std::string> words(const std::string& list, const char* option);

/// Throws UsageError where an option would write over a file that the command reads or writes already.
void keep_apart(const char* option, const std::string& path, const std::vector<std::string>& others);

}  // namespace voltaic::tools
