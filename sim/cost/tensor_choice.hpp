// SPDX-License-Identifier: MIT
// Which tensor-core kernel the library takes for a product, and in how many parts it splits k.
#pragma once

#include <cstdint>
#include <vector>

#include "arch/loader.hpp"
#include "sim/cost/gemm_tensor.hpp"
#include "sim/kernel/launch.hpp"

namespace voltaic::cost {

/// How a library decides.
enum class TensorRule : std::uint8_t {
  utility,  ///< Scores that were learnt from times: it hardly sees the last wave, so it is not the fastest it takes.
  fastest,  ///< Tried on the board when the engine was built, with the scatter of a short trial.
  by_m,     ///< The first tile that is made for so many rows.
};

/// Weights of a kernel's score, calibration "choice". With t its time at the boost clock, tl the same with waves
/// counted in fractions, C its CTAs on P SMs, v = C / resident CTAs, s parts of k, L = ln(k/640), G = ln(mn/1e5), h = 1
/// where a part of k is shorter than the pipeline:
///     U = time ln t + smooth ln tl + fill ln(v/ceil v) + pad ln(padded mn/mn) + area ln(tile)min(1,v) + sm ln
///     min(1,C/P)
///       + one_wave [v<=1] + sm_fill ln(C/P/ceil(C/P)) + part_wave ln min(1,v) + pad_m ln(padded m/m)
///       + [s>1](split + split_k L + split_mn G) + ln s (parts + parts_k L + parts_mn G) + parts2 ln^2 s
///       + two [s=2] + three [s=3] + odd [s in 5,6,10,12] + short_part ln(min(k/s,1024)/1024)
///       + short h + short_fill min(0, ln(k/s/pipeline)) + short_large h [tile >= 128^2]
///       + own terms of the tile: bias + k L + m ln(m/256) + n ln(n/2048) + long_k [k>=256]
struct TensorWeights {
  double time = 0, smooth = 0, fill = 0, pad = 0, area = 0, sm = 0;
  double one_wave = 0, sm_fill = 0, part_wave = 0, pad_m = 0;
  double split = 0, split_k = 0, split_mn = 0, parts = 0, parts_k = 0, parts_mn = 0, parts2 = 0;
  double two = 0, three = 0, odd = 0, short_part = 0, short_k = 0, short_fill = 0, short_large = 0;
};

/// The rule of one law. A simulator must name one kernel: of the candidates, each with its probability
/// p ~ exp(U), the one that is likely and whose time lies nearest the expectation exp(sum p ln t); the rest of the way
/// to that expectation goes into `time_scale`. Kernels slower than the fastest by more than `guard` are passed over.
class TensorChoice {
 public:
  TensorChoice(const arch::ParameterTree& law, const TensorLaw& kernels);

  /// `reference`: the machine whose times the library knows; `here` the same with the SMs at hand. `here` must equal it
  /// in all but the SMs.
  kernel::GemmTile operator()(const TensorLaw& law, const kernel::GemmProblem& problem, const TensorMachine& reference,
                              const TensorMachine& here) const;

  /// True where the rule compares times on the very board.
  bool tries_on_board() const { return rule_ == TensorRule::fastest; }

 private:
  struct Candidate;
  struct Own {
    double bias = 0, k = 0, m = 0, n = 0, long_k = 0;
    double k2 = 0;  ///< Of slow kernels, whose m and n are counted from 8 and 4096.
  };
  double score(const TensorLaw& law, std::size_t tile, const TensorProblem& p, double split, const TensorTime& t,
               double sms) const;
  std::vector<Candidate> candidates(const TensorLaw& law, const TensorProblem& p, const TensorMachine& reference,
                                    const TensorMachine& here) const;

  TensorRule rule_ = TensorRule::utility;
  TensorWeights weights_;
  std::vector<Own> own_;  ///< By tile.
  double guard_ = 1.3;
  double spread_ = 0;  ///< Of ln t in which trials scatter; 0: the fastest itself.
  double most_split_ = 32;
  double around_ = 0;  ///< Seconds that a trial took beside the kernel.
};

}  // namespace voltaic::cost
