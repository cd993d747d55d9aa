// SPDX-License-Identifier: MIT
#include "sim/cost/conv_law.hpp"

namespace voltaic::cost {

ConvMachine conv_machine(const arch::GpuSpec& gpu, DataType math, bool tensor_cores) {
  ConvMachine m;
  m.sms = static_cast<double>(std::max<std::int64_t>(1, gpu.sm.count));
  m.clock = gpu.clocks.boost.value;
  m.dram = gpu.dram.peak_bandwidth.value * gpu.dram.stream_efficiency;
  m.l2 = gpu.l2.capacity.value;
  m.l2_rate = gpu.l2.bytes_per_cycle_per_sm;
  m.fp32_lanes = gpu.sm.fp32_lanes;
  const double peak = (tensor_cores ? gpu.tensor_peak(math) : gpu.cuda_core_peak(math)).value;
  m.lanes = peak / (2 * m.sms * m.clock);
  if (!(m.lanes > 0)) m.lanes = m.fp32_lanes;
  return m;
}

ConvTime wave_time(const TileWaves& w, double bytes, const ConvMachine& m) {
  const double per_sm = w.ctas / m.sms;
  const double whole = std::ceil(per_sm);
  const double mean = (1 - w.even) * whole + w.even * std::max(per_sm, 1.0);
  const double k = std::ceil(w.k / w.k_step) * w.k_step;
  const double multiply = w.tile / (m.lanes * w.efficiency);
  const double loop = overlap8(multiply, w.fetch) * k;
  const double cycles = mean * (w.prologue + loop) + std::max(0.0, w.fill - whole) * loop;
  ConvTime t;
  t.ctas = w.ctas;
  t.math = per_sm * multiply * k / m.clock;
  t.dram_bytes = bytes;
  t.time = overlap4(cycles / m.clock, bytes / m.dram);
  return t;
}

}  // namespace voltaic::cost
