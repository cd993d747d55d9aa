// SPDX-License-Identifier: MIT
#include "validation/fit/row_times.hpp"

#include <tbb/parallel_for.h>

#include <map>
#include <mutex>

#include "sim/cost/engine.hpp"

namespace voltaic::validation {

RowTimes::RowTimes(const std::vector<FitBoard>& boards) {
  for (std::size_t b = 0; b < boards.size(); ++b) {
    arch::ResolvedGpu gpu = arch::resolve_gpu(boards[b].gpu);
    gpu.fields.clear();
    gpu.json.clear();
    boards_.push_back(std::move(gpu));
    for (const auto& session : boards[b].sessions) places_.push_back({b, boards[b].name, session, boards[b].gpu});
  }
}

std::size_t RowTimes::place_of(const KernelRow& row) const {
  std::size_t i = 0;
  while (i < places_.size() && (places_[i].gpu != row.gpu || places_[i].session != row.origin)) ++i;
  return i;
}

arch::ResolvedGpu RowTimes::gpu(std::size_t place, const arch::CalibrationDocument& document) const {
  arch::ResolvedGpu gpu = boards_[places_[place].board];
  gpu.calibration = document.tree(places_[place].name, places_[place].session);
  return gpu;
}

namespace {

struct Machine {
  explicit Machine(arch::ResolvedGpu resolved) : gpu(std::move(resolved)), protocol(gpu) {}
  arch::ResolvedGpu gpu;
  cost::SingleOp protocol;
};

/// Calls `take(i, timing)` for each row; machines are made once per place.
template <class Take>
void time_rows(const RowTimes& times, const arch::CalibrationDocument& document, std::span<const FitRow> rows,
               Take take) {
  std::vector<std::unique_ptr<Machine>> machines(times.places().size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    auto& machine = machines[rows[i].place];
    if (!machine) machine = std::make_unique<Machine>(times.gpu(rows[i].place, document));
    take(i, machine->protocol.time(rows[i].launches));
  }
}

}  // namespace

void RowTimes::predict(const arch::CalibrationDocument& document, std::span<const FitRow> rows,
                       std::span<cost::SingleOp::Timing> timings) const {
  time_rows(*this, document, rows, [&](std::size_t i, const auto& timing) { timings[i] = timing; });
}

void RowTimes::predict(const arch::CalibrationDocument& document, std::span<const FitRow> rows,
                       std::span<double> seconds) const {
  time_rows(*this, document, rows, [&](std::size_t i, const auto& timing) { seconds[i] = timing.time.value; });
}

void choose_launches(const RowTimes& times, const arch::CalibrationDocument& document, std::span<FitRow> rows) {
  struct Chooser {
    explicit Chooser(arch::ResolvedGpu resolved) : gpu(std::move(resolved)), library(cost::make_library(gpu)) {}
    arch::ResolvedGpu gpu;
    std::unique_ptr<kernel::LibraryChoice> library;
  };
  std::vector<std::unique_ptr<Chooser>> choosers;
  for (std::size_t p = 0; p < times.places().size(); ++p) {
    choosers.push_back(std::make_unique<Chooser>(times.gpu(p, document)));
  }
  tbb::parallel_for(std::size_t{0}, rows.size(), [&](std::size_t i) {
    const Chooser& chooser = *choosers[rows[i].place];
    rows[i].launches = lower_row(*rows[i].row, chooser.gpu.spec, *chooser.library);
  });
}

}  // namespace voltaic::validation
