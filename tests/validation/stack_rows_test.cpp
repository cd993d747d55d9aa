// SPDX-License-Identifier: MIT
// Tables of serving stacks and suites: what is recognised, what each row becomes, what is left out and why.
#include "validation/compare/stack_rows.hpp"

#include <cstdlib>
#include <string>

#include "arch/units/error.hpp"
#include "tests/support/catch.hpp"
#include "validation/compare/validate.hpp"

using namespace voltaic;
using namespace voltaic::validation;

namespace {

const std::string kGemm = "gpu,dtype,accum,m,n,k,batch,layout,latency_us,method,source\n";
const std::string kAttention =
    "gpu,kernel,impl,dtype,phase,batch,heads,kv_heads,seq_q,seq_kv,head_dim,causal,latency_us,suspect,source\n";
const std::string kOperations = "gpu,model,op,kind,num_tokens,n,k,gated,latency_us,source\n";
const std::string kVectors = "gpu,op,rows,cols,dtype,latency_us,source\n";
const std::string kMoe =
    "gpu,dtype,num_tokens,hidden_size,inter_size,topk,num_experts,moe_tp_size,moe_ep_size,distribution,latency_us,"
    "source\n";
const std::string kLayers = "gpu,model,tp_size,layer_name,num_tokens,latency_us,source\n";
const std::string kSuiteGemm = "gpu,precision,M,N,K,a_trans,b_trans,time_us,status\n";
const std::string kSuiteConv =
    "gpu,precision,W,H,C,N,K,S_filter_w,R_filter_h,pad_w,pad_h,stride_w,stride_h,fwd_us,bwd_data_us,bwd_weights_us,"
    "status\n";

CsvTable table(const std::string& header, const std::string& rows) {
  return CsvTable::parse(header + rows, "t.csv");
}

StackRows read(const std::string& header, const std::string& rows) {
  const CsvTable t = table(header, rows);
  const auto kind = stack_table(t);
  REQUIRE(kind.has_value());
  return read_stack_rows(t, *kind);
}

std::int64_t skipped(const StackRows& rows, const std::string& reason) {
  for (const auto& [name, times] : rows.skipped) {
    if (name == reason) return times;
  }
  return 0;
}

/// The one line of a refusal, or empty when the table is read.
std::string refusal(const std::string& header, const std::string& row) {
  const CsvTable t = table(header, row + "\n");
  try {
    read_stack_rows(t, stack_table(t).value());
  } catch (const ConfigError& e) {
    return e.what();
  }
  return "";
}

bool names(const std::string& message, const std::string& word) {
  return message.find("t.csv: line 2") != std::string::npos && message.find(word) != std::string::npos &&
         message.find('\n') == std::string::npos;
}

}  // namespace

TEST_CASE("tables of stacks and suites are recognised by their columns", "[validation][stack_rows]") {
  CHECK(stack_table(table(kGemm, "")) == StackTable::gemm);
  CHECK(stack_table(table(kAttention, "")) == StackTable::attention);
  CHECK(stack_table(table(kOperations, "")) == StackTable::operations);
  CHECK(stack_table(table(kVectors, "")) == StackTable::vectors);
  CHECK(stack_table(table(kMoe, "")) == StackTable::moe);
  CHECK(stack_table(table(kLayers, "")) == StackTable::layers);
  CHECK(stack_table(table(kSuiteGemm, "")) == StackTable::suite_gemm);
  CHECK(stack_table(table(kSuiteConv, "")) == StackTable::suite_conv);
  CHECK(stack_table(table("gpu,precision,cell,hidden,timesteps,fwd_us\n", "")) == StackTable::recurrent);
  CHECK(stack_table(table("gpu,precision,M,N,K,a_trans,b_trans,sparsity,sparse_time_us\n", "")) ==
        StackTable::sparse_product);
  CHECK(stack_table(table("gpu,system,num_gpus,collective,size_bytes,time_us\n", "")) == StackTable::collective);
  CHECK_FALSE(stack_table(table("op,origin,gpu,rows,cols,dtype,latency_us\n", "")));
  CHECK_FALSE(stack_table(table("op,gpu,b,m,n,k,latency_us\n", "")));
}

