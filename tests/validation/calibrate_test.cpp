// SPDX-License-Identifier: MIT
// calibrate as a whole, on tables that the model itself timed with parameters changed: what must be found is known.
#include "validation/fit/calibrate.hpp"

#include <tbb/global_control.h>
#include <zlib.h>

#include <algorithm>
#include <cstdio>

#include "arch/units/error.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/measured_pack.hpp"
#include "tests/validation/synthetic_table.hpp"

using namespace voltaic;
using namespace voltaic::validation;
using test::append;
using test::pointwise_table;
using test::product_table;
using test::TableText;
using test::timed;

namespace {

constexpr const char* kBoard = "v100-pcie-32gb";
constexpr const char* kTableGpu = "V100-PCIE-32GB";

arch::CalibrationDocument priors() {
  return arch::CalibrationDocument::built_in(arch::Architecture::volta, false);
}
arch::CalibrationDocument turing_priors() {
  return arch::CalibrationDocument::built_in(arch::Architecture::turing, false);
}
std::string on_board(const std::string& path) {
  return std::string("boards.") + kBoard + "." + path;
}

CalibrationRun fitted(const std::vector<std::string>& tables, const std::vector<std::string>& gpus = {kBoard}) {
  CalibrateOptions options;
  int i = 0;
  for (const auto& text : tables) {
    options.files.push_back(test::write_scratch(fmt::format("table{}.csv", i++), text).string());
  }
  options.gpus = gpus;
  options.source = "synthetic";
  options.date = "2026-01-01";
  options.alone = true;  // the synthetic truths start at the priors
  return calibrate(options);
}

const FittedParameter& parameter(const CalibrationRun& run, const std::string& path) {
  static const FittedParameter none{};
  for (const auto& f : run.families) {
    for (const auto& p : f.fit.parameters) {
      if (p.parameter.path == path) return p;
    }
  }
  FAIL("no parameter " << path);
  return none;
}

/// The fold of a row among four: what calibrate() draws it from.
int fold_of(const KernelRow& row) {
  const auto crc = crc32(0, reinterpret_cast<const Bytef*>(row.key.data()), static_cast<uInt>(row.key.size()));
  return static_cast<int>(crc / 10 % 4);
}

std::string refusal(const std::vector<std::string>& tables, const std::vector<std::string>& gpus = {kBoard}) {
  try {
    fitted(tables, gpus);
  } catch (const UsageError& e) {
    return std::string("usage: ") + e.what();
  } catch (const ConfigError& e) {
    return std::string("config: ") + e.what();
  }
  return "";
}
bool says(const std::string& text, const std::string& word) {
  return text.find(word) != std::string::npos && text.find('\n') == std::string::npos;
}

/// A laboratory whose DRAM and host are slower than the priors say.
arch::CalibrationDocument slow_laboratory() {
  auto truth = priors();
  truth.set(on_board("vector.kinds.elementwise.stream_share"), 0.85);
  truth.set(on_board("vector.kinds.elementwise.stream_share_two"), 0.88);
  truth.set(on_board("single_op.add.floor_s"), 45e-6);
  truth.set(on_board("single_op.add.launch_s"), 22e-6);
  truth.set(on_board("single_op.relu.floor_s"), 30e-6);
  truth.set(on_board("single_op.relu.launch_s"), 12e-6);
  return truth;
}

}  // namespace

TEST_CASE("a fit finds the DRAM share, host floor and launch time that made the rows", "[validation][calibrate]") {
  const auto run = fitted({timed(pointwise_table(kTableGpu, {"add", "relu"}, 100), slow_laboratory())});
  REQUIRE(run.families.size() == 1);
  CHECK_FALSE(run.families.front().refused);
  const auto value = [&](const char* path) { return parameter(run, on_board(path)).value; };
  CHECK_THAT(value("vector.kinds.elementwise.stream_share"), WithinRel(0.85, 0.005));
  CHECK_THAT(value("vector.kinds.elementwise.stream_share_two"), WithinRel(0.88, 0.005));
  CHECK_THAT(value("single_op.add.floor_s"), WithinRel(45e-6, 0.005));
  CHECK_THAT(value("single_op.add.launch_s"), WithinRel(22e-6, 0.01));
  CHECK_THAT(value("single_op.relu.floor_s"), WithinRel(30e-6, 0.005));
  CHECK_THAT(value("single_op.relu.launch_s"), WithinRel(12e-6, 0.01));
  for (const auto& s : run.families.front().spread) {
    CHECK(s.mape < 0.002);
    CHECK(s.mape_prior > 0.05);
    CHECK((s.low <= 1.002 && s.high >= 0.998));
  }
}

