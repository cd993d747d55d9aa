// SPDX-License-Identifier: MIT
#include "arch/loader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>

#include "arch/calibration_document.hpp"
#include "arch/detail/calibration.hpp"
#include "arch/detail/description.hpp"
#include "arch/detail/embedded_data.hpp"
#include "arch/detail/override.hpp"
#include "arch/detail/strict_json.hpp"
#include "arch/quantity_text.hpp"
#include "arch/units/error.hpp"

namespace voltaic::arch {
namespace {

using detail::Description;
using Json = nlohmann::ordered_json;

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return text;
}

Description decode_full(const Json& root, const std::string& file) {
  Description d;
  detail::decode_gpu(root, file, false, d);
  const std::string problem = detail::consistency_problem(d.spec);
  if (!problem.empty()) throw ConfigError(file, "", problem);
  detail::check_stated_peaks(root, file, d.spec, true);
  d.board = d.spec.name;
  return d;
}

/// A built-in, decoded once and copied.
std::optional<Description> built_in(const std::string& name) {
  static std::mutex mutex;
  static std::map<std::string, Description> cache;
  const std::lock_guard lock(mutex);
  if (const auto hit = cache.find(name); hit != cache.end()) return hit->second;
  const std::string file = name + ".json";
  for (const EmbeddedFile& candidate : embedded_gpus()) {
    if (candidate.name != file) continue;
    return cache.emplace(name, decode_full(detail::parse_trusted(candidate.text, file), file)).first->second;
  }
  return std::nullopt;
}

/// A built-in name or a MIG slice of one.
std::optional<Description> by_name(const std::string& text) {
  const std::string name = lower(text);
  const auto colon = name.find(':');
  auto d = built_in(name.substr(0, colon));
  if (d && colon != std::string::npos) detail::apply_mig(name.substr(colon + 1), *d);
  return d;
}

[[noreturn]] void unknown_gpu(const std::string& name) {
  const std::string close = nearest(lower(name), gpu_names());
  throw ConfigError("--gpu " + one_line(name), "",
                    close.empty() ? std::string("expected a GPU name (voltaic list gpus) or a JSON file")
                                  : fmt::format("expected a GPU name or a JSON file; the nearest name is {}", close));
}

Description changed_base(const Json& root, const std::string& file) {
  const Json& base = root["base"];
  if (!base.is_string())
    throw ConfigError(file, "/base", "expected the name of a built-in GPU, got " + detail::describe(base));
  const auto& name = base.get_ref<const std::string&>();
  auto d = by_name(name);
  if (!d) {
    const std::string close = nearest(lower(name), gpu_names());
    throw ConfigError(file, "/base",
                      fmt::format("expected the name of a built-in GPU{}, got {}",
                                  close.empty() ? "" : " (the nearest is " + close + ")", detail::describe(base)));
  }
  const GpuSpec before = d->spec;
  const std::vector<std::string> sources = d->sources;
  d->spec.name = std::filesystem::path(file).stem().string();
  detail::decode_gpu(root, file, true, *d);
  std::vector<std::string> changed;
  const auto fields = detail::fields_of(d->spec);
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (i >= sources.size() || d->sources[i] != sources[i]) changed.push_back(fields[i].path);
  }
  detail::settle(before, changed, *d);
  const std::string problem = detail::consistency_problem(d->spec);
  if (!problem.empty()) throw ConfigError(file, "", problem);
  detail::check_stated_peaks(root, file, d->spec, false);
  d->notes.push_back(fmt::format("{}: {} with {} numbers changed", file, before.name, changed.size()));
  return *d;
}

Description from_file(const std::string& path) {
  const std::string file = one_line(path);
  const Json root = detail::parse_strict(detail::read_text_file(path), file);
  if (!root.is_object()) throw ConfigError(file, "/", "expected an object, got " + detail::describe(root));
  Description d = root.contains("base") ? changed_base(root, file) : decode_full(root, file);
  if (!root.contains("base")) d.notes.push_back(file + ": a GPU of your own");
  d.modified = true;
  return d;
}

bool looks_like_file(const std::string& text) {
  if (text.empty() || text.find('\0') != std::string::npos) return false;
  std::error_code error;
  return text.find('/') != std::string::npos || lower(text).ends_with(".json") || std::filesystem::exists(text, error);
}

std::vector<FieldView> views_of(Description& d) {
  const auto fields = detail::fields_of(d.spec);
  std::vector<FieldView> out;
  out.reserve(fields.size());
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (d.sources[i].empty()) continue;
    const double number = fields[i].get();
    out.push_back({"gpu." + fields[i].path, detail::format_field(number, fields[i].unit), number,
                   std::string(fields[i].unit), d.sources[i]});
  }
  return out;
}

}  // namespace

