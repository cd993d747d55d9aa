// SPDX-License-Identifier: MIT
// Layers that many networks share. Images are [N, C, spatial] of one to three spatial dims; the rank of the input says
// which operation is meant.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "workloads/builder.hpp"
#include "workloads/graph_writer.hpp"

namespace voltaic::workloads {

inline constexpr Dim kSamePadding = -1;  ///< dilation * (kernel - 1) / 2 on each side.

struct ConvLayer {
  Dim stride = 1;
  Dim padding = kSamePadding;
  Dim dilation = 1;
  Dim groups = 1;
  bool bias = false;
};
/// Convolution without bias unless asked, size kept at stride 1. A kernel size per spatial dim, or one for all.
TensorId conv(GraphWriter& w, const std::string& name, TensorId x, Dim out, Dim kernel, ConvLayer layer = {});
TensorId conv(GraphWriter& w, const std::string& name, TensorId x, Dim out, const Shape& kernel, ConvLayer layer = {});

struct TransposedLayer {
  Dim stride = 1;
  Dim padding = 0;
  Dim output_padding = 0;
  bool bias = false;
};
TensorId conv_transpose(GraphWriter& w, const std::string& name, TensorId x, Dim out, Dim kernel,
                        TransposedLayer layer = {});

/// With statistics of the batch in training, with known ones in inference.
TensorId batch_norm(GraphWriter& w, const std::string& name, TensorId x);
TensorId group_norm(GraphWriter& w, const std::string& name, TensorId x, Dim groups);
/// Over each map of each sample, in inference too: a batch norm of [1, N * C, spatial] with repeated parameters [ATEN].
TensorId instance_norm(GraphWriter& w, const std::string& name, TensorId x);

struct PoolLayer {
  Dim stride = 0;  ///< 0: the kernel.
  Dim padding = 0;
  bool ceil_mode = false;
};
TensorId max_pool(GraphWriter& w, const std::string& name, TensorId x, Dim kernel, PoolLayer layer = {});
TensorId avg_pool(GraphWriter& w, const std::string& name, TensorId x, Dim kernel, PoolLayer layer = {});
/// Mean over all spatial dims, [N, C, 1...].
TensorId global_pool(GraphWriter& w, const std::string& name, TensorId x);

TensorId concat(GraphWriter& w, const std::string& name, const std::vector<TensorId>& parts, Dim axis = 1);
TensorId upsample(GraphWriter& w, const std::string& name, TensorId x, double scale, const std::string& mode);

/// Squeeze and excitation: a gate per channel from the mean over space, through `squeezed` channels.
TensorId squeeze_excite(GraphWriter& w, const std::string& name, TensorId x, Dim squeezed, OpType inner, OpType gate);

/// Closes a classifier: in training the cross entropy of logits [N, classes] against labels becomes the loss.
void classify(GraphWriter& w, Workload& workload, TensorId logits);

}  // namespace voltaic::workloads