TEST_CASE("one row in twenty that is wrong by half does not move a fit by two per cent", "[validation][calibrate]") {
  const auto table = pointwise_table(kTableGpu, {"add", "relu"}, 100);
  const auto run = fitted(
      {timed(table, slow_laboratory(), false, [](const KernelRow& row) { return row.line % 20 == 0 ? 1.5 : 1.0; })});
  CHECK_THAT(parameter(run, on_board("vector.kinds.elementwise.stream_share_two")).value, WithinRel(0.88, 0.02));
  CHECK_THAT(parameter(run, on_board("single_op.add.floor_s")).value, WithinRel(45e-6, 0.02));
}

TEST_CASE("what the rows do not determine keeps its prior, is marked, and stays out of the file",
          "[validation][calibrate]") {
  const auto run = fitted({timed(pointwise_table(kTableGpu, {"add", "relu"}, 50), slow_laboratory())});
  for (const char* path : {"single_op.gelu.floor_s", "single_op.gelu.launch_s", "vector.function_slots.pow"}) {
    const auto& p = parameter(run, on_board(path));
    INFO(path);
    CHECK_FALSE(p.determined);
    CHECK_THAT(p.value, WithinRel(p.parameter.prior, 1e-9));
    CHECK_FALSE(run.fitted.has(on_board(path)));
    CHECK((p.low < p.value && p.value < p.high));
  }
  CHECK(parameter(run, on_board("single_op.add.floor_s")).determined);
  CHECK(run.fitted.has(on_board("single_op.add.floor_s")));
  CHECK(calibration_page(run, 160).find("not determined, prior kept") != std::string::npos);
}

TEST_CASE("report rows never move a fit", "[validation][calibrate]") {
  auto table = pointwise_table(kTableGpu, {"add"}, 50);
  const auto honest = timed(table, slow_laboratory());
  const auto wild = timed(table, slow_laboratory(), false, [](const KernelRow& row) { return row.fit ? 1.0 : 17.0; });
  REQUIRE(honest != wild);
  CHECK(calibration_file(fitted({honest})) == calibration_file(fitted({wild})));
}

TEST_CASE("rows of other GPUs, report rows and other tables are counted as skipped", "[validation][calibrate]") {
  auto table = pointwise_table(kTableGpu, {"add"}, 30);
  append(table, pointwise_table("A100-PCIE-40GB", {"add"}, 10));
  append(table, pointwise_table("GTX-9999", {"add"}, 3));
  // The other boards' rows are timed as anything: nobody reads them.
  std::string text = table.columns + ",latency_us\n";
  for (const auto& row : table.rows) text += row + ",100\n";
  const auto run = fitted({text, "model,gpu,n_gpus,mode,seq,batch,e2e_ms\nbert,V100-PCIE-32GB,1,inf,512,1,20\n"});
  std::map<std::string, std::int64_t> skipped(run.skipped.begin(), run.skipped.end());
  CHECK(skipped["another GPU"] == 10);
  CHECK(skipped["GPU GTX-9999 is unknown"] == 3);
  CHECK(skipped["no table of single operations: nothing is fitted on whole networks"] == 1);
  CHECK(skipped["report row"] + run.families.front().rows == 30);
}

TEST_CASE("a fit that is worse than its prior on rows left out is refused", "[validation][calibrate]") {
  // Two folds are slow, two are fast: whatever the other folds say is wrong by more than saying nothing.
  const auto table = pointwise_table(kTableGpu, {"add", "relu"}, 60);
  const auto text =
      timed(table, priors(), false, [](const KernelRow& row) { return fold_of(row) % 2 == 0 ? 1.25 : 0.8; });
  const auto run = fitted({text});
  REQUIRE(run.families.size() == 1);
  CHECK(run.families.front().refused);
  CHECK_FALSE(run.fitted.has(on_board("single_op.add.floor_s")));
  CHECK_FALSE(run.fitted.has(on_board("vector.kinds.elementwise.stream_share_two")));
  CHECK(calibration_page(run, 120).find("REFUSED") != std::string::npos);
  CHECK(calibration_json(run).find("\"refused\":true") != std::string::npos);
  for (const auto& s : run.families.front().spread) CHECK(s.mape == s.mape_prior);
}

