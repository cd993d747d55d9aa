// SPDX-License-Identifier: MIT
// Which experts a batch of tokens reaches and how many rows each gets: what a router leaves on one GPU of a group that
// shares the experts.
#pragma once

#include <array>
#include <cstdint>

namespace voltaic::kernel {

/// How tokens choose.
enum class Routing : std::uint8_t {
  uniform,    ///< Each expert as likely as any other, independently: a trained router, on average.
  balanced,   ///< Slots dealt out in strides: no expert gets two more than another.
  power_law,  ///< Loads drawn from a power law; the GPU with most slots counts.
};
/// Who gets the slots that rounding a power law's loads leaves over.
enum class Leftover : std::uint8_t { largest, first_idle, spread_idle };

struct RoutedTokens {
  std::int64_t tokens = 1, top_k = 1, experts = 1;
  std::int64_t gpus = 1;  ///< Experts are divided among them.
  Routing routing = Routing::uniform;
  double skew = 1;  ///< Exponent of the power law.
  Leftover leftover = Leftover::largest;
};

/// Rows of a tile, by which the blocks of an expert are counted.
inline constexpr std::array<int, 6> kRowBlocks{8, 16, 32, 48, 64, 128};

/// What one GPU has to do; means where loads are drawn.
struct RoutedLoad {
  double slots = 0;                                ///< Pairs of a token and one of the GPU's experts.
  double touched = 0;                              ///< Experts with any row.
  double hit = 0;                                  ///< Tokens with any slot here.
  std::array<double, kRowBlocks.size()> blocks{};  ///< Tiles of kRowBlocks rows, each expert's rounded up.
  /// The same where the slots of tokens that hit this GPU but belong to others ride on its busiest expert.
  std::array<double, kRowBlocks.size()> blocks_with_foreign{};
};

/// Uniform: touched = E (1 - (1 - k/E)^N), blocks = E E[ceil(X/b)] with X binomial(N, k/E). Balanced and power law: as
/// the tables of [AICDATA] were made; 12 draws from a fixed seed, so equal inputs give equal loads.
RoutedLoad route(const RoutedTokens& tokens);

}  // namespace voltaic::kernel
