// SPDX-License-Identifier: MIT
#include "sim/cycle/footprint.hpp"

#include <random>

#include "arch/units/literals.hpp"
#include "tests/support/catch.hpp"

namespace voltaic::cycle {
using namespace voltaic::literals;

namespace {

arch::GpuSpec gpu_with(Bytes l2, int partitions = 1) {
  arch::GpuSpec gpu;
  gpu.l2.capacity = l2;
  gpu.l2.partitions = partitions;
  return gpu;
}

/// `ctas` CTAs of one warp that each load `lines` whole lines.
Program loads(std::int64_t ctas, std::uint16_t lines, Tensor tensor) {
  Program p;
  p.name = "toy";
  p.warps = 1;
  p.grid = {ctas, 1, 1};
  p.tensors = {std::move(tensor)};
  Access a;
  a.sectors = static_cast<std::uint16_t>(4 * lines);
  a.lines = lines;
  a.per_cta[0] = 128 * lines;
  p.accesses = {a};
  p.code = {{.op = Op::load_global, .sets = 0}, {.op = Op::exit, .waits = 1}};
  return p;
}

Tensor tensor_of(double unique, double wave, bool cold, bool written = false) {
  Tensor t;
  t.unique_bytes = unique, t.wave_bytes = wave;
  t.cold = cold, t.written = written;
  return t;
}

TEST_CASE("requests are counted over CTAs, warps and trips, after L1", "[cycle][footprint]") {
  Program p = loads(10, 2, tensor_of(2560, 2560, true));
  CHECK_THAT(requested_bytes(p, 0), WithinRel(2560.0, 1e-12));
  p.warps = 3;
  p.accesses[0].l1_hit = 0.5;
  CHECK_THAT(requested_bytes(p, 0), WithinRel(3 * 1280.0, 1e-12));
  p.code.insert(p.code.begin() + 1, {.op = Op::branch, .argument = 0});
  p.loops = {{.begin = 0, .trips = 2, .trips_per_x = 1}};  // 2 to 11 trips: 6.5 in the mean
  CHECK_THAT(requested_bytes(p, 0), WithinRel(6.5 * 3 * 1280.0, 1e-12));
}

TEST_CASE("a cold tensor comes from DRAM once, a warm one that fits never", "[cycle][footprint]") {
  const double bytes = 256 * 100;
  Program p = loads(100, 2, tensor_of(bytes, bytes, true));
  set_l2_hits(p, gpu_with(1_MiB));
  CHECK(p.tensors[0].l2_hit == 0);
  p.tensors[0].cold = false;
  set_l2_hits(p, gpu_with(1_MiB));
  CHECK(p.tensors[0].l2_hit == 1);
  set_l2_hits(p, gpu_with(1_KiB));
  CHECK(p.tensors[0].l2_hit == 0);
}

TEST_CASE("touches within a wave share what the first one fetched", "[cycle][footprint]") {
  // Ten CTAs ask for the same tenth.
  Program p = loads(100, 2, tensor_of(2560, 2560, true));
  set_l2_hits(p, gpu_with(1_KiB));
  CHECK_THAT(p.tensors[0].l2_hit, WithinRel(0.9, 1e-12));
  // Two waves that each touch all of it: the second finds it where L2 holds it.
  p.tensors[0].wave_bytes = 2 * 2560;
  set_l2_hits(p, gpu_with(1_KiB));
  CHECK_THAT(p.tensors[0].l2_hit, WithinRel(0.8, 1e-12));
  set_l2_hits(p, gpu_with(1_MiB));
  CHECK_THAT(p.tensors[0].l2_hit, WithinRel(0.9, 1e-12));
}

TEST_CASE("lines that SMs of both partitions read take two places in L2", "[cycle][footprint]") {
  const double bytes = 600 * 1024;  // 0.59 of L2: fits once, not twice
  Program p = loads(100 * 600 * 4, 2, tensor_of(bytes, bytes, false));
  p.accesses[0].per_cta[0] = 0;
  set_l2_hits(p, gpu_with(1_MiB, 1));
  CHECK(p.tensors[0].l2_hit == 1);
  set_l2_hits(p, gpu_with(1_MiB, 2));
  CHECK(p.tensors[0].l2_hit < 1);
  // Every CTA reads its own.
  p.accesses[0].per_cta[0] = 256;
  set_l2_hits(p, gpu_with(1_MiB, 2));
  CHECK(p.tensors[0].l2_hit == 1);
}

TEST_CASE("hits are shares, bytes are conserved, more L2 never misses more", "[cycle][footprint]") {
  std::mt19937_64 random(7);
  const auto draw = [&](double low, double high) { return std::uniform_real_distribution<double>(low, high)(random); };
  for (int round = 0; round < 500; ++round) {
    Program p = loads(1 + static_cast<std::int64_t>(draw(0, 1e5)), 3, tensor_of(0, 0, draw(0, 1) < 0.5));
    p.tensors.push_back(tensor_of(0, 0, draw(0, 1) < 0.5, true));
    p.accesses.push_back(p.accesses[0]);
    p.accesses[1].tensor = 1;
    p.code.insert(p.code.begin(), {.op = Op::store_global, .argument = 1});
    for (Tensor& t : p.tensors) {
      t.unique_bytes = std::exp(draw(0, 18));
      t.wave_bytes = t.unique_bytes * draw(0.5, 4);
    }
    if (draw(0, 1) < 0.5) p.accesses[0].per_cta[0] = 0;
    double before[2] = {2, 2};
    for (const double l2 : {1e3, 1e5, 1e6, 3e6, 1e7, 1e8}) {
      set_l2_hits(p, gpu_with(Bytes{l2}, 1 + round % 2));
      for (std::size_t t = 0; t < 2; ++t) {
        const Tensor& tensor = p.tensors[t];
        CHECK(tensor.l2_hit >= 0);
        CHECK(tensor.l2_hit <= 1);
        const double from_dram = (1 - tensor.l2_hit) * requested_bytes(p, t);
        CHECK(from_dram <= std::max(tensor.unique_bytes, tensor.wave_bytes) * (1 + 1e-9));
        CHECK(1 - tensor.l2_hit <= before[t] + 1e-12);
        before[t] = 1 - tensor.l2_hit;
      }
      CHECK_THAT(p.tensors[1].write_back, WithinAbs(1 - p.tensors[1].l2_hit, 1e-12));
    }
  }
}

}  // namespace
}  // namespace voltaic::cycle