TEST_CASE("a product row becomes the stack's problem under its protocol", "[validation][stack_rows]") {
  const auto rows = read(kGemm,
                         "A100-SXM4-80GB,bf16,fp32,512,1024,256,1,TN,10,graph_avg,aic-vllm-0.14.0\n"
                         "H200-SXM-141GB,w8a16,fp32,512,1024,256,1,TN,10,graph_avg,aic-trtllm-1.2.0rc5\n"
                         "H100-SXM5-80GB,fp8,fp32,512,1024,256,1,TN,10,graph_avg,aic-vllm-0.24.0\n"
                         "V100-SXM2-16GB,fp16,fp32,512,1024,256,1,TN,10,avg_many,deepbench\n")
                        .rows;
  REQUIRE(rows.size() == 4);
  const auto product = [&](std::size_t i) { return std::get<ProductCall>(rows[i].work); };
  CHECK(rows[0].op == "gemm");
  CHECK(rows[0].key == "gemm|1|512|1024|256");
  CHECK(rows[0].family == "products bf16");
  CHECK(rows[0].protocol.call.contents == cost::OperandContents::constant);
  CHECK(product(0).problem.transpose_b);
  CHECK(product(0).problem.n == 1024);
  CHECK(rows[1].gpu == "h200-sxm5-141gb");
  CHECK(rows[1].call == "gemm_w8a16");
  CHECK(product(1).problem.dequantise);
  CHECK_THAT(product(1).problem.b_bytes, WithinRel(1.0, 1e-12));
  CHECK(product(2).problem.math == DataType::fp8);
  // The suite's tables are column-major: its N is our m, its first letter is our second operand's.
  CHECK(product(3).problem.m == 1024);
  CHECK(product(3).problem.n == 512);
  CHECK(product(3).problem.transpose_b);
  CHECK(rows[3].key == "gemm|1|512|1024|256");
}

TEST_CASE("rows that are no call of ours are counted with the reason", "[validation][stack_rows]") {
  const auto rows = read(kGemm,
                         "A100-SXM4,fp16/bf16,fp32,8,8,8,1,,1,best_of_search,mag-gpu-benchmark\n"
                         "A100-SXM4-80GB,tf32,fp32,8,8,8,1,,1,peak_of_n<=8192(rounded),mli-bench\n"
                         "L40S,bf16,fp32,8,8,8,1,TN,1,graph_avg,aic-vllm-0.24.0\n"
                         "A100-SXM4-80GB,fp3,fp32,8,8,8,1,TN,1,graph_avg,aic-vllm-0.24.0\n"
                         "A100-SXM4-80GB,bf16,fp32,8,8,8,1,TN,1,,mystery\n"
                         "A100-SXM4-80GB,bf16,fp32,8,8,8,1,TN,1,event_avg,mystery\n"
                         "A100-SXM4-80GB,bf16,fp32,8,8,8,1,TN,,graph_avg,aic-vllm-0.24.0\n");
  CHECK(rows.rows.size() == 1);
  CHECK(skipped(rows, "a ceiling over a search, not the time of one call") == 2);
  CHECK(skipped(rows, "GPU L40S is unknown") == 1);
  CHECK(skipped(rows, "dtype fp3 is unknown for gemm") == 1);
  CHECK(skipped(rows, "source mystery: how it was timed is not known") == 1);
  CHECK(skipped(rows, "no measured time") == 1);
  const auto attention = read(kAttention,
                              "A100-SXM4-80GB,flash,x,bf16,decode,1,8,8,1,64,128,1,9,1,aic-trtllm-1.0.0\n"
                              "A100-SXM4-80GB,standard,pytorch,fp16,train_fwd,1,8,8,64,64,64,0,9,0,fa2-chart\n"
                              "H100-SXM5-80GB,flash,cudnn,fp16,train_fwd,1,8,8,64,64,64,0,9,0,fa3-chart\n");
  CHECK(attention.rows.empty());
  CHECK(skipped(attention, "marked suspect") == 1);
  CHECK(skipped(attention, "unfused attention is not one kernel") == 1);
  CHECK(skipped(attention, "attention by cudnn is not modelled") == 1);
}