TEST_CASE("a fit finds the efficiencies and the clock that made products", "[validation][calibrate]") {
  auto truth = turing_priors();
  truth.set("gemm_simt.linear.kernels.64x128.efficiency", 0.85);
  truth.set("gemm_simt.linear.kernels.128x128.efficiency", 0.8);
  truth.set("boards.t4.gemm_simt.linear.clock_share", 0.5);
  truth.set("boards.t4.single_op.linear.floor_s", 80e-6);
  const auto run = fitted({timed(product_table("T4", "linear", 150), truth, true)}, {"t4"});
  REQUIRE(run.families.size() == 1);
  CHECK(run.families.front().no_kernel == 0);
  CHECK_FALSE(run.families.front().refused);
  CHECK_THAT(parameter(run, "gemm_simt.linear.kernels.64x128.efficiency").value, WithinRel(0.85, 0.02));
  CHECK_THAT(parameter(run, "gemm_simt.linear.kernels.128x128.efficiency").value, WithinRel(0.8, 0.02));
  CHECK_THAT(parameter(run, "boards.t4.gemm_simt.linear.clock_share").value, WithinRel(0.5, 0.02));
  CHECK_THAT(parameter(run, "boards.t4.single_op.linear.floor_s").value, WithinRel(80e-6, 0.02));
  for (const auto& s : run.families.front().spread) CHECK(s.mape < 0.01);
}

TEST_CASE("without names of kernels the model's own choice is fitted", "[validation][calibrate]") {
  auto truth = priors();
  truth.set(on_board("single_op.bmm.floor_s"), 60e-6);
  truth.set(on_board("single_op.bmm.launch_s"), 30e-6);
  const auto run = fitted({timed(product_table(kTableGpu, "bmm", 120), truth)});
  REQUIRE(run.families.size() == 1);
  CHECK(run.families.front().no_kernel == 0);
  CHECK(run.families.front().product_choice.rows == 0);
  CHECK_THAT(parameter(run, on_board("single_op.bmm.floor_s")).value, WithinRel(60e-6, 0.01));
  CHECK_THAT(parameter(run, on_board("single_op.bmm.launch_s")).value, WithinRel(30e-6, 0.03));
}

TEST_CASE("rows whose kernel the model does not have are left out and counted", "[validation][calibrate]") {
  auto text = timed(product_table(kTableGpu, "bmm", 60), priors(), true);
  text += "bmm,lab,V100-PCIE-32GB,2,64,64,64,sgemm_512x512,512,512,1,9999\n";  // a fit key or not
  text += "bmm,lab,V100-PCIE-32GB,3,64,64,64,sgemm_512x512,512,512,1,9999\n";
  text += "bmm,lab,V100-PCIE-32GB,4,64,64,64,sgemm_512x512,512,512,1,9999\n";
  const int fit_rows = is_fit_key("gemm|2|64|64|64") + is_fit_key("gemm|3|64|64|64") + is_fit_key("gemm|4|64|64|64");
  const auto run = fitted({text});
  CHECK(run.families.front().no_kernel == fit_rows);
}

