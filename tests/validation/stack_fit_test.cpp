// SPDX-License-Identifier: MIT
// calibrate on tables of serving stacks that the model itself timed with numbers changed: what must be found is known.
#include <fmt/format.h>
#include <tbb/global_control.h>

#include <algorithm>

#include "arch/units/error.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/program.hpp"
#include "tests/validation/synthetic_table.hpp"
#include "validation/fit/calibrate.hpp"
#include "validation/fit/stack_times.hpp"

using namespace voltaic;
using namespace voltaic::validation;

namespace {

constexpr const char* kBoard = "a100-sxm4-80gb";

arch::CalibrationDocument shipped() {
  return arch::CalibrationDocument::built_in(arch::Architecture::ampere);
}

/// Rows without times, which `source` names: products of half types, or decoding.
std::vector<std::string> products(int count) {
  std::vector<std::string> out;
  test::Draw draw(11);
  for (int i = 0; i < count; ++i) {
    out.push_back(fmt::format("A100-SXM4-80GB,bf16,{},{},{},1,aic-vllm-0.14.0", draw(1, 8192), 8 * draw(16, 2048),
                              8 * draw(16, 2048)));
  }
  return out;
}
std::vector<std::string> decoding(int count) {
  std::vector<std::string> out;
  test::Draw draw(5);
  for (int i = 0; i < count; ++i) {
    const auto kv_heads = draw(1, 9);
    out.push_back(fmt::format("A100-SXM4-80GB,bf16,decode,{},{},{},1,{},128,0,aic-vllm-0.14.0", draw(1, 256),
                              kv_heads * 4, kv_heads, draw(64, 16384)));
  }
  return out;
}
constexpr const char* kProductColumns = "gpu,dtype,m,n,k,batch,source,latency_us\n";
constexpr const char* kAttentionColumns =
    "gpu,dtype,phase,batch,heads,kv_heads,seq_q,seq_kv,head_dim,causal,source,latency_us\n";

StackRows read(const std::string& text) {
  const CsvTable table = CsvTable::parse(text, "synthetic.csv");
  return read_stack_rows(table, *stack_table(table));
}

/// The table with the times that `truth` gives.
std::string timed(const std::string& columns, const std::vector<std::string>& lines,
                  const arch::CalibrationDocument& truth) {
  std::string text = columns;
  for (const auto& line : lines) text += line + ",1\n";
  const StackRows rows = read(text);
  const StackTimes times({kBoard}, rows.rows);
  std::vector<StackFitRow> fit;
  for (const auto& row : rows.rows) fit.push_back({&row, times.place_of(row), 0, {}, {}});
  times.lower(truth, fit);
  const auto timings = times.predict(truth, fit);
  std::string out = columns;
  for (std::size_t i = 0; i < fit.size(); ++i) {
    out += fmt::format("{},{:.9g}\n", lines[fit[i].row->line], timings[i].time.value * 1e6);
  }
  return out;
}

CalibrateOptions options_of(const std::string& text, const std::string& gpu = kBoard) {
  CalibrateOptions options;
  options.files = {test::write_scratch("stack.csv", text).string()};
  options.gpus = {gpu};
  options.source = "synthetic";
  options.date = "2026-01-01";
  return options;
}

const FittedParameter& parameter(const CalibrationRun& run, const std::string& path) {
  static const FittedParameter none{};
  for (const auto& law : run.stacks.laws) {
    for (const auto& p : law.fit.parameters) {
      if (p.parameter.path == path) return p;
    }
  }
  FAIL("no parameter " << path);
  return none;
}

std::string refusal(const std::string& text, const std::string& gpu = kBoard) {
  try {
    calibrate(options_of(text, gpu));
  } catch (const UsageError& e) {
    return e.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a fit finds the bandwidth and the start that made a table of tensor-core products",
          "[validation][calibrate][stack]") {
  auto truth = shipped();
  truth.set("gemm_tensor.laws.two_byte.bandwidth_share", 0.7);
  truth.set("gemm_tensor.laws.two_byte.floor_s", 3.4e-6);
  const auto run = calibrate(options_of(timed(kProductColumns, products(400), truth)));
  REQUIRE(run.stacks.laws.size() == 1);
  CHECK_FALSE(run.stacks.laws.front().refused);
  CHECK(to_string(run.stacks.laws.front().law) == "products two_byte");
  CHECK_THAT(parameter(run, "gemm_tensor.laws.two_byte.bandwidth_share").value, WithinRel(0.7, 0.03));
  CHECK_THAT(parameter(run, "gemm_tensor.laws.two_byte.floor_s").value, WithinRel(3.4e-6, 0.1));
  CHECK(run.stacks.laws.front().mape_prior > 0.05);
  CHECK(run.stacks.laws.front().mape < 0.02);
  CHECK_THAT(run.fitted.number("gemm_tensor.laws.two_byte.bandwidth_share"), WithinRel(0.7, 0.03));
  // Report rows, which the fit does not see, come as near.
  REQUIRE(run.stacks.spread.size() == 1);
  CHECK(run.stacks.spread.front().report_rows > 100);
  CHECK(run.stacks.spread.front().report_mape < 0.02);
}

TEST_CASE("a fit finds the launch and the bandwidth that made a table of decoding steps",
          "[validation][calibrate][stack]") {
  auto truth = shipped();
  truth.set("protocols.aic-vllm.decode.launch_s", 6e-6);
  truth.set("attention.flash2_paged.decode.bandwidth_share", 0.7);
  const auto run = calibrate(options_of(timed(kAttentionColumns, decoding(400), truth)));
  REQUIRE(run.stacks.laws.size() == 1);
  CHECK_THAT(parameter(run, "attention.flash2_paged.decode.bandwidth_share").value, WithinRel(0.7, 0.03));
  CHECK(run.stacks.laws.front().mape < 0.01);
  // Quantiles of what was left out hold nearly all of a table without noise.
  CHECK(run.fitted.has(std::string("boards.") + kBoard + ".protocols.aic-vllm.decode.measured_over_predicted.low"));
  CHECK(run.fitted.number("intervals.attention_decode.half_width") < 0.05);
}

TEST_CASE("the file does not depend on the number of threads", "[validation][calibrate][stack]") {
  auto truth = shipped();
  truth.set("gemm_tensor.laws.two_byte.bandwidth_share", 0.75);
  const auto options = options_of(timed(kProductColumns, products(120), truth));
  const std::string all = calibration_file(calibrate(options));
  const tbb::global_control one(tbb::global_control::max_allowed_parallelism, 1);
  CHECK(calibration_file(calibrate(options)) == all);
}

TEST_CASE("intervals alone leave every value and hold the rows", "[validation][calibrate][stack]") {
  auto truth = shipped();
  truth.set("protocols.aic-vllm.decode.launch_s", 8e-6);
  auto options = options_of(timed(kAttentionColumns, decoding(200), truth));
  options.intervals_only = true;
  const auto run = calibrate(options);
  CHECK_FALSE(run.fitted.has("attention"));
  CHECK_FALSE(run.fitted.has("protocols.aic-vllm.decode.launch_s"));
  REQUIRE(run.stacks.spread.size() == 1);
  const StackSpread& s = run.stacks.spread.front();
  CHECK(s.high > 1.05);
  CHECK((s.report_covered > 0.75 && s.report_covered <= 1));
  // What was written is read: a file of one's own is held against what ships.
  const auto path = test::write_scratch("intervals.json", calibration_file(run)).string();
  const auto file = arch::CalibrationDocument::read_for(arch::Architecture::ampere, path);
  CHECK_THAT(file.number("protocols.aic-vllm.decode.measured_over_predicted.high"), WithinRel(s.high, 1e-3));
}

TEST_CASE("quantiles without times keep the times that would hold without them", "[cost][stack]") {
  arch::ResolvedGpu gpu = arch::resolve_gpu(kBoard);
  const cost::CallProtocol protocol{"aic-vllm", "aic-vllm-9"};
  const StackRows rows = read(std::string(kProductColumns) + products(1).front() + ",1\n");
  const auto seconds = [&](const arch::CalibrationDocument& document) {
    gpu.calibration = document.tree(kBoard);
    const cost::StackCall call(gpu, protocol);
    const StackTimes times({kBoard}, rows.rows);
    std::vector<StackFitRow> fit{{&rows.rows.front(), 0, 0, {}, {}}};
    times.lower(document, fit);
    return call.time(fit.front().launches, "gemm_of_tomorrow");
  };
  auto with = shipped();
  with.set("protocols.aic-vllm.gemm_of_tomorrow.measured_over_predicted.low", 0.5);
  with.set("protocols.aic-vllm.gemm_of_tomorrow.measured_over_predicted.high", 3.0);
  const auto before = seconds(shipped()), after = seconds(with);
  CHECK_THAT(after.time.value, WithinRel(before.time.value, 1e-12));
  CHECK_THAT(after.high.value, WithinRel(3 * after.time.value, 1e-9));
  CHECK_THAT(after.low.value, WithinRel(0.5 * after.time.value, 1e-9));
}

TEST_CASE("too few rows of a law, and boards without it, are refused in one line", "[validation][calibrate][stack]") {
  const std::string few = refusal(timed(kProductColumns, products(10), shipped()));
  CHECK(few.find("at least 20 shapes of one law") != std::string::npos);
  CHECK(few.find("products two_byte") != std::string::npos);
  CHECK(few.find('\n') == std::string::npos);
  const std::string other = refusal(timed(kProductColumns, products(10), shipped()), "v100-sxm2-16gb");
  CHECK(other.find("another GPU") != std::string::npos);
  // Decoding in BF16 needs tensor cores that V100 does not have.
  std::string volta = kAttentionColumns;
  for (auto line : decoding(60)) {
    line.replace(0, std::string("A100-SXM4-80GB").size(), "V100-SXM2-16GB");
    volta += line + ",100\n";
  }
  const std::string none = refusal(volta, "v100-sxm2-16gb");
  CHECK(none.find("bf16") != std::string::npos);
  CHECK(none.find('\n') == std::string::npos);
}
