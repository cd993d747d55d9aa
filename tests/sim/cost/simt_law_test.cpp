// SPDX-License-Identifier: MIT
// What physics asks of the law of matrix kernels on CUDA cores, for every kernel of every architecture.
#include <algorithm>
#include <cmath>
#include <random>

#include "tests/sim/cost/gemm_fixture.hpp"
#include "tests/support/catch.hpp"

using namespace voltaic;
using cost::SimtKernel;
using cost::SimtLaw;
using cost::SimtMachine;
using cost::SimtProblem;
using test::product;

namespace {

const std::vector<std::string> kGpus{"v100-pcie-32gb", "a100-pcie-80gb", "h100-sxm5-80gb", "t4"};

std::vector<kernel::GemmProblem> shapes(bool linear, int count) {
  std::minstd_rand random(11);
  const auto draw = [&](double low, double high) {
    const double u = static_cast<double>(random() - 1) / 2147483645.0;
    return static_cast<std::int64_t>(low * std::pow(high / low, u));
  };
  std::vector<kernel::GemmProblem> out;
  for (int i = 0; i < count; ++i) {
    const auto m = draw(1, 8192), n = draw(1, 8192), k = draw(4, 16384);
    out.push_back(linear ? product(m, n, k, DataType::fp32)
                         : product(std::min<std::int64_t>(m, 1024), std::min<std::int64_t>(n, 1024),
                                   std::min<std::int64_t>(k, 1024), DataType::fp32, draw(1, 512)));
  }
  return out;
}

/// Seconds of the kernel with the separate reduction that a split may need.
double seconds(const SimtLaw& law, const SimtKernel& kernel, const SimtProblem& p, double split,
               const SimtMachine& machine) {
  const double apart = SimtLaw::reduces_apart(p, split) ? law.reduce_time(p, split, machine) : 0;
  return law.time(kernel, p, split, machine).total + apart;
}

/// Calls `check(law, kernel, problem, split, machine)` for kernels, shapes and parts, isolated and under load.
template <class Check>
void for_all(int shapes_each, Check check) {
  for (const auto& name : kGpus) {
    const auto gpu = arch::resolve_gpu(name);
    const cost::SimtModel model(gpu);
    for (const bool linear : {true, false}) {
      const SimtLaw& law = model.law(linear);
      SimtMachine machine = model.machine(DataType::fp32, law);
      const auto problems = shapes(linear, shapes_each);
      for (const SimtKernel& kernel : law.kernels()) {
        for (const auto& problem : problems) {
          for (const double split : {1.0, 4.0}) {
            if (split > 1 && (!linear || problem.k < 256)) continue;
            machine.isolated = !machine.isolated;
            INFO(name << " " << kernel.name << " b " << problem.batch << " m " << problem.m << " n " << problem.n
                      << " k " << problem.k << " split " << split);
            check(law, kernel, problem, split, machine);
          }
        }
      }
    }
  }
}

constexpr double kSame = 1 + 1e-6;

kernel::GemmProblem grown(const SimtProblem& p, std::int64_t batch_times, std::int64_t more_rows,
                          std::int64_t k_times) {
  return product(static_cast<std::int64_t>(p.m) + more_rows, static_cast<std::int64_t>(p.n),
                 static_cast<std::int64_t>(p.k) * k_times, DataType::fp32,
                 p.linear ? 0 : static_cast<std::int64_t>(p.b) * batch_times);
}

}  // namespace

TEST_CASE("no kernel multiplies faster than the lanes do at the boost clock", "[cost][simt][property]") {
  for_all(60, [](const SimtLaw& law, const SimtKernel& kernel, const SimtProblem& p, double split,
                 const SimtMachine& machine) {
    const auto t = law.time(kernel, p, split, machine);
    const double rate = machine.sms * machine.lanes * t.clock;
    const bool sound = std::isfinite(t.total) && t.total * kSame >= p.b * p.m * p.n * p.k / rate &&
                       t.total * kSame >= t.fma && t.total * kSame >= t.main_loop &&
                       t.total * kSame >= t.dram_bytes / machine.bandwidth && t.clock <= machine.boost * kSame;
    CHECK(sound);
    // Padding is multiplied too.
    const double tile = static_cast<double>(kernel.tile_m) * kernel.tile_n;
    CHECK(t.total * kSame >= t.ctas * tile * std::ceil(p.k / split) / rate);
  });
}

TEST_CASE("a kernel on more bandwidth, a larger L2 or a higher clock is not slower", "[cost][simt][property]") {
  for_all(40, [](const SimtLaw& law, const SimtKernel& kernel, const SimtProblem& p, double split,
                 const SimtMachine& machine) {
    const double base = seconds(law, kernel, p, split, machine);
    SimtMachine better = machine;
    better.bandwidth *= 1.5;
    CHECK(seconds(law, kernel, p, split, better) <= base * kSame);
    better = machine;
    better.l2 *= 1.5;
    CHECK(seconds(law, kernel, p, split, better) <= base * kSame);
    better = machine;
    better.clock *= 1.2;
    better.boost *= 1.2;
    CHECK(seconds(law, kernel, p, split, better) <= base * kSame);
  });
}

