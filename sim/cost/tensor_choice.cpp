// SPDX-License-Identifier: MIT
#include "sim/cost/tensor_choice.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

namespace voltaic::cost {

namespace {

constexpr std::array<double, 12> kSplits{1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32};

constexpr std::pair<std::string_view, double TensorWeights::*> kNames[] = {
    {"time", &TensorWeights::time},
    {"smooth", &TensorWeights::smooth},
    {"fill", &TensorWeights::fill},
    {"pad", &TensorWeights::pad},
    {"area", &TensorWeights::area},
    {"sm", &TensorWeights::sm},
    {"one_wave", &TensorWeights::one_wave},
    {"sm_fill", &TensorWeights::sm_fill},
    {"part_wave", &TensorWeights::part_wave},
    {"pad_m", &TensorWeights::pad_m},
    {"split", &TensorWeights::split},
    {"split_k", &TensorWeights::split_k},
    {"split_mn", &TensorWeights::split_mn},
    {"parts", &TensorWeights::parts},
    {"parts_k", &TensorWeights::parts_k},
    {"parts_mn", &TensorWeights::parts_mn},
    {"parts2", &TensorWeights::parts2},
    {"two", &TensorWeights::two},
    {"three", &TensorWeights::three},
    {"odd", &TensorWeights::odd},
    {"short_part", &TensorWeights::short_part},
    {"short", &TensorWeights::short_k},
    {"short_fill", &TensorWeights::short_fill},
    {"short_large", &TensorWeights::short_large},
};

TensorRule rule_of(const arch::ParameterTree& law) {
  const std::string word = law.has("rule") ? law.word("rule") : "utility";
  if (word == "utility") return TensorRule::utility;
  if (word == "fastest") return TensorRule::fastest;
  if (word == "by_m") return TensorRule::by_m;
  throw ConfigError(law.file(), "rule", "expected utility, fastest or by_m, got " + word);
}

kernel::GemmTile to_tile(const TensorTile& t, double split, double step_scale) {
  kernel::GemmTile tile;
  tile.name = t.name;
  tile.tile_m = t.tile_m;
  tile.tile_n = t.tile_n;
  tile.tile_k = static_cast<int>(t.k_step * step_scale);
  tile.warps = t.warps;
  tile.stages = static_cast<int>(t.stages);
  tile.ctas_per_sm = t.ctas_per_sm;
  tile.split_k = static_cast<std::int64_t>(split);
  tile.tensor_cores = true;
  return tile;
}

bool mostly_padding(const TensorTile& tile, const TensorProblem& p) {
  return (tile.tile_m >= 32 && p.m <= tile.tile_m / 4.0) || (tile.tile_n >= 64 && p.n <= tile.tile_n / 4.0);
}

bool serves(const TensorTile& tile, const TensorProblem& p) {
  return p.m >= tile.least_m && p.m <= tile.most_m && p.k >= tile.least_k;
}

}  // namespace

struct TensorChoice::Candidate {
  std::size_t tile = 0;
  double split = 1;
  TensorTime at_reference;
  double seconds = 0;  ///< With the SMs at hand.
  double reduce = 0;
  double score = 0;
};

TensorChoice::TensorChoice(const arch::ParameterTree& law, const TensorLaw& kernels)
    : rule_(rule_of(law)),
      own_(kernels.tiles().size()),
      guard_(std::max(1.0, law.number_or("guard", 1.3))),
      spread_(law.number_or("choice_spread", 0)),
      most_split_(law.number_or("max_split", kSplits.back())),
      around_(law.number_or("tried_with_s", 0)) {
  for (const auto& [name, member] : kNames) {
    weights_.*member = law.number_or("choice." + std::string(name), 0);
  }
  const auto read = [&](const char* name, double Own::*member) {
    if (!law.has(name)) return;
    const std::vector<double> values = law.numbers(name);
    for (std::size_t i = 0; i < values.size() && i < own_.size(); ++i) own_[i].*member = values[i];
  };
  read("tile_bias", &Own::bias);
  read("tile_k", &Own::k);
  read("tile_m", &Own::m);
  read("tile_n", &Own::n);
  read("tile_long_k", &Own::long_k);
  for (std::size_t i = 0; i < own_.size(); ++i) {
    const TensorFamily family = kernels.tiles()[i].family;
    if (family == TensorFamily::gemv) own_[i] = {.bias = law.number_or("gemv.bias", 0)};
    if (family != TensorFamily::slow_skinny) continue;
    own_[i] = {.bias = law.number("slow_skinny.score.bias"),
               .k = law.number("slow_skinny.score.k"),
               .m = law.number("slow_skinny.score.m"),
               .n = law.number("slow_skinny.score.n"),
               .k2 = law.number("slow_skinny.score.k2")};
  }
}

double TensorChoice::score(const TensorLaw& law, std::size_t index, const TensorProblem& p, double split,
                           const TensorTime& t, double sms) const {
  const TensorTile& tile = law.tiles()[index];
  const Own& own = own_[index];
  const double ln_t = std::log(t.whole + around_);
  if (rule_ != TensorRule::utility) return spread_ > 0 ? own.bias - ln_t / spread_ : 0;
  const TensorWeights& c = weights_;
  double u = c.time * ln_t + c.smooth * std::log(t.smooth + around_) + own.bias;
  if (tile.family == TensorFamily::gemv) return u;
  const double area = static_cast<double>(tile.tile_m) * tile.tile_n;
  const double padded_m = std::ceil(p.m / tile.tile_m) * tile.tile_m;
  const double padded_n = std::ceil(p.n / tile.tile_n) * tile.tile_n;
  const double per_sm = t.ctas / sms;
  const double v = per_sm / tile.ctas_per_sm;
  const double ln_pad_m = std::log(padded_m / p.m);
  u += c.fill * std::log(v / std::ceil(v)) + c.pad * (ln_pad_m + std::log(padded_n / p.n)) +
       c.area * std::log(area) * std::min(1.0, v) + c.sm * std::log(std::min(1.0, per_sm)) + c.pad_m * ln_pad_m;
  if (c.sm_fill != 0) u += c.sm_fill * std::log(per_sm / std::ceil(per_sm));
  if (v <= 1) u += c.one_wave + c.part_wave * std::log(v);
  const double ln_k = std::log(p.k / 640);
  if (split > 1) {
    const double ln_mn = std::log(p.m * p.n / 1e5);
    const double ln_s = std::log(split);
    u += c.split + c.split_k * ln_k + c.split_mn * ln_mn;
    u += ln_s * (c.parts + c.parts_k * ln_k + c.parts_mn * ln_mn + c.parts2 * ln_s);
    if (split == 2) u += c.two;
    if (split == 3) u += c.three;
    if (split == 5 || split == 6 || split == 10 || split == 12) u += c.odd;
  }
  const double part = p.k / split;
  if (part < 1024) u += c.short_part * std::log(part / 1024);
  if (const double pipeline = tile.stages * tile.k_step * p.step_scale; part < pipeline) {
    u += c.short_k + c.short_fill * std::log(part / pipeline);
    if (area >= 128 * 128) u += c.short_large;
  }
  if (tile.family == TensorFamily::slow_skinny) {
    return u + own.k * ln_k + own.k2 * ln_k * ln_k + own.n * std::log(p.n / 4096) + own.m * std::log(p.m / 8);
  }
  u += own.k * ln_k + own.m * std::log(p.m / 256) + own.n * std::log(p.n / 2048);
  return p.k >= 256 ? u + own.long_k : u;
}

/// Tiles and splits that the library considers: none that is mostly padding, unless all are; k is not cut where CTAs
/// abound or parts get short.
std::vector<TensorChoice::Candidate> TensorChoice::candidates(const TensorLaw& law, const TensorProblem& p,
                                                              const TensorMachine& reference,
                                                              const TensorMachine& here) const {
  std::vector<Candidate> out;
  out.reserve(law.tiles().size() * kSplits.size());
  const auto all = [&](auto test) { return std::all_of(law.tiles().begin(), law.tiles().end(), test); };
  const bool all_padding = all(
      [&](const TensorTile& t) { return t.family != TensorFamily::tiled || mostly_padding(t, p) || !serves(t, p); });
  for (std::size_t i = 0; i < law.tiles().size(); ++i) {
    const TensorTile& tile = law.tiles()[i];
    if (!serves(tile, p)) continue;
    const bool whole = tile.family != TensorFamily::tiled;
    if (rule_ != TensorRule::by_m && !whole && !all_padding && mostly_padding(tile, p)) continue;
    const double tiles = std::ceil(p.m / tile.tile_m) * std::ceil(p.n / tile.tile_n) * p.b;
    const double slots = reference.sms * tile.ctas_per_sm;
    for (const double split : kSplits) {
      if (split > 1 &&
          (whole || split > most_split_ || p.k / split < 2 * tile.k_step * p.step_scale || tiles * split > 6 * slots)) {
        break;
      }
      if (split > 1 && tiles * split > 1.01 * slots && p.k / split < 2048) continue;
      Candidate c;
      c.tile = i;
      c.split = split;
      c.at_reference = law.time(tile, p, split, reference);
      const TensorTime t = here.sms == reference.sms ? c.at_reference : law.time(tile, p, split, here);
      c.seconds = t.whole;
      c.reduce = t.reduce;
      out.push_back(c);
    }
    if (rule_ == TensorRule::by_m && !out.empty()) break;
  }
  return out;
}

kernel::GemmTile TensorChoice::operator()(const TensorLaw& law, const kernel::GemmProblem& problem,
                                          const TensorMachine& reference, const TensorMachine& here) const {
  const TensorProblem p(problem, law.unaligned());
  std::vector<Candidate> all = candidates(law, p, reference, here);
  ensure(!all.empty(), "a matrix product has no candidate kernel");
  double fastest = std::numeric_limits<double>::infinity();
  for (const Candidate& c : all) fastest = std::min(fastest, c.seconds);
  ensure(std::isfinite(fastest), "a matrix product has a kernel with a finite time");
  double highest = -std::numeric_limits<double>::infinity();
  std::erase_if(all, [&](const Candidate& c) { return !(c.seconds <= guard_ * fastest); });
  for (Candidate& c : all) {
    c.score = score(law, c.tile, p, c.split, c.at_reference, reference.sms);
    highest = std::max(highest, c.score);
  }
  // Without scatter the fastest is the one that is taken.
  if (rule_ == TensorRule::fastest && !(spread_ > 0)) {
    for (Candidate& c : all) c.score = c.seconds == fastest ? highest : highest - 1000;
  }
  double sum = 0, expected = 0;
  for (Candidate& c : all) {
    c.score = std::exp(c.score - highest);
    sum += c.score;
    expected += c.score * std::log(c.seconds + around_);
  }
  expected /= sum;
  const Candidate* best = nullptr;
  double nearest = -std::numeric_limits<double>::infinity();
  for (const Candidate& c : all) {
    constexpr double kNear = 0.01;  // a per cent of time counts as much as e in probability
    const double near = std::log(c.score / sum + 1e-30) - std::abs(std::log(c.seconds + around_) - expected) / kNear;
    if (near <= nearest) continue;
    nearest = near;
    best = &c;
  }
  ensure(best != nullptr, "a matrix product has a kernel with a finite score");
  kernel::GemmTile tile = to_tile(law.tiles()[best->tile], best->split, p.step_scale);
  const double own = best->seconds - best->reduce;
  tile.time_scale = std::max(0.5, (std::exp(expected) - around_ - best->reduce) / own);
  return tile;
}

}  // namespace voltaic::cost
