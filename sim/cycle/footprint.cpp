// SPDX-License-Identifier: MIT
#include "sim/cycle/footprint.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "sim/cycle/detail/sample_plan.hpp"
#include "sim/memory/cache.hpp"

namespace voltaic::cycle {
namespace {

constexpr double kSector = 32;

/// Trips of each loop in the mean over CTAs in x; over evenly spaced ones where there are many.
detail::Extent mean_trips(const Program& program) {
  constexpr std::int64_t kMostListed = 4096;
  detail::Extent trips{};
  for (std::size_t l = 0; l < program.loops.size(); ++l) {
    const Loop& loop = program.loops[l];
    const std::int64_t width = loop.trips_per_x == 0 ? 1 : program.grid[0];
    const std::int64_t n = std::min(width, kMostListed);
    const double apart = static_cast<double>(width) / static_cast<double>(n);
    double sum = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      const double x = n < width ? (static_cast<double>(i) + 0.5) * apart : static_cast<double>(i);
      sum += static_cast<double>(loop.trips_at(static_cast<std::int64_t>(x)));
    }
    trips[l] = sum / static_cast<double>(n);
  }
  return trips;
}

/// CTAs that may touch the same byte: those along grid dimensions in which no address moves.
double most_sharers(const Program& program, std::size_t tensor) {
  double most = 1;
  for (const Access& a : program.accesses) {
    if (a.tensor != tensor || a.lines == 0) continue;
    double same = 1;
    for (std::size_t d = 0; d < 3; ++d) {
      if (a.per_cta[d] == 0) same *= static_cast<double>(program.grid[d]);
    }
    most = std::max(most, same);
  }
  return most;
}

/// What L2 is asked for by one tensor.
struct Asked {
  double requested = 0;  ///< Bytes, after L1.
  double unique = 0, wave = 0;
  double copies = 1;  ///< Lines that L2 holds for each line of the tensor.
};

/// Each partition of L2 keeps what its SMs read. A line with k readers, spread evenly, lies in
///     P (1 - (1 - 1/P)^k)   of P partitions: 1 of a line with one reader, all of one with many.
/// Written lines have one place.
double copies(const Program& program, std::size_t tensor, const Asked& asked, int partitions) {
  if (partitions < 2 || program.tensors[tensor].written || !(asked.unique > 0)) return 1;
  const double readers = std::clamp(asked.requested / asked.unique, 1.0, most_sharers(program, tensor));
  const double p = partitions;
  return p * (1 - std::pow(1 - 1 / p, readers));
}

std::vector<Asked> asked_of(const Program& program, int partitions) {
  std::vector<Asked> all(program.tensors.size());
  for (std::size_t t = 0; t < all.size(); ++t) {
    const Tensor& tensor = program.tensors[t];
    all[t].requested = requested_bytes(program, t);
    all[t].unique = std::clamp(tensor.unique_bytes, 0.0, all[t].requested);
    all[t].wave = std::clamp(tensor.wave_bytes, all[t].unique, all[t].requested);
    all[t].copies = copies(program, t, all[t], partitions);
  }
  return all;
}

/// Bytes that pass L2 between two touches of a tensor in different waves: the part of everything that lies between.
double between_touches(const std::vector<Asked>& all, const Asked& tensor) {
  const double rounds = tensor.unique > 0 ? tensor.wave / tensor.unique : 1;
  double sum = 0;
  for (const Asked& a : all) sum += a.copies * std::min(a.unique, a.wave / rounds);
  return sum;
}

}  // namespace

double requested_bytes(const Program& program, std::size_t tensor) {
  const detail::LoopNest nest(program);
  const detail::Extent trips = mean_trips(program);
  double sectors = 0;
  for (std::size_t i = 0; i < program.code.size(); ++i) {
    const Instruction& in = program.code[i];
    if (!is_global(in.op)) continue;
    const Access& a = program.accesses[in.argument];
    if (a.tensor != tensor || a.lines == 0) continue;
    const bool loads = in.op == Op::load_global || in.op == Op::copy_async;
    sectors += nest.issues(i, trips) * a.sectors * (loads ? 1 - a.l1_hit : 1);
  }
  return static_cast<double>(program.ctas()) * sectors * kSector;
}

void set_l2_hits(Program& program, const arch::GpuSpec& gpu) {
  const Bytes capacity = gpu.l2.capacity;
  const std::vector<Asked> all = asked_of(program, gpu.l2.partitions);
  double footprint = 0;
  for (const Asked& a : all) footprint += a.copies * a.unique;
  const double first_miss = memory::miss_share(Bytes{footprint}, capacity, {});
  for (std::size_t t = 0; t < all.size(); ++t) {
    Tensor& tensor = program.tensors[t];
    const Asked& a = all[t];
    const double again = memory::miss_share(Bytes{between_touches(all, a)}, capacity, {});
    const double first = a.unique * (tensor.cold ? 1 : first_miss);
    const double from_dram = std::min(a.requested, first + (a.wave - a.unique) * again);
    const double share = a.requested > 0 ? from_dram / a.requested : (tensor.cold ? 1 : first_miss);
    tensor.l2_hit = std::clamp(1 - share, 0.0, 1.0);
    tensor.write_back = tensor.written ? std::clamp(share, 0.0, 1.0) : 0;
  }
}

}  // namespace voltaic::cycle
