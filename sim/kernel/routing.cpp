// SPDX-License-Identifier: MIT
#include "sim/kernel/routing.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace voltaic::kernel {

namespace {

using Loads = std::vector<double>;

/// Dealing and drawing walk over experts and slots; beyond this many the uniform law stands in for both.
constexpr double kMostWalked = 0x1p22;
constexpr std::uint64_t kDraws = 12;

double ceil_div(double a, double b) {
  return std::ceil(a / b);
}

void add_blocks(const Loads& loads, double foreign, double weight, RoutedLoad& out) {
  const auto busiest = static_cast<std::size_t>(std::max_element(loads.begin(), loads.end()) - loads.begin());
  for (std::size_t b = 0; b < kRowBlocks.size(); ++b) {
    double blocks = 0;
    for (const double load : loads) blocks += ceil_div(load, kRowBlocks[b]);
    const double more = ceil_div(loads[busiest] + foreign, kRowBlocks[b]) - ceil_div(loads[busiest], kRowBlocks[b]);
    out.blocks[b] += weight * blocks;
    out.blocks_with_foreign[b] += weight * (blocks + more);
  }
}

void add(const Loads& loads, double hit, double top_k, double weight, RoutedLoad& out) {
  const double slots = std::accumulate(loads.begin(), loads.end(), 0.0);
  out.slots += weight * slots;
  out.touched +=
      weight * static_cast<double>(std::count_if(loads.begin(), loads.end(), [](double v) { return v > 0; }));
  out.hit += weight * hit;
  add_blocks(loads, std::max(0.0, top_k * hit - slots), weight, out);
}

/// Token t gives its slot i to expert t + i ceil(E/k), modulo E; few tokens are spread over the first stride.
RoutedLoad balanced(const RoutedTokens& t) {
  const std::int64_t stride = (t.experts + t.top_k - 1) / t.top_k;
  const std::int64_t local = t.experts / t.gpus;
  Loads loads(static_cast<std::size_t>(local), 0.0);
  double hit = 0;
  const auto deal = [&](std::int64_t first, std::int64_t count, double times) {
    for (std::int64_t token = first; token < first + count; ++token) {
      const std::int64_t start = t.tokens >= stride ? token : token * stride / t.tokens;
      bool here = false;
      for (std::int64_t i = 0; i < t.top_k; ++i) {
        const std::int64_t expert = (start + i * stride) % t.experts;
        if (expert >= local) continue;
        loads[static_cast<std::size_t>(expert)] += times;
        here = true;
      }
      if (here) hit += times;
    }
  };
  // Tokens E apart choose alike.
  const std::int64_t periods = t.tokens / t.experts;
  if (periods > 0) deal(0, t.experts, static_cast<double>(periods));
  deal(0, t.tokens - periods * t.experts, 1);
  RoutedLoad out;
  add(loads, hit, static_cast<double>(t.top_k), 1, out);
  return out;
}

/// Splitmix64: the same numbers everywhere.
double random_share(std::uint64_t draw, std::uint64_t expert) {
  std::uint64_t z = (draw << 32U) + expert + 0x9E3779B97F4A7C15U;
  z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
  z ^= z >> 31U;
  return static_cast<double>(z >> 11U) * 0x1p-53;
}

/// One share per expert, x^(1-a) uniform between its bounds; a = 1 is the limit, uniform in log x.
Loads drawn_shares(const RoutedTokens& t, std::uint64_t draw) {
  const double tokens = static_cast<double>(t.tokens);
  const bool many = tokens * static_cast<double>(t.top_k) > static_cast<double>(t.experts);
  const double low = many ? 1.0 : 0.01;
  const double high = many ? std::max(0.8 * tokens, 1.0001) : 2.0;
  const double a = 1 - t.skew;
  Loads x(static_cast<std::size_t>(t.experts));
  for (std::size_t j = 0; j < x.size(); ++j) {
    const double u = random_share(draw, j);
    x[j] = std::abs(a) < 1e-9 ? low * std::pow(high / low, u)
                              : std::pow((std::pow(high, a) - std::pow(low, a)) * u + std::pow(low, a), 1 / a);
  }
  return x;
}

void give_leftover(double rest, Leftover rule, const std::vector<std::size_t>& by_load, Loads& loads) {
  std::vector<std::size_t> idle;
  for (std::size_t j = 0; j < loads.size(); ++j) {
    if (!(loads[j] > 0)) idle.push_back(j);
  }
  std::size_t given = 0;
  if (rule != Leftover::largest && !idle.empty()) {
    given = static_cast<std::size_t>(std::min(rest, static_cast<double>(idle.size())));
    for (std::size_t i = 0; i < given; ++i) ++loads[idle[rule == Leftover::first_idle ? i : i * idle.size() / given]];
  }
  const double more = rest - static_cast<double>(given);
  const double each = std::floor(more / static_cast<double>(loads.size()));
  const double once = more - each * static_cast<double>(loads.size());
  for (std::size_t i = 0; i < by_load.size(); ++i) {
    loads[by_load[i]] += each + (static_cast<double>(i) < once ? 1 : 0);
  }
}

void take_surplus(double surplus, const std::vector<std::size_t>& by_load, Loads& loads) {
  while (surplus > 0) {
    const double before = surplus;
    for (const std::size_t j : by_load) {
      if (!(surplus > 0)) return;
      if (!(loads[j] > 0)) continue;
      --loads[j];
      --surplus;
    }
    if (surplus == before) return;
  }
}

/// No token takes an expert twice: what a load has beyond the tokens goes to the others, evenly.
void cap(double tokens, Loads& loads) {
  constexpr int kMostRounds = 20;
  for (int round = 0; round < kMostRounds; ++round) {
    double excess = 0;
    std::vector<std::size_t> open;
    for (double& load : loads) {
      excess += std::max(0.0, load - tokens);
      load = std::min(load, tokens);
    }
    for (std::size_t j = 0; j < loads.size(); ++j) {
      if (loads[j] < tokens) open.push_back(j);
    }
    if (!(excess > 0) || open.empty()) return;
    const double each = std::floor(excess / static_cast<double>(open.size()));
    const double once = excess - each * static_cast<double>(open.size());
    for (std::size_t i = 0; i < open.size(); ++i) loads[open[i]] += each + (static_cast<double>(i) < once ? 1 : 0);
  }
}

/// Loads of the GPU that got most.
Loads busiest_gpu(const RoutedTokens& t, const Loads& loads) {
  const auto local = static_cast<std::ptrdiff_t>(t.experts / t.gpus);
  auto best = loads.begin();
  double most = -1;
  for (auto first = loads.begin(); loads.end() - first >= local; first += local) {
    const double sum = std::accumulate(first, first + local, 0.0);
    if (sum > most) {
      most = sum;
      best = first;
    }
  }
  return {best, best + local};
}

RoutedLoad power_law(const RoutedTokens& t) {
  const double tokens = static_cast<double>(t.tokens);
  const double slots = tokens * static_cast<double>(t.top_k);
  RoutedLoad out;
  for (std::uint64_t draw = 0; draw < kDraws; ++draw) {
    Loads loads = drawn_shares(t, draw);
    const double sum = std::accumulate(loads.begin(), loads.end(), 0.0);
    for (double& load : loads) load = std::nearbyint(load / sum * slots);
    std::vector<std::size_t> by_load(loads.size());
    std::iota(by_load.begin(), by_load.end(), std::size_t{0});
    std::stable_sort(by_load.begin(), by_load.end(), [&](std::size_t a, std::size_t b) { return loads[a] > loads[b]; });
    const double rest = slots - std::accumulate(loads.begin(), loads.end(), 0.0);
    if (rest > 0) give_leftover(rest, t.leftover, by_load, loads);
    if (rest < 0) take_surplus(-rest, by_load, loads);
    cap(tokens, loads);
    const Loads here = busiest_gpu(t, loads);
    const double hit = std::min(tokens, std::accumulate(here.begin(), here.end(), 0.0));
    add(here, hit, static_cast<double>(t.top_k), 1.0 / static_cast<double>(kDraws), out);
  }
  return out;
}

/// E[ceil(X/b)] = sum over j of P(X > j b), X binomial(n, p): exactly for a small mean, by the normal law for a larger
/// one, and where X spreads over many blocks by its mean and half a block.
double expected_blocks(double n, double p, double b) {
  const double mean = n * p;
  if (p >= 1) return ceil_div(n, b);
  constexpr double kExactMean = 64;
  if (mean <= kExactMean) {
    double pmf = std::exp(n * std::log1p(-p)), tail = 1, sum = 0;
    const double last = std::min(n, mean + 12 * std::sqrt(mean) + 12);
    for (double x = 0; x <= last; ++x) {
      tail -= pmf;
      if (std::fmod(x, b) == 0) sum += std::max(0.0, tail);
      pmf *= (n - x) / (x + 1) * p / (1 - p);
    }
    return sum;
  }
  const double sigma = std::sqrt(mean * (1 - p));
  if (sigma > 2 * b) return mean / b + (b - 1) / (2 * b);
  double sum = std::floor(std::max(0.0, mean - 9 * sigma) / b);
  for (double x = sum * b; x <= mean + 9 * sigma; x += b)
    sum += 0.5 * std::erfc((x + 0.5 - mean) / sigma / std::sqrt(2.0));
  return sum;
}

RoutedLoad uniform(const RoutedTokens& t) {
  const double tokens = static_cast<double>(t.tokens), experts = static_cast<double>(t.experts);
  const double k = static_cast<double>(t.top_k), gpus = static_cast<double>(t.gpus);
  const double p = std::min(1.0, k / experts);
  const double local = experts / gpus;
  RoutedLoad out;
  out.slots = tokens * k / gpus;
  out.touched = p < 1 ? -local * std::expm1(tokens * std::log1p(-p)) : local;
  out.touched = std::min(out.touched, local);
  out.hit = gpus > 1 ? -tokens * std::expm1(k * std::log1p(-1 / gpus)) : tokens;
  const double foreign = std::max(0.0, k * out.hit - out.slots);
  for (std::size_t b = 0; b < kRowBlocks.size(); ++b) {
    const double rows = kRowBlocks[b];
    out.blocks[b] = std::max(out.touched, local * expected_blocks(tokens, p, rows));
    out.blocks_with_foreign[b] = out.blocks[b] + foreign / rows;
  }
  return out;
}

}  // namespace

RoutedLoad route(const RoutedTokens& tokens) {
  RoutedTokens t = tokens;
  t.tokens = std::max<std::int64_t>(t.tokens, 1);
  t.experts = std::max<std::int64_t>(t.experts, 1);
  t.top_k = std::clamp<std::int64_t>(t.top_k, 1, t.experts);
  t.gpus = std::clamp<std::int64_t>(t.gpus, 1, t.experts);
  const double walked =
      static_cast<double>(t.experts) *
      static_cast<double>(t.routing == Routing::balanced ? t.top_k : static_cast<std::int64_t>(kDraws));
  const bool walks = walked <= kMostWalked && static_cast<double>(t.tokens) <= 0x1p40;
  if (t.routing == Routing::balanced && walks) return balanced(t);
  if (t.routing == Routing::power_law && walks) return power_law(t);
  return uniform(t);
}

}  // namespace voltaic::kernel