TEST_CASE("a recurrent row is up to three calls, a pruned product one", "[validation][stack_rows]") {
  const std::string header = "gpu,precision,cell,hidden,batch_N,timesteps,fwd_us,bwd_inputs_us,bwd_weights_us,status\n";
  const auto rnn = read(header,
                        "V100,FP32,lstm,512,16,25,9,8,7,current\n"
                        "V100,FP16_tensorcore_mixed,gru,512,16,25,9,,,current\n"
                        "V100,FP32,lstm,512,16,25,9,8,,superseded\n"
                        "V100,FP16_in_FP32_mul,lstm,512,16,25,9,,,current\n"
                        "V100,FP32,peephole,512,16,25,9,,,current\n");
  REQUIRE(rnn.rows.size() == 4);
  CHECK(rnn.rows[0].op == "lstm");
  CHECK(rnn.rows[0].mode == "fwd");
  CHECK(rnn.rows[0].gpu == "v100-sxm2-16gb");
  CHECK(rnn.rows[0].key == "rnn|lstm|512|16|25");
  CHECK(rnn.rows[1].call == "rnn_bwd_inputs_fp32");
  CHECK(rnn.rows[2].call == "rnn_bwd_weights_fp32");
  CHECK(rnn.rows[3].call == "rnn_fwd");
  CHECK(std::get<kernel::RecurrentKernel>(rnn.rows[2].work).pass == kernel::RecurrentPass::backward_weights);
  CHECK(skipped(rnn, std::string(kSuperseded)) == 2);
  CHECK(skipped(rnn, "precision FP16_in_FP32_mul is unknown for recurrent layers") == 1);
  CHECK(skipped(rnn, "cell peephole is unknown") == 1);
  CHECK(names(refusal(header, "V100,FP32,lstm,512,0,25,9,8,7,current"), "batch_N"));

  const std::string pruned = "gpu,precision,M,N,K,a_trans,b_trans,sparsity,sparse_time_us,status\n";
  const auto sparse = read(pruned,
                           "V100,FP32,10752,1,3584,N,N,0.9,110,current\n"
                           "1080Ti,FP32,10752,1,3584,N,N,0.9,110,current\n");
  REQUIRE(sparse.rows.size() == 1);
  CHECK(sparse.rows[0].key == "sparse|10752|1|3584|0.9");
  CHECK(std::get<kernel::SparseKernel>(sparse.rows[0].work).nnz == 3853517);
  CHECK(skipped(sparse, "GPU 1080Ti is unknown") == 1);
  CHECK(names(refusal(pruned, "V100,FP32,10752,1,3584,N,N,1.5,110,current"), "sparsity"));
}

TEST_CASE("attention rows know their phase and their key", "[validation][stack_rows]") {
  const auto rows = read(kAttention,
                         "A100-SXM4-80GB,flash,x,bf16,prefill,2,8,4,64,64,128,1,9,0,aic-vllm-0.14.0\n"
                         "A100-SXM4-80GB,flash,x,bf16,decode,2,8,4,1,64,128,1,9,0,aic-vllm-0.14.0\n"
                         "A100-SXM4-80GB,flash,x,bf16,prefill,2,8,4,1,1,128,1,9,0,aic-vllm-0.14.0\n"
                         "A100-SXM4-80GB,flash,flash_attn2,fp16,train_fwd_bwd,2,8,8,64,64,64,0,9,0,fa2-chart\n")
                        .rows;
  REQUIRE(rows.size() == 4);
  CHECK(rows[0].mode == "prefill");
  CHECK(std::get<AttentionCall>(rows[0].work).appends);
  CHECK(std::get<AttentionCall>(rows[0].work).kernel.warm);
  CHECK_FALSE(std::get<AttentionCall>(rows[2].work).appends);
  CHECK_FALSE(std::get<AttentionCall>(rows[3].work).kernel.warm);
  CHECK(std::get<AttentionCall>(rows[3].work).kernel.library == kernel::AttentionLibrary::flash2_dense);
  CHECK(rows[0].key == "attn|prefill|2|8|4|64|64|128|1");
  CHECK(std::get<AttentionCall>(rows[0].work).kernel.causal);
  CHECK(std::get<AttentionCall>(rows[1].work).kernel.decode);
  CHECK(rows[1].key == "attn|decode|2|8|4|1|64|128|1");
  // One token's prompt runs the kernel of decoding.
  CHECK(rows[2].mode == "prefill");
  CHECK(rows[2].call == "decode");
  CHECK(std::get<AttentionCall>(rows[3].work).with_backward);
  // 4 batch heads seq_q seq_kv head_dim, and five products more for the gradient.
  CHECK_THAT(rows[3].size, WithinRel(3.5 * 4 * 2 * 8 * 64 * 64 * 64, 1e-9));
}

