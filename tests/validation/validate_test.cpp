// SPDX-License-Identifier: MIT
// Statistics by hand, splits, filters, skipped reasons, pooled lines and cancelling errors.
#include "validation/compare/validate.hpp"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "arch/units/error.hpp"
#include "tests/support/catch.hpp"

using namespace voltaic;
using namespace voltaic::validation;

namespace {

Pair pair(double measured, double predicted, double low, double high) {
  Pair p;
  p.gpu = "T4";
  p.op = "linear";
  p.dtype = "fp32";
  p.mode = "forward";
  p.family = "products";
  p.measured = measured;
  p.predicted = predicted;
  p.low = low;
  p.high = high;
  return p;
}

Pair network(const std::string& gpu, const std::string& mode, double error) {
  Pair p = pair(1, 1 + error, 0.9, 1.2);
  p.gpu = gpu;
  p.op = "network";
  p.mode = mode;
  p.label = network_label("bert_large", 512, 8);
  p.family = mode == "inference" ? "network inference" : (mode == "training" ? "" : "network training");
  return p;
}

/// A table in a folder that goes with the test program.
class Tables {
 public:
  Tables() : folder_(std::filesystem::temp_directory_path() / ("voltaic-validate-" + std::to_string(getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~Tables() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  std::string write(const std::string& name, const std::string& text) const {
    const auto path = folder_ / name;
    std::ofstream(path, std::ios::binary) << text;
    return path.string();
  }

 private:
  std::filesystem::path folder_;
};

/// Rows on both sides of the split, and one of a GPU that is none of ours.
constexpr const char* kVectors =
    "op,origin,gpu,rows,cols,dtype,latency_us\n"
    "add,test,T4,8,8,fp32,30\nadd,test,T4,16,8,fp32,30\nadd,train,V100-PCIE-32GB,32,8,fp32,30\n"
    "relu,test,V100-PCIE-32GB,64,8,fp32,40\nadd,test,MI250,8,8,fp32,30\n";
constexpr const char* kNetworks =
    "model,gpu,n_gpus,mode,seq,batch,option,e2e_ms,fw_ms,bw_ms,flag\n"
    "bert_large,V100-PCIE-32GB,1,train,128,1,,100,35,65,\n"
    "bert_large,A100-PCIE-80GB,1,train,128,1,,100,50,50,fw_host_bound\n"
    "bert_large,A100-PCIE-80GB,4,train,128,4,dp4,100,,,\n"
    "mystery,A100-PCIE-80GB,1,inf,128,4,,100,,,\n";

Validation run(const std::vector<std::string>& files, const ValidateOptions& options = {}) {
  Runner runner;
  return validate(runner, files, options);
}

std::int64_t skipped(const Validation& v, const std::string& reason) {
  for (const auto& [name, rows] : v.skipped) {
    if (name == reason) return rows;
  }
  return 0;
}

}  // namespace

TEST_CASE("a group's figures are those of four rows by hand", "[validation][statistics]") {
  // Errors +10, -10, +30, 0 %; the third row lies outside its interval. Widths 20, 30, 20, 20 %.
  const std::vector<Pair> pairs{pair(1, 1.1, 0.99, 1.21), pair(2, 1.8, 1.62, 2.16), pair(1, 1.3, 1.17, 1.43),
                                pair(1, 1, 0.9, 1.1)};
  const auto groups = group(pairs);
  REQUIRE(groups.size() == 1);
  const Group& g = groups[0];
  CHECK(g.rows == 4);
  CHECK_THAT(g.mape, WithinRel(0.125, 1e-9));
  CHECK_THAT(g.bias, WithinRel(0.075, 1e-9));
  CHECK_THAT(g.median_ape, WithinRel(0.1, 1e-9));
  CHECK_THAT(g.p90_ape, WithinRel(0.24, 1e-9));  // 0.1 + 0.7 * (0.3 - 0.1)
  CHECK_THAT(g.interval_coverage, WithinRel(0.75, 1e-9));
  CHECK_THAT(g.interval_width, WithinRel(0.225, 1e-9));
  REQUIRE(g.worst.size() == 4);
  CHECK_THAT(g.worst[0].predicted, WithinRel(1.3, 1e-12));
}

TEST_CASE("groups part by gpu, op, dtype, mode and origin, and keep ten worst rows", "[validation][statistics]") {
  std::vector<Pair> pairs(24, pair(1, 1.1, 1, 2));
  pairs[1].gpu = "A";
  pairs[2].op = "bmm";
  pairs[3].dtype = "fp16";
  pairs[4].mode = "backward";
  pairs[5].origin = "train";
  const auto groups = group(pairs);
  REQUIRE(groups.size() == 6);
  CHECK(groups[0].rows == 19);
  CHECK(groups[0].worst.size() == 10);
}

TEST_CASE("pooled lines join the tables of a family and know what was missed", "[validation][statistics]") {
  Validation v;
  v.pairs = {pair(1, 1.1, 1, 2), pair(1, 0.9, 1, 2), network("V100", "inference", 0.02),
             network("A100", "training", -0.04), network("A100", "training backward", 0.5)};
  v.missed[{"products", "T4"}] = 3;
  const auto lines = pool(v);
  REQUIRE(lines.size() == 6);
  CHECK(lines[0].name == "products");
  CHECK(lines[0].rows == 2);
  CHECK(lines[0].rows_total == 5);
  CHECK_THAT(lines[0].mape, WithinRel(0.1, 1e-9));
  CHECK_THAT(lines[0].bias, WithinAbs(0, 1e-9));
  CHECK(lines[1].name == "network inference");
  CHECK(lines[2].name == "network training");
  CHECK_THAT(lines[2].max_ape, WithinRel(0.5, 1e-9));
  // Whole runs of all GPUs: +2 % and -4 %, the pass alone left out.
  CHECK(lines[5].name == "whole networks");
  CHECK(lines[5].gpu == "all");
  CHECK(lines[5].rows == 2);
  CHECK_THAT(lines[5].bias, WithinRel(-0.01, 1e-9));
}

TEST_CASE("a small error of a network is doubted when errors of its operations cancel", "[validation][statistics]") {
  Validation v;
  v.pairs = {network("T4", "inference", 0.01)};
  const auto warned = [&](double signed_s, double absolute_s) {
    v.ops_errors = {{"bert_large", "T4", "inf", 512, 8, signed_s, absolute_s, 1}};
    return cancellations(v).size();
  };
  CHECK(warned(0.01, 0.3) == 1);
  CHECK(warned(0.01, 0.05) == 0);  // its operations are right
  CHECK(warned(0.25, 0.3) == 0);   // they are wrong to one side: nothing cancels
  v.pairs = {network("T4", "inference", 0.2)};
  CHECK(warned(0.01, 0.3) == 0);  // the network's error is large: no false comfort
  v.pairs = {network("V100", "inference", 0.01)};
  CHECK(warned(0.01, 0.3) == 0);  // another GPU's
  v.pairs = {network("T4", "training", 0.01)};
  CHECK(warned(0.01, 0.3) == 0);
}

TEST_CASE("kernel rows are predicted or counted, by split", "[validation]") {
  const Tables tables;
  const auto file = tables.write("v.csv", kVectors);
  const Validation all = run({file});
  CHECK(all.pairs.size() == 4);
  CHECK(skipped(all, "GPU MI250 is unknown") == 1);
  CHECK(all.asked() == 5);
  const Validation fit = run({file}, {.split = "fit"});
  const Validation report = run({file}, {.split = "report"});
  CHECK(fit.pairs.size() + report.pairs.size() == 4);
  CHECK_FALSE(fit.pairs.empty());
  CHECK_FALSE(report.pairs.empty());
  CHECK(skipped(fit, "report row") == static_cast<std::int64_t>(report.pairs.size()));
  CHECK(skipped(report, "fit row") == static_cast<std::int64_t>(fit.pairs.size()));
  for (const Pair& p : fit.pairs) CHECK(p.fit);
  for (const Pair& p : report.pairs) CHECK_FALSE(p.fit);
  for (const Pair& p : all.pairs) {
    CHECK(p.predicted > 1e-6);
    CHECK(p.predicted < 1e-3);
    CHECK(p.low <= p.predicted);
    CHECK(p.high >= p.predicted);
    CHECK(p.mode == "forward");
    CHECK(p.explanation.find("vectorized_elementwise_kernel") != std::string::npos);
  }
}

TEST_CASE("a row without a time is counted, and asks for no prediction", "[validation]") {
  const Tables tables;
  const Validation v = run({tables.write("v.csv",
                                         "op,gpu,rows,cols,latency_us\nadd,T4,8,8,30\nadd,T4,8,16,\n"
                                         "add,T4,8,8,20\n")});
  CHECK(v.pairs.size() == 2);
  CHECK(skipped(v, "no measured time") == 1);
  CHECK(v.asked() == 2);
  REQUIRE(v.pooled.size() == 1);
  CHECK(v.pooled[0].rows_total == 2);
}

TEST_CASE("predictions do not look at the measured time or kernel", "[validation]") {
  const Tables tables;
  const std::string header = "op,gpu,b,m,n,k,kernel,tile_m,tile_n,grid_z,latency_us\n";
  const auto predicted = [&](const std::string& seen) {
    const auto v = run({tables.write("g.csv", header + "linear,V100-PCIE-32GB,1,512,512,512," + seen + "\n")});
    return v.pairs.at(0).predicted;
  };
  CHECK(predicted("volta_sgemm_128x64_tn,64,128,4,70") == predicted(",,,,900"));
}

TEST_CASE("training rows are compared whole and by pass", "[validation]") {
  const Tables tables;
  const Validation v = run({tables.write("e.csv", kNetworks)});
  // V100: whole, forward, backward. A100: backward as the whole, and as the pass; no forward.
  REQUIRE(v.pairs.size() == 5);
  CHECK(v.pairs[0].mode == "training");
  CHECK(v.pairs[1].mode == "training forward");
  CHECK(v.pairs[2].mode == "training backward");
  CHECK_THAT(v.pairs[1].predicted + v.pairs[2].predicted, WithinRel(v.pairs[0].predicted, 1e-9));
  CHECK_THAT(v.pairs[1].measured, WithinRel(0.035, 1e-12));
  CHECK(v.pairs[3].mode == "training");
  CHECK_THAT(v.pairs[3].measured, WithinRel(0.05, 1e-12));
  CHECK(v.pairs[3].label.ends_with("(backward)"));
  CHECK(v.pairs[4].mode == "training backward");
  CHECK(skipped(v, "several GPUs") == 1);
  CHECK(skipped(v, "model mystery is not in the zoo") == 1);
  const Validation fit = run({tables.write("e.csv", kNetworks)}, {.split = "fit"});
  CHECK(fit.pairs.empty());
  CHECK(skipped(fit, "report row") == 4);
}

TEST_CASE("peers and configurations are recognised and skipped as such", "[validation]") {
  const Tables tables;
  const Validation v =
      run({tables.write("peers_e2e.csv",
                        "model,gpu,n_gpus,mode,seq,batch,option,predictor,pred_e2e_ms,pred_fw_ms,"
                        "pred_bw_ms\nbert_large,T4,1,inf,512,8,,habitat,3,3,\n"),
           tables.write("peers_ops.csv",
                        "model,gpu,mode,seq,batch,name,kind,repeat,neusight_fw_us,roofline_fw_us\n"
                        "bert_large,T4,inf,512,8,fc,Linear,1,3,3\nbert_large,T4,inf,512,8,g,Linear,1,3,3\n"),
           tables.write("models.csv",
                        "model,arch,layers,decoder_layers,hidden,heads,d_head,ffn,vocab\n"
                        "toy,Toy,1,,8,1,8,8,8\n")});
  CHECK(v.pairs.empty());
  CHECK(skipped(v, "peer") == 3);
  CHECK(skipped(v, "config") == 1);
  CHECK(v.asked() == 0);
}

TEST_CASE("filters keep the rows of a GPU or an operation and count the others", "[validation]") {
  const Tables tables;
  const auto kernels = tables.write("v.csv", kVectors);
  const auto networks = tables.write("e.csv", kNetworks);
  const Validation t4 = run({kernels}, {.gpus = {"t4"}});
  CHECK(t4.pairs.size() == 2);
  CHECK(skipped(t4, "left out by --gpu") == 3);
  CHECK(t4.asked() == 2);
  const Validation relu = run({kernels, networks}, {.ops = {"relu"}});
  CHECK(relu.pairs.size() == 1);
  CHECK(skipped(relu, "left out by --op") == 8);
  CHECK(run({kernels, networks}, {.ops = {"network"}}).pairs.size() == 5);
  CHECK_THROWS_AS(run({kernels}, {.gpus = {"T5"}}), UsageError);
  CHECK_THROWS_AS(run({kernels}, {.ops = {"softmax"}}), UsageError);
}

TEST_CASE("a table of another kind is refused with what is read", "[validation]") {
  const Tables tables;
  CHECK_THROWS_AS(run({tables.write("x.csv", "a,b\n1,2\n")}), UnsupportedError);
  CHECK(run({tables.write("y.csv", "op,gpu,rows,cols,latency_us\n")}).pairs.empty());
}

TEST_CASE("the answer is the same on one thread and on several", "[validation]") {
  const Tables tables;
  std::string text = "op,origin,gpu,b,m,n,k,latency_us\n";
  for (int i = 1; i <= 300; ++i) {
    text += (i % 2 == 0 ? "bmm,train,V100-PCIE-32GB," : "linear,test,A100-PCIE-40GB,") +
            std::to_string(i % 2 == 0 ? i : 1) + "," + std::to_string(7 * i) + "," + std::to_string(3000 - 9 * i) +
            "," + std::to_string(11 + i) + "," + std::to_string(40 + i) + "\n";
  }
  const auto file = tables.write("g.csv", text);
  const auto networks = tables.write("e.csv", kNetworks);
  const Validation one = run({file, networks}, {.jobs = 1});
  const Validation two = run({file, networks}, {.jobs = 2});
  CHECK(one.pairs.size() == 305);
  CHECK(validation_csv(one) == validation_csv(two));
  CHECK(validation_json(one) == validation_json(two));
  CHECK(validation_html(one) == validation_html(two));
  CHECK(validation_page(one, 100) == validation_page(two, 100));
}
