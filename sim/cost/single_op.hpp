// SPDX-License-Identifier: MIT
// The protocol of measured kernel tables: one eager call between two events on an idle GPU, buffers reused.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "arch/loader.hpp"
#include "sim/kernel/kernel_cost.hpp"

namespace voltaic::cost {

/// A host delay D z of unknown cause in every row of some tables: z uniform up to `shortest` for a share of the rows,
/// from there to `longest` for the others. No shape explains it, so the prediction is that quantile of L + k + D z,
/// weighted by 1/time, which makes the expected relative error smallest.
struct HostDelay {
  double scale_s = 0;      ///< D; 0: none.
  double short_share = 0;  ///< Of the rows.
  double shortest = 0, longest = 0;
  double quantile = 0.5;  ///< 0.5: least relative error.
  /// Predicted time where everything else takes `base` seconds.
  double time(double base) const;
  /// The delay in seconds that a share `q` of the rows stays below.
  double at(double q) const;
};

/// What the events see of one framework call:
///     T = (H^q + (L + k + delay)^q)^(1/q)      H host floor, L host time left before the first kernel, k its kernels
/// H, L and q per operation from calibration section "single_op"; k of products and vector kernels with the clock that
/// idle gaps leave. The calls of a table that were measured in a known session take that session's clocks and host
/// (arch::in_session()). Fitted: [NEUDATA] FP32 eager rows.
class SingleOp {
 public:
  /// `gpu` must outlive this.
  explicit SingleOp(const arch::ResolvedGpu& gpu);
  /// The same with another engine; `engine` must outlive this.
  SingleOp(const arch::ResolvedGpu& gpu, const kernel::CostModel& engine);
  struct Timing {
    Seconds time;       ///< Between the events.
    Seconds low, high;  ///< 90 % interval of `time`: quantiles of measured over predicted on fit rows left out;
                        ///< where there were none, the kernel family's half width, widened.
    Seconds kernel;     ///< Of the kernels alone.
    Seconds floor;      ///< H: what the host takes at least.
    Seconds delay_below, delay_above;  ///< How far the delay of a row may lie from the one predicted, 5 % and 95 %.
    kernel::KernelCost main;           ///< Cost of the longest kernel: what bounds the call.
  };
  /// A call that makes these launches; none at all: a call without GPU work.
  Timing time(std::span<const kernel::Launch> launches) const;
  /// Name under "single_op" whose floor such a call meets: "linear", "bmm", "conv", "softmax_warp", "add".
  static std::string_view key(const kernel::Launch& launch);

 private:
  struct Floor {
    double floor_s = 0, launch_s = 0, exponent = 16;
    bool known = false;        ///< Quantiles are known.
    double low = 1, high = 1;  ///< Measured over predicted, 5 % and 95 % quantile; of the kernel alone under a delay.
    HostDelay delay;
  };
  static Floor read_floor(const arch::ParameterTree& tree);
  void read_floors(const arch::ResolvedGpu& gpu);
  const Floor& floor_of(std::span<const kernel::Launch> launches) const;
  double half_width(std::string_view family) const;
  /// What a call's interval is wider by, as a share of its time, where its board or operation was not measured.
  double widening(const Floor& floor, std::span<const kernel::Launch> launches, Seconds time) const;

  std::unique_ptr<const kernel::CostModel> own_;
  const kernel::CostModel& engine_;
  std::vector<std::pair<std::string, Floor>> floors_;
  std::map<std::string, double, std::less<>> half_widths_;  ///< By launch family, for calls without quantiles.
  Floor fallback_;
  bool board_measured_ = true;
};

}  // namespace voltaic::cost
