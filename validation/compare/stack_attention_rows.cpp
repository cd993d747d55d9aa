// SPDX-License-Identifier: MIT
// Attention of serving stacks: prompts, decoding, encoders; and of published charts, with and without gradients.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "arch/units/error.hpp"
#include "sim/kernel/attention_shape.hpp"
#include "validation/compare/stack_reader.hpp"

namespace voltaic::validation {
namespace {

constexpr std::array<std::string_view, 5> kPhases{"prefill", "decode", "encoder", "train_fwd", "train_fwd_bwd"};

bool is_phase(std::string_view word) {
  return std::find(kPhases.begin(), kPhases.end(), word) != kPhases.end();
}

/// Implementations that are no kernel of the model's: older ones and other compilers'.
constexpr std::array<std::string_view, 5> kStrangers{"flash_attn1", "flash_triton", "triton", "cudnn",
                                                     "xformers_cutlass"};

/// Whose kernels run where a table names an implementation; others: the GPU's own.
kernel::AttentionLibrary library_of(std::string_view impl, std::int64_t head_dim) {
  using enum kernel::AttentionLibrary;
  constexpr std::int64_t kLargestHead = 256;
  if (impl == "flash_attn2/sglang") return flash3_sm80;
  if (impl.starts_with("trtllm")) return tensorrt;
  if (impl.starts_with("vllm_vit")) return impl.ends_with("fa2") ? flash2_dense : flash3_dense;
  if (impl.starts_with("vllm") && head_dim > kLargestHead) return flash4_512;
  if (impl == "flash_attn2") return flash2_dense;
  return impl == "flash_attn3" ? flash3_first : automatic;
}

bool flag_cell(const CsvTable& table, std::size_t row, const char* column) {
  const auto word = table.text(row, column);
  if (word != "0" && word != "1") {
    throw ConfigError(table.place(row), column, fmt::format("expected 0 or 1, got '{}'", one_line(word)));
  }
  return word == "1";
}

kernel::AttentionKernel kernel_of(const CsvTable& table, std::size_t row, std::string_view phase, DataType type) {
  kernel::AttentionKernel k;
  k.batch = size_cell(table, row, "batch");
  k.heads = size_cell(table, row, "heads");
  k.kv_heads = size_cell(table, row, "kv_heads");
  k.seq_q = size_cell(table, row, "seq_q");
  k.seq_kv = size_cell(table, row, "seq_kv");
  k.head_dim = k.value_dim = size_cell(table, row, "head_dim");
  if (k.kv_heads > k.heads || k.heads % k.kv_heads != 0) {
    throw ConfigError(table.place(row), "kv_heads",
                      fmt::format("expected a divisor of {}, got {}", k.heads, k.kv_heads));
  }
  if (phase == "decode" && k.seq_q != 1) {
    throw ConfigError(table.place(row), "seq_q", fmt::format("expected 1 while decoding, got {}", k.seq_q));
  }
  check_elements(table, row, {k.batch, k.heads, k.seq_q, k.head_dim});
  check_elements(table, row, {k.batch, k.kv_heads, k.seq_kv, k.head_dim});
  k.causal = flag_cell(table, row, "causal");
  // A prompt of one token runs the kernel of decoding.
  k.decode = phase == "decode" || (phase == "prefill" && k.seq_q == 1);
  if (k.decode) k.causal = false;
  k.math = type;
  k.element_bytes = bytes_per_element(type);
  return k;
}

}  // namespace

void read_attention_row(StackReader& reader, std::size_t row) {
  const CsvTable& table = reader.table();
  if (const auto suspect = reader.text(row, "suspect"); suspect == "1")
    return reader.leave_out(kSuspect);
  else if (suspect != "0" && !suspect.empty())
    throw ConfigError(table.place(row), "suspect", fmt::format("expected 0 or 1, got '{}'", one_line(suspect)));
  StackRow out;
  out.op = "attention";
  const auto phase = reader.text(row, "phase");
  if (!is_phase(phase)) {
    throw ConfigError(
        table.place(row), "phase",
        fmt::format("expected prefill, decode, encoder, train_fwd or train_fwd_bwd, got '{}'", one_line(phase)));
  }
  out.mode = out.call = phase;
  out.dtype = one_line(reader.text(row, "dtype"));
  out.family = family_name("attention " + out.mode, out.dtype);
  if (!reader.begin(row, "latency_us", reader.text(row, "source"), out)) return;
  const auto type = parse_data_type(out.dtype);
  if (!type || !is_floating(*type))
    return reader.miss(fmt::format("dtype {} is unknown for attention", out.dtype), out);
  if (reader.text(row, "kernel") == "standard") return reader.miss("unfused attention is not one kernel", out);
  const auto impl = reader.text(row, "impl");
  if (std::find(kStrangers.begin(), kStrangers.end(), impl) != kStrangers.end()) {
    return reader.miss(fmt::format("attention by {} is not modelled", one_line(impl)), out);
  }
  AttentionCall call{kernel_of(table, row, phase, *type), phase == "train_fwd_bwd"};
  kernel::AttentionKernel& k = call.kernel;
  k.library = library_of(impl, k.head_dim);
  // Replays find in L2 what fits: nothing else runs in between.
  k.warm = out.protocol.call.timing == cost::CallTiming::graph_replay;
  call.appends = out.protocol.appends && phase == "prefill" && !k.decode;
  if (k.decode) out.call = "decode";
  if (k.library == kernel::AttentionLibrary::flash4_512) out.call += "_512";
  out.key = fmt::format("attn|{}|{}|{}|{}|{}|{}|{}|{}", phase, k.batch, k.heads, k.kv_heads, k.seq_q, k.seq_kv,
                        k.head_dim, reader.text(row, "causal"));
  out.label = fmt::format("batch {}, {} of {} heads of {}, {} x {}{}", k.batch, k.heads, k.kv_heads, k.head_dim,
                          k.seq_q, k.seq_kv, k.causal ? " causal" : "");
  constexpr double kWithGradient = 3.5;  // five products beside the forward's two
  out.size = 2 * kernel::attention_work(k).mac * (call.with_backward ? kWithGradient : 1);
  out.work = call;
  reader.take(std::move(out));
}

}  // namespace voltaic::validation
