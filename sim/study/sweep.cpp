// SPDX-License-Identifier: MIT
#include "sim/study/sweep.hpp"

#include <fmt/format.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <atomic>
#include <mutex>

#include "arch/units/error.hpp"
#include "sim/study/value_list.hpp"

namespace voltaic::study {
namespace {

void fill(report::SweepPoint& point, const report::Prediction& p) {
  point.time = p.total;
  point.samples_per_s = p.samples_per_s;
  point.memory_bytes = p.memory_total();
  point.fits = p.fits();
  point.energy_j = p.energy_j;
  point.average_power_w = p.average_power_w;
  point.cost_usd = p.cost_usd;
  point.tokens_per_s = p.tokens_per_s;
}

std::size_t grid_size(const std::vector<Axis>& axes) {
  std::size_t total = 1;
  for (const auto& axis : axes) {
    if (axis.values.size() > kMaxValues / total)
      throw UsageError(fmt::format("a sweep of more than {} points", kMaxValues));
    total *= axis.values.size();
  }
  return total;
}

}  // namespace

Request request_at(const Request& base, const std::vector<Axis>& axes, std::size_t index, report::SweepPoint& point) {
  Request request = base;
  point.set.resize(axes.size());
  for (std::size_t a = axes.size(); a-- > 0;) {
    const auto& values = axes[a].values;
    const std::string& value = values[index % values.size()];
    index /= values.size();
    set_option(request, axes[a].option, value);
    const auto equals = axes[a].option == "set" || axes[a].option == "dim" ? value.find('=') : std::string::npos;
    point.set[a] = {axes[a].label, equals == std::string::npos ? value : value.substr(equals + 1)};
  }
  return request;
}

Axis parse_axis(std::string_view option, std::string_view text) {
  Axis axis{std::string(option), std::string(option), {}};
  std::string prefix;
  if (option == "set" || option == "dim") {
    const auto equals = text.find('=');
    if (equals == std::string_view::npos)
      throw UsageError(fmt::format("--{}: expected path=value, got '{}'", option, one_line(text)));
    prefix = std::string(text.substr(0, equals + 1));
    axis.label = prefix.substr(0, equals);
    text.remove_prefix(equals + 1);
  }
  for (auto& value : expand_values(option, text, request_option(option).ranges)) axis.values.push_back(prefix + value);
  return axis;
}

std::vector<report::SweepPoint> sweep(Runner& runner, const Request& base, const std::vector<Axis>& axes,
                                      const SweepOptions& options) {
  const std::size_t total = grid_size(axes);
  std::vector<report::SweepPoint> points(total);
  for (const auto& axis : axes) {  // malformed values are refused before anything runs
    for (const auto& value : axis.values) {
      Request probe = base;
      set_option(probe, axis.option, value);
    }
  }
  std::mutex progress_mutex;
  std::size_t done = 0;
  std::exception_ptr first_error;
  std::size_t first_error_index = total;

  const auto one = [&](std::size_t index) {
    report::SweepPoint& point = points[index];
    try {
      fill(point, runner.predict(request_at(base, axes, index, point)));
    } catch (const std::runtime_error& e) {
      point.error = e.what();
      const std::lock_guard lock(progress_mutex);
      if (index < first_error_index) {
        first_error_index = index;
        first_error = std::current_exception();
      }
    }
    if (options.progress) {
      const std::lock_guard lock(progress_mutex);
      options.progress(++done, total);
    }
  };
  const int cores = tbb::this_task_arena::max_concurrency();
  const int jobs = options.jobs > 0 ? std::min(options.jobs, cores) : cores;
  tbb::task_arena arena(jobs);
  arena.execute([&] { tbb::parallel_for(std::size_t{0}, total, one); });
  if (std::none_of(points.begin(), points.end(), [](const report::SweepPoint& p) { return p.error.empty(); }) &&
      first_error) {
    std::rethrow_exception(first_error);
  }
  return points;
}

}  // namespace voltaic::study
