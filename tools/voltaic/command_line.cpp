// SPDX-License-Identifier: MIT
#include "tools/voltaic/command_line.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <map>
#include <set>

#include "arch/units/error.hpp"
#include "sim/study/value_list.hpp"
#include "tools/voltaic/help.hpp"

namespace voltaic::tools {
namespace {

/// Holds what CLI11 fills, by option name.
using Texts = std::map<std::string, std::vector<std::string>>;

void add_request_options(CLI::App& command, Texts& texts) {
  for (const auto& option : request_options()) {
    auto* added =
        command.add_option("--" + std::string(option.name), texts[std::string(option.name)], std::string(option.help));
    added->option_text(std::string(option.metavar))->expected(1)->group("Request");
    added->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)->allow_extra_args(false);
  }
}

void add_output_options(CLI::App& command, CommandLine& line, bool tables) {
  command.add_flag("--json", line.json, "JSON on standard output")->group("Output");
  if (tables) {
    command.add_flag("--csv", line.csv, "CSV on standard output")->group("Output");
  }
  command.add_option("--output", line.output, "file for the answer instead of standard output")
      ->option_text("FILE")
      ->group("Output");
  command.add_flag("--quiet", line.quiet, "no progress, no warnings on standard error")->group("Output");
  command.add_flag("--no-color", line.no_color, "no colour")->group("Output");
}

void add_calibrate_options(CLI::App& command, CommandLine& line) {
  command.add_option("--measured", line.measured, "tables of single operations and of serving stacks")
      ->option_text("FILE...");
  command.add_option("--gpu", line.gpu, "boards of one architecture or their files, the reference first")
      ->option_text("NAME|FILE,...");
  command.add_flag("--alone", line.alone, "the file replaces the fit that ships instead of completing it");
  command.add_option("--only", line.only, "intervals: fit no value, write how far predictions lie off")
      ->option_text("intervals");
  command.add_option("--out", line.out, "calibration file to write; - is standard output")->option_text("FILE");
  command.add_option("--source", line.source, "what the measurements are, for the file")->option_text("TEXT");
  command.add_option("--date", line.date, "date that stands in the file (default: today)")->option_text("YYYY-MM-DD");
  command
      .add_option("--below-percentile", line.below_percentile,
                  "leave out rows larger than this percentile of their operation's sizes")
      ->option_text("P")
      ->check(CLI::Range(1.0, 100.0));
  command.add_option("--jobs", line.jobs, "threads; results do not depend on it")
      ->option_text("N")
      ->check(CLI::Range(1, 1024));
}

void add_validate_engine(CLI::App& command, CommandLine& line) {
  command.add_option("--engine", line.engine, "roofline, analytic or cycle: what prices kernels and networks")
      ->option_text("analytic");
  command.add_option("--sample", line.sample, "cycle engine: steady or full")->option_text("steady");
  command.add_option("--l2", line.l2, "cycle engine: footprint or tags")->option_text("footprint");
  command.add_option("--rows", line.rows, "at most N rows of each GPU, operation and type, drawn at random")
      ->option_text("N")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40));
  command.add_option("--seed", line.seed, "of that draw")->option_text("S");
}

void check_not_built(const std::string& word) {
  for (const auto& [name, what] : kFutureCommands) {
    if (word == name) throw UnsupportedError(fmt::format("voltaic {} ({}) is not built yet", name, what));
  }
}

std::string describe(const CommandHelp& help) {
  std::string text = "Examples:\n";
  for (const auto example : help.examples) text += fmt::format("  {}\n", example);
  return text + "\n" + std::string(help.summary);
}

}  // namespace

