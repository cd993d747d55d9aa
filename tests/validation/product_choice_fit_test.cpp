// SPDX-License-Identifier: MIT
// The rule by which a library takes matrix kernels, found again from the kernels it took.
#include "validation/fit/product_choice_fit.hpp"

#include "tests/support/catch.hpp"
#include "tests/validation/synthetic_table.hpp"
#include "validation/fit/observed.hpp"

using namespace voltaic;
using namespace voltaic::validation;
using test::product_table;
using test::timed;

namespace {

constexpr const char* kBoard = "v100-pcie-32gb";

arch::CalibrationDocument priors(arch::Architecture architecture = arch::Architecture::volta) {
  return arch::CalibrationDocument::built_in(architecture, false);
}

/// Rows with the kernels that `truth` takes, as a fit sees them.
struct Observations {
  Observations(const std::string& board, const std::string& table_gpu, const std::string& op, int count,
               const arch::CalibrationDocument& truth, bool kernels = true)
      : times(std::vector<FitBoard>{{board, {"lab"}, board}}),
        rows(read_kernel_rows(CsvTable::parse(timed(product_table(table_gpu, op, count), truth, kernels), "t.csv"))
                 .rows) {
    const auto gpu = times.gpu(0, truth);
    const auto library = cost::make_library(gpu);
    for (const KernelRow& row : rows) {
      auto launches = kernels ? observed_launches(row, gpu).value() : lower_row(row, gpu.spec, *library);
      fit_rows.push_back({&row, 0, 0, std::move(launches)});
    }
  }
  RowTimes times;
  std::vector<KernelRow> rows;
  std::vector<FitRow> fit_rows;
};

std::string kernel_of(const std::vector<kernel::Launch>& launches) {
  return std::get<kernel::GemmKernel>(launches.front().detail).tile.name;
}

/// Share of the rows for which the library under `document` takes the kernel that was observed.
double hits(const Observations& seen, const arch::CalibrationDocument& document) {
  std::vector<FitRow> chosen = seen.fit_rows;
  choose_launches(seen.times, document, chosen);
  double same = 0;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    same += kernel_of(chosen[i].launches) == kernel_of(seen.fit_rows[i].launches) ? 1 : 0;
  }
  return same / static_cast<double>(chosen.size());
}

}  // namespace

TEST_CASE("a rule that prefers other kernels is found from what it took", "[validation][product_choice]") {
  auto truth = priors();
  // Small tiles liked less, broad ones more.
  const std::string kernels = "gemm_simt.linear.kernels.";
  for (const auto& [name, shift] : {std::pair{"32x32s", -12.0}, {"128x32", 9.0}, {"32x64s", -6.0}}) {
    auto score = truth.tree(kBoard).numbers(kernels + name + ".score");
    score.front() += shift;
    truth.set(kernels + name + ".score", score);
  }
  const Observations seen(kBoard, "V100-PCIE-32GB", "linear", 500, truth);
  auto document = priors();
  arch::CalibrationDocument fitted;
  const double before = hits(seen, document);
  const auto fit = fit_product_choice(seen.times, seen.fit_rows, true, document, fitted);
  CHECK_FALSE(fit.kept_prior);
  CHECK(fit.rows == 500);
  CHECK(fit.hit > 0.9);
  CHECK(fit.hit > fit.hit_prior + 0.03);
  CHECK(fit.loss < fit.loss_prior);
  CHECK(fit.loss < 0.02);
  // The library's guard against slow kernels takes some back.
  CHECK(hits(seen, document) > 0.8);
  CHECK(hits(seen, document) > before);
  // What it found is in the file too, and on rows that it has not seen it does as well.
  auto loaded = priors();
  loaded.overlay(fitted);
  CHECK(hits(seen, loaded) == hits(seen, document));
}

TEST_CASE("few rows, no kernel names and a library with one kernel keep the prior", "[validation][product_choice]") {
  const auto kept = [](const Observations& seen, arch::Architecture architecture, bool linear) {
    auto document = priors(architecture);
    const std::string before = document.text();
    arch::CalibrationDocument fitted;
    const auto fit = fit_product_choice(seen.times, seen.fit_rows, linear, document, fitted);
    return fit.kept_prior && fit.rows == 0 && document.text() == before && fitted.text() == "{}\n";
  };
  const auto volta = priors();
  CHECK(kept({kBoard, "V100-PCIE-32GB", "linear", 60, volta}, arch::Architecture::volta, true));
  CHECK(kept({kBoard, "V100-PCIE-32GB", "linear", 200, volta, false}, arch::Architecture::volta, true));
  // Ampere takes one kernel for batched products whatever the shape.
  const auto ampere = priors(arch::Architecture::ampere);
  CHECK(kept({"a100-pcie-40gb", "A100-PCIE-40GB", "bmm", 200, ampere}, arch::Architecture::ampere, false));
}

TEST_CASE("rows that the prior's rule made do not lose by a fit", "[validation][product_choice]") {
  const Observations seen(kBoard, "V100-PCIE-32GB", "bmm", 300, priors());
  auto document = priors();
  arch::CalibrationDocument fitted;
  const auto fit = fit_product_choice(seen.times, seen.fit_rows, false, document, fitted);
  CHECK(fit.loss <= fit.loss_prior);
  CHECK(hits(seen, document) > 0.9);
}
