// SPDX-License-Identifier: MIT
#include "sim/cost/conv_tuning.hpp"

namespace voltaic::cost {

ConvTuning read_conv_tuning(const arch::ParameterTree& section, const std::string& pass) {
  const auto tree = section.at(pass);
  ConvTuning t;
  const auto sizes = tree.numbers("tiles");
  for (std::size_t i = 0; i + 1 < sizes.size(); i += 2) {
    t.tiles.push_back({static_cast<int>(sizes[i]), static_cast<int>(sizes[i + 1])});
  }
  t.efficiency = tree.number("eff");
  t.tile_power = tree.number_or("g", 0);
  t.l2_share = tree.number_or("l2_share", 0);
  t.prologue = tree.number("a_cycles");
  t.fill = tree.number("l");
  t.traffic = tree.number("f_bytes");
  t.layout = tree.number_or("f_layout", 0);
  t.channel_bytes = tree.number_or("channel_bytes", 16);
  t.splits = tree.has("reduce_s");
  t.reduce_s = tree.number_or("reduce_s", 0);
  t.reduce_traffic = tree.number_or("f_reduce", 0);
  t.stride = tree.number_or("f_stride", 1);
  t.stride_1x1 = tree.number_or("f_stride_1x1", 1);
  t.scatter = tree.number_or("f_scatter", 0);
  t.fused = tree.number_or("eff_fused", 0);
  t.fused_traffic = tree.number_or("f_fused_bytes", 1);
  t.nonfused = tree.number_or("eff_nonfused", 0);
  t.transform = tree.number_or("f_transform", 1);
  t.filter_transform = tree.number_or("f_filter", 0);
  t.filter_transform_5x5 = tree.number_or("f_filter_5x5", t.filter_transform);
  t.nonfused_bias = tree.number_or("nonfused_bias", 1);
  t.gap_s = tree.number_or("gap_s", 0);
  t.fft = tree.number_or("eff_fft", 0);
  t.fft_transform = tree.number_or("f_fft", 1);
  return t;
}

}  // namespace voltaic::cost
