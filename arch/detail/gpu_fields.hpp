// SPDX-License-Identifier: MIT
// The one list of GPU numbers: path, unit, legal range and member. Reading, writing, listing and --set all walk it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "arch/spec.hpp"

namespace voltaic::arch::detail {

/// What a number may be.
enum class Rule : std::uint8_t { count, whole, positive, non_negative, fraction, share, latency };

using Slot = std::variant<int*, std::int64_t*, double*, std::optional<double>*>;

struct Field {
  std::string path;       ///< "dram.peak_bandwidth"
  std::string_view unit;  ///< "bytes_per_s"; empty for plain numbers and for names that already say theirs.
  Rule rule = Rule::positive;
  Slot slot;
  bool required = true;

  /// The JSON path: "dram.peak_bandwidth_bytes_per_s".
  std::string json_path() const;
  bool integral() const { return rule == Rule::count || rule == Rule::whole; }
  double get() const;
  void set(double value) const;
};

/// Every number of `spec`, MIG profiles last; the order is the order of the file and of every listing.
std::vector<Field> fields_of(GpuSpec& spec);

/// A word of the description: its path and the member.
struct Word {
  std::string_view path;
  std::string* value;
};
std::vector<Word> words_of(GpuSpec& spec);

/// Empty when `value` suits the rule, else "expected (0, 1], got 1.3".
std::string rule_problem(Rule rule, double value);

/// "1555 GB/s", "1410 MHz": as boards are spoken of.
std::string format_field(double value, std::string_view unit);

std::optional<Architecture> parse_architecture(std::string_view word);

}  // namespace voltaic::arch::detail
