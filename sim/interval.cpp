// SPDX-License-Identifier: MIT
#include "sim/interval.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace voltaic {

IntervalModel::IntervalModel(const arch::ResolvedGpu& gpu) {
  const arch::ParameterTree& c = gpu.calibration;
  for (const auto& family : c.keys("intervals")) {
    const std::string path = "intervals." + family;
    spreads_[family] = {c.number(path + ".half_width"), c.number_or(path + ".correlation", 1),
                        c.number_or(path + ".longest_s", 0)};
  }
  if (c.has("extrapolation.measured_types")) {
    for (const auto& family : c.keys("extrapolation.measured_types")) {
      types_[family] = c.keys("extrapolation.measured_types." + family);
    }
  }
  type_factor_ = c.number("extrapolation.unmeasured_type_factor");
  unknown_share_ = c.number("extrapolation.unknown_family_share");
  const std::vector<std::string> boards = c.keys("extrapolation.measured_boards");
  if (!gpu.modified && std::find(boards.begin(), boards.end(), gpu.spec.name) == boards.end()) {
    const double factor = c.number("extrapolation.unmeasured_board_factor");
    board_factor_ *= factor;
    board_note_ = fmt::format("no kernel was measured on {}: its interval is {:g} times that of its sister boards ({})",
                              gpu.spec.name, factor, fmt::join(boards, ", "));
  }
  if (gpu.modified) {
    const double factor = c.number("extrapolation.modified_gpu_factor");
    board_factor_ *= factor;
    modified_note_ = fmt::format("the GPU is not a measured board: its interval is {:g} times as wide", factor);
  }
}

IntervalModel::Spread IntervalModel::spread(std::string_view family, bool& known) const {
  auto found = spreads_.find(family);
  known = found != spreads_.end();
  if (!known) found = spreads_.find("unknown");
  return found == spreads_.end() ? Spread{} : found->second;
}

bool IntervalModel::type_measured(std::string_view family, DataType math) const {
  const auto found = types_.find(family);
  if (found == types_.end()) return true;
  return std::find(found->second.begin(), found->second.end(), to_string(math)) != found->second.end();
}

report::Interval IntervalModel::combine(std::span<const FamilyTime> families, Seconds host, Seconds total,
                                        std::vector<std::string>& notes) const {
  constexpr double kBeyond = 2;  // a kernel this much longer than any measured one is extrapolated
  struct Sum {
    double together = 0, squares = 0, correlation = 1;
  };
  std::map<std::string_view, Sum> sums;
  std::set<std::string> unknown, other_types, longer;
  double unknown_time = 0, type_time = 0, longer_time = 0, products = 0;
  for (const FamilyTime& f : families) {
    bool known = false;
    const Spread s = spread(f.family, known);
    double h = s.half_width;
    if (!known) {
      unknown.emplace(f.family);
      unknown_time += f.time.value;
    }
    if (!type_measured(f.family, f.math)) {
      h *= type_factor_;
      type_time += f.time.value;
      other_types.insert(fmt::format("{} in {}", f.family, to_string(f.math)));
    }
    if (s.longest_s > 0 && f.each.value > kBeyond * s.longest_s) {
      h *= type_factor_;
      longer_time += f.time.value;
      longer.emplace(f.family);
    }
    if (f.family.starts_with("gemm_simt")) products += f.time.value;
    Sum& sum = sums[f.family];
    sum.correlation = s.correlation;
    sum.together += h * f.time.value;
    sum.squares += h * h * f.time.value * f.time.value;
  }
  bool known = false;
  const double host_spread = spread("host", known).half_width * host.value;
  const double clock = spread("sustained_clock", known).half_width;
  const double clock_spread = known ? clock * products : 0;
  double square = host_spread * host_spread + clock_spread * clock_spread;
  for (const auto& [family, sum] : sums) {
    square += sum.correlation * sum.together * sum.together + (1 - sum.correlation) * sum.squares;
  }
  const double half = board_factor_ * std::sqrt(square);

  const double limit = unknown_share_ * total.value;
  const bool extrapolated = board_factor_ > 1 || unknown_time > limit || type_time > limit || longer_time > limit;
  if (!board_note_.empty()) notes.push_back(board_note_);
  if (!modified_note_.empty()) notes.push_back(modified_note_);
  if (unknown_time > limit)
    notes.push_back(fmt::format("kernel families without a measured interval: {}", fmt::join(unknown, ", ")));
  if (type_time > limit)
    notes.push_back(fmt::format("not measured, carried over from other types: {}", fmt::join(other_types, ", ")));
  if (longer_time > limit)
    notes.push_back(fmt::format("kernels longer than any that was measured: {}", fmt::join(longer, ", ")));
  return {Seconds{std::max(0.0, total.value - half)}, Seconds{total.value + half}, 0.9,
          extrapolated ? "extrapolated" : "interpolated"};
}

}  // namespace voltaic
