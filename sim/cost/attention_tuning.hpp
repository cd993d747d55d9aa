// SPDX-License-Identifier: MIT
// Constants of fused attention: calibration attention.LIBRARY.{prompt, decode, backward, append}.
#pragma once

#include "arch/parameter_tree.hpp"

namespace voltaic::cost {

/// A kernel that works through tiles of queries, or of keys going backward.
struct PromptTuning {
  struct Cta {
    double alone = 0.5;  ///< Share of an SM's peak that it reaches alone.
    double wait_s = 0;   ///< Latency before it works.
    double work_s = 0;   ///< Work beside its keys.
  };
  Cta whole, split;                               ///< `split`: of the variant that may split keys.
  double pair_rate = 1;                           ///< Speed of a full SM over that of one CTA alone.
  double wait_ungrouped_s = 0;                    ///< As `whole.wait_s`, one KV head per query head.
  double stream_rows = 0;                         ///< Cost of streaming keys and values, in query rows.
  double softmax_dims = 0;                        ///< Cost of exp, maximum and rescaling, in head dimensions.
  double pad_s = 0;                               ///< Copies of heads that are padded.
  double merge_s = 0, merge_bytes_per_cycle = 0;  ///< Merging fp32 partial results; the rate is per SM, 0: free.
  double bandwidth_share = 0.8;                   ///< Of the DRAM pins.
  double resident_share = 0;  ///< Share of L2 that warm tensors may fill before all come from DRAM; 0: none stays.
  double resident_kv = 1;     ///< How often keys and values count against it.
  double overlap_power = 6, memory_power = 64;
};

struct DecodeTuning {
  struct Cta {
    double wait_s = 0, work_s = 0, key_s = 0;
  };
  Cta whole, split;
  double fixed_s = 0;
  double group_s = 0, transpose_s = 0, transpose_bytes_per_cycle = 0;  ///< The copies around grouped heads.
  double merge_s = 0, merge_per_split_s = 0, merge_bytes_per_cycle = 0;
  double next_key_s = 0;                    ///< Per key of a further tile of a persistent CTA.
  double pair_rate = 1, wave_power = 6;     ///< Two CTAs of one SM, as in prompts.
  double dim_power = 1, cta_dim_power = 0;  ///< Growth of key_s and work_s with head_dim/128.
  double bandwidth_share = 0.8;
  double l2_bytes_per_cycle = 17;  ///< Per SM, for a cache that stayed in L2.
  double resident_from = 0.5,
         resident_to = 1;  ///< Cache over L2: stays whole below the first, leaves above the second.
  double power = 2;
};

/// Writing keys and values to a paged cache: one CTA per token, and the bytes.
struct AppendTuning {
  double round_s = 0;                                         ///< Of one CTA with its threads resident.
  double token_s = 0, token_kv_head_s = 0, token_head_s = 0;  ///< Whole GPU, per token.
  double bandwidth_share = 1;  ///< Of the DRAM pins; above 1 where L2 passes the bytes on.
  double query_share = 0;      ///< Of the bytes of queries and results that pass too.
  double power = 1;
};

/// `clock_ratio`: SM clock of the board the latencies were fitted on over this one's.
PromptTuning read_prompt_tuning(const arch::ParameterTree& tree, double clock_ratio);
DecodeTuning read_decode_tuning(const arch::ParameterTree& tree, double clock_ratio);
AppendTuning read_append_tuning(const arch::ParameterTree& tree, double clock_ratio);

}  // namespace voltaic::cost
