// SPDX-License-Identifier: MIT
// Literals for quantities: 80_GB is 80e9 bytes, 48_KiB is 48 * 2^10.
#pragma once

#include "arch/units/quantity.hpp"

namespace voltaic::literals {

#define VOLTAIC_LITERAL(suffix, type, factor)                \
  constexpr type operator""_##suffix(unsigned long long v) { \
    return {static_cast<double>(v) * (factor)};              \
  }                                                          \
  constexpr type operator""_##suffix(long double v) {        \
    return {static_cast<double>(v) * (factor)};              \
  }

VOLTAIC_LITERAL(B, Bytes, 1.0)
VOLTAIC_LITERAL(KB, Bytes, 1e3)
VOLTAIC_LITERAL(MB, Bytes, 1e6)
VOLTAIC_LITERAL(GB, Bytes, 1e9)
VOLTAIC_LITERAL(KiB, Bytes, 1024.0)
VOLTAIC_LITERAL(MiB, Bytes, 1024.0 * 1024)
VOLTAIC_LITERAL(GiB, Bytes, 1024.0 * 1024 * 1024)
VOLTAIC_LITERAL(s, Seconds, 1.0)
VOLTAIC_LITERAL(ms, Seconds, 1e-3)
VOLTAIC_LITERAL(us, Seconds, 1e-6)
VOLTAIC_LITERAL(ns, Seconds, 1e-9)
VOLTAIC_LITERAL(MHz, Hertz, 1e6)
VOLTAIC_LITERAL(GHz, Hertz, 1e9)
VOLTAIC_LITERAL(GBps, BytesPerSecond, 1e9)
VOLTAIC_LITERAL(cycles, Cycles, 1.0)

#undef VOLTAIC_LITERAL

}  // namespace voltaic::literals
