// SPDX-License-Identifier: MIT
// A machine with round numbers, for programs worked out by hand.
#pragma once

#include "sim/cycle/machine.hpp"

namespace voltaic::cycle::test {

/// Four sub-partitions, 16 lanes of FP32 each (2 cycles), latency 4; L1 30, L2 200, DRAM 500 cycles; 64 bytes per cycle
/// into an SM, 128 from L2 and 64 from DRAM for the whole GPU.
inline Machine toy_machine() {
  Machine m;
  m.sms = 2;
  const auto set = [&m](Op op, Pipe pipe, double interval, double latency) {
    m.ops[static_cast<std::size_t>(op)] = {pipe, interval, latency};
  };
  set(Op::ffma, Pipe::fma, 2, 4);
  set(Op::hfma2, Pipe::fp16, 2, 4);
  set(Op::dfma, Pipe::fp64, 4, 8);
  set(Op::imad, Pipe::fma, 2, 4);
  set(Op::alu, Pipe::alu, 2, 4);
  set(Op::mufu, Pipe::xu, 8, 20);
  set(Op::convert, Pipe::xu, 8, 20);
  set(Op::mma, Pipe::tensor, 8, 16);
  set(Op::shuffle, Pipe::lsu, 1, 20);
  set(Op::load_shared, Pipe::lsu, 1, 20);
  set(Op::store_shared, Pipe::lsu, 1, 20);
  set(Op::load_matrix, Pipe::lsu, 1, 20);
  for (const Op op : {Op::commit_group, Op::wait_group, Op::barrier, Op::branch, Op::nop, Op::exit}) {
    set(op, Pipe::control, 1, 1);
  }
  m.barrier_latency = 10;
  m.branch_latency = 5;
  m.cta_launch = 0;
  m.shared_latency = 20;
  m.l1_latency = 30;
  m.l1_bytes = 64 * 1024;
  m.l2_bytes_per_cycle = 128;
  m.l2_latency = m.l2_far_latency = 200;
  m.l2_capacity = 1 << 20;
  m.l2_slices = 4;
  m.dram_channels = 4;
  m.dram_bytes_per_cycle = 64;
  m.dram_latency = 500;
  return m;
}

}  // namespace voltaic::cycle::test
