// SPDX-License-Identifier: MIT
#include "tests/support/catch.hpp"
#include "tests/support/program.hpp"

using namespace voltaic::test;

namespace {

/// A refusal: the documented code, one line on stderr, nothing on stdout.
void check_refusal(const std::string& arguments, int code, const std::string& mention) {
  INFO("voltaic " << arguments);
  const Outcome o = voltaic::test::voltaic(arguments);
  INFO(o.err);
  CHECK(o.code == code);
  CHECK(o.out.empty());
  CHECK(is_one_line(o.err));
  CHECK(o.err.find(mention) != std::string::npos);
}

}  // namespace

TEST_CASE("usage errors exit 2 and name the nearest right word", "[commands][errors]") {
  check_refusal("predcit bert-large", 2, "predict");
  check_refusal("predict bert-lrge", 2, "bert-large");
  check_refusal("predict", 2, "workload");
  check_refusal("predict bert-large --batch 0", 2, "at least 1");
  check_refusal("predict bert-large --batch -4", 2, "batch");
  check_refusal("predict bert-large --batch 1.5", 2, "batch");
  check_refusal("predict bert-large --batch nan", 2, "batch");
  check_refusal("predict bert-large --batch 99999999999999999999", 2, "batch");
  check_refusal("predict bert-large --batch 1,2", 2, "sweep");
  check_refusal("predict bert-large --batch 1 --batch 2", 2, "2 times");
  check_refusal("predict bert-large --precision fp17", 2, "mixed-bf16");
  check_refusal("predict bert-large --precision w4", 2, "w4a16");
  check_refusal("predict bert-large --sparsity 1:2", 2, "none or 2:4");
  check_refusal("predict bert-large --set gpu.dram.peak_bandwith=2TB/s", 2, "peak_bandwidth");
  check_refusal("predict bert-large --set gpu.sm.count", 2, "=");
  check_refusal("predict bert-large --fail-if time_s.totl\\>1", 2, "total");
  check_refusal("compare bert-large --gpu v100-sxm2-16gb", 2, "two or more");
  check_refusal("sweep bert-large --batch 8:1:1", 2, "backwards");
  check_refusal("sweep bert-large --batch 1:9", 2, "step");
  check_refusal("predict bert-large --engine cylce", 2, "cycle");
  check_refusal("predict bert-large --sample full", 2, "--engine cycle");
  check_refusal("predict bert-large --engine cycle --sample some", 2, "steady or full");
  check_refusal("predict bert-large --engine roofline --l2 tags", 2, "--engine cycle");
  check_refusal("explain op:relu,rows=64,cols=64 --trace-cycles 0:9 --trace x.json", 2, "--engine cycle");
  check_refusal("explain op:relu,rows=64,cols=64 --engine cycle --trace-cycles 9:0 --trace x.json", 2, "FROM:TO");
  check_refusal("explain op:relu,rows=64,cols=64 --engine cycle --trace-cycles 0:9", 2, "--trace FILE");
  check_refusal("validate --measured tests/golden/kernels_sample.csv --sample full", 2, "--engine cycle");
  check_refusal("schema nothing", 2, "predict");
  check_refusal("list planets", 2, "gpus");
}

TEST_CASE("bad files exit 3 and name file and place", "[commands][errors]") {
  check_refusal("predict bert-large --gpu /nonexistent.json", 3, "/nonexistent.json");
  check_refusal("predict " + scratch().string(), 3, "directory");
  check_refusal("predict " + write_scratch("cut.json", "{\"schema\": \"voltaic.graph/1\", \"nodes\": [").string(), 3,
                "cut.json");
  check_refusal("predict " + write_scratch("empty.json", "").string(), 3, "empty.json");
  check_refusal("predict bert-large --gpu " +
                    write_scratch("gpu.json", "{\"base\": \"a100-sxm4-80gb\", \"sm\": {\"count\": -1}}").string(),
                3, "count");
  check_refusal("validate --measured " + write_scratch("x.csv", "model\n1\n").string(), 3, "x.csv");
  check_refusal("validate --measured /nonexistent.csv", 3, "/nonexistent.csv");
}

