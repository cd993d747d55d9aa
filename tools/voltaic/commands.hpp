// SPDX-License-Identifier: MIT
// The commands: each turns a command line into text on its way out and returns the exit code.
#pragma once

#include "tools/voltaic/command_line.hpp"

namespace voltaic::tools {

inline constexpr int kExitOk = 0;
inline constexpr int kExitInternal = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitInput = 3;
inline constexpr int kExitUnsupported = 4;
inline constexpr int kExitGoal = 5;
inline constexpr int kExitValidation = 6;
inline constexpr int kExitInterrupted = 130;

int run_predict(const CommandLine& line);  ///< predict and explain
int run_compare(const CommandLine& line);
int run_sweep(const CommandLine& line);
int run_fit(const CommandLine& line);
int run_list(const CommandLine& line);
int run_show(const CommandLine& line);
int run_support(const CommandLine& line);
int run_schema(const CommandLine& line);
int run_validate(const CommandLine& line);
int run_calibrate(const CommandLine& line);

}  // namespace voltaic::tools
