// SPDX-License-Identifier: MIT
#include "validation/compare/llm_rows.hpp"

#include <algorithm>

#include "arch/units/error.hpp"
#include "tests/support/catch.hpp"
#include "validation/compare/llm_models.hpp"

using namespace voltaic;
using namespace voltaic::validation;

namespace {

constexpr const char* kHeader =
    "model,implementation,gpu,tp,pp,precision,batch,input_len,output_len,beam_or_topk,latency_ms,latency_kind,"
    "throughput,throughput_unit,clocks_or_host,source,heading\n";

CsvTable table(const std::string& rows) {
  return CsvTable::parse(kHeader + rows, "invented.csv");
}

std::int64_t skipped(const Validation& v, std::string_view reason) {
  for (const auto& [text, rows] : v.skipped) {
    if (text == reason) return rows;
  }
  return 0;
}

}  // namespace

TEST_CASE("models are known however tables spell them", "[validation][llm]") {
  for (const char* name : {"Llama2 70B", "llama2-70b", "LLaMA 70B", "Llama-3.1-70B", "Llama 3.3 70B"}) {
    REQUIRE(llm_shape(name));
    CHECK(llm_shape(name)->hidden == 8192);
  }
  CHECK(llm_shape("BERT-base (12 layers, encoder only)"));
  CHECK_FALSE(llm_shape("Swin BASE"));
}

TEST_CASE("a GPU of a group holds its part of each layer", "[validation][llm]") {
  const LlmShape shape = *llm_shape("Llama2 70B");
  const std::string part = llm_config(shape, 8);
  CHECK(part.find("\"num_attention_heads\":8,") != std::string::npos);
  CHECK(part.find("\"num_key_value_heads\":1,") != std::string::npos);
  CHECK(part.find("\"intermediate_size\":3584,") != std::string::npos);
  CHECK(part.find("\"hidden_size\":8192,") != std::string::npos);
  CHECK(llm_config(shape, 7).empty());
  for (const char* name : {"Llama2 70B", "GPT-20B", "bloom-176b"}) {
    workloads::BuildOptions options;
    options.seq = 16;
    const auto whole = workloads::load_workload(llm_config(*llm_shape(name), 1), options).parameters;
    const auto eighth = workloads::load_workload(llm_config(*llm_shape(name), 8), options).parameters;
    CHECK(eighth > whole / 8);  // norms and positions are held by all
    CHECK(static_cast<double>(eighth) < 0.15 * static_cast<double>(whole));
  }
}

TEST_CASE("all-reduces cost a latency and a rate", "[validation][llm]") {
  CHECK(all_reduce_s(1e6, 1, "a100-sxm4-80gb", true) == 0);
  // 22 us + 1.75 * 215 MB / 215 GB/s
  CHECK_THAT(all_reduce_s(215e6, 8, "a100-sxm4-80gb", true), WithinRel(22e-6 + 1.75e-3, 1e-9));
  CHECK_THAT(all_reduce_s(16, 8, "a100-sxm4-80gb", false), WithinRel(42e-6, 1e-9));
}

TEST_CASE("rows become encoder passes, completions and steps", "[validation][llm]") {
  const CsvTable t = table(
      "BERT-base,TensorRT demo/BERT ,A100-SXM4-40GB,1,1,FP16,8,128,,,2.0,average GPU time,,,,NVIDIA/TensorRT: x,h\n"
      "GPT-1.3B,FT,A100-SXM4-80GB,1,1,FP16,1,32,8,,30.0,avg (as given),,,,NVIDIA/FasterTransformer: x,h\n"
      "Llama-3.1-8B,gpt-fast (torch.compile),A100-SXM4-80GB,1,1,BF16,1,5,20,,10.6,per output token "
      "(derived),94,tokens/s,"
      "330 W power limit,pytorch-labs/gpt-fast: x,h\n"
      "LLaMA 7B,TensorRT-LLM v1,A100-SXM4-80GB,2,1,FP16,4,32,16,,,,1000,output tokens/s per GPU,,NVIDIA/TensorRT-LLM: "
      "x,h\n"
      "Swin BASE,cpp,A100,1,1,FP16,1,,,,3.0,avg,,,,NVIDIA/FasterTransformer: x,h\n"
      "BERT-base,TF,A100,1,1,FP16,1,32,,,3.0,avg,,,,NVIDIA/FasterTransformer: x,h\n"
      "BERT-base,EFF-FT,A100,1,1,FP16,1,32,,,3.0,avg,,,,NVIDIA/FasterTransformer: x,h\n"
      "BERT-base,FT,L99,1,1,FP16,1,32,,,3.0,avg,,,,NVIDIA/FasterTransformer: x,h\n");
  REQUIRE(is_llm_table(t));
  Runner runner;
  Validation v;
  predict_llm_rows(runner, t, v);
  REQUIRE(v.pairs.size() == 4);
  CHECK(v.pairs[0].mode == "encoder");
  CHECK(v.pairs[0].origin == "TensorRT TensorRT demo/BERT");
  CHECK(v.pairs[1].mode == "generate");
  CHECK(v.pairs[2].mode == "decode");
  CHECK_THAT(v.pairs[3].measured, WithinRel(4.0 * 16 / 2000, 1e-12));  // both GPUs of the group
  for (const Pair& p : v.pairs) {
    CHECK(p.op == "network");
    CHECK(p.predicted > 0);
    CHECK(p.low <= p.predicted);
    CHECK(p.high >= p.predicted);
    CHECK_FALSE(p.fit);
  }
  CHECK(skipped(v, "model Swin BASE is none that can be built") == 1);
  CHECK(skipped(v, "TensorFlow's kernels are not modelled") == 1);
  CHECK(skipped(v, "padding removed: the lengths are not stated") == 1);
  CHECK(skipped(v, "GPU L99 is unknown") == 1);
}

