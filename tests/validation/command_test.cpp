// SPDX-License-Identifier: MIT
// `voltaic validate` as a user runs it.
#include <string>

#include "tests/support/catch.hpp"
#include "tests/support/program.hpp"

using namespace voltaic::test;

namespace {

constexpr const char* kTable =
    "op,origin,gpu,b,m,n,k,dtype,latency_us\n"
    "linear,test,V100-PCIE-32GB,1,512,1024,1024,fp32,110\nbmm,train,A100-PCIE-40GB,96,128,128,64,fp32,60\n"
    "bmm,fp16mm,H100-SXM5-80GB,128,256,256,256,fp16,36.4\nlinear,test,MI250,1,8,8,8,fp32,40\n";

std::string kernels() {
  return "validate --measured " + write_scratch("kernels.csv", kTable).string();
}

void check_refusal(const std::string& arguments, int code, const std::string& word) {
  const Outcome o = voltaic::test::voltaic(arguments);
  INFO(arguments << "\n" << o.err);
  CHECK(o.code == code);
  CHECK(o.out.empty());
  CHECK(is_one_line(o.err));
  CHECK(o.err.find(word) != std::string::npos);
}

}  // namespace

TEST_CASE("validate's JSON meets its schema with kernels, networks and warnings", "[validation][command]") {
  const Outcome document = voltaic::test::voltaic(kernels() + " tests/golden/e2e_sample.csv --json");
  REQUIRE(document.code == 0);
  CHECK(document.out.find("\"pooled\"") != std::string::npos);
  CHECK(document.out.find("GPU MI250 is unknown") != std::string::npos);
  const auto json = write_scratch("document.json", document.out);
  const auto rules = write_scratch("schema.json", voltaic::test::voltaic("schema validate").out);
  const Outcome verdict =
      shell("python3 tests/support/check_schema.py '" + rules.string() + "' '" + json.string() + "'");
  if (verdict.code == 77) {
    WARN("python3-jsonschema is not installed: schemas are not checked");
    return;
  }
  INFO(verdict.out);
  CHECK(verdict.code == 0);
}

TEST_CASE("validate gives the same bytes on one thread and on two", "[validation][command]") {
  for (const char* form : {"", " --json", " --csv", " --report -"}) {
    INFO(form);
    const std::string rest = std::string(form) == " --report -" ? " --output /dev/null --report -" : form;
    const Outcome one = voltaic::test::voltaic(kernels() + rest + " --jobs 1");
    const Outcome two = voltaic::test::voltaic(kernels() + rest + " --jobs 2");
    CHECK(one.code == 0);
    CHECK_FALSE(one.out.empty());
    CHECK(one.out == two.out);
  }
}

TEST_CASE("validate's filters and limits act as documented", "[validation][command]") {
  CHECK(voltaic::test::voltaic(kernels() + " --gpu v100-pcie-32gb --csv").out.find("A100") == std::string::npos);
  CHECK(voltaic::test::voltaic(kernels() + " --op bmm,linear").code == 0);
  CHECK(voltaic::test::voltaic(kernels() + " --fail-above 0").code == 6);
  CHECK(voltaic::test::voltaic(kernels() + " --fail-above 100").code == 0);
  check_refusal(kernels() + " --gpu t4", 2, "--gpu");
  check_refusal(kernels() + " --op conv", 2, "--op");
  check_refusal(kernels() + " --op ,", 2, "--op");
  check_refusal(kernels() + " --split half", 2, "--split");
  check_refusal(kernels() + " --report same --output same", 2, "--report");
  check_refusal(kernels() + " --calibration /nonexistent.json", 3, "nonexistent");
}

TEST_CASE("hostile tables are refused on one line, never predicted", "[validation][command]") {
  const auto refuse = [](const std::string& text, int code, const std::string& word) {
    check_refusal("validate --measured " + write_scratch("hostile.csv", text).string(), code, word);
  };
  const std::string header = "op,gpu,rows,cols,latency_us\n";
  refuse("", 3, "header");
  refuse("a,b\n1,2\n", 4, "this kind of table is not read");
  refuse(header + "add,T4,8\n", 3, "line 2");
  refuse(header + "add,T4,-8,8,30\n", 3, "rows");
  refuse(header + "add,T4,8,99999999999999999999,30\n", 3, "cols");
  refuse(header + "add,T4,8,8,nan\n", 3, "latency_us");
  refuse(header + "add,T4,8,8,\x1b[31m\n", 3, "latency_us");
  refuse(header + std::string("add,T4,8,8,3\0\n", 14), 3, "latency_us");
}
