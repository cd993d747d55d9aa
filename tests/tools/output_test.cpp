// SPDX-License-Identifier: MIT
#include <nlohmann/json.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/program.hpp"

using namespace voltaic::test;

namespace {

/// Lines of `text` that begin with `prefix`.
std::vector<std::string> lines_with(const std::string& text, const std::string& prefix) {
  std::vector<std::string> found;
  std::stringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (line.rfind(prefix, 0) == 0) found.push_back(line);
  }
  return found;
}

void check_schema(const std::string& schema, const std::string& arguments) {
  INFO("voltaic " << arguments);
  const Outcome document = voltaic::test::voltaic(arguments);
  INFO(document.err);
  REQUIRE(document.code == 0);
  const auto json = write_scratch("document.json", document.out);
  const auto rules = write_scratch("schema.json", voltaic::test::voltaic("schema " + schema).out);
  const Outcome verdict =
      shell("python3 tests/support/check_schema.py '" + rules.string() + "' '" + json.string() + "'");
  if (verdict.code == 77) {
    WARN("python3-jsonschema is not installed: schemas are not checked");
    return;
  }
  INFO(verdict.out << verdict.err);
  CHECK(verdict.code == 0);
}

}  // namespace

TEST_CASE("every command's JSON meets its schema", "[commands][schema]") {
  check_schema("predict", "predict bert-large --batch 2 --seq 128 --json");
  check_schema("predict", "predict resnet50 --mode training --batch 16 --gpu v100-sxm2-16gb --json");
  check_schema("predict", "predict op:copy,bytes=1GiB --json");
  check_schema("explain", "explain gpt2-large --seq 128 --json");
  check_schema("explain", "explain op:matmul,m=1024,n=1024,k=1024 --engine cycle --json");
  check_schema("compare", "compare bert-large --engine analytic,cycle --json");
  check_schema("compare", "compare bert-large --gpu v100-sxm2-16gb,a100-sxm4-40gb --json");
  check_schema("compare", "compare bert-large --sparsity none,2:4 --json");
  check_schema("sweep", "sweep resnet50 --batch 1:8:*2 --json");
  check_schema("list", "list gpus --json");
  check_schema("list", "list operations --json");
  check_schema("show-gpu", "show gpu a100-sxm4-40gb --json");
  check_schema("show-workload", "show workload bert-large --json");
  check_schema("support", "support --json");
  check_schema("support", "support bert-large --gpu t4 --json");
  check_schema("validate", "validate --measured tests/golden/e2e_sample.csv --json");
  check_schema("calibrate", "calibrate --measured tests/golden/kernels_sample.csv --gpu v100-pcie-32gb --json");
}

TEST_CASE("the examples of every command's help run as printed", "[commands][help]") {
  for (const auto& help : lines_with(voltaic::test::voltaic("--help").out, "  ")) {
    const std::string name = help.substr(2, help.find(' ', 2) - 2);
    if (name.empty() || name[0] == '-' || voltaic::test::voltaic(name + " --help").code != 0) continue;
    const auto examples = lines_with(voltaic::test::voltaic(name + " --help").out, "  voltaic ");
    INFO(name);
    CHECK(examples.size() == 3);
    for (const auto& example : examples) {
      const Outcome o = shell(example);
      INFO(example << "\n" << o.err);
      CHECK(o.code == 0);
      CHECK_FALSE(o.out.empty());
    }
  }
}

TEST_CASE("the examples of the README run as printed", "[commands][readme]") {
  const auto examples = lines_with(read_file(source_dir() + "/README.md"), "voltaic ");
  CHECK(examples.size() >= 10);
  for (const auto& example : examples) {
    const Outcome o = shell(example);
    INFO(example << "\n" << o.err);
    CHECK(o.code == 0);
  }
}

TEST_CASE("answers are the same bytes for any --jobs and locale", "[commands][determinism]") {
  const std::string sweep = "sweep resnet18 --batch 1:32:*2 --set gpu.sm.count=54,108 --json";
  const std::string one = voltaic::test::voltaic(sweep + " --jobs 1").out;
  CHECK_FALSE(one.empty());
  CHECK(one == voltaic::test::voltaic(sweep + " --jobs 2").out);
  CHECK(one == shell("LC_ALL=de_DE.UTF-8 voltaic " + sweep).out);
  const std::string predict = "predict bert-large --mode training --batch 2 --json";
  CHECK(voltaic::test::voltaic(predict).out == voltaic::test::voltaic(predict).out);
}

TEST_CASE("a closed pipe is no error and an answer in a file is whole", "[commands][output]") {
  CHECK(shell("set -o pipefail; voltaic show workload bert-large | head -1").code == 0);
  const auto path = scratch() / "answer.json";
  CHECK(voltaic::test::voltaic("predict resnet18 --json --output '" + path.string() + "'").code == 0);
  CHECK(nlohmann::json::parse(read_file(path)).contains("result"));
  const Outcome refused = voltaic::test::voltaic("predict resnet18 --json --output /nonexistent/answer.json");
  CHECK(refused.code == 3);
  CHECK(is_one_line(refused.err));
}

TEST_CASE("a trace is a JSON document with GPU and host tracks", "[commands][trace]") {
  const auto path = scratch() / "trace.json";
  CHECK(voltaic::test::voltaic("predict bert-large --seq 64 --trace '" + path.string() + "'").code == 0);
  const auto trace = nlohmann::json::parse(read_file(path));
  const auto& events = trace.is_array() ? trace : trace.at("traceEvents");
  std::size_t complete = 0;
  for (const auto& e : events) {
    if (e.at("ph") != "X") continue;
    ++complete;
    CHECK(e.at("dur").get<double>() >= 0);
  }
  CHECK(complete > 100);
}

TEST_CASE("identities hold in the JSON: parts add up to the whole", "[commands][identities]") {
  const auto result =
      nlohmann::json::parse(voltaic::test::voltaic("predict gpt2-large --mode training --batch 2 --seq 256 --json").out)
          .at("result");
  const auto& t = result.at("time_s");
  CHECK_THAT(t.at("forward").get<double>() + t.at("backward").get<double>() + t.at("optimizer").get<double>(),
             WithinRel(t.at("total").get<double>(), 1e-12));
  double shares = 0;
  for (const auto& [name, value] : result.at("share_of_total").items()) shares += value.get<double>();
  CHECK_THAT(shares, WithinRel(1.0, 1e-9));
  double bounds = 0;
  for (const auto& [name, value] : result.at("bound").items()) bounds += value.get<double>();
  CHECK_THAT(bounds, WithinRel(1.0, 1e-9));
  CHECK_THAT(result.at("throughput").at("samples_per_s").get<double>() * t.at("total").get<double>(),
             WithinRel(2.0, 1e-12));
  CHECK(result.at("flop").get<double>() >= 2 * result.at("mac").get<double>());
}