TEST_CASE("measuring sessions have clocks of their own, which apply only there", "[validation][calibrate]") {
  auto truth = turing_priors();
  const std::string late = "boards.t4.sessions.lab_b.gemm_simt.bmm.";
  truth.set(late + "start_share", 0.52);
  truth.set(late + "clock_share", 0.4);
  auto table = product_table("T4", "bmm", 70, "lab_a");
  append(table, product_table("T4", "bmm", 70, "lab_b", 11));
  // Noise, so that intervals are those of a laboratory.
  const auto noise = [](const KernelRow& row) { return row.line % 2 == 0 ? 1.01 : 0.99; };
  const auto run = fitted({timed(table, truth, true, noise)}, {"t4"});
  REQUIRE(run.boards.front().sessions == std::vector<std::string>{"lab_a", "lab_b"});
  const auto& p = parameter(run, late + "start_share");
  CHECK(p.determined);
  CHECK_THAT(p.value, WithinRel(0.52, 0.02));
  // Few of these kernels last until the clock has settled.
  CHECK(parameter(run, late + "clock_share").value < 0.44);
  // The first session defines what the efficiencies mean.
  for (const auto& q : run.families.front().fit.parameters) {
    CHECK(q.parameter.path.find("lab_a") == std::string::npos);
  }
  const auto file = test::write_scratch("sessions.json", calibration_file(run)).string();
  const auto gpu = arch::resolve_gpu("t4", {}, file);
  const auto share = [](const arch::ResolvedGpu& g) { return g.calibration.number("gemm_simt.bmm.start_share"); };
  CHECK_THAT(share(arch::in_session(gpu, "lab_b")), WithinRel(0.52, 0.02));
  const double elsewhere = share(gpu);
  CHECK(elsewhere > 0.55);
  CHECK(share(arch::in_session(gpu, "lab_a")) == elsewhere);
  CHECK(share(arch::in_session(gpu, "never")) == elsewhere);
}

TEST_CASE("the file loads as a calibration and moves predictions towards what was measured",
          "[validation][calibrate]") {
  const auto text = timed(pointwise_table(kTableGpu, {"add", "relu"}, 100), slow_laboratory());
  const auto run = fitted({text});
  const auto file = test::write_scratch("mine.json", calibration_file(run)).string();
  const auto shipped = arch::resolve_gpu(kBoard);
  const auto mine = arch::resolve_gpu(kBoard, {}, file);
  const cost::SingleOp before(shipped), after(mine);
  const auto table = CsvTable::parse(text, "t.csv");
  const auto rows = read_kernel_rows(table).rows;
  double error_before = 0, error_after = 0;
  const auto library = cost::make_library(shipped);
  int covered = 0;
  for (const KernelRow& row : rows) {
    const auto launches = lower_row(row, shipped.spec, *library);
    const auto t = after.time(launches);
    error_before += std::abs(before.time(launches).time.value / row.measured_s - 1);
    error_after += std::abs(t.time.value / row.measured_s - 1);
    covered += t.low.value <= row.measured_s * 1.002 && row.measured_s <= t.high.value * 1.002;
  }
  const auto n = static_cast<double>(rows.size());
  CHECK(error_before / n > 0.08);
  CHECK(error_after / n < 0.005);
  CHECK(covered > 0.9 * n);
}

TEST_CASE("the program writes the file, says what it did, and predicts with it", "[validation][calibrate]") {
  const auto csv = test::write_scratch("own.csv", timed(pointwise_table(kTableGpu, {"add"}, 60), slow_laboratory()));
  const auto json = test::scratch() / "own.json";
  const auto said =
      test::voltaic(fmt::format("calibrate --measured {} --gpu {} --source mine --date 2026-01-01 --out {}",
                                csv.string(), kBoard, json.string()));
  CHECK(said.code == 0);
  CHECK(said.out.find("pointwise:") != std::string::npos);
  CHECK(said.err.empty());
  CHECK(test::read_file(json).find("\"source\": \"fitted: mine;") != std::string::npos);
  const std::string validate = fmt::format("validate --measured {} --split report --fail-above 0.02", csv.string());
  CHECK(test::voltaic(validate).code == 6);
  CHECK(test::voltaic(validate + " --calibration " + json.string()).code == 0);
}

TEST_CASE("the table of the documentation can be fitted", "[validation][calibrate]") {
  const std::string text = test::read_file(test::source_dir() + "/docs/calibration.md");
  const std::string fence = "```csv\n";
  const auto begin = text.find(fence);
  REQUIRE(begin != std::string::npos);
  const auto end = text.find("```", begin + fence.size());
  const auto run = fitted({text.substr(begin + fence.size(), end - begin - fence.size())}, {"a100-pcie-80gb"});
  CHECK(run.families.front().rows == 3);
  CHECK_FALSE(run.families.front().refused);
  int determined = 0;
  for (const auto& p : run.families.front().fit.parameters) determined += p.determined ? 1 : 0;
  CHECK(determined == 3);
}

