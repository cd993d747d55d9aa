// SPDX-License-Identifier: MIT
// Rows of kernel tables, predicted: the library's kernel, under the protocol of one timed eager call.
#include <fmt/format.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <memory>

#include "arch/units/error.hpp"
#include "sim/cost/single_op.hpp"
#include "sim/engines.hpp"
#include "sim/report/units.hpp"
#include "validation/compare/drawn_rows.hpp"
#include "validation/compare/kernel_rows.hpp"
#include "validation/compare/validate.hpp"

namespace voltaic::validation {
namespace {

/// One board in the state in which a session measured on it.
struct Machine {
  Machine(const arch::ResolvedGpu& board, const std::string& session, const ValidateOptions& options)
      : gpu(arch::in_session(board, session)),
        library(cost::make_library(gpu)),
        engine(make_engine(options.engine, gpu, options.sampling)),
        protocol(gpu, *engine) {}
  const arch::ResolvedGpu gpu;
  const std::unique_ptr<kernel::LibraryChoice> library;
  const std::unique_ptr<kernel::CostModel> engine;
  const cost::SingleOp protocol;
};

class Machines {
 public:
  Machines(Runner& runner, const ValidateOptions& options) : runner_(runner), options_(options) {}

  /// Throws UnsupportedError where the engine has no model of the board.
  const Machine& operator()(const std::string& gpu, const std::string& session) {
    auto& held = held_[{gpu, session}];
    if (!held) {
      Request request;
      request.gpu = gpu;
      request.calibration = options_.calibration;
      held = std::make_unique<Machine>(runner_.simulator(request)->gpu(), session, options_);
    }
    return *held;
  }

 private:
  Runner& runner_;
  const ValidateOptions& options_;
  std::map<std::pair<std::string, std::string>, std::unique_ptr<Machine>> held_;
};

std::string family_of(std::string_view op, std::string_view dtype) {
  std::string family = "pointwise";
  if (op == "softmax" || op == "layernorm") family = "softmax and layer norm";
  if (op == "linear" || op == "bmm") family = "products";
  if (op == "conv") family = "convolution";
  return dtype == "fp32" ? family : fmt::format("{} {}", family, dtype);
}

std::string explain(const std::vector<kernel::Launch>& launches, const cost::SingleOp::Timing& timing) {
  if (launches.empty()) return "no kernel";
  const std::string more = launches.size() > 1 ? fmt::format(" and {} more", launches.size() - 1) : "";
  return fmt::format("{}{} {}, {} bound; host {}{}", launches.front().name, more, report::format_time(timing.kernel),
                     kernel::to_string(timing.main.bound()), report::format_time(timing.floor),
                     timing.floor > timing.kernel ? ", which decides" : "");
}

std::vector<std::string> gpu_files(const ValidateOptions& options) {
  std::vector<std::string> files;
  std::copy_if(options.gpus.begin(), options.gpus.end(), std::back_inserter(files), is_gpu_file);
  return files;
}

/// Empty where the row got its prediction, else why it did not.
std::string predict(const KernelRow& row, const Machine& on, Pair& pair) {
  std::vector<kernel::Launch> launches;
  cost::SingleOp::Timing timing;
  try {
    launches = lower_row(row, on.gpu.spec, *on.library);
    timing = on.protocol.time(launches);
  } catch (const UnsupportedError& e) {
    return e.what();
  } catch (const ConfigError& e) {  // a kernel that no SM can run
    return e.what();
  }
  if (!std::isfinite(timing.time.value) || !std::isfinite(timing.low.value) || !std::isfinite(timing.high.value)) {
    return "the shape is beyond what the model can count";
  }
  pair.gpu = row.table_gpu;
  pair.op = row.op;
  pair.dtype = row.dtype;
  pair.mode = "forward";
  pair.origin = row.origin;
  pair.label = row.label;
  pair.measured = row.measured_s;
  pair.predicted = timing.time.value;
  pair.low = timing.low.value;
  pair.high = timing.high.value;
  pair.size = row.size;
  pair.fit = row.fit;
  pair.family = family_of(row.op, row.dtype);
  pair.explanation = explain(launches, timing);
  return "";
}

void count_skipped(const CsvTable& table, const KernelRows& read, Validation& out) {
  for (const auto& [reason, rows] : read.skipped) skip(out, reason, rows);
  for (const std::size_t line : read.skipped_lines) {
    if (table.text(line, "latency_us").empty()) continue;
    const std::string dtype = table.has("dtype") ? one_line(table.text(line, "dtype")) : "fp32";
    ++out.missed[{family_of(table.text(line, "op"), dtype), one_line(table.text(line, "gpu"))}];
  }
}

/// Of the rows of the split that was asked for.
std::vector<bool> draw(const std::vector<KernelRow>& rows, const ValidateOptions& options) {
  std::vector<std::string> kinds;
  kinds.reserve(rows.size());
  for (const KernelRow& row : rows) {
    kinds.push_back(fmt::format("{}|{}|{}|{}|{}", row.table_gpu, row.op, row.dtype, row.origin, row.fit));
  }
  return draw_rows(kinds, options.rows, options.seed);
}

}  // namespace

void predict_kernel_rows(Runner& runner, const CsvTable& table, Validation& out) {
  const KernelRows read = read_kernel_rows(table, gpu_files(out.options));
  count_skipped(table, read, out);
  Machines machines(runner, out.options);
  const std::vector<bool> drawn = draw(read.rows, out.options);
  std::vector<std::pair<const KernelRow*, const Machine*>> wanted;
  wanted.reserve(read.rows.size());
  for (const KernelRow& row : read.rows) {
    if (row.fit && out.options.split == "report") {
      skip(out, "fit row");
    } else if (!row.fit && out.options.split == "fit") {
      skip(out, "report row");
    } else if (!drawn[static_cast<std::size_t>(&row - read.rows.data())]) {
      skip(out, std::string(kNotDrawn));
    } else {
      try {
        wanted.emplace_back(&row, &machines(row.gpu, row.origin));
      } catch (const UnsupportedError& e) {
        skip(out, e.what());
        ++out.missed[{family_of(row.op, row.dtype), row.table_gpu}];
      }
    }
  }
  std::vector<Pair> pairs(wanted.size());
  std::vector<std::string> refused(wanted.size());
  tbb::parallel_for(std::size_t{0}, wanted.size(),
                    [&](std::size_t i) { refused[i] = predict(*wanted[i].first, *wanted[i].second, pairs[i]); });
  out.pairs.reserve(out.pairs.size() + pairs.size());
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    if (refused[i].empty()) {
      out.pairs.push_back(std::move(pairs[i]));
      continue;
    }
    const KernelRow& row = *wanted[i].first;
    skip(out, refused[i]);
    ++out.missed[{family_of(row.op, row.dtype), row.table_gpu}];
  }
}

}  // namespace voltaic::validation
