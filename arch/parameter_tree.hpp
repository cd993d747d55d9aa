// SPDX-License-Identifier: MIT
// A read-only tree of numbers and words, the form in which calibration reaches the models.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace voltaic::arch {

/// Numbers by dotted path ("gemm_simt.linear.phi"). `{ "value": x, "source": s }` leaves read as x.
/// Each model reads what it needs once, into a struct of its own. A missing path throws ConfigError naming file and
/// path.
class ParameterTree {
 public:
  ParameterTree();
  /// Parses JSON text; `file` names it in errors.
  static ParameterTree parse(std::string_view json_text, std::string file);

  double number(std::string_view path) const;
  double number_or(std::string_view path, double fallback) const;
  std::string word(std::string_view path) const;
  std::vector<double> numbers(std::string_view path) const;
  bool has(std::string_view path) const;
  /// Names of the members below `path`, in file order, without the remarks "source" and "note".
  std::vector<std::string> keys(std::string_view path) const;
  /// The tree below `path`.
  ParameterTree at(std::string_view path) const;
  /// For an array of objects: one tree per element.
  std::vector<ParameterTree> elements(std::string_view path) const;
  const std::string& file() const;

 private:
  friend struct TreeAccess;
  struct Impl;
  std::shared_ptr<const Impl> impl_;
};

}  // namespace voltaic::arch
