// SPDX-License-Identifier: MIT
// The biases with which the convolution library takes its kernels, found again from times.
#include "validation/fit/conv_choice_fit.hpp"

#include <algorithm>

#include "sim/cost/conv_square.hpp"
#include "tests/support/catch.hpp"
#include "tests/validation/synthetic_table.hpp"

using namespace voltaic;
using namespace voltaic::validation;
using test::Draw;
using test::TableText;
using test::timed;

namespace {

constexpr const char* kBoard = "v100-pcie-32gb";

arch::CalibrationDocument priors() {
  return arch::CalibrationDocument::built_in(arch::Architecture::volta, false);
}

TableText convolutions(int count) {
  TableText out{"op,origin,gpu,b,c_in,c_out,ksize,h_in,stride,pad", {}};
  Draw draw(5);
  for (int i = 0; i < count; ++i) {
    const auto b = draw(1, 64), c = draw(16, 512), k = draw(16, 512), h = draw(7, 112);
    out.rows.push_back(fmt::format("conv,lab,V100-PCIE-32GB,{},{},{},3,{},1,1", b, c, k, h));
  }
  return out;
}

struct Observations {
  Observations(int count, const arch::CalibrationDocument& truth)
      : times(std::vector<FitBoard>{{kBoard, {"lab"}, kBoard}}),
        rows(read_kernel_rows(CsvTable::parse(timed(convolutions(count), truth), "t.csv")).rows) {
    for (const KernelRow& row : rows) fit_rows.push_back({&row, 0, 0, {}});
  }
  RowTimes times;
  std::vector<KernelRow> rows;
  std::vector<FitRow> fit_rows;
};

double mean_error(const Observations& seen, const arch::CalibrationDocument& document) {
  std::vector<FitRow> rows = seen.fit_rows;
  choose_launches(seen.times, document, rows);
  std::vector<double> seconds(rows.size());
  seen.times.predict(document, rows, seconds);
  double sum = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) sum += std::abs(seconds[i] / rows[i].row->measured_s - 1);
  return sum / static_cast<double>(rows.size());
}

/// The kernel that is taken most often under the priors.
std::string favourite(const Observations& seen) {
  std::vector<FitRow> rows = seen.fit_rows;
  choose_launches(seen.times, priors(), rows);
  std::map<std::string, int> taken;
  for (const FitRow& row : rows) ++taken[std::get<kernel::ConvKernel>(row.launches.front().detail).tile.name];
  return std::max_element(taken.begin(), taken.end(), [](auto& a, auto& b) { return a.second < b.second; })->first;
}

}  // namespace

TEST_CASE("a library that shuns its favourite kernel is recognised by its times", "[validation][conv_choice]") {
  const std::string name = favourite(Observations(200, priors()));
  const cost::SquareConv law(priors().tree(kBoard).at("convolution"));
  REQUIRE(law.find(name) != nullptr);
  auto truth = priors();
  const std::string path = "convolution.square.kernels." + name + ".choice_bias";
  const double shift = 0.4;
  truth.set(path, truth.number(path) + shift);
  const Observations seen(200, truth);
  auto document = priors();
  const double before = mean_error(seen, document);
  const auto fit = fit_convolution_choice(seen.times, seen.fit_rows, document);
  REQUIRE(fit.biases.size() == law.kernels().size());
  CHECK(fit.error < 0.35 * fit.error_prior);
  CHECK_THAT(mean_error(seen, document), WithinAbs(fit.error, 1e-6));
  CHECK_THAT(before, WithinAbs(fit.error_prior, 1e-6));
  for (const auto& b : fit.biases) {
    CHECK(document.number(b.path) == b.value);
    if (b.path == path) CHECK(b.value > b.prior + 0.1);
  }
}

TEST_CASE("biases stay where the times agree with the prior", "[validation][conv_choice]") {
  const Observations seen(60, priors());
  auto document = priors();
  const auto fit = fit_convolution_choice(seen.times, seen.fit_rows, document);
  CHECK(fit.error == fit.error_prior);
  CHECK_THAT(fit.error, WithinAbs(0, 1e-6));
  for (const auto& b : fit.biases) CHECK_THAT(b.value, WithinAbs(b.prior, 1e-12));
}

TEST_CASE("rows that are no 3x3 convolutions of stride one fit no bias", "[validation][conv_choice]") {
  const TableText strided{"op,origin,gpu,b,c_in,c_out,ksize,h_in,stride,pad",
                          {"conv,lab,V100-PCIE-32GB,8,64,64,7,112,2,3", "conv,lab,V100-PCIE-32GB,8,64,64,1,56,1,0"}};
  const auto rows = read_kernel_rows(CsvTable::parse(timed(strided, priors()), "t.csv")).rows;
  const RowTimes times(std::vector<FitBoard>{{kBoard, {"lab"}, kBoard}});
  const std::vector<FitRow> fit_rows{{&rows[0], 0, 0, {}}, {&rows[1], 0, 0, {}}};
  auto document = priors();
  const std::string text = document.text();
  CHECK(fit_convolution_choice(times, fit_rows, document).biases.empty());
  CHECK(fit_convolution_choice(times, {}, document).biases.empty());
  CHECK(document.text() == text);
}
