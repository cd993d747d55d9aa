// SPDX-License-Identifier: MIT
// Runs the voltaic program as a user would and hands back what it said.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace voltaic::test {

struct Outcome {
  int code = -1;
  std::string out;
  std::string err;
};

inline std::string environment(const char* name, const std::string& fallback) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : fallback;
}

inline std::string source_dir() {
  return environment("VOLTAIC_SOURCE_DIR", ".");
}

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

/// A folder of its own for each test program, removed at exit.
inline const std::filesystem::path& scratch() {
  static const struct Folder {
    std::filesystem::path path = std::filesystem::temp_directory_path() / ("voltaic-test-" + std::to_string(getpid()));
    Folder() { std::filesystem::create_directories(path); }
    ~Folder() {
      std::error_code ignored;
      std::filesystem::remove_all(path, ignored);
    }
  } folder;
  return folder.path;
}

inline std::filesystem::path write_scratch(const std::string& name, const std::string& text) {
  const auto path = scratch() / name;
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

/// Runs a shell line from the source folder with `voltaic` standing for the program.
inline Outcome shell(const std::string& line) {
  const auto program = environment("VOLTAIC_PROGRAM", "build/release/tools/voltaic");
  const auto out = scratch() / "stdout";
  const auto err = scratch() / "stderr";
  const std::string command = "cd '" + source_dir() + "' && voltaic() { '" + program + "' \"$@\"; } && { " + line +
                              "\n} >'" + out.string() + "' 2>'" + err.string() + "' </dev/null";
  const int status = std::system(("bash -c '" +
                                  [&] {
                                    std::string quoted;
                                    for (const char c : command)
                                      quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
                                    return quoted;
                                  }() +
                                  "'")
                                     .c_str());
  Outcome outcome;
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  outcome.out = read_file(out);
  outcome.err = read_file(err);
  return outcome;
}

inline Outcome voltaic(const std::string& arguments) {
  return shell("voltaic " + arguments);
}

/// True for exactly one line, ended.
inline bool is_one_line(const std::string& text) {
  return !text.empty() && text.find('\n') == text.size() - 1;
}

}  // namespace voltaic::test
