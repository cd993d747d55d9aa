// SPDX-License-Identifier: MIT
// What short visits to rows of DRAM cost: a pseudo-channel of HBM2 whose every request opens a row.
#pragma once

namespace voltaic::cycle::detail {

/// Seconds between commands of one pseudo-channel, and how much its controller looks ahead.
struct RowTiming {
  double same_bank = 0;        ///< Between two rows of one bank (tRC).
  double any_bank = 0;         ///< Between two rows of any banks (tRRD).
  double four_rows = 0;        ///< In which four rows may be opened (tFAW).
  double open = 0;             ///< From a row's opening to its first data (tRCD).
  int banks = 16;              ///< 4 groups of 4.
  double queued_bytes = 1024;  ///< Requests that wait in the controller, which takes the first whose bank is free.
};

/// Timing of the published preset nearest to a pin rate in bit/s.
RowTiming row_timing(double pin_rate);

/// Share of `rate` (bytes per second of a pseudo-channel) that is left when visits of `run` bytes each go to a row of
/// their own in any bank: a small simulation of the banks under a full queue.
double row_share(const RowTiming& timing, double rate, double run);

}  // namespace voltaic::cycle::detail
