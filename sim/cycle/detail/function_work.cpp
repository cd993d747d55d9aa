// SPDX-License-Identifier: MIT
// Instructions of pointwise functions as the CUDA math library's single-precision versions compile: polynomials in
// FFMA, exponents and selections in the integer pipe, MUFU for reciprocals, roots and exponentials, and for divisions a
// reciprocal with Newton steps and a check for operands out of range.
#include <algorithm>
#include <array>

#include "sim/cycle/detail/vector.hpp"

namespace voltaic::cycle::detail {
namespace {

struct Named {
  std::string_view name;
  ElementWork work;
};

//                                    ffma alu imad special rounds
constexpr ElementWork kOne{1, 0, 0, 0, 1};
constexpr ElementWork kDivide{6, 3, 0, 1, 1};          // MUFU.RCP, six FFMA, FCHK and a branch around the slow path
constexpr ElementWork kExp{6, 1, 0, 1, 1};             // range reduction, MUFU.EX2, scaling by shifts
constexpr ElementWork kSigmoid{13, 4, 0, 2, 2};        // exp, add, division
constexpr ElementWork kTanh{9, 5, 0, 2, 2};            // polynomial and 1 - 2 / (exp(2x) + 1), selected
constexpr ElementWork kErf{10, 10, 0, 1, 1};           // coefficients of two polynomials selected, MUFU.EX2
constexpr ElementWork kLog{12, 6, 0, 1, 1};            // exponent split off, polynomial of degree nine
constexpr ElementWork kPower{36, 28, 0, 4, 3};         // logarithm and product in two floats, exp2, special cases
constexpr ElementWork kTrigonometric{14, 8, 0, 1, 1};  // reduction by pi/2 in three parts, polynomial, quadrant

constexpr std::array kFunctions{
    Named{"pow", kPower},
    Named{"pow_scalar", kPower},
    Named{"div", kDivide},
    Named{"div_scalar", {1, 1, 0, 0, 1}},  // By a reciprocal computed on the host.
    Named{"reciprocal", {3, 3, 0, 1, 1}},
    Named{"exp", kExp},
    Named{"log", kLog},
    Named{"sqrt", {5, 3, 0, 1, 1}},
    Named{"rsqrt", {1, 3, 0, 1, 1}},
    Named{"tanh", kTanh},
    Named{"sigmoid", kSigmoid},
    Named{"silu", kSigmoid},
    Named{"silu_mul", {14, 4, 0, 2, 2}},
    Named{"erf", kErf},
    Named{"gelu", {13, 10, 0, 1, 1}},
    Named{"gelu_mul", {14, 10, 0, 1, 1}},
    Named{"gelu_tanh", {13, 5, 0, 2, 2}},
    Named{"mish", {28, 12, 0, 4, 4}},
    Named{"softplus", {19, 8, 0, 2, 2}},
    Named{"elu", {10, 4, 0, 1, 1}},
    Named{"sin", kTrigonometric},
    Named{"cos", kTrigonometric},
    Named{"rope", {4, 2, 0, 0, 1}},
    Named{"layer_norm", {3, 1, 0, 0, 1}},
    Named{"hardswish", {4, 0, 0, 0, 1}},
    Named{"hardsigmoid", {3, 0, 0, 0, 1}},
    Named{"softmax", {8, 2, 0, 1, 1}},
    // Philox4x32-10 gives four results in ten rounds of two wide products, and the keys between them.
    Named{"dropout", {3, 8, 10, 1, 1}},
};

constexpr std::array<std::string_view, 16> kSingle{
    "add",  "sub",     "mul",     "add_scalar", "sub_scalar",  "mul_scalar", "neg",     "abs",
    "relu", "maximum", "minimum", "square",     "masked_fill", "where",      "compare", "cast"};

}  // namespace

ElementWork operator+(const ElementWork& a, const ElementWork& b) {
  return {a.ffma + b.ffma, a.alu + b.alu, a.imad + b.imad, a.special + b.special, std::max(a.rounds, b.rounds)};
}

ElementWork operator*(double n, const ElementWork& w) {
  return {n * w.ffma, n * w.alu, n * w.imad, n * w.special, w.rounds};
}

ElementWork function_work(std::string_view function) {
  if (function.empty()) return {};
  const auto* at =
      std::find_if(kFunctions.begin(), kFunctions.end(), [&](const Named& n) { return n.name == function; });
  if (at != kFunctions.end()) return at->work;
  if (std::find(kSingle.begin(), kSingle.end(), function) != kSingle.end()) return kOne;
  return {1, 1, 0, 0, 1};
}

ElementWork function_work(const kernel::VectorKernel& kernel) {
  ElementWork sum = function_work(kernel.function);
  for (const auto function : kernel.fused) sum = sum + function_work(function);
  // A gradient evaluates the function's derivative and multiplies.
  if (kernel.backward && !kernel.function.empty()) sum = sum + ElementWork{2, 0, 0, 0, 1};
  return sum;
}

}  // namespace voltaic::cycle::detail
