// SPDX-License-Identifier: MIT
#include "arch/detail/override.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "arch/detail/strict_json.hpp"
#include "arch/detail/tree_access.hpp"
#include "arch/quantity_text.hpp"
#include "arch/units/error.hpp"

namespace voltaic::arch::detail {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kGpu = "gpu.";
constexpr std::string_view kCalibration = "calibration.";

std::string typed(const Override& o) {
  return one_line(o.path + (o.multiply ? "*=" : "=") + o.value, 80);
}

[[noreturn]] void refuse(const Override& o, const std::string& problem) {
  throw UsageError(fmt::format("--set {}: {}", typed(o), problem));
}

[[noreturn]] void unknown(const Override& o, const std::vector<std::string>& known) {
  const std::string close = nearest(o.path, known);
  refuse(o, close.empty() ? std::string("unknown path; paths begin with gpu. or calibration.")
                          : fmt::format("unknown path; the nearest is {}", close));
}

/// The new value of a field that reads `old`.
double wanted(const Override& o, double old, std::string_view unit) {
  try {
    return o.multiply ? old * parse_quantity(o.value, "") : parse_quantity(o.value, unit);
  } catch (const UsageError& e) {
    refuse(o, e.what());
  }
}

class GpuSetter {
 public:
  explicit GpuSetter(Description& d) : description_(d), before_(d.spec), fields_(fields_of(d.spec)) {}

  void set(const Override& o) {
    const std::string_view path = std::string_view(o.path).substr(kGpu.size());
    if (set_word(o, path)) return;
    const auto field = std::find_if(fields_.begin(), fields_.end(),
                                    [&](const Field& f) { return f.path == path || f.json_path() == path; });
    if (field == fields_.end()) unknown(o, known());
    double value = wanted(o, field->get(), field->unit);
    // A factor on a count means "about so many": 108 SMs x 1.1 are 119.
    if (o.multiply && field->integral() && std::isfinite(value)) value = std::nearbyint(value);
    const std::string problem = rule_problem(field->rule, value);
    if (!problem.empty()) refuse(o, problem);
    field->set(value);
    description_.sources[static_cast<std::size_t>(field - fields_.begin())] = "given: --set " + typed(o);
    changed_.push_back(field->path);
  }

  void finish() {
    settle(before_, changed_, description_);
    const std::string problem = consistency_problem(description_.spec);
    if (!problem.empty()) throw UsageError("--set gpu." + problem);
  }

 private:
  bool set_word(const Override& o, std::string_view path) {
    if (path == "architecture") refuse(o, "an architecture is chosen in a GPU file, not with --set");
    for (const Word& word : words_of(description_.spec)) {
      if (word.path != path) continue;
      if (o.multiply || o.value.empty()) refuse(o, "expected a word");
      *word.value = one_line(o.value, 80);
      return true;
    }
    return false;
  }

  std::vector<std::string> known() const {
    std::vector<std::string> out;
    for (const auto& f : fields_) out.push_back(std::string(kGpu) + f.path);
    for (const auto& w : words_of(description_.spec)) out.push_back(std::string(kGpu) + std::string(w.path));
    return out;
  }

  Description& description_;
  GpuSpec before_;
  std::vector<Field> fields_;
  std::vector<std::string> changed_;
};

/// The base unit a key ends in, or "" for plain numbers.
std::string_view unit_of(std::string_view key) {
  for (const std::string_view unit : {"bytes_per_s", "flop_per_s", "cycles", "bytes", "usd", "hz", "s", "w", "j"}) {
    if (key.size() > unit.size() + 1 && key.ends_with(unit) && key[key.size() - unit.size() - 1] == '_') return unit;
  }
  return "";
}

struct CalibrationLeaf {
  std::string path;  ///< As --set spells it: without the unit suffix.
  std::string json_path;
  std::string_view unit;
  Json* value;
};

/// Numbers below `node`, "value" members unwrapped, list elements by index.
void collect(Json& node, const std::string& path, std::string_view key, std::vector<CalibrationLeaf>& out) {
  Json& value = node.is_object() && node.contains("value") ? node["value"] : node;
  if (value.is_number()) {
    const std::string_view unit = unit_of(key);
    out.push_back({unit.empty() ? path : path.substr(0, path.size() - unit.size() - 1), path, unit, &value});
  } else if (value.is_array()) {
    for (std::size_t i = 0; i < value.size(); ++i) collect(value[i], fmt::format("{}.{}", path, i), "", out);
  } else if (value.is_object()) {
    for (auto& [name, child] : value.items())
      collect(child, path.empty() ? name : fmt::format("{}.{}", path, name), name, out);
  }
}

class CalibrationSetter {
 public:
  explicit CalibrationSetter(ParameterTree& tree) : tree_(tree), root_(TreeAccess::node(tree)) {
    collect(root_, "", "", leaves_);
  }

  void set(const Override& o) {
    const std::string_view path = std::string_view(o.path).substr(kCalibration.size());
    const auto leaf = std::find_if(leaves_.begin(), leaves_.end(),
                                   [&](const CalibrationLeaf& l) { return l.path == path || l.json_path == path; });
    if (leaf == leaves_.end()) {
      std::vector<std::string> known;
      for (const auto& l : leaves_) known.push_back(std::string(kCalibration) + l.path);
      unknown(o, known);
    }
    const double fitted = leaf->value->get<double>();
    const double value = wanted(o, fitted, leaf->unit);
    check(o, leaf->path, fitted, value);
    *leaf->value = value;
  }

  void finish() { tree_ = TreeAccess::make(std::make_shared<const Json>(std::move(root_)), tree_.file()); }

 private:
  /// A what-if stays within a factor of 1,000 of what was fitted and keeps its sign: shares, exponents and times are
  /// positive, and a model is not asked about the rest. Host times may be 0; weights of a choice may be anything
  /// finite.
  static void check(const Override& o, std::string_view path, double fitted, double value) {
    constexpr double kFarthest = 1000;
    if (!std::isfinite(value) || std::fabs(value) > 1e18) refuse(o, "expected a number up to 1e18");
    if (fitted < 0 || path.find("choice") != std::string_view::npos) return;
    if (value == 0 && (fitted == 0 || path.starts_with("host."))) return;
    if (fitted == 0 && value > 0) return;
    if (!(value > 0) || value > fitted * kFarthest || value < fitted / kFarthest) {
      refuse(o, fmt::format("expected a number from {:g} to {:g} (the fitted value is {:g})", fitted / kFarthest,
                            fitted * kFarthest, fitted));
    }
  }

  ParameterTree& tree_;
  Json root_;
  std::vector<CalibrationLeaf> leaves_;
};

}  // namespace

void apply_overrides(const std::vector<Override>& overrides, Description& description, ParameterTree& calibration) {
  std::optional<GpuSetter> gpu;
  std::optional<CalibrationSetter> fitted;
  for (const Override& o : overrides) {
    if (o.path.starts_with(kGpu)) {
      if (!gpu) gpu.emplace(description);
      gpu->set(o);
    } else if (o.path.starts_with(kCalibration)) {
      if (!fitted) fitted.emplace(calibration);
      fitted->set(o);
    } else {
      std::vector<std::string> guess;
      for (const auto& f : fields_of(description.spec)) guess.push_back(std::string(kGpu) + f.path);
      unknown(o, guess);
    }
    description.notes.push_back("--set " + typed(o));
    description.modified = true;
  }
  if (gpu) gpu->finish();
  if (fitted) fitted->finish();
}

}  // namespace voltaic::arch::detail
