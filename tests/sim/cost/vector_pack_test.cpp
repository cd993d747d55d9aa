// SPDX-License-Identifier: MIT
// Vector kernels against a measured pack. The pack lies outside the tree; without it these tests skip.
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "arch/loader.hpp"
#include "sim/cost/single_op.hpp"
#include "sim/kernel/vector.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/measured_pack.hpp"

namespace {

using namespace voltaic;
using kernel::Launch;
using kernel::VectorKind;
using test::MeasuredTable;
using Row = std::vector<std::string>;

const std::map<std::string, std::string> kGpus{{"V100-PCIE-32GB", "v100-pcie-32gb"},
                                               {"A100-PCIE-40GB", "a100-pcie-40gb"},
                                               {"A100-PCIE-80GB", "a100-pcie-80gb"},
                                               {"T4", "t4"}};

graph::OpType op_of(const std::string& word) {
  static const std::map<std::string, graph::OpType> kOps{{"add", graph::OpType::add},
                                                         {"mul", graph::OpType::mul},
                                                         {"div", graph::OpType::div},
                                                         {"pow", graph::OpType::pow},
                                                         {"addu", graph::OpType::add_scalar},
                                                         {"mulu", graph::OpType::mul_scalar},
                                                         {"divu", graph::OpType::div_scalar},
                                                         {"powu", graph::OpType::pow_scalar},
                                                         {"relu", graph::OpType::relu},
                                                         {"gelu", graph::OpType::gelu},
                                                         {"tanh", graph::OpType::tanh},
                                                         {"softmax", graph::OpType::softmax},
                                                         {"layernorm", graph::OpType::layer_norm}};
  return kOps.at(word);
}

class NoLibrary final : public kernel::LibraryChoice {
 public:
  kernel::GemmTile choose(const kernel::GemmProblem&) const override { return {}; }
  kernel::ConvKernel choose(const kernel::ConvProblem&) const override { return {}; }
};

/// The launches of one row, through a graph of one node.
std::vector<Launch> launches_of(const MeasuredTable& table, const Row& row, const arch::GpuSpec& gpu) {
  graph::OpGraph g;
  const graph::Shape shape{table.integer(row, "rows"), table.integer(row, "cols")};
  graph::Node node;
  node.id = "op";
  node.op = op_of(table.word(row, "op"));
  const std::int64_t inputs = table.columns.count("n_in") > 0 ? table.integer(row, "n_in") : 1;
  for (std::int64_t i = 0; i < inputs; ++i) {
    graph::Tensor x;
    x.name = "x" + std::to_string(i);
    x.shape = shape;
    node.inputs.push_back(g.add_tensor(x));
  }
  if (node.op == graph::OpType::pow_scalar) node.attributes.set("value", 2.5);
  graph::Tensor y;
  y.name = "y";
  y.shape = shape;
  node.outputs.push_back(g.add_tensor(y));
  g.add_node(node);
  static const NoLibrary library;
  auto lowered = kernel::lower(g, g.node(0), {gpu, library});
  REQUIRE(!lowered.launches.empty());
  return std::move(lowered.launches);
}

void check(const std::string& file, const std::map<std::string, double>& limits) {
  const auto table = test::measured_table("neusight/" + file);
  if (!table) {
    WARN("no measured pack: skipped");
    return;
  }
  for (const auto& [board, limit] : limits) {
    const arch::ResolvedGpu gpu = arch::resolve_gpu(kGpus.at(board));
    const cost::SingleOp protocol(gpu);
    test::Errors errors, fit;
    for (const auto& row : table->rows) {
      if (table->word(row, "gpu") != board) continue;
      const std::string key = table->word(row, "op") + "|" + table->word(row, "rows") + "|" + table->word(row, "cols");
      const double predicted = 1e6 * protocol.time(launches_of(*table, row, gpu.spec)).time.value;
      (test::is_report_row(key) ? errors : fit).add(predicted, table->number(row, "latency_us"));
    }
    INFO(file << " " << board << ": " << errors.values.size() << " report rows, MAPE " << errors.mean_absolute()
              << ", bias " << errors.bias() << ", p90 " << errors.quantile(0.9) << "; fit side p90 "
              << fit.quantile(0.9));
    CHECK(errors.mean_absolute() < limit);
  }
}

}  // namespace

TEST_CASE("pointwise kernels meet the measured report rows", "[cost][pack]") {
  check("elementwise.csv.gz",
        {{"V100-PCIE-32GB", 0.005}, {"A100-PCIE-40GB", 0.018}, {"A100-PCIE-80GB", 0.004}, {"T4", 0.035}});
}

TEST_CASE("softmax kernels meet the measured report rows", "[cost][pack]") {
  check("softmax.csv", {{"V100-PCIE-32GB", 0.022}, {"A100-PCIE-40GB", 0.043}, {"A100-PCIE-80GB", 0.085}, {"T4", 0.08}});
}

TEST_CASE("layer-norm kernels meet the measured report rows", "[cost][pack]") {
  check("layernorm.csv",
        {{"V100-PCIE-32GB", 0.017}, {"A100-PCIE-40GB", 0.034}, {"A100-PCIE-80GB", 0.02}, {"T4", 0.085}});
}