TEST_CASE("what is not built or not possible exits 4 by name", "[commands][errors]") {
  for (const char* name : {"scale", "plan", "serve", "import"})
    check_refusal(std::string(name) + " bert-large", 4, name);
  check_refusal("predict bert-large --engine cycle --gpu h100-sxm5-80gb", 4, "Volta, Turing and Ampere");
  check_refusal("predict bert-large --sparsity 2:4 --gpu v100-sxm2-16gb", 4, "v100-sxm2-16gb has no 2:4");
  check_refusal("predict bert-large --sparsity 2:4 --gpu t4", 4, "int8 (tensor cores)");
  check_refusal("predict bert-large --sparsity 2:4 --mode training", 4, "training");
  check_refusal("predict bert-large --precision w8a16 --mode training", 4, "w8a16");
  check_refusal("predict bert-large --precision w4a16 --sparsity 2:4", 4, "w4a16");
  check_refusal("predict bert-large --precision w4a16 --set gpu.sm.tensor_cores=0", 4, "FP16 tensor cores");
  check_refusal("predict bert-large --precision int4 --gpu h100-sxm5-80gb", 4, "INT4");
  check_refusal("predict bert-large --parallel dp=8", 4, "--parallel");
  check_refusal("predict bert-large --precision bf16 --gpu v100-sxm2-16gb", 4, "fp16");
  check_refusal("predict bert-large --precision tf32 --gpu v100-sxm2-16gb", 4, "fp32");
  check_refusal("predict bert-large --precision fp8 --gpu a100-sxm4-80gb", 4, "FP8");
  check_refusal("predict " + write_scratch("m.json", "{\"model_type\": \"mamba\"}").string(), 4, "mamba");
  check_refusal("predict " + write_scratch("m.onnx", std::string("\x08\x07\x12\x07pytorch", 11)).string(), 4, "ONNX");
}

TEST_CASE("--fail-if exits 5 with the answer, --fail-above exits 6 with the answer", "[commands]") {
  const Outcome goal = voltaic::test::voltaic("predict resnet18 --fail-if time_s.total\\>0");
  CHECK(goal.code == 5);
  CHECK_FALSE(goal.out.empty());
  CHECK(voltaic::test::voltaic("predict resnet18 --fail-if time_s.total\\<0").code == 0);
  const Outcome above = voltaic::test::voltaic("validate --measured tests/golden/e2e_sample.csv --fail-above 0");
  CHECK(above.code == 6);
  CHECK_FALSE(above.out.empty());
}

TEST_CASE("what-ifs on the calibration stay where its laws hold", "[commands][errors]") {
  check_refusal("predict resnet18 --set calibration.vector.kinds.reduction.efficiency=0", 2, "0.95");
  check_refusal("predict resnet18 --set calibration.vector.kinds.elementwise.exponent=-1", 2, "from");
  check_refusal("predict resnet18 --set calibration.vector.kinds.elementwise.exponent=nan", 2, "exponent");
  CHECK(voltaic::test::voltaic("predict resnet18 --set calibration.vector.kinds.reduction.efficiency*=0.9").code == 0);
}

TEST_CASE("a full device and a closed standard error are reported or ignored, never an abort", "[commands][errors]") {
  CHECK(shell("voltaic --help >/dev/full").code == 3);
  CHECK(shell("voltaic predict nope 2>&-").code == 2);
  CHECK(shell("voltaic predict resnet18 --batch 100000 2>/dev/full").code == 0);
  check_refusal("predict resnet18 --json --output /dev/full", 3, "/dev/full");
}

TEST_CASE("contradicting options are refused", "[commands][errors]") {
  check_refusal("predict resnet18 --json --csv", 2, "one of them");
  check_refusal("predict resnet18 --set gpu.sm.count=2 --set gpu.sm.count=3", 2, "twice");
  check_refusal("predict resnet18 --output same --trace same", 2, "two files");
  check_refusal("predict bert-base --mode training --framework tensorrt", 4, "tensorrt");
  const std::string graph =
      write_scratch(
          "g.json",
          R"({"schema": "voltaic.graph/1", "dims": {"batch": 2}, "inputs": [{"name": "x", "shape": ["batch", 8]}],
    "nodes": [{"id": "r", "op": "relu", "inputs": ["x"], "outputs": ["y"]}], "outputs": ["y"]})")
          .string();
  CHECK(voltaic::test::voltaic("predict " + graph + " --batch 4").code == 0);
  check_refusal("predict " + graph + " --batch 4 --dim batch=8", 2, "one value");
}

TEST_CASE("a measured row with a senseless cell is named with its line", "[commands][errors]") {
  const std::string header = "model,gpu,n_gpus,mode,seq,batch,option,e2e_ms\n";
  const auto table = [&](const std::string& row) {
    return "validate --measured " + write_scratch("t.csv", header + row + "\n").string();
  };
  check_refusal(table("bert_large,V100-PCIE-32GB,1,zzz,512,8,,257"), 3, "line 2");
  check_refusal(table("bert_large,V100-PCIE-32GB,1,inf,512,,,257"), 3, "batch");
  check_refusal(table("bert_large,V100-PCIE-32GB,-3,inf,512,8,,257"), 3, "n_gpus");
  check_refusal(table("bert_large,V100-PCIE-32GB,1,inf,512,8,,1e-320"), 3, "e2e_ms");
  check_refusal(table("bert_large,V100-PCIE-32GB,1,inf,512,8,,nan"), 3, "e2e_ms");
  CHECK(voltaic::test::voltaic(table("mystery,V100-PCIE-32GB,1,inf,512,8,,257") + " --fail-above 0.5").code == 6);
}
