// SPDX-License-Identifier: MIT
// How good the predictions are on measured rows that nothing was fitted to, held against committed figures.
// To commit new figures: VOLTAIC_WRITE_ACCURACY=1 build/release/tests/test_validation "[accuracy]"
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/measured_pack.hpp"
#include "validation/compare/csv_table.hpp"
#include "validation/compare/validate.hpp"

using namespace voltaic;
using namespace voltaic::validation;

namespace {

/// What a group may be worse than its committed figure: a tenth of it, or this where figures are tiny.
constexpr double kTenth = 1.1;
constexpr double kSlack = 0.0005;

std::string source_file(const std::string& name) {
  const char* source = std::getenv("VOLTAIC_SOURCE_DIR");
  return std::string(source != nullptr ? source : ".") + "/" + name;
}
std::vector<std::string> pack() {
  std::vector<std::string> files;
  for (const char* name : {"gemm.csv.gz", "conv.csv.gz", "elementwise.csv.gz", "softmax.csv", "layernorm.csv",
                           "e2e.csv", "e2e_ops.csv", "peers_e2e.csv", "peers_ops.csv", "models.csv"}) {
    const auto path = test::measured_path(std::string("neusight/") + name);
    if (path) files.push_back(path->string());
  }
  return files;
}

std::string name_of(const Group& g) {
  return fmt::format("{},{},{},{},{}", g.gpu, g.op, g.dtype, g.mode, g.origin);
}

void write_figures(const std::string& file, const std::vector<Group>& groups) {
  std::ofstream out(source_file(file), std::ios::binary);
  out << "gpu,op,dtype,mode,origin,rows,mape\n";
  for (const Group& g : groups) out << fmt::format("{},{},{:.5f}\n", name_of(g), g.rows, g.mape);
}

/// Each group is at most a little worse than its committed figure, and each has one.
void hold(const Validation& v, const std::string& file) {
  if (std::getenv("VOLTAIC_WRITE_ACCURACY") != nullptr) write_figures(file, v.groups);
  std::map<std::string, const Group*> groups;
  for (const Group& g : v.groups) groups[name_of(g)] = &g;
  const CsvTable figures = CsvTable::read(source_file(file));
  REQUIRE(figures.rows() > 0);
  for (std::size_t row = 0; row < figures.rows(); ++row) {
    const std::string name =
        fmt::format("{},{},{},{},{}", figures.text(row, "gpu"), figures.text(row, "op"), figures.text(row, "dtype"),
                    figures.text(row, "mode"), figures.text(row, "origin"));
    const auto at = groups.find(name);
    INFO(name);
    CHECK(at != groups.end());
    if (at == groups.end()) continue;
    const Group& g = *at->second;
    const double committed = figures.number(row, "mape").value_or(0);
    INFO("MAPE " << g.mape << ", committed " << committed << ", rows " << g.rows);
    CHECK(g.rows >= figures.integer(row, "rows").value_or(0));
    CHECK(g.mape <= kTenth * committed + kSlack);
  }
  // A group without a figure would be one that may become as bad as it likes.
  CHECK(groups.size() == figures.rows());
}

}  // namespace

TEST_CASE("report rows are predicted as well as committed, by group", "[validation][accuracy]") {
  const auto files = pack();
  if (files.empty()) {
    std::fprintf(stderr, "skipped: no measured pack neusight\n");
    return;
  }
  Runner runner;
  const Validation v = validate(runner, files, {.split = "report"});
  hold(v, "tests/golden/accuracy.csv");
  for (const Pooled& p : v.pooled) {
    INFO(p.name << " " << p.gpu);
    // Tables of traced calls hold some whose work they do not state.
    const double least = p.name.starts_with("traced") ? 0.9 : 0.95;
    CHECK(static_cast<double>(p.rows) >= least * static_cast<double>(p.rows_total));
  }
}

TEST_CASE("the cycle engine predicts drawn report rows as well as committed", "[validation][accuracy]") {
  std::vector<std::string> files;
  for (const char* name :
       {"neusight/gemm.csv.gz", "neusight/elementwise.csv.gz", "neusight/softmax.csv", "neusight/layernorm.csv",
        "tensorcore_gemm/gemm_a100_sxm_aic.csv.gz", "deepbench/gemm.csv"}) {
    if (const auto path = test::measured_path(name)) files.push_back(path->string());
  }
  if (files.size() < 6) {
    std::fprintf(stderr, "skipped: measured packs neusight, tensorcore_gemm and deepbench are not all there\n");
    return;
  }
  Runner runner;
  hold(validate(runner, files,
                {.split = "report",
                 .gpus = {"v100-pcie-32gb", "a100-pcie-40gb", "a100-pcie-80gb", "a100-sxm4-80gb"},
                 .engine = cost::EngineKind::cycle,
                 .rows = 10,
                 .seed = 7}),
       "tests/golden/cycle_accuracy.csv");
}
