// SPDX-License-Identifier: MIT
// Tensor-core products against measured packs that lie outside the tree; without them these tests only say so.
#include <fmt/format.h>

#include <cstdio>

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
