// SPDX-License-Identifier: MIT
#include "sim/kernel/experts.hpp"

#include <algorithm>
#include <cmath>

#include "sim/graph/passes.hpp"
#include "sim/kernel/fused.hpp"

namespace voltaic::kernel {

namespace {

using graph::Node;
using graph::OpGraph;
using graph::OpType;

double count(std::int64_t n) {
  return static_cast<double>(n);
}

/// Names of the two Python stacks' kernel, of the int4 one and of the library's.
std::string_view product_name(const std::string& stack) {
  if (stack.find("marlin") != std::string::npos) return "marlin_moe_wna16";
  if (stack.find("cutlass") != std::string::npos) return "cutlass_grouped_gemm";
  return "fused_moe_kernel";
}

std::string_view name_of(const ExpertKernel& k) {
  switch (k.part) {
    case ExpertPart::route: return "moe_align_block_size_kernel";
    case ExpertPart::combine: return "moe_sum_kernel";
    default: return product_name(k.stack);
  }
}

/// The least that must be computed and moved: each touched expert's weights and each row once.
void set_work(const ExpertKernel& k, Launch& launch) {
  const double slots = k.load.slots, hidden = count(k.hidden);
  const double first = count(k.gate_width) * count(k.inner);
  constexpr double kRowBytes = 2;
  switch (k.part) {
    case ExpertPart::route:
      launch.work.read = Bytes{8 * count(k.tokens) * count(k.top_k)};
      launch.work.written = launch.work.read;
      break;
    case ExpertPart::up:
      launch.work.mac = slots * hidden * first;
      launch.work.read = Bytes{k.load.touched * hidden * first * k.weight_bytes + k.load.hit * hidden * kRowBytes};
      launch.work.written = Bytes{slots * first * kRowBytes};
      break;
    case ExpertPart::down:
      launch.work.mac = slots * hidden * count(k.inner);
      launch.work.read =
          Bytes{k.load.touched * hidden * count(k.inner) * k.weight_bytes + slots * count(k.inner) * kRowBytes};
      launch.work.written = Bytes{slots * hidden * kRowBytes};
      break;
    case ExpertPart::combine:
      launch.work.read = Bytes{slots * hidden * kRowBytes};
      launch.work.written = Bytes{k.load.hit * hidden * kRowBytes};
      break;
  }
  launch.work.mac *= k.share;
  launch.work.read = k.share * launch.work.read;
  launch.work.written = k.share * launch.work.written;
}

/// The grid of the library's tiles: 16 x 32 while no expert can have many rows, else 64 x 64.
void set_grid(const ExpertKernel& k, Launch& launch) {
  const bool product = k.part == ExpertPart::up || k.part == ExpertPart::down;
  if (!product) {
    launch.grid[0] = std::max<std::int64_t>(1, k.tokens);
    launch.cta = CtaResources{256, 32, Bytes{0}};
    return;
  }
  const bool narrow = k.tokens <= k.local_experts;
  const double columns = k.part == ExpertPart::up ? count(k.gate_width) * count(k.inner) : count(k.hidden);
  const double blocks = k.share * k.load.blocks[narrow ? 1 : 4] * std::ceil(columns / (narrow ? 32 : 64));
  launch.grid[0] = static_cast<std::int64_t>(std::clamp(blocks, 1.0, 0x1p62));
  launch.cta = CtaResources{128, 128, Bytes{narrow ? 16384.0 : 32768.0}};
}

Launch launch_of(ExpertKernel k, ExpertPart part, DataType math) {
  k.part = part;
  Launch launch;
  launch.name = name_of(k);
  launch.library = k.stack.find("cutlass") != std::string::npos ? "CUTLASS" : "Triton";
  launch.family = "experts";
  launch.math = math;
  launch.tensor_cores = part == ExpertPart::up || part == ExpertPart::down;
  set_work(k, launch);
  set_grid(k, launch);
  launch.detail = std::move(k);
  return launch;
}

ExpertKernel kernel_of(const ExpertBlock& block) {
  ExpertKernel k;
  k.stack = block.stack;
  k.tokens = block.tokens.tokens;
  k.hidden = block.hidden;
  k.inner = block.inner;
  k.top_k = block.tokens.top_k;
  k.local_experts = std::max<std::int64_t>(1, block.tokens.experts / std::max<std::int64_t>(1, block.tokens.gpus));
  k.gathered = block.tokens.routing == Routing::power_law;
  k.weight_bytes = block.weight_bytes;
  k.load = route(block.tokens);
  return k;
}

/// The int4 and int8 kernels are the same stack's; two-byte ones are the engine's own or Triton's.
std::string stack_of(const Target& target, bool dequantises) {
  if (dequantises) return "sglang_marlin";
  return target.framework == Framework::tensorrt ? "trtllm_cutlass" : "vllm_triton";
}

bool lower_product(const OpGraph& graph, const Node& node, const Target& target, ExpertBlock block, Lowered& out) {
  const graph::Tensor& x = graph.tensor(node.inputs[0]);
  const graph::Tensor& w = graph.tensor(node.inputs[1]);
  if (x.shape.size() != 3 || w.shape.size() != 3 || node.attributes.flag("transposed_weight") || w.sparse) return false;
  const bool dequantises = is_floating(node.compute) && !is_floating(w.dtype);
  block.math = node.compute;
  block.weight_bytes = bytes_per_element(w.dtype);
  if (dequantises) block.weight_bytes += 2.0 / static_cast<double>(graph::scale_group(w.dtype, x.shape[2]));
  block.stack = stack_of(target, dequantises);
  out.host = HostClass::matmul;
  // Gate and up are the two halves of one kernel; down reads what came of them.
  const std::int64_t halves = node.attributes.integer("side_by_side", 1);
  const bool up = halves > 1;
  block.hidden = up ? x.shape[2] : w.shape[1];
  block.inner = up ? w.shape[1] : x.shape[2];
  ExpertKernel k = kernel_of(block);
  k.gate_width = std::clamp<std::int64_t>(halves, 1, 2);
  k.share = 1 / count(k.gate_width);
  out.launches = {launch_of(std::move(k), up ? ExpertPart::up : ExpertPart::down, block.math)};
  return true;
}

}  // namespace

std::vector<Launch> expert_launches(const ExpertBlock& block) {
  const ExpertKernel k = kernel_of(block);
  std::vector<Launch> out;
  for (const ExpertPart part : {ExpertPart::route, ExpertPart::up, ExpertPart::down, ExpertPart::combine}) {
    out.push_back(launch_of(k, part, block.math));
  }
  return out;
}

bool lower_experts(const OpGraph& graph, const Node& node, const Target& target, Lowered& out) {
  const std::int64_t experts = node.attributes.integer("total_experts", 0);
  const std::int64_t top_k = node.attributes.integer("top_k", 0);
  const std::int64_t slots = node.attributes.integer("rows", 0);
  if (!generates_kernels(target.framework) || experts < 1 || top_k < 1 || slots < top_k || node.outputs.empty() ||
      node.inputs.empty()) {
    return false;
  }
  const DataType math = node.op == OpType::grouped_linear ? node.compute : graph.tensor(node.inputs.front()).dtype;
  if (bytes_per_element(math) != 2 || !target.gpu.has_tensor_path(math)) return false;
  ExpertBlock block;
  block.tokens = {slots / top_k, top_k, experts, 1, Routing::uniform, 1, Leftover::largest};
  block.math = math;
  block.stack = stack_of(target, false);
  if (node.op == OpType::grouped_linear) return lower_product(graph, node, target, std::move(block), out);
  const bool combines = node.op == OpType::moe_combine;
  block.hidden = graph.tensor(node.outputs.front()).shape.back();
  ExpertKernel k = kernel_of(block);
  k.with_activation = false;
  out.launches = {launch_of(std::move(k), combines ? ExpertPart::combine : ExpertPart::route, math)};
  return true;
}

}  // namespace voltaic::kernel