TEST_CASE("a file does not depend on the number of threads", "[validation][calibrate]") {
  auto truth = priors();
  truth.set("gemm_simt.bmm.kernels.64x64.efficiency", 0.7);
  const auto products = timed(product_table(kTableGpu, "bmm", 30), truth, true);
  const auto run_on = [&](std::size_t threads) {
    const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, threads);
    return calibration_file(fitted({products}));
  };
  const std::string one = run_on(1);
  CHECK(one == run_on(3));
}

TEST_CASE("boards of two architectures are refused, and so are no board and no rows", "[validation][calibrate]") {
  const auto text = timed(pointwise_table(kTableGpu, {"add"}, 20), priors());
  CHECK(says(refusal({text}, {kBoard, "a100-pcie-40gb"}), "usage: "));
  CHECK(says(refusal({text}, {}), "usage: "));
  CHECK(says(refusal({text}, {"t4"}), "usage: --gpu t4: expected rows to fit on"));
  CHECK(says(refusal({text}, {"v100-pcie-32gbb"}), "v100-pcie-32gb"));
  CHECK(says(refusal({""}), "config: "));
  CHECK(says(refusal({text.substr(0, text.find('\n') + 1)}), "expected rows to fit on"));
}

TEST_CASE("cells that make no sense are named with their line", "[validation][calibrate]") {
  const std::string head = "op,gpu,rows,cols,latency_us\n";
  for (const char* row : {"add,V100-PCIE-32GB,0,4,10", "add,V100-PCIE-32GB,-5,4,10", "add,V100-PCIE-32GB,x,4,10",
                          "add,V100-PCIE-32GB,1e30,4,10", "add,V100-PCIE-32GB,4,4,nan", "add,V100-PCIE-32GB,4,4,-1",
                          "add,V100-PCIE-32GB,4,4,0", "add,V100-PCIE-32GB,4", "add,V100-PCIE-32GB,4,4,1e400"}) {
    INFO(row);
    CHECK(says(refusal({head + row + "\n"}), "line 2"));
  }
  const std::string products = "op,gpu,b,m,n,k,kernel,tile_m,tile_n,grid_z,latency_us\n";
  CHECK(says(refusal({products + "linear,V100-PCIE-32GB,2,4,4,4,,,,,10\n"}), "line 2"));
  // What a profiler saw may be nonsense: such a row has no kernel of the model.
  std::string odd = products;
  for (int m = 1; m < 40; ++m) odd += fmt::format("linear,V100-PCIE-32GB,1,{},64,64,x,-7,99999999999999,-3,80\n", m);
  CHECK(refusal({odd}).empty());
}

TEST_CASE("times that no model reaches end in finite numbers", "[validation][calibrate]") {
  for (const double factor : {1e-3, 1e6}) {
    const auto text = timed(pointwise_table(kTableGpu, {"add", "relu"}, 40), priors(), false,
                            [&](const KernelRow&) { return factor; });
    const auto run = fitted({text});
    const auto file = calibration_file(run);
    CHECK(file.find("nan") == std::string::npos);
    CHECK(file.find("inf") == std::string::npos);
    for (const auto& p : run.families.front().fit.parameters) {
      CHECK((p.value >= p.parameter.lower && p.value <= p.parameter.upper));
    }
  }
}

TEST_CASE("the shipped Volta values come out again from its measured pointwise rows", "[validation][calibrate]") {
  const auto path = test::measured_path("neusight/elementwise.csv.gz");
  if (!path) {
    std::fprintf(stderr, "skipped: no measured pack neusight\n");
    return;
  }
  CalibrateOptions options;
  options.files = {path->string()};
  options.gpus = {kBoard};
  const CalibrationRun run = calibrate(options);
  const auto shipped = arch::CalibrationDocument::built_in(arch::Architecture::volta);
  REQUIRE(run.families.size() == 1);
  int compared = 0;
  for (const auto& p : run.families.front().fit.parameters) {
    if (!p.determined) continue;
    INFO(p.parameter.path);
    // Five digits are written.
    const double value = shipped.number(p.parameter.path);
    CHECK((value >= p.low * (1 - 1e-4) && value <= p.high * (1 + 1e-4)));
    ++compared;
  }
  CHECK(compared >= 20);
}