Override parse_override(std::string_view text) {
  const auto equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0) {
    throw UsageError(fmt::format("--set {}: expected path=value or path*=factor", one_line(text, 80)));
  }
  Override out;
  out.multiply = text[equals - 1] == '*';
  out.path = std::string(text.substr(0, equals - (out.multiply ? 1 : 0)));
  out.value = std::string(text.substr(equals + 1));
  if (out.path.empty() || out.value.empty()) {
    throw UsageError(fmt::format("--set {}: expected path=value or path*=factor", one_line(text, 80)));
  }
  return out;
}

std::vector<std::string> gpu_names() {
  static constexpr std::array<std::string_view, 16> kOrder{"v100-pcie-16gb",
                                                           "v100-pcie-32gb",
                                                           "v100-sxm2-16gb",
                                                           "v100-sxm2-32gb",
                                                           "v100-sxm3-32gb",
                                                           "a100-pcie-40gb",
                                                           "a100-pcie-80gb",
                                                           "a100-sxm4-40gb",
                                                           "a100-sxm4-80gb",
                                                           "a30",
                                                           "t4",
                                                           "a10",
                                                           "a40",
                                                           "h100-pcie-80gb",
                                                           "h100-sxm5-80gb",
                                                           "h200-sxm5-141gb"};
  std::vector<std::string> present;
  for (const EmbeddedFile& file : embedded_gpus()) present.emplace_back(file.name.substr(0, file.name.rfind('.')));
  std::vector<std::string> out;
  for (const auto name : kOrder) {
    if (const auto it = std::find(present.begin(), present.end(), name); it != present.end()) out.push_back(*it);
  }
  // A file added later needs no line here: it follows the known ones, by name.
  for (const auto& name : present) {
    if (std::find(out.begin(), out.end(), name) == out.end()) out.push_back(name);
  }
  return out;
}

/// No board locks its clock lower than about a sixth of boost.
constexpr double kLeastClockShare = 0.15;

void operate(ResolvedGpu& gpu, const OperatingPoint& point) {
  const PowerSpec& power = gpu.spec.power;
  if (point.power_cap && !(*point.power_cap > power.idle && *point.power_cap <= power.limit)) {
    throw UsageError(
        fmt::format("--power-cap: expected more than the {} W that {} idles at and at most its limit of {} W, got {} W",
                    power.idle.value, gpu.spec.name, power.limit.value, point.power_cap->value));
  }
  const Hertz boost = gpu.spec.clocks.boost;
  if (point.clock && !(*point.clock >= kLeastClockShare * boost && *point.clock <= boost)) {
    throw UsageError(fmt::format("--clock: expected {} to {}, the boost clock of {}, got {}",
                                 format_quantity(kLeastClockShare * boost.value, "hz"),
                                 format_quantity(boost.value, "hz"), gpu.spec.name,
                                 format_quantity(point.clock->value, "hz")));
  }
  gpu.operating = point;
}

bool is_measured(const ResolvedGpu& gpu) {
  if (!gpu.calibration.has("extrapolation.measured_boards")) return true;
  const auto boards = gpu.calibration.keys("extrapolation.measured_boards");
  return std::find(boards.begin(), boards.end(), calibration_key(gpu.board)) != boards.end();
}

ResolvedGpu in_session(const ResolvedGpu& gpu, std::string_view session) {
  ResolvedGpu out = gpu;
  out.calibration = in_session(gpu.calibration, session);
  return out;
}

namespace {

void check_power(const GpuSpec& gpu) {
  constexpr Watts kMost{1e5};  // no board takes a tenth of it
  if (gpu.power.limit >= gpu.power.idle && gpu.power.limit <= kMost) return;
  throw ConfigError(gpu.name, "/power/limit",
                    fmt::format("expected at least the {} W at idle and at most {} W, got {} W", gpu.power.idle.value,
                                kMost.value, gpu.power.limit.value));
}

}  // namespace

ResolvedGpu resolve_gpu(const std::string& name_or_file, const std::vector<Override>& overrides,
                        const std::string& calibration_file) {
  auto named = by_name(name_or_file);
  if (!named && !looks_like_file(name_or_file)) unknown_gpu(name_or_file);
  Description d = named ? std::move(*named) : from_file(name_or_file);
  detail::Calibration calibration = detail::calibration_for(d.spec.architecture, d.board, calibration_file);
  detail::apply_overrides(overrides, d, calibration.tree);
  check_power(d.spec);
  ResolvedGpu out;
  out.fields = views_of(d);
  out.json = detail::encode_gpu(d);
  out.spec = std::move(d.spec);
  out.calibration = std::move(calibration.tree);
  out.calibration_id = std::move(calibration.id);
  out.board = std::move(d.board);
  out.notes = std::move(d.notes);
  out.modified = d.modified;
  return out;
}

}  // namespace voltaic::arch
