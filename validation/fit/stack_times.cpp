// SPDX-License-Identifier: MIT
#include "validation/fit/stack_times.hpp"

#include <tbb/parallel_for.h>

#include <algorithm>

#include "arch/units/error.hpp"
#include "validation/compare/predict_stack.hpp"

namespace voltaic::validation {
namespace {

bool same(const cost::CallProtocol& a, const cost::CallProtocol& b) {
  return a.stack == b.stack && a.release == b.release && a.timing == b.timing && a.contents == b.contents &&
         a.operands == b.operands;
}

}  // namespace

StackTimes::StackTimes(const std::vector<std::string>& gpus, const std::vector<StackRow>& rows) {
  for (const auto& name : gpus) {
    arch::ResolvedGpu gpu = arch::resolve_gpu(name);
    gpu.fields.clear();
    gpu.json.clear();
    boards_.push_back(std::move(gpu));
  }
  for (std::size_t b = 0; b < gpus.size(); ++b) {
    for (const StackRow& row : rows) {
      if (row.gpu != gpus[b] || place_of(row) < places_.size()) continue;
      places_.push_back({b, arch::calibration_key(boards_[b].board), row.gpu, row.protocol.call});
    }
  }
}

std::size_t StackTimes::place_of(const StackRow& row) const {
  const auto at = std::find_if(places_.begin(), places_.end(), [&](const StackPlace& p) {
    return p.gpu == row.gpu && same(p.protocol, row.protocol.call);
  });
  return static_cast<std::size_t>(at - places_.begin());
}

arch::ParameterTree StackTimes::tree(std::size_t place, const arch::CalibrationDocument& document) const {
  const StackPlace& p = places_[place];
  return arch::in_session(arch::in_session(document.tree(p.name), p.protocol.stack), p.protocol.release);
}

std::unique_ptr<cost::StackCall> StackTimes::call(std::size_t place, const arch::CalibrationDocument& document) const {
  arch::ResolvedGpu gpu = board(place);
  gpu.calibration = document.tree(places_[place].name);
  return std::make_unique<cost::StackCall>(gpu, places_[place].protocol);
}

/// Those of the places that the rows need.
StackTimes::Calls StackTimes::calls(const arch::CalibrationDocument& document,
                                    std::span<const StackFitRow> rows) const {
  Calls out(places_.size());
  for (const StackFitRow& row : rows) {
    if (!out[row.place]) out[row.place] = call(row.place, document);
  }
  return out;
}

void StackTimes::lower(const arch::CalibrationDocument& document, std::span<StackFitRow> rows) const {
  const Calls stacks = calls(document, rows);
  tbb::parallel_for(std::size_t{0}, rows.size(), [&](std::size_t i) {
    const cost::StackCall& stack = *stacks[rows[i].place];
    try {
      rows[i].launches = lower_stack(rows[i].row->work, {stack.gpu().spec, stack.library()});
    } catch (const UnsupportedError& e) {
      rows[i].refused = e.what();
    }
  });
}

StackTimings StackTimes::predict(const arch::CalibrationDocument& document, std::span<const StackFitRow> rows) const {
  const Calls stacks = calls(document, rows);
  StackTimings out(rows.size());
  tbb::parallel_for(std::size_t{0}, rows.size(),
                    [&](std::size_t i) { out[i] = stacks[rows[i].place]->time(rows[i].launches, rows[i].row->call); });
  return out;
}

}  // namespace voltaic::validation
