// SPDX-License-Identifier: MIT
// Physical quantities: one tag per unit, so that seconds plus bytes does not compile.
#pragma once

#include <compare>

namespace voltaic {

template <class Tag>
struct Quantity {
  double value = 0;

  friend constexpr Quantity operator+(Quantity a, Quantity b) { return {a.value + b.value}; }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return {a.value - b.value}; }
  friend constexpr Quantity operator*(double k, Quantity q) { return {k * q.value}; }
  friend constexpr Quantity operator*(Quantity q, double k) { return {k * q.value}; }
  friend constexpr Quantity operator/(Quantity q, double k) { return {q.value / k}; }
  friend constexpr double operator/(Quantity a, Quantity b) { return a.value / b.value; }
  friend constexpr auto operator<=>(Quantity, Quantity) = default;
  constexpr Quantity& operator+=(Quantity q) {
    value += q.value;
    return *this;
  }
};

using Bytes = Quantity<struct BytesTag>;
using Cycles = Quantity<struct CyclesTag>;
using Seconds = Quantity<struct SecondsTag>;
using Hertz = Quantity<struct HertzTag>;
using Flops = Quantity<struct FlopsTag>;  ///< A count of operations; a multiply-add counts two.
using Watts = Quantity<struct WattsTag>;
using Joules = Quantity<struct JoulesTag>;
using BytesPerSecond = Quantity<struct BytesPerSecondTag>;
using FlopsPerSecond = Quantity<struct FlopsPerSecondTag>;

constexpr Seconds operator/(Bytes b, BytesPerSecond r) {
  return {b.value / r.value};
}
constexpr Seconds operator/(Flops f, FlopsPerSecond r) {
  return {f.value / r.value};
}
constexpr Seconds operator/(Cycles c, Hertz clock) {
  return {c.value / clock.value};
}
constexpr Cycles operator*(Seconds t, Hertz clock) {
  return {t.value * clock.value};
}
constexpr BytesPerSecond operator/(Bytes b, Seconds t) {
  return {b.value / t.value};
}
constexpr Joules operator*(Watts p, Seconds t) {
  return {p.value * t.value};
}
constexpr Watts operator/(Joules e, Seconds t) {
  return {e.value / t.value};
}

}  // namespace voltaic
