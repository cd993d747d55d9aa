// SPDX-License-Identifier: MIT
// Matrix products against measured packs that lie outside the tree; without them these tests only say so.
#include <fmt/format.h>

#include <cstdio>
#include <map>
#include <memory>

#include "sim/cost/overlap.hpp"
#include "tests/sim/cost/gemm_fixture.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/measured_pack.hpp"

using namespace voltaic;
using test::Gemm;
using test::MeasuredTable;
using test::product;

namespace {

using Row = std::vector<std::string>;

bool report_row(const MeasuredTable& t, const Row& r, const std::string& batch) {
  return test::is_report_row(
      fmt::format("gemm|{}|{}|{}|{}", t.word(r, batch), t.word(r, "m"), t.word(r, "n"), t.word(r, "k")));
}

void print(const std::string& group, const test::Errors& e) {
  fmt::print(stderr, "{}: {} rows, MAPE {:.2f} %, bias {:+.2f} %, 90 % within {:.1f} %\n", group, e.values.size(),
             100 * e.mean_absolute(), 100 * e.bias(), 100 * e.quantile(0.9));
}

}  // namespace

TEST_CASE("FP32 products match the kernels of one eager call", "[cost][gemm][measured]") {
  const auto table = test::measured_table("neusight/gemm.csv.gz");
  if (!table) {
    std::fprintf(stderr, "skipped: no measured pack neusight/gemm.csv.gz\n");
    return;
  }
  struct Board {
    const char* name;
    double linear, bmm;  // largest mean error over the `test` rows
  };
  const std::map<std::string, Board> boards{{"V100-PCIE-32GB", {"v100-pcie-32gb", 0.055, 0.055}},
                                            {"A100-PCIE-40GB", {"a100-pcie-40gb", 0.038, 0.052}},
                                            {"A100-PCIE-80GB", {"a100-pcie-80gb", 0.030, 0.025}},
                                            {"H100-SXM5-80GB", {"h100-sxm5-80gb", 0.037, 0.038}}};
  std::map<std::string, std::unique_ptr<Gemm>> gpus;
  std::map<std::string, test::Errors> errors;
  for (const Row& r : table->rows) {
    const auto board = boards.find(table->word(r, "gpu"));
    if (board == boards.end() || table->word(r, "origin") != "test" || !report_row(*table, r, "b")) continue;
    auto& gpu = gpus[board->first];
    if (!gpu) gpu = std::make_unique<Gemm>(board->second.name);
    const std::string& op = table->word(r, "op");
    const bool linear = op == "linear";
    const auto p = product(table->integer(r, "m"), table->integer(r, "n"), table->integer(r, "k"), DataType::fp32,
                           linear ? 0 : table->integer(r, "b"));
    const auto& calibration = gpu->gpu().calibration;
    const double floor = calibration.number("single_op." + op + ".floor_s");
    const double launch = calibration.number("single_op." + op + ".launch_s");
    const double predicted = cost::smooth_max2(floor, launch + gpu->seconds(p), 12);
    errors[board->first + " " + op].add(predicted, table->number(r, "latency_us") * 1e-6);
  }
  for (const auto& [name, limits] : boards) {
    for (const std::string op : {"linear", "bmm"}) {
      const auto& e = errors[name + " " + op];
      print(name + " " + op, e);
      CHECK(e.mean_absolute() < (op == "linear" ? limits.linear : limits.bmm));
    }
  }
}

TEST_CASE("tensor-core products match replayed graphs", "[cost][gemm][measured]") {
  struct Pack {
    const char *file, *gpu, *source;
    double limit;
  };
  for (const Pack& pack : {Pack{"a100", "a100-sxm4-80gb", "aic-sglang-0.5.10", 0.072},
                           Pack{"h100", "h100-sxm5-80gb", "aic-vllm-0.24", 0.070},
                           Pack{"h200", "h200-sxm5-141gb", "aic-vllm-0.22", 0.066}}) {
    const auto table = test::measured_table(fmt::format("tensorcore_gemm/gemm_{}_sxm_aic.csv.gz", pack.file));
    if (!table) {
      std::fprintf(stderr, "skipped: no measured pack of tensor-core products on %s\n", pack.file);
      continue;
    }
    const Gemm gpu(pack.gpu);
    const double gap = gpu.gpu().calibration.number("single_op.graph_replay.launch_s");
    test::Errors errors;
    for (const Row& r : table->rows) {
      if (table->word(r, "dtype") != "bf16" || table->word(r, "source").rfind(pack.source, 0) != 0) continue;
      if (!report_row(*table, r, "batch")) continue;
      const auto p = product(table->integer(r, "m"), table->integer(r, "n"), table->integer(r, "k"), DataType::bf16);
      errors.add(gap + gpu.seconds(p), table->number(r, "latency_us") * 1e-6);
    }
    print(std::string(pack.gpu) + " bf16", errors);
    CHECK(errors.mean_absolute() < pack.limit);
  }
}
