// SPDX-License-Identifier: MIT
#include "sim/report/gpu_page.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/support/catch.hpp"

using namespace voltaic;

namespace {

std::size_t widest_line(const std::string& text) {
  std::istringstream in(text);
  std::size_t widest = 0;
  for (std::string line; std::getline(in, line);) widest = std::max(widest, line.size());
  return widest;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a GPU's page shows every number beside its source in 100 columns", "[report][gpu]") {
  for (const auto& name : arch::gpu_names()) {
    INFO(name);
    CHECK(widest_line(report::gpu_page(arch::resolve_gpu(name))) <= 100);
  }
  const std::string page = report::gpu_page(arch::resolve_gpu("a100-sxm4-40gb"));
  CHECK(has(page, "a100-sxm4-40gb: NVIDIA A100-SXM4-40GB, GA100 (Ampere, compute capability 8.0)\n"));
  CHECK(has(page,
            "108 SMs at 1.41 GHz, 19.5 TFLOP/s FP32, 312 TFLOP/s FP16 tensor, 40.0 GiB HBM2 at 1555 GB/s, 400 W\n"));
  CHECK(has(page, "  peak bandwidth                   1555 GB/s  [A100WP] table 4\n"));
  CHECK(has(page, "  int8                     78.0 TOP/s     624 TOP/s   1.25 POP/s"));
  CHECK(has(page, "3g.20gb"));
  CHECK_FALSE(has(page, "nan"));
  CHECK_FALSE(has(page, "inf\n"));
}

TEST_CASE("a modified GPU's page says what was changed", "[report][gpu]") {
  const auto gpu = arch::resolve_gpu("a100-sxm4-40gb:3g.20gb", {arch::parse_override("gpu.sm.count=40")});
  const std::string page = report::gpu_page(gpu);
  CHECK(has(page, "Note: MIG slice 3g.20gb: 42 SMs"));
  CHECK(has(page, "Note: --set gpu.sm.count=40"));
  CHECK(has(page, "given: --set gpu.sm.count=40"));
}

TEST_CASE("the list of GPUs has one line each and fits 100 columns", "[report][gpu]") {
  std::vector<arch::ResolvedGpu> gpus;
  for (const auto& name : arch::gpu_names()) gpus.push_back(arch::resolve_gpu(name));
  const std::string table = report::gpu_table(gpus);
  CHECK(std::count(table.begin(), table.end(), '\n') == static_cast<std::ptrdiff_t>(gpus.size()) + 1);
  CHECK(widest_line(table) <= 100);
  CHECK(has(table, "a100-sxm4-80gb   ampere        108  19.5 TFLOP/s   312 TFLOP/s  80.0 GiB  2039 GB/s   400 W\n"));
}

TEST_CASE("a GPU's JSON carries every field with its unit and source", "[report][gpu]") {
  const auto gpu = arch::resolve_gpu("v100-sxm2-16gb");
  const auto json = nlohmann::json::parse(report::gpu_json(gpu));
  CHECK(json["name"] == "v100-sxm2-16gb");
  CHECK(json["fields"].size() == gpu.fields.size());
  for (const auto& field : json["fields"]) {
    CHECK(field["value"].is_number());
    CHECK_FALSE(field["source"].get<std::string>().empty());
  }
  CHECK(json["description"]["schema"] == "voltaic.gpu/1");
}