TEST_CASE("operations of a layer are products or kernels of the stack", "[validation][stack_rows]") {
  const auto rows = read(kOperations,
                         "A40,Llama-2-7b-hf,mlp_up_proj,gemm,16,22016,4096,,70,vidur\n"
                         "H100-80GB,Llama-2-7b-hf,mlp_act,mlp_act,16,11008,0,1,5,vidur\n"
                         "A100-80GB,phi-2,input_layernorm,layernorm,16,2560,0,,12,vidur\n"
                         "A40,phi-2,mystery,mystery,16,2560,0,,12,vidur\n");
  REQUIRE(rows.rows.size() == 3);
  CHECK(rows.rows[0].op == "gemm");
  CHECK(rows.rows[0].key == "gemm|1|16|22016|4096");
  CHECK(rows.rows[1].key == "mlp_act|16|11008");
  CHECK(rows.rows[1].gpu == "h100-sxm5-80gb");
  CHECK(rows.rows[1].family == "serving vectors fp16, below 10 us");
  CHECK(std::get<VectorCall>(rows.rows[1].work).op == graph::OpType::silu_mul);
  CHECK(rows.rows[2].gpu == "a100-sxm4-80gb");
  CHECK(std::get<VectorCall>(rows.rows[2].work).op == graph::OpType::layer_norm);
  CHECK(skipped(rows, "op mystery is unknown") == 1);
  const auto layers = read(kLayers,
                           "H100-80GB,Llama-3.1-8B,2,q_proj,16,9,llmservingsim-v0\n"
                           "H100-80GB,Llama-3.1-8B,2,rope,16,25,llmservingsim-v0\n"
                           "H100-80GB,Mixtral-8x7B-v0.1,1,gate,16,40,llmservingsim-v0\n");
  REQUIRE(layers.rows.size() == 2);
  CHECK(layers.rows[0].op == "q_proj");
  CHECK(layers.rows[0].key == "gemm|1|16|2048|4096");
  CHECK(std::get<VectorCall>(layers.rows[1].work).widths == std::vector<std::int64_t>{2048, 512});
  CHECK(skipped(layers, "layer gate: its kernels are not stated") == 1);
}

TEST_CASE("a row of experts knows its share and its routing", "[validation][stack_rows]") {
  const auto rows = read(kMoe,
                         "A100-SXM4-80GB,int4_wo,64,4096,14336,2,8,2,4,power_law_1.2,300,aic-sglang-0.5.10\n"
                         "A100-SXM4-80GB,bf16,64,4096,14336,2,8,3,1,balanced,300,aic-sglang-0.5.10\n");
  REQUIRE(rows.rows.size() == 1);
  const auto& call = std::get<MoeCall>(rows.rows[0].work);
  CHECK(rows.rows[0].key == "moe|64|4096|14336|2|8|2|4|power_law_1.2");
  CHECK(rows.rows[0].mode == "power_law_1.2");
  CHECK_THAT(call.skew, WithinRel(1.2, 1e-12));
  CHECK(call.weights == DataType::int4);
  CHECK(skipped(rows, "experts or their width do not divide among the GPUs") == 1);
}

TEST_CASE("a suite's convolution is up to three calls, and old uploads are left out", "[validation][stack_rows]") {
  const auto rows = read(kSuiteConv,
                         "V100,FP16_tensorcore_mixed,28,14,64,8,32,3,5,1,2,1,1,20,30,40,current\n"
                         "V100,FP32,28,14,64,8,32,3,5,1,2,1,1,20,,40,current\n"
                         "V100,FP32,28,14,64,8,32,3,5,1,2,1,1,20,30,40,superseded\n");
  REQUIRE(rows.rows.size() == 5);
  CHECK(skipped(rows, "superseded by a later upload") == 3);
  CHECK(rows.rows[0].gpu == "v100-sxm2-16gb");
  CHECK(rows.rows[0].key == "conv|8|64|14|28|32|5|3|1|1|2|1");
  CHECK(rows.rows[1].mode == "bwd_data");
  CHECK(std::get<kernel::ConvProblem>(rows.rows[2].work).pass == kernel::ConvPass::wgrad);
  CHECK(rows.rows[4].mode == "bwd_weights");
  CHECK(rows.rows[4].call == "conv_bwd_weights_fp32");
}

