// SPDX-License-Identifier: MIT
#include "tools/voltaic/output.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "arch/units/error.hpp"
#include "tools/voltaic/commands.hpp"

namespace voltaic::tools {
namespace {

constexpr int kPathLimit = 4096;
char temporary_path[kPathLimit] = "";  // read by the signal handler

extern "C" void on_interrupt(int) {
  if (temporary_path[0] != '\0') unlink(temporary_path);
  _exit(kExitInterrupted);
}

/// Remembers the file being written, for the signal handler and for clean-up on errors.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& target) : path_(fmt::format("{}.{}.tmp", target, getpid())) {
    if (path_.size() < kPathLimit) std::strncpy(temporary_path, path_.c_str(), kPathLimit - 1);
  }
  ~TemporaryFile() {
    temporary_path[0] = '\0';
    if (!kept_) unlink(path_.c_str());
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  const std::string& path() const { return path_; }
  void rename_to(const std::string& target) {
    if (std::rename(path_.c_str(), target.c_str()) != 0) {
      throw ConfigError(target, "", fmt::format("cannot be written ({})", std::strerror(errno)));
    }
    kept_ = true;
  }

 private:
  std::string path_;
  bool kept_ = false;
};

}  // namespace

void install_signal_handlers() {
  std::signal(SIGPIPE, SIG_IGN);
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

void write_stdout(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      if (errno == EPIPE) return;
      throw ConfigError("standard output", "", fmt::format("cannot be written ({})", std::strerror(errno)));
    }
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

void say(std::string_view text) {
  const std::string line = std::string(text) + "\n";
  std::fputs(line.c_str(), stderr);
}

void write_file(const std::string& path, std::string_view text) {
  if (path == "-") {
    write_stdout(text);
    return;
  }
  write_file(path, [&](std::ostream& out) { out.write(text.data(), static_cast<std::streamsize>(text.size())); });
}

void write_file(const std::string& path, const std::function<void(std::ostream&)>& writer) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error))
    throw ConfigError(path, "", "expected a file to write, got a directory");
  if (std::filesystem::exists(path, error) &&
      !std::filesystem::is_regular_file(path, error)) {  // /dev/null, a named pipe
    std::ofstream out(path, std::ios::binary);
    writer(out);
    out.close();
    if (!out) throw ConfigError(path, "", "cannot be written");
    return;
  }
  const std::string target =
      std::filesystem::is_symlink(path, error) ? std::filesystem::canonical(path, error).string() : path;
  TemporaryFile temporary(target);
  std::ofstream out(temporary.path(), std::ios::binary);
  if (!out) throw ConfigError(path, "", fmt::format("cannot be written ({})", std::strerror(errno)));
  writer(out);
  out.close();
  if (!out) throw ConfigError(path, "", "cannot be written (disk full?)");
  if (const auto old = std::filesystem::status(target, error); std::filesystem::exists(old)) {
    std::filesystem::permissions(temporary.path(), old.permissions(), error);
  }
  temporary.rename_to(target);
}

report::PageStyle page_style(bool no_color) {
  report::PageStyle style;
  winsize size{};
  if (isatty(STDOUT_FILENO) != 0) {
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 40) style.width = size.ws_col;
    style.color = !no_color && std::getenv("NO_COLOR") == nullptr;
  }
  return style;
}

bool stderr_is_terminal() {
  return isatty(STDERR_FILENO) != 0;
}

std::vector<std::string> words(const std::string& list, const char* option) {
  std::vector<std::string> out;
  std::string_view rest = list;
  while (!rest.empty()) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    std::string word(rest.substr(0, comma));
    if (word.empty() || comma + 1 == rest.size())
      throw UsageError(fmt::format("{}: expected names with commas between, got '{}'", option, one_line(list)));
    if (std::find(out.begin(), out.end(), word) != out.end())
      throw UsageError(fmt::format("{}: '{}' stands twice", option, one_line(word)));
    out.push_back(std::move(word));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return out;
}

void keep_apart(const char* option, const std::string& path, const std::vector<std::string>& others) {
  if (path.empty() || path == "-") return;
  for (const auto& other : others) {
    std::error_code error;
    if (path != other && !std::filesystem::equivalent(path, other, error)) continue;
    throw UsageError(
        fmt::format("{}: expected a file of its own, got {}, which this command uses already", option, one_line(path)));
  }
}

}  // namespace voltaic::tools
