// SPDX-License-Identifier: MIT
// Convolutions against measured kernels; without the measured packs these tests only say so.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <memory>

#include "arch/loader.hpp"
#include "sim/cost/engine.hpp"
#include "sim/cost/single_op.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/measured_pack.hpp"

using namespace voltaic;

namespace {

struct Machine {
  explicit Machine(const char* name, const char* session = "")
      : gpu(arch::in_session(arch::resolve_gpu(name), session)),
        engine(cost::make_engine(cost::EngineKind::analytic, gpu)),
        library(cost::make_library(gpu)) {}
  std::vector<kernel::Launch> launches(const kernel::ConvProblem& problem) const {
    return kernel::conv_launches(library->choose(problem), gpu.spec);
  }
  double time(const kernel::ConvProblem& problem) const {
    double sum = 0;
    for (const auto& launch : launches(problem)) sum += engine->cost(launch).time.value;
    return sum;
  }
  arch::ResolvedGpu gpu;
  std::unique_ptr<kernel::CostModel> engine;
  std::unique_ptr<kernel::LibraryChoice> library;
};

void print(const std::string& what, const test::Errors& e) {
  std::fputs(fmt::format("{:32} {:5} rows  mape {:5.1f}  median {:5.1f}  p90 {:5.1f}  bias {:+5.1f} %\n", what,
                         e.values.size(), 100 * e.mean_absolute(), 100 * e.quantile(0.5), 100 * e.quantile(0.9),
                         100 * e.bias())
                 .c_str(),
             stdout);
}

test::Errors neusight(const test::MeasuredTable& table, const std::string& spelling, const char* name) {
  const Machine machine(name, "train");
  const cost::SingleOp protocol(machine.gpu);
  test::Errors errors;
  for (const auto& row : table.rows) {
    if (table.word(row, "gpu") != spelling) continue;
    std::string key = "conv";
    for (const char* c : {"b", "c_in", "c_out", "ksize", "h_in", "stride", "pad"}) key += '|' + table.word(row, c);
    if (!test::is_report_row(key)) continue;
    kernel::ConvProblem p;
    p.n = table.integer(row, "b");
    p.c = table.integer(row, "c_in");
    p.k = table.integer(row, "c_out");
    p.in[1] = p.in[2] = p.out[1] = p.out[2] = table.integer(row, "h_in");
    p.filter[1] = p.filter[2] = 3;
    p.pad[1] = p.pad[2] = 1;
    errors.add(1e6 * protocol.time(machine.launches(p)).time.value, table.number(row, "latency_us"));
  }
  print("conv " + spelling, errors);
  return errors;
}

struct Passes {
  test::Errors forward, dgrad, wgrad;
};

/// Back-to-back calls: what the host adds to each, in seconds, is part of the table's protocol.
Passes deepbench(const test::MeasuredTable& table, const std::string& gpu, const std::string& precision,
                 const char* name, const std::array<double, 3>& launch_us) {
  const Machine machine(name);
  Passes out;
  for (const auto& row : table.rows) {
    const auto word = [&](const char* c) { return table.word(row, c); };
    if (word("gpu") != gpu || word("precision") != precision || word("status") != "current" ||
        word("mode") != "training")
      continue;
    std::string key = "conv";
    for (const char* c :
         {"N", "C", "H", "W", "K", "R_filter_h", "S_filter_w", "stride_h", "stride_w", "pad_h", "pad_w"}) {
      key += '|' + word(c);
    }
    if (!test::is_report_row(key)) continue;
    kernel::ConvProblem p;
    p.n = table.integer(row, "N");
    p.c = table.integer(row, "C");
    p.k = table.integer(row, "K");
    p.in[1] = table.integer(row, "H");
    p.in[2] = table.integer(row, "W");
    p.filter[1] = table.integer(row, "R_filter_h");
    p.filter[2] = table.integer(row, "S_filter_w");
    p.stride[1] = table.integer(row, "stride_h");
    p.stride[2] = table.integer(row, "stride_w");
    p.pad[1] = table.integer(row, "pad_h");
    p.pad[2] = table.integer(row, "pad_w");
    for (int i = 1; i < 3; ++i) p.out[i] = (p.in[i] + 2 * p.pad[i] - p.filter[i]) / p.stride[i] + 1;
    if (precision != "FP32") {
      p.math = DataType::fp16;
      p.element_bytes = 2;
    }
    const auto add = [&](kernel::ConvPass pass, const char* column, test::Errors& errors, double launch) {
      if (word(column).empty()) return;
      p.pass = pass;
      errors.add(launch + 1e6 * machine.time(p), table.number(row, column));
    };
    add(kernel::ConvPass::forward, "fwd_us", out.forward, launch_us[0]);
    add(kernel::ConvPass::dgrad, "bwd_data_us", out.dgrad, launch_us[1]);
    add(kernel::ConvPass::wgrad, "bwd_weights_us", out.wgrad, launch_us[2]);
  }
  print(gpu + ' ' + precision + " forward", out.forward);
  print(gpu + ' ' + precision + " dgrad", out.dgrad);
  print(gpu + ' ' + precision + " wgrad", out.wgrad);
  return out;
}

}  // namespace

