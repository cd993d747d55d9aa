// SPDX-License-Identifier: MIT
// Matrix products on one GPU, from problem to seconds.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/cost/engine.hpp"
#include "sim/cost/gemm_choice.hpp"
#include "sim/kernel/lowering.hpp"

namespace voltaic::test {

inline kernel::GemmProblem product(std::int64_t m, std::int64_t n, std::int64_t k, DataType math,
                                   std::int64_t batch = 0) {
  kernel::GemmProblem p;
  p.batch = batch > 0 ? batch : 1;
  p.linear = batch == 0;
  p.transpose_b = p.linear;
  p.m = m;
  p.n = n;
  p.k = k;
  p.math = math;
  p.a_bytes = p.b_bytes = bytes_per_element(math);
  p.c_bytes = math == DataType::int8 ? 4 : p.a_bytes;
  return p;
}

class Gemm {
 public:
  explicit Gemm(const std::string& gpu, const std::vector<std::string>& sets = {})
      : gpu_(resolve(gpu, sets)), engine_(cost::make_engine(cost::EngineKind::analytic, gpu_)), choice_(gpu_) {}

  kernel::GemmTile tile(const kernel::GemmProblem& p) const { return choice_(p); }
  std::vector<kernel::Launch> launches(const kernel::GemmProblem& p, const kernel::GemmTile& t) const {
    return kernel::gemm_launches(p, t, gpu_.spec);
  }
  kernel::KernelCost cost(const kernel::Launch& l) const { return engine_->cost(l); }
  double seconds(const kernel::GemmProblem& p, const kernel::GemmTile& t) const {
    double sum = 0;
    for (const auto& l : launches(p, t)) sum += cost(l).time.value;
    return sum;
  }
  double seconds(const kernel::GemmProblem& p) const { return seconds(p, tile(p)); }
  const arch::ResolvedGpu& gpu() const { return gpu_; }

 private:
  static arch::ResolvedGpu resolve(const std::string& gpu, const std::vector<std::string>& sets) {
    std::vector<arch::Override> overrides;
    for (const auto& s : sets) overrides.push_back(arch::parse_override(s));
    return arch::resolve_gpu(gpu, overrides);
  }

  arch::ResolvedGpu gpu_;
  std::unique_ptr<const kernel::CostModel> engine_;
  cost::GemmChoice choice_;
};

}  // namespace voltaic::test
