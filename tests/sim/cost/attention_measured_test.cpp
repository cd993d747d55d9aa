// SPDX-License-Identifier: MIT
// Fused attention against measured kernels; without the measured packs these tests only say so.
#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <memory>

#include "arch/loader.hpp"
#include "sim/cost/attention_cost.hpp"
#include "sim/cost/engine.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/measured_pack.hpp"

using namespace voltaic;

namespace {

struct Rows {
  test::Errors prefill, decode;
};

void print(const std::string& what, const test::Errors& e) {
  std::fputs(fmt::format("{:32} {:5} rows  mape {:5.1f}  median {:5.1f}  p90 {:5.1f}  bias {:+5.1f} %\n", what,
                         e.values.size(), 100 * e.mean_absolute(), 100 * e.quantile(0.5), 100 * e.quantile(0.9),
                         100 * e.bias())
                 .c_str(),
             stdout);
}

/// Replayed graphs: the prompt's kernel that writes the cache is in the time, and the cache stays in L2 between
/// replays.
Rows replay(const test::MeasuredTable& table, const std::string& source, const char* name) {
  const auto gpu = arch::resolve_gpu(name);
  const cost::AttentionCost attention(gpu);
  const auto protocol = gpu.calibration.at("single_op.attention");
  Rows out;
  for (const auto& row : table.rows) {
    const auto word = [&](const char* c) { return table.word(row, c); };
    if (word("source") != source || word("suspect") != "0" || word("kernel") != "flash") continue;
    std::string key = "attn";
    for (const char* c : {"phase", "batch", "heads", "kv_heads", "seq_q", "seq_kv", "head_dim", "causal"})
      key += '|' + word(c);
    kernel::AttentionKernel k;
    k.batch = table.integer(row, "batch");
    k.heads = table.integer(row, "heads");
    k.kv_heads = table.integer(row, "kv_heads");
    k.seq_q = table.integer(row, "seq_q");
    k.seq_kv = table.integer(row, "seq_kv");
    k.head_dim = k.value_dim = table.integer(row, "head_dim");
    if (!test::is_report_row(key) || k.head_dim > 256) continue;
    k.math = DataType::bf16;
    const double measured = table.number(row, "latency_us");
    if (word("phase") == "decode") {
      k.decode = true;
      const auto launches = kernel::attention_launches(k, gpu.spec);
      const auto& chosen = std::get<kernel::AttentionKernel>(launches.front().detail);
      out.decode.add(1e6 * (protocol.number("decode_launch_s") + attention.warm_decode_time(chosen).value), measured);
    } else if (word("phase") == "prefill" && k.seq_q > 1) {
      k.causal = word("causal") == "1";
      double time = protocol.number("launch_s");
      for (const auto& launch : kernel::attention_launches(k, gpu.spec)) {
        time += attention(launch, std::get<kernel::AttentionKernel>(launch.detail)).time.value;
      }
      const double tokens = static_cast<double>(k.batch) * static_cast<double>(k.seq_q);
      const double cache = 4 * tokens * static_cast<double>(k.kv_heads) * static_cast<double>(k.head_dim);
      time += protocol.number("append_s_per_byte") * cache + protocol.number("append_s_per_token") * tokens;
      out.prefill.add(1e6 * time, measured);
    }
  }
  print(source + ' ' + name + " prefill", out.prefill);
  print(source + ' ' + name + " decode", out.decode);
  return out;
}

}  // namespace

TEST_CASE("flash attention on A100 comes out as measured, on rows that nothing was fitted on",
          "[cost][attention][measured]") {
  const auto table = test::measured_table("attention/attention_a100_sxm_aic.csv.gz");
  if (!table) {
    WARN("measured pack absent: skipped");
    return;
  }
  const auto rows = replay(*table, "aic-vllm-0.14.0", "a100-sxm4-80gb");
  CHECK(rows.prefill.values.size() > 1000);
  CHECK(rows.prefill.mean_absolute() < 0.09);
  CHECK(rows.decode.values.size() > 1000);
  CHECK(rows.decode.mean_absolute() < 0.07);
}