TEST_CASE("3x3 FP32 convolutions come out as measured, on rows that nothing was fitted on", "[cost][conv][measured]") {
  const auto table = test::measured_table("neusight/conv.csv.gz");
  if (!table) {
    WARN("measured pack absent: skipped");
    return;
  }
  // Without the unknown host delay of each row nothing can be nearer than 10-12 % in the mean.
  const auto v100 = neusight(*table, "V100-PCIE-32GB", "v100-pcie-32gb");
  CHECK(v100.values.size() > 1300);
  CHECK(v100.mean_absolute() < 0.13);
  CHECK(v100.quantile(0.5) < 0.09);
  const auto a100 = neusight(*table, "A100-PCIE-80GB", "a100-pcie-80gb");
  CHECK(a100.mean_absolute() < 0.155);
  CHECK(a100.quantile(0.5) < 0.095);
  const auto t4 = neusight(*table, "T4", "t4");
  CHECK(t4.mean_absolute() < 0.125);
  CHECK(t4.quantile(0.5) < 0.09);
}

TEST_CASE("convolutions of any shape and pass come out as measured on V100 and T4", "[cost][conv][measured]") {
  const auto table = test::measured_table("deepbench/conv.csv");
  if (!table) {
    WARN("measured pack absent: skipped");
    return;
  }
  const auto mixed = deepbench(*table, "V100", "FP16_tensorcore_mixed", "v100-sxm2-16gb", {6.51, 10, 4.42});
  CHECK(mixed.forward.mean_absolute() < 0.13);
  CHECK(mixed.dgrad.mean_absolute() < 0.14);
  CHECK(mixed.wgrad.mean_absolute() < 0.22);
  const auto fp32 = deepbench(*table, "V100", "FP32", "v100-sxm2-16gb", {18.1, 10.6, 23.4});
  CHECK(fp32.forward.mean_absolute() < 0.12);
  CHECK(fp32.dgrad.mean_absolute() < 0.19);
  CHECK(fp32.wgrad.mean_absolute() < 0.18);
  const auto t4_mixed = deepbench(*table, "T4", "FP16_tensorcore_mixed", "t4", {5.4, 20, 6.28});
  CHECK(t4_mixed.forward.mean_absolute() < 0.14);
  CHECK(t4_mixed.wgrad.mean_absolute() < 0.22);
  const auto t4_fp32 = deepbench(*table, "T4", "FP32", "t4", {3.82, 8.46, 7.34});
  CHECK(t4_fp32.forward.mean_absolute() < 0.15);
  CHECK(t4_fp32.wgrad.mean_absolute() < 0.20);
}