CommandLine parse_command_line(int argc, char** argv) {
  CommandLine line;
  Texts texts;
  CLI::App app{std::string(kProgramSummary), "voltaic"};
  app.set_version_flag("--version", std::string("voltaic ") + VOLTAIC_VERSION);
  app.require_subcommand(1);
  app.footer("`voltaic COMMAND --help` shows examples and options of a command.");
  app.option_defaults()->always_capture_default(false);
  if (argc > 1) check_not_built(argv[1]);

  for (const auto& help : kCommands) {
    const std::string name(help.name);
    auto* command = app.add_subcommand(name, describe(help));
    command->fallthrough(false);
    const bool request =
        name == "predict" || name == "explain" || name == "compare" || name == "sweep" || name == "fit";
    const bool sizes = request || name == "show" || name == "support";
    if (help.positional_max > 0) {
      command->add_option(std::string(help.positional), line.positional, std::string(help.positional_help))
          ->expected(0, static_cast<int>(help.positional_max));
    }
    if (sizes) add_request_options(*command, texts);
    add_output_options(*command, line, request || name == "validate" || name == "show");
    if (name == "predict" || name == "explain") {
      command->add_option("--trace", line.trace, "Chrome/Perfetto trace of the step")
          ->option_text("FILE")
          ->group("Output");
      command->add_option("--report", line.report, "HTML page (not built yet)")->option_text("FILE")->group("Output");
      command->add_option("--fail-if", line.fail_if, "exit 5 when a result meets this, like time_s.total>0.1")
          ->option_text("KEY>VALUE")
          ->group("Output");
    }
    if (name == "explain") {
      command->add_option("--kernel", line.kernel, "only the layer or node with this id")->option_text("ID");
      command
          ->add_option("--trace-cycles", line.trace_cycles,
                       "cycle engine: --trace shows the warps of one SM in these cycles")
          ->option_text("FROM:TO")
          ->group("Output");
    }
    if (name == "predict" || name == "explain" || name == "compare" || name == "sweep") {
      command->add_option("--jobs", line.jobs, "threads; results do not depend on it")
          ->option_text("N")
          ->check(CLI::Range(1, 1024));
    }
    if (name == "sweep") {
      command->add_flag("--jsonl", line.json_lines, "one JSON object per line")->group("Output");
    }
    if (name == "validate") {
      command->add_option("--measured", line.measured, "tables of measurements")->option_text("FILE...");
      command->add_option("--split", line.split, "fit, report or all rows")->option_text("all");
      command->add_option("--fail-above", line.fail_above, "exit 6 when a group's mean error is above this fraction")
          ->option_text("X");
      command->add_option("--jobs", line.jobs, "threads")->option_text("N")->check(CLI::Range(1, 1024));
      command->add_option("--gpu", line.gpu, "only rows of these boards; a file describes the rows of its name")
          ->option_text("NAME|FILE,...");
      command->add_option("--op", line.op, "only rows of these operations")->option_text("NAME,...");
      command->add_option("--calibration", line.calibration, "fitted values of your own, laid over those that ship")
          ->option_text("FILE");
      command->add_option("--report", line.report, "HTML page with plots")->option_text("FILE")->group("Output");
      add_validate_engine(*command, line);
    }
    if (name == "calibrate") add_calibrate_options(*command, line);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    throw HelpWanted{app.help("", CLI::AppFormatMode::Normal)};
  } catch (const CLI::CallForAllHelp&) {
    throw HelpWanted{app.help("", CLI::AppFormatMode::All)};
  } catch (const CLI::CallForVersion& e) {
    throw HelpWanted{std::string(e.what()) + "\n"};
  } catch (const CLI::ParseError& e) {
    std::string what = one_line(e.what(), 300);
    if (argc > 1) {
      std::vector<std::string> names;
      names.reserve(kCommands.size());
      for (const auto& help : kCommands) names.emplace_back(help.name);
      const bool known = std::find(names.begin(), names.end(), argv[1]) != names.end();
      const std::string near = nearest(argv[1], names);
      if (!known && argv[1][0] != '-')
        what = fmt::format("no command '{}'{}", one_line(argv[1]), near.empty() ? "" : ", did you mean " + near + "?");
    }
    throw UsageError(what);
  }
  line.command = app.get_subcommands().front()->get_name();
  if (line.json + line.csv + line.json_lines > 1) throw UsageError("--json, --csv and --jsonl: expected one of them");
  if (line.output.empty()) throw UsageError("--output: expected a file or -, got an empty name");
  for (const auto& option : request_options()) {
    const auto& typed = texts[std::string(option.name)];
    if (typed.size() > 1 && !option.repeatable)
      throw UsageError(fmt::format("--{}: given {} times", option.name, typed.size()));
    std::set<std::string> paths;
    for (const auto& text : typed) {
      const std::string path = text.substr(0, text.find('='));
      if (!paths.insert(path).second)
        throw UsageError(fmt::format("--{} {}: given twice", option.name, one_line(path)));
      line.options.emplace_back(option.name, text);
    }
  }
  return line;
}

std::pair<Request, std::vector<study::Axis>> request_and_axes(const CommandLine& line) {
  Request request;
  if (line.positional.empty())
    throw UsageError(fmt::format("{}: expected a workload: a zoo name, a file, op:... or -", line.command));
  request.workload = line.positional.front();
  std::vector<study::Axis> axes;
  for (const auto& [name, text] : line.options) {
    const study::Axis axis = study::parse_axis(name, text);
    if (axis.values.size() == 1) {
      set_option(request, name, axis.values.front());
    } else {
      axes.push_back(axis);
    }
  }
  return {std::move(request), std::move(axes)};
}

Request single_request(const CommandLine& line) {
  auto [request, axes] = request_and_axes(line);
  if (!axes.empty()) {
    throw UsageError(fmt::format("{}: --{} has several values; `voltaic sweep` and `voltaic compare` take them",
                                 line.command, axes.front().option));
  }
  return request;
}

}  // namespace voltaic::tools