TEST_CASE("a senseless cell of a stack's table is refused with its line and column", "[validation][stack_rows]") {
  CHECK(names(refusal(kGemm, "A100-SXM4-80GB,bf16,fp32,0,8,8,1,TN,1,graph_avg,aic-vllm-0.14.0"), "m"));
  CHECK(names(refusal(kGemm, "A100-SXM4-80GB,bf16,fp32,8,,8,1,TN,1,graph_avg,aic-vllm-0.14.0"), "n"));
  CHECK(names(refusal(kGemm, "A100-SXM4-80GB,bf16,fp32,8,8,8,1,XY,1,graph_avg,aic-vllm-0.14.0"), "layout"));
  CHECK(names(refusal(kGemm, "A100-SXM4-80GB,bf16,fp32,8,8,8,1,TN,-1,graph_avg,aic-vllm-0.14.0"), "latency_us"));
  CHECK(names(refusal(kGemm, "A100-SXM4-80GB,bf16,fp32,8,8,8,1,TN,nan,graph_avg,aic-vllm-0.14.0"), "latency_us"));
  CHECK(names(refusal(kGemm, "A100-SXM4-80GB,bf16,fp32,1e12,1e12,8,1,TN,1,graph_avg,aic-vllm-0.14.0"), "elements"));
  const std::string flash = "A100-SXM4-80GB,flash,x,bf16,";
  CHECK(names(refusal(kAttention, flash + "guess,1,8,8,1,64,128,1,9,0,aic-vllm-0.14.0"), "phase"));
  CHECK(names(refusal(kAttention, flash + "decode,1,8,3,1,64,128,1,9,0,aic-vllm-0.14.0"), "kv_heads"));
  CHECK(names(refusal(kAttention, flash + "decode,1,8,8,2,64,128,1,9,0,aic-vllm-0.14.0"), "seq_q"));
  CHECK(names(refusal(kAttention, flash + "prefill,1,8,8,2,64,128,yes,9,0,aic-vllm-0.14.0"), "causal"));
  CHECK(names(refusal(kMoe, "A100-SXM4-80GB,bf16,8,64,64,9,8,1,1,balanced,9,aic-vllm-0.14.0"), "topk"));
  CHECK(names(refusal(kMoe, "A100-SXM4-80GB,bf16,8,64,64,2,8,1,1,power_law_x,9,aic-vllm-0.14.0"), "distribution"));
  CHECK(names(refusal(kLayers, "H100-80GB,Llama-3.1-8B,5,q_proj,16,9,llmservingsim-v0"), "tp_size"));
  CHECK(names(refusal(kSuiteGemm, "V100,FP32,8,8,8,N,X,9,current"), "a_trans"));
  CHECK(names(refusal(kSuiteConv, "V100,FP32,28,2,64,8,32,3,9,1,2,1,1,20,30,40,current"), "R_filter_h"));
  CHECK(names(refusal(kOperations, "A40,m,emb,emb,-4,2560,0,,12,vidur"), "num_tokens"));
}

TEST_CASE("a sample of a stack's table is predicted, grouped by source, and the rest counted",
          "[validation][stack_rows]") {
  const char* source = std::getenv("VOLTAIC_SOURCE_DIR");
  Runner runner;
  const std::string file = std::string(source != nullptr ? source : ".") + "/tests/golden/stack_sample.csv";
  const Validation v = validate(runner, {file});
  REQUIRE(v.groups.size() == 2);
  CHECK(v.groups[0].op == "gemm");
  CHECK(v.groups[0].origin == "aic-sglang-0.5.10");
  CHECK(v.groups[0].rows == 3);
  CHECK(v.groups[0].mape < 0.2);
  CHECK(v.groups[1].gpu == "V100-SXM2-16GB");
  CHECK(v.asked() == 5);  // The ceiling asks nothing of a model; the unknown GPU does.
  for (const Pair& p : v.pairs) {
    CHECK(p.low <= p.predicted);
    CHECK(p.predicted <= p.high);
  }
  ValidateOptions options;
  options.gpus = {"a100-sxm4-80gb"};
  options.ops = {"gemm"};
  CHECK(validate(runner, {file}, options).pairs.size() == 3);
  options.ops = {"conv"};
  CHECK_THROWS_AS(validate(runner, {file}, options), UsageError);
}

TEST_CASE("every kind of row gets a finite time", "[validation][stack_rows]") {
  const char* source = std::getenv("VOLTAIC_SOURCE_DIR");
  Runner runner;
  const std::string folder = std::string(source != nullptr ? source : ".") + "/tests/golden/";
  const Validation v = validate(runner, {folder + "stack_operations_sample.csv", folder + "stack_moe_sample.csv",
                                         folder + "stack_attention_sample.csv"});
  CHECK(v.pairs.size() == 15);
  for (const Pair& p : v.pairs) {
    INFO(p.op << ' ' << p.mode << ' ' << p.label);
    CHECK(p.predicted > 1e-7);
    CHECK(p.predicted < 1);
  }
}
