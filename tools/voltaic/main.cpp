// SPDX-License-Identifier: MIT
// voltaic: parse, dispatch, turn errors into one line and an exit code.
#include <fmt/format.h>

#include <clocale>
#include <cstdio>
#include <new>

#include "arch/units/error.hpp"
#include "tools/voltaic/commands.hpp"
#include "tools/voltaic/output.hpp"

namespace {

using namespace voltaic;
using namespace voltaic::tools;

int dispatch(const CommandLine& line) {
  if (line.command == "predict" || line.command == "explain") return run_predict(line);
  if (line.command == "compare") return run_compare(line);
  if (line.command == "sweep") return run_sweep(line);
  if (line.command == "fit") return run_fit(line);
  if (line.command == "list") return run_list(line);
  if (line.command == "show") return run_show(line);
  if (line.command == "support") return run_support(line);
  if (line.command == "schema") return run_schema(line);
  if (line.command == "calibrate") return run_calibrate(line);
  return run_validate(line);
}

int run(int argc, char** argv) {
  try {
    return dispatch(parse_command_line(argc, argv));
  } catch (const HelpWanted& help) {
    write_stdout(help.text);
    return kExitOk;
  }
}

int fail(int code, const char* what) {
  say("voltaic: " + one_line(what, 2000));
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  install_signal_handlers();
  try {
    return run(argc, argv);
  } catch (const UsageError& e) {
    return fail(kExitUsage, e.what());
  } catch (const ConfigError& e) {
    return fail(kExitInput, e.what());
  } catch (const UnsupportedError& e) {
    return fail(kExitUnsupported, e.what());
  } catch (const std::bad_alloc&) {
    return fail(kExitInternal, "out of memory");
  } catch (const std::exception& e) {
    return fail(kExitInternal, fmt::format("internal error: {}", e.what()).c_str());
  }
}