TEST_CASE("rows of sparse weights are predicted sparse, in a mode of their own", "[validation][llm]") {
  const CsvTable t = table(
      "BERT-megatron,TensorRT demo/BERT ,A100-SXM4-40GB,1,1,INT8 QAT,64,128,,,11.6,average GPU "
      "time,,,,NVIDIA/TensorRT: x,Megatron Large with Sparsity\n"
      "BERT-large,TensorRT demo/BERT ,A100-SXM4-40GB,1,1,INT8,64,128,,,12.9,average GPU time,,,,NVIDIA/TensorRT: "
      "x,BERT Large\n");
  Runner runner;
  Validation v;
  predict_llm_rows(runner, t, v);
  REQUIRE(v.pairs.size() == 2);
  CHECK(v.pairs[0].mode == "encoder 2:4");
  CHECK(v.pairs[1].mode == "encoder");
  CHECK(v.pairs[0].predicted < v.pairs[1].predicted);
  CHECK(v.pairs[0].predicted > 0.5 * v.pairs[1].predicted);
}

TEST_CASE("repeats of a serving run are one prefill and one step, at their median", "[validation][llm]") {
  const CsvTable t = CsvTable::parse(
      "model,hardware,prompt_size,batch_size,token_size,prompt_time_ms,token_time_ms,e2e_time_ms,tensor_parallel\n"
      "llama2-70b,a100-80gb,64,1,8,50,30,300,8\n"
      "llama2-70b,a100-80gb,64,1,8,52,31,300,8\n"
      "llama2-70b,a100-80gb,64,1,8,99,32,300,8\n"
      "llama2-70b,h100-80gb-pcap,64,1,8,99,32,300,8\n",
      "runs.csv");
  Runner runner;
  Validation v;
  predict_llm_rows(runner, t, v);
  REQUIRE(v.pairs.size() == 2);
  CHECK(v.pairs[0].mode == "prefill");
  CHECK_THAT(v.pairs[0].measured, WithinRel(0.052, 1e-12));
  CHECK_THAT(v.pairs[1].measured, WithinRel(0.031, 1e-12));
  // The GPUs need 22 ms; the host 80 layers of 0.54 ms and a sequence of 0.47 ms.
  CHECK_THAT(v.pairs[1].predicted, WithinRel(80 * 0.54e-3 + 0.47e-3, 1e-9));
  CHECK(skipped(v, "repeat of a run, in its median") == 2);
  CHECK(skipped(v, "power-capped rows that were computed from others") == 1);
}

TEST_CASE("operations of a layer are single calls of its shapes", "[validation][llm]") {
  const CsvTable t = CsvTable::parse(
      "gpu,workload,phase,op,latency_us,source\n"
      "A100-SXM4-80GB,\"GPT3-175B layer, TP4, batch 8\",prefill(seq=2048),Wo_proj,4600,x\n"
      "A100-SXM4-80GB,\"GPT3-175B layer, TP4, batch 8\",decode(kv~3072),AllReduce_MHA,26,x\n",
      "layer.csv");
  REQUIRE(is_llm_table(t));
  Runner runner;
  Validation v;
  predict_llm_rows(runner, t, v);
  REQUIRE(v.pairs.size() == 1);
  CHECK(v.pairs[0].op == "Wo_proj");
  CHECK(v.pairs[0].label == "op:matmul,batch=1,m=16384,n=12288,k=3072");
  CHECK(skipped(v, "collectives are not modelled yet: AllReduce") == 1);
}

TEST_CASE("a size that makes no sense is refused with its place", "[validation][llm]") {
  const CsvTable t = table("BERT-base,FT,A100,1,1,FP16,0,32,,,3.0,avg,,,,NVIDIA/FasterTransformer: x,h\n");
  Runner runner;
  Validation v;
  CHECK_THROWS_AS(predict_llm_rows(runner, t, v), ConfigError);
}