// More resident CTAs hold more lines open, so L2 grows with the SMs.
TEST_CASE("a kernel on twice the GPU is not slower", "[cost][simt][property]") {
  for_all(40, [](const SimtLaw& law, const SimtKernel& kernel, const SimtProblem& p, double split,
                 const SimtMachine& machine) {
    SimtMachine better = machine;
    better.sms *= 2;
    better.l2 *= 2;
    CHECK(seconds(law, kernel, p, split, better) <= seconds(law, kernel, p, split, machine) * kSame);
  });
}

TEST_CASE("one kernel is never faster on a longer k", "[cost][simt][property]") {
  for_all(40, [](const SimtLaw& law, const SimtKernel& kernel, const SimtProblem& p, double split,
                 const SimtMachine& machine) {
    if (split > 1) return;  // with k the parts change from sums in place to sums apart
    const auto longer = grown(p, 1, 0, 2);
    CHECK(seconds(law, kernel, longer, 1, machine) * kSame >= seconds(law, kernel, p, 1, machine));
  });
}

TEST_CASE("one kernel is never faster on more rows or a larger batch", "[cost][simt][property]") {
  for_all(40, [](const SimtLaw& law, const SimtKernel& kernel, const SimtProblem& p, double split,
                 const SimtMachine& machine) {
    if (split > 1) return;
    const double base = seconds(law, kernel, p, 1, machine) / kSame;
    CHECK(seconds(law, kernel, grown(p, 1, kernel.tile_m, 1), 1, machine) >= base);
    if (p.linear) return;
    for (const std::int64_t factor : {2, 3, 8}) {
      CHECK(seconds(law, kernel, grown(p, factor, 0, 1), 1, machine) >= base);
    }
  });
}

TEST_CASE("operands that miss L2 cross DRAM at least once", "[cost][simt][property]") {
  for_all(40, [](const SimtLaw& law, const SimtKernel& kernel, const SimtProblem& p, double split,
                 const SimtMachine& machine) {
    const double compulsory = p.a_bytes + p.b_bytes + p.c_bytes;
    if (compulsory < 3 * machine.l2) return;
    CHECK(law.time(kernel, p, split, machine).dram_bytes * kSame >= compulsory);
  });
}

TEST_CASE("parts of k do the work of the whole, and add up what they found", "[cost][simt]") {
  const auto gpu = arch::resolve_gpu("v100-pcie-32gb");
  const cost::SimtModel model(gpu);
  const SimtLaw& law = model.law(true);
  const SimtMachine machine = model.machine(DataType::fp32, law);
  const auto problem = product(512, 512, 8192, DataType::fp32);
  const SimtProblem p(problem);
  for (const SimtKernel& kernel : law.kernels()) {
    const auto whole = law.time(kernel, p, 1, machine);
    for (const double split : {2.0, 4.0, 8.0}) {
      INFO(kernel.name << " " << split);
      const auto parts = law.time(kernel, p, split, machine);
      // As many CTAs for each part, and the lanes are busy with as many multiply-adds.
      CHECK(parts.ctas == split * whole.ctas);
      double mac = 0, bytes_written = 0;
      for (const auto& l : kernel::gemm_launches(problem, cost::to_tile(kernel, split), gpu.spec)) {
        mac += l.work.mac;
        bytes_written += l.work.written.value;
      }
      CHECK_THAT(mac, WithinRel(p.m * p.n * p.k, 1e-12));
      CHECK(bytes_written >= p.c_bytes);
      const double lanes = machine.sms * machine.lanes * machine.boost;
      CHECK(seconds(law, kernel, p, split, machine) >= p.m * p.n * p.k / lanes);
      // Sums that are added in place cross memory twice for each part but the first.
      if (!SimtLaw::reduces_apart(p, split)) {
        CHECK(parts.dram_bytes >= whole.dram_bytes + 2 * p.c_bytes * (split - 1) - 1);
      }
    }
  }
}

TEST_CASE("an isolated kernel is at most as fast as boost, at least as fast as under load", "[cost][simt]") {
  for_all(20,
          [](const SimtLaw& law, const SimtKernel& kernel, const SimtProblem& p, double split, SimtMachine machine) {
            machine.isolated = false;
            const double load = law.time(kernel, p, split, machine).total;
            machine.isolated = true;
            const double alone = law.time(kernel, p, split, machine).total;
            machine.clock = machine.boost;
            const double boost = law.time(kernel, p, split, machine).total;
            CHECK(alone <= load * kSame);
            CHECK(alone * kSame >= boost);
          });
}
