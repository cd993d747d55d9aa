// SPDX-License-Identifier: MIT
// The changes that `voltaic fit` tries: what each does to memory and to time.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/report/fit_rows.hpp"
#include "sim/request.hpp"

namespace voltaic::study {

/// Changes that make `request`, which does not fit, fit; cheapest in time first. `asked` is its prediction, `max_batch`
/// the largest batch that fits. Of each kind the smallest change that suffices; two kinds together, then three, only
/// where none suffices alone.
std::vector<report::FitChange> fitting_changes(Runner& runner, const Request& request, const report::Prediction& asked,
                                               std::optional<std::int64_t> max_batch);

}  // namespace voltaic::study
