// SPDX-License-Identifier: MIT
// From one operation of the graph to the kernels that a library would launch for it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "arch/spec.hpp"
#include "sim/graph/op_graph.hpp"
#include "sim/kernel/launch.hpp"

namespace voltaic::kernel {

/// How a framework dispatches: one launch per operation from Python, a recorded graph, a compiler, an inference engine,
/// a compiler whose kernels are recorded as a graph, a compiler that fuses pointwise chains alone.
enum class Framework : std::uint8_t { eager, graph, compiled, tensorrt, compiled_graph, xla };
std::string_view to_string(Framework framework);
std::optional<Framework> parse_framework(std::string_view name);

/// The library's choice of kernel, made by a rule that needs times; engines above this folder implement it.
class LibraryChoice {
 public:
  virtual ~LibraryChoice() = default;
  virtual GemmTile choose(const GemmProblem& problem) const = 0;
  virtual ConvKernel choose(const ConvProblem& problem) const = 0;
};

/// Host work by kind of operation; calibration gives seconds for each (calibration path host.dispatch_s.NAME).
enum class HostClass : std::uint8_t {
  view,
  pointwise,
  pointwise_scalar,
  activation,
  softmax,
  norm,
  linear,
  matmul,
  conv,
  other
};
inline constexpr std::size_t kHostClasses = 10;
std::string_view to_string(HostClass c);

/// All that one node costs, before time.
struct Lowered {
  std::vector<Launch> launches;
  HostClass host = HostClass::other;
  double host_calls = 1;          ///< Framework calls of this class (0: the node vanished into another).
  std::string unmodelled_reason;  ///< Not empty: the operation is named in `unmodelled[]` and has no time.
  Bytes unmodelled_bytes;         ///< Bytes the unmodelled operation would at least move.
};

struct Target {
  const arch::GpuSpec& gpu;
  const LibraryChoice& library;
  Framework framework = Framework::eager;
  bool sparse_weights = true;  ///< false: multiply weights that are stored 2:4 sparse as if they were dense.
};

/// Lowers one node. Throws UnsupportedError when the GPU lacks what the node's compute type needs, naming what it has.
Lowered lower(const graph::OpGraph& graph, const graph::Node& node, const Target& target);

/// The per-family rules behind lower(), one file each (lower_matrix.cpp, lower_pointwise.cpp, ...).
Lowered lower_matrix(const graph::OpGraph& graph, const graph::Node& node, const Target& target);
Lowered lower_convolution(const graph::OpGraph& graph, const graph::Node& node, const Target& target);
Lowered lower_attention(const graph::OpGraph& graph, const graph::Node& node, const Target& target);
Lowered lower_recurrent(const graph::OpGraph& graph, const graph::Node& node, const Target& target);
Lowered lower_normalization(const graph::OpGraph& graph, const graph::Node& node, const Target& target);
Lowered lower_pointwise(const graph::OpGraph& graph, const graph::Node& node, const Target& target);
Lowered lower_softmax(const graph::OpGraph& graph, const graph::Node& node, const Target& target);
Lowered lower_reduction(const graph::OpGraph& graph, const graph::Node& node, const Target& target);
Lowered lower_pooling(const graph::OpGraph& graph, const graph::Node& node, const Target& target);
Lowered lower_embedding(const graph::OpGraph& graph, const graph::Node& node, const Target& target);
Lowered lower_sparse(const graph::OpGraph& graph, const graph::Node& node, const Target& target);
Lowered lower_data_movement(const graph::OpGraph& graph, const graph::Node& node, const Target& target);
Lowered lower_loss(const graph::OpGraph& graph, const graph::Node& node, const Target& target);
Lowered lower_optimizer(const graph::OpGraph& graph, const graph::Node& node, const Target& target);

/// The launches of one matrix product with its chosen tile (the product, and a reduction kernel when k is split).
std::vector<Launch> gemm_launches(const GemmProblem& problem, const GemmTile& tile, const arch::GpuSpec& gpu);
/// The launch of one convolution with its chosen algorithm. Non-fused Winograd and FFT count their transforms in one
/// launch record.
std::vector<Launch> conv_launches(const ConvKernel& kernel, const arch::GpuSpec& gpu);

}  // namespace voltaic::kernel
