// SPDX-License-Identifier: MIT
// Bytes of rows that are read or added to by index.
#pragma once

#include "sim/graph/op_graph.hpp"
#include "sim/kernel/launch.hpp"
#include "sim/kernel/lowering.hpp"

namespace voltaic::kernel {

/// `lookups` of rows of `row_bytes` each, out of `rows`; `exponent` as in popularity.hpp.
struct RowAccess {
  double rows = 1;
  double row_bytes = 4;
  double lookups = 1;
  double exponent = 0;
};
struct RowBytes {
  double once = 0;   ///< Distinct rows: what must move.
  double again = 0;  ///< Beyond that: rows met again, and the rest of sectors that were fetched for a part.
  double far = 0;    ///< Part of `again` that comes from DRAM.
  double cold = 0;   ///< Part of `once` that does: rows of a table that L2 cannot hold, other ones each time.
};
/// Half of L2 holds rows; the other half sees results and indices pass, and copies of lines of a far partition.
/// Shorter rows share sectors of 32 bytes, longer ones are fetched in whole sectors.
RowBytes row_bytes(const RowAccess& access, const arch::GpuSpec& gpu);

/// Access to rows of `table` (its first dim) by all entries of `index`.
RowAccess access_of(const graph::Tensor& table, const graph::Tensor& index);

/// Sets the re-reads of a launch that counts `once` in its work.
void set_rereads(Launch& launch, const RowBytes& bytes);

/// A table lookup by index, as ATen's copies of rows: one element per thread at a time.
Launch lookup_launch(std::string name, const graph::Tensor& moved, const RowBytes& rows, double index_bytes,
                     const arch::GpuSpec& gpu, int ctas_per_sm);

// Operations with files of their own, for lower_embedding.cpp and lower_reduction.cpp.
void lower_embedding_bag(const graph::OpGraph& graph, const graph::Node& node, const Target& target, Lowered& out);
void lower_regions(const graph::OpGraph& graph, const graph::Node& node, const Target& target, Lowered& out);
void lower_nms(const graph::OpGraph& graph, const graph::Node& node, const Target& target, Lowered& out);

}  // namespace voltaic::kernel
