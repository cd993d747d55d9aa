// SPDX-License-Identifier: MIT
#include "workloads/source.hpp"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>

#include "arch/units/error.hpp"

namespace voltaic::workloads {
namespace {

namespace fs = std::filesystem;
constexpr std::uintmax_t kLargestFile = std::uintmax_t{1} << 30U;

struct Closer {
  void operator()(std::FILE* file) const {
    if (file != stdin) (void)std::fclose(file);
  }
};

void check_file(const std::string& path, const std::string& shown) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) throw ConfigError(shown, "", "expected a file, found nothing there");
  if (status.type() == fs::file_type::directory) {
    const bool has_config = fs::exists(fs::path(path) / "config.json", error);
    throw ConfigError(
        shown, "",
        std::string("expected a file, got a directory") + (has_config ? "; name the config.json in it" : ""));
  }
  if (status.type() == fs::file_type::character || status.type() == fs::file_type::block) {
    throw ConfigError(shown, "", "expected a file, got a device");
  }
  if (status.type() == fs::file_type::regular && fs::file_size(path, error) > kLargestFile && !error) {
    throw ConfigError(shown, "", "expected at most 1 GiB, got a larger file");
  }
}

std::string read_bytes(const std::string& path) {
  const bool standard_input = path == "-";
  const std::string shown = standard_input ? "standard input" : one_line(path, 300);
  if (!standard_input) check_file(path, shown);
  const std::unique_ptr<std::FILE, Closer> file(standard_input ? stdin : std::fopen(path.c_str(), "rb"));
  if (!file) throw ConfigError(shown, "", std::string("expected a readable file, got '") + std::strerror(errno) + "'");
  std::string text;
  std::array<char, 65536> buffer{};
  for (;;) {
    const std::size_t n = std::fread(buffer.data(), 1, buffer.size(), file.get());
    text.append(buffer.data(), n);
    if (text.size() > kLargestFile) throw ConfigError(shown, "", "expected at most 1 GiB, got more");
    if (n < buffer.size()) break;
  }
  if (std::ferror(file.get()) != 0)
    throw ConfigError(shown, "", std::string("expected a readable file, got '") + std::strerror(errno) + "'");
  return text;
}

}  // namespace

std::string read_source(const std::string& path) {
  if (path != "-") return read_bytes(path);
  static const std::string text = read_bytes(path);  // it can be read once, and many steps may ask
  return text;
}

}  // namespace voltaic::workloads
