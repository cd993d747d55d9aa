// SPDX-License-Identifier: MIT
#include "sim/cycle/counters.hpp"

#include <numeric>

namespace voltaic::cycle {
namespace {

constexpr std::array<std::string_view, kStalls> kStallNames{
    "selected",         "wait",         "long_scoreboard",    "short_scoreboard", "barrier",
    "lg_throttle",      "mio_throttle", "math_pipe_throttle", "dispatch_stall",   "no_instruction",
    "branch_resolving", "drain",        "not_selected"};
constexpr std::array<std::string_view, kPipes> kPipeNames{"fma", "alu",    "fp16", "fp64",
                                                          "xu",  "tensor", "lsu",  "control"};

}  // namespace

std::string_view to_string(Stall stall) {
  return kStallNames[static_cast<std::size_t>(stall)];
}
std::string_view to_string(Pipe pipe) {
  return kPipeNames[static_cast<std::size_t>(pipe)];
}

double Counters::instructions() const {
  return std::accumulate(issued.begin(), issued.end(), 0.0);
}

}  // namespace voltaic::cycle
