// SPDX-License-Identifier: MIT
// The fitted parameters of one architecture before they are bound to a board: sections, what single boards override,
// and what single measuring sessions override.
//
//     { "schema": "voltaic.calibration/1", "architecture": "volta", "gemm_simt": {...}, ...,
//       "boards":   {"v100-pcie-32gb": {"gemm_simt": {...}, "sessions": {...}}},
//       "sessions": {"train": {...}} }
//
// A session is the state a laboratory's machine was in while a table was measured (its clocks, its host). It is asked
// for by the table, never by a prediction of a network.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "arch/parameter_tree.hpp"
#include "arch/spec.hpp"

namespace voltaic::arch {

class CalibrationDocument {
 public:
  /// What ships for an architecture. `fitted`: with the file that `voltaic calibrate` wrote; without it the values it
  /// starts from.
  static CalibrationDocument built_in(Architecture architecture, bool fitted = true);
  /// A file that `voltaic calibrate` wrote; throws ConfigError for anything else.
  static CalibrationDocument read(const std::string& path);
  /// The same, held against what ships for the architecture: unknown or senseless parameters are refused.
  static CalibrationDocument read_for(Architecture architecture, const std::string& path);
  /// True for a file that is to be laid over the priors rather than over what ships ("base": "priors").
  bool stands_alone() const { return alone_; }

  /// Values of `other` replace or join those here; objects merge, numbers, words and lists do not.
  void overlay(const CalibrationDocument& other);

  bool has(std::string_view path) const;
  /// Number at a dotted path ("boards.t4.single_op.add.floor_s"); throws ConfigError when there is none.
  double number(std::string_view path) const;
  /// Sets a number, list or word; members that are missing on the way are made.
  void set(std::string_view path, double value);
  void set(std::string_view path, const std::vector<double>& values);
  void set(std::string_view path, std::string_view word);
  /// Parses `json` and sets it at `path`.
  void set_json(std::string_view path, std::string_view json);

  /// The parameters as the models read them on one board, in one session ("" for none).
  ParameterTree tree(const std::string& board, std::string_view session = "") const;
  const std::string& date() const { return date_; }
  std::string text() const;  ///< JSON, indented.

  CalibrationDocument();
  CalibrationDocument(const CalibrationDocument& other);
  CalibrationDocument& operator=(const CalibrationDocument& other);
  CalibrationDocument(CalibrationDocument&&) noexcept;
  CalibrationDocument& operator=(CalibrationDocument&&) noexcept;
  ~CalibrationDocument();

 private:
  ParameterTree whole() const;

  struct Impl;
  std::unique_ptr<Impl> impl_;
  std::string name_, date_;
  bool alone_ = false;
};

/// A board's or session's name as it stands in a calibration file: dots would cut a path.
std::string calibration_key(std::string_view name);

/// The tree with the overrides of its member "sessions.NAME" applied; the tree itself where it has none.
ParameterTree in_session(const ParameterTree& tree, std::string_view session);

/// The tree with these numbers changed or added.
ParameterTree with_numbers(const ParameterTree& tree, const std::vector<std::pair<std::string, double>>& numbers);

}  // namespace voltaic::arch
