// SPDX-License-Identifier: MIT
// What must hold for every prediction, whatever the workload and the GPU.
#include "arch/units/error.hpp"
#include "sim/request.hpp"
#include "tests/support/catch.hpp"

using namespace voltaic;

namespace {

Request make(const std::string& workload, const std::string& gpu, bool training, std::int64_t batch,
             graph::Precision precision = graph::Precision::fp32) {
  Request r;
  r.workload = workload;
  r.gpu = gpu;
  r.training = training;
  r.batch = batch;
  r.precision = precision;
  return r;
}

Request with(Request r, const std::string& override_text) {
  r.overrides.push_back(arch::parse_override(override_text));
  return r;
}

const std::vector<std::string> kWorkloads{"bert-base", "gpt2", "resnet50", "vit-b16"};
const std::vector<std::string> kGpus{"v100-sxm2-16gb", "a100-sxm4-40gb", "t4", "h100-sxm5-80gb", "a10"};

}  // namespace

TEST_CASE("no kernel beats its roofline, no leg exceeds its kernel, and the sums hold", "[property]") {
  Runner runner;
  for (const auto& workload : kWorkloads) {
    for (const auto& gpu : kGpus) {
      for (const bool training : {false, true}) {
        for (const auto precision : {graph::Precision::fp32, graph::Precision::fp16}) {
          const auto p = runner.predict(make(workload, gpu, training, 4, precision));
          INFO(workload << " on " << gpu << (training ? " training " : " inference ") << graph::to_string(precision));
          for (const auto& d : p.distinct) {
            double sum = 0;
            for (const auto& k : d.kernels) {
              INFO(k.launch.name);
              CHECK(k.cost.time.value >= k.cost.roofline.value * (1 - 1e-9));
              for (const auto leg : k.cost.legs) CHECK(leg.value <= k.cost.time.value * (1 + 1e-9));
              CHECK(k.cost.occupancy >= 0);
              CHECK(k.cost.occupancy <= 1);
              sum += k.cost.time.value;
            }
            CHECK_THAT(d.gpu_time.value, WithinRel(sum, 1e-9) || WithinAbs(0, 1e-15));
          }
          CHECK_THAT(p.forward.value + p.backward.value + p.optimizer.value, WithinRel(p.total.value, 1e-12));
          CHECK_THAT(p.share_kernels + p.share_host_exposed + p.share_communication_exposed + p.share_idle,
                     WithinRel(1.0, 1e-9));
          double bounds = 0;
          for (const double b : p.bound) bounds += b;
          CHECK_THAT(bounds, WithinRel(1.0, 1e-9));
          CHECK_THAT(p.samples_per_s * p.total.value, WithinRel(p.global_batch, 1e-12));
          CHECK(p.model_flop_utilization <= 1);
          CHECK(p.unmodelled.empty());
          CHECK(p.interval.low.value <= p.total.value);
          CHECK(p.interval.high.value >= p.total.value);
        }
      }
    }
  }
}

TEST_CASE("the roofline engine is never slower than the analytic engine's kernels", "[property]") {
  Runner runner;
  for (const auto& workload : kWorkloads) {
    Request r = make(workload, "a100-sxm4-80gb", true, 8, graph::Precision::fp16);
    const auto analytic = runner.predict(r);
    r.engine = cost::EngineKind::roofline;
    const auto roofline = runner.predict(r);
    INFO(workload);
    CHECK(roofline.total <= analytic.total);
  }
}

TEST_CASE("better hardware is never slower beyond the steps of the library's choice", "[property]") {
  // The library picks kernels by a rule, not by time, so that a better machine may get a kernel that suits it less: 2 %
  // allowed.
  Runner runner;
  for (const auto& workload : kWorkloads) {
    for (const auto& gpu : {"v100-sxm2-16gb", "a100-sxm4-40gb"}) {
      for (const auto precision : {graph::Precision::fp32, graph::Precision::fp16}) {
        const Request r = make(workload, gpu, true, 8, precision);
        const double base = runner.predict(r).total.value;
        for (const char* better : {"gpu.dram.peak_bandwidth*=1.5", "gpu.clocks.boost*=1.2", "gpu.l2.capacity*=2"}) {
          INFO(workload << " on " << gpu << " with " << better);
          CHECK(runner.predict(with(r, better)).total.value <= base * 1.02);
        }
      }
    }
  }
}

TEST_CASE("larger batches take longer and lose no more throughput than a tail wave", "[property]") {
  // A batch that just spills into one more wave or another tile may cost up to a tenth of the rate, not more.
  Runner runner;
  for (const auto& workload : kWorkloads) {
    double time = 0;
    double rate = 0;
    for (const std::int64_t batch : {1, 2, 4, 8, 16, 32}) {
      const auto p = runner.predict(make(workload, "a100-sxm4-80gb", false, batch, graph::Precision::fp16));
      INFO(workload << " batch " << batch);
      CHECK(p.total.value >= time * 0.98);
      CHECK(p.samples_per_s >= rate * 0.9);
      time = p.total.value;
      rate = std::max(rate, p.samples_per_s);
    }
  }
}

TEST_CASE("equal requests give equal answers from fresh and from warm runners", "[property][determinism]") {
  Runner warm;
  for (const auto& workload : kWorkloads) {
    const Request r = make(workload, "a100-pcie-40gb", true, 4);
    const auto first = warm.predict(r);
    const auto second = warm.predict(r);
    Runner fresh;
    const auto third = fresh.predict(r);
    CHECK(first.total == second.total);
    CHECK(first.total == third.total);
    CHECK(first.interval.high == third.interval.high);
  }
}

TEST_CASE("Llama-3.1-8B decode reads its KV cache once: 1 GiB at batch 1 and context 8192", "[property][facts]") {
  // 32 layers x 2 x 8 KV heads x 128 dims x 8192 tokens x 2 bytes = 2^30
  Runner runner;
  Request r = make("llama-3.1-8b", "a100-sxm4-80gb", false, 1, graph::Precision::fp16);
  r.phase = workloads::RunPhase::decode;
  r.context = 8192;
  const auto p = runner.predict(r);
  double read = 0;
  for (const auto& row : p.nodes) {
    if (p.graph.node(row.node).op != graph::OpType::attention) continue;
    for (const auto& k : p.distinct[row.distinct].kernels) {
      if (std::holds_alternative<kernel::AttentionKernel>(k.launch.detail)) read += k.launch.work.read.value;
    }
  }
  CHECK(read >= 1073741824.0);
  CHECK(read <= 1073741824.0 * 1.02);  // queries and the new token come on top
  // weights (16 GB) and cache (1.07 GB) over 2039 GB/s: at least 8.3 ms
  CHECK(p.total.value >= 8.3e-3);
}

TEST_CASE("a precision the GPU lacks is refused, and INT8 on V100 never touches a tensor core", "[property]") {
  Runner runner;
  CHECK_THROWS_AS(runner.predict(make("bert-base", "v100-sxm2-16gb", false, 1, graph::Precision::bf16)),
                  UnsupportedError);
  CHECK_THROWS_AS(runner.predict(make("bert-base", "v100-sxm2-16gb", false, 1, graph::Precision::tf32)),
                  UnsupportedError);
  const auto int8 = runner.predict(make("bert-base", "v100-sxm2-16gb", false, 8, graph::Precision::int8));
  CHECK_FALSE(int8.warnings.empty());
  for (const auto& d : int8.distinct) {
    for (const auto& k : d.kernels) {
      if (k.launch.math == DataType::int8) CHECK_FALSE(k.launch.tensor_cores);
    }
  }
}
