// SPDX-License-Identifier: MIT
// What the commands say of themselves.
#pragma once

#include <array>
#include <string_view>
#include <utility>

namespace voltaic::tools {

inline constexpr std::string_view kProgramSummary =
    "How long a network takes on a GPU, why, and whether it fits; without the GPU.";

struct CommandHelp {
  std::string_view name;
  std::string_view summary;
  std::array<std::string_view, 3> examples;  ///< They run as printed; tests run them.
  std::string_view positional;
  std::string_view positional_help;
  unsigned positional_max = 1;
};

inline constexpr std::array<CommandHelp, 11> kCommands{{
    {"predict",
     "Time of one step or request, where it goes, memory, cost.",
     {"voltaic predict bert-large --gpu a100-sxm4-40gb --batch 8 --seq 512",
      "voltaic predict resnet50 --mode training --batch 64 --gpu v100-sxm2-16gb --json",
      "voltaic predict llama-3.1-8b --generate 128 --seq 1024 --precision bf16 --framework compiled-graph"},
     "WORKLOAD",
     "zoo name, graph file, config.json, op:NAME,key=value,... or -"},
    {"explain",
     "Every layer and kernel with its bound, and what would help most.",
     {"voltaic explain bert-large --gpu v100-pcie-32gb --precision fp32 --batch 2",
      "voltaic explain op:matmul,m=4096,n=4096,k=4096 --precision tf32", "voltaic explain resnet50 --batch 32 --json"},
     "WORKLOAD",
     "zoo name, graph file, config.json, op:NAME,key=value,... or -"},
    {"compare",
     "GPUs, precisions or other options side by side, with reasons. Give one option several values.",
     {"voltaic compare bert-large --gpu v100-sxm2-16gb,a100-sxm4-40gb --batch 8",
      "voltaic compare resnet50 --precision fp32,tf32,fp16 --batch 64",
      "voltaic compare gpt2-large --framework eager,graph --batch 1"},
     "WORKLOAD",
     "zoo name, graph file, config.json, op:NAME,key=value,... or -"},
    {"sweep",
     "One prediction per point of a grid. Lists 1,2,4 and ranges 1:64:*2 or 1:65:8 in any option.",
     {"voltaic sweep resnet50 --batch 1:256:*2",
      "voltaic sweep bert-large --batch 8,16 --set gpu.sm.count=54,108 --csv",
      "voltaic sweep op:matmul,m=4096,n=4096,k=4096 --set gpu.dram.peak_bandwidth*=0.5,1,2 --jsonl"},
     "WORKLOAD",
     "zoo name, graph file, config.json, op:NAME,key=value,... or -"},
    {"fit",
     "Does it fit in device memory, the largest batch and sequence that do, and what would make it fit.",
     {"voltaic fit llama-3.1-8b --gpu a100-sxm4-80gb --seq 4096 --phase prefill",
      "voltaic fit bert-large --mode training --batch 16 --seq 512 --gpu a100-sxm4-40gb",
      "voltaic fit resnet50 --mode training --batch 256 --gpu v100-sxm2-16gb --json"},
     "WORKLOAD",
     "zoo name, graph file, config.json, op:NAME,key=value,... or -"},
    {"list",
     "What there is: gpus, workloads, operations, options.",
     {"voltaic list gpus", "voltaic list workloads", "voltaic list operations --json"},
     "WHAT",
     "gpus, workloads, operations or options"},
    {"show",
     "One GPU or one workload in full.",
     {"voltaic show gpu a100-sxm4-40gb", "voltaic show workload bert-large --batch 8 --seq 128",
      "voltaic show gpu v100-sxm2-16gb --json"},
     "WHAT NAME",
     "gpu NAME, or workload NAME",
     2},
    {"support",
     "Is a workload, an operation, a GPU or a precision covered, and how sure is the number.",
     {"voltaic support", "voltaic support bert-large --gpu h100-sxm5-80gb --precision bf16", "voltaic support --json"},
     "WORKLOAD",
     "zoo name, graph file, config.json or op:..."},
    {"schema",
     "JSON Schema of a command's output.",
     {"voltaic schema predict", "voltaic schema sweep", "voltaic schema"},
     "COMMAND",
     "command whose schema to print; without it, the list"},
    {"validate",
     "Predictions held against tables of measurements.",
     {"voltaic validate --help", "voltaic validate --measured tests/golden/e2e_sample.csv",
      "voltaic validate --measured tests/golden/e2e_sample.csv --json"},
     "UNUSED",
     "",
     0},
    {"calibrate",
     "The model's named parameters fitted to measured kernels, yours or those that ship: single operations, tables of "
     "stacks.",
     {"voltaic calibrate --help",
      "voltaic calibrate --measured tests/golden/kernels_sample.csv --gpu v100-pcie-32gb --out -",
      "voltaic calibrate --measured tests/golden/kernels_sample.csv --gpu v100-pcie-32gb --json"},
     "UNUSED",
     "",
     0},
}};

/// Commands of the design that are still to come.
inline constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kFutureCommands{{
    {"scale", "several GPUs"},
    {"plan", "how many GPUs and which parallelism"},
    {"serve", "request streams"},
    {"import", "profiles and foreign formats"},
}};

}  // namespace voltaic::tools
