// SPDX-License-Identifier: MIT
// What the shipped GPU files say, against arithmetic on figures of the makers.
#include <cmath>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "arch/detail/embedded_data.hpp"
#include "arch/detail/strict_json.hpp"
#include "arch/loader.hpp"
#include "arch/units/literals.hpp"
#include "tests/support/catch.hpp"

#include <nlohmann/json.hpp>

using namespace voltaic;
using namespace voltaic::literals;
using arch::resolve_gpu;

namespace {

std::string source_text(const std::string& path) {
  const char* root = std::getenv("VOLTAIC_SOURCE_DIR");
  std::ifstream in(std::string(root == nullptr ? "." : root) + '/' + path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

/// Every [KEY] in `text`.
std::set<std::string> keys_in(const std::string& text) {
  static const std::regex kKey(R"(\[([A-Z][A-Za-z0-9]+)\])");
  std::set<std::string> out;
  for (std::sregex_iterator it(text.begin(), text.end(), kKey), end; it != end; ++it) out.insert((*it)[1]);
  return out;
}

}  // namespace

TEST_CASE("all sixteen GPUs load, in the order of the command line's help", "[arch]") {
  const auto names = arch::gpu_names();
  REQUIRE(names.size() >= 16);
  CHECK(names.front() == "v100-pcie-16gb");
  CHECK(names[8] == "a100-sxm4-80gb");
  CHECK(names[15] == "h200-sxm5-141gb");
  for (const auto& name : names) {
    INFO(name);
    const auto gpu = resolve_gpu(name);
    CHECK(gpu.spec.name == name);
    CHECK_FALSE(gpu.modified);
    CHECK(gpu.notes.empty());
    CHECK(gpu.fields.size() > 45);
    for (const auto& field : gpu.fields) CHECK_FALSE(field.source.empty());
  }
}

TEST_CASE("the embedded files pass the strict parser that user files meet", "[arch]") {
  for (const auto files : {embedded_gpus(), embedded_chips(), embedded_calibrations()}) {
    for (const auto& file : files) {
      INFO(file.name);
      CHECK_NOTHROW(arch::detail::parse_strict(file.text, std::string(file.name)));
    }
  }
}

TEST_CASE("the four A100 boards differ in bandwidth and power", "[arch][facts]") {
  const auto a = resolve_gpu("a100-pcie-40gb").spec, b = resolve_gpu("a100-sxm4-40gb").spec;
  const auto c = resolve_gpu("a100-pcie-80gb").spec, d = resolve_gpu("a100-sxm4-80gb").spec;
  CHECK(a.dram.peak_bandwidth == 1555_GBps);
  CHECK(b.dram.peak_bandwidth == 1555_GBps);
  CHECK(c.dram.peak_bandwidth == 1935_GBps);
  CHECK(d.dram.peak_bandwidth == 2039_GBps);
  CHECK(a.power.limit == Watts{250});
  CHECK(b.power.limit == Watts{400});
  CHECK(c.power.limit == Watts{300});
  CHECK(d.power.limit == Watts{400});
  CHECK(a.clocks.sustained == 1275_MHz);
  CHECK(b.clocks.sustained == 1410_MHz);
  CHECK(b.dram.usable == Bytes{40536.0 * 1024 * 1024});
}

TEST_CASE("peaks are SMs x rate x 2 x clock", "[arch][facts]") {
  // A100: 108 x 64 x 2 x 1.410 GHz = 19.49 TFLOP/s; tensor FP16 108 x 1024 x 2 x 1.410 = 311.9; TF32 half of it; INT8
  // twice.
  const auto a100 = resolve_gpu("a100-sxm4-40gb").spec;
  CHECK_THAT(a100.cuda_core_peak(DataType::fp32).value, WithinRel(19.49e12, 1e-3));
  CHECK_THAT(a100.tensor_peak(DataType::fp16).value, WithinRel(311.9e12, 1e-3));
  CHECK_THAT(a100.tensor_peak(DataType::tf32).value, WithinRel(155.9e12, 1e-3));
  CHECK_THAT(a100.tensor_peak(DataType::int8).value, WithinRel(623.7e12, 1e-3));
  CHECK_THAT(a100.tensor_peak(DataType::fp64).value, WithinRel(19.49e12, 1e-3));
  CHECK_THAT(a100.cuda_core_peak(DataType::fp16).value, WithinRel(78.0e12, 1e-2));
  // V100-SXM2: 80 x 64 x 2 x 1.530 = 15.67; tensor FP16 80 x 512 x 2 x 1.530 = 125.3; DP4A 80 x 256 x 2 x 1.530 = 62.7.
  const auto v100 = resolve_gpu("v100-sxm2-16gb").spec;
  CHECK_THAT(v100.peak(DataType::fp32).value, WithinRel(15.67e12, 1e-3));
  CHECK_THAT(v100.peak(DataType::fp16).value, WithinRel(125.3e12, 1e-3));
  CHECK_THAT(v100.peak(DataType::int8).value, WithinRel(62.7e12, 1e-3));
  // H100-SXM5: 132 x 128 x 2 x 1.980 = 66.9.
  CHECK_THAT(resolve_gpu("h100-sxm5-80gb").spec.peak(DataType::fp32).value, WithinRel(66.9e12, 1e-3));
  CHECK_THAT(resolve_gpu("t4").spec.peak(DataType::fp16).value, WithinRel(65.1e12, 1e-2));
}

TEST_CASE("no GPU claims a unit that its architecture lacks", "[arch][facts]") {
  for (const auto& name : arch::gpu_names()) {
    INFO(name);
    const auto gpu = resolve_gpu(name).spec;
    const bool volta = gpu.architecture == arch::Architecture::volta;
    const bool turing = gpu.architecture == arch::Architecture::turing;
    const bool hopper = gpu.architecture == arch::Architecture::hopper;
    CHECK(gpu.has_tensor_path(DataType::fp16));
    CHECK_FALSE(gpu.has_tensor_path(DataType::fp32));
    CHECK(gpu.has_tensor_path(DataType::bf16) == !(volta || turing));
    CHECK(gpu.has_tensor_path(DataType::tf32) == !(volta || turing));
    CHECK(gpu.has_tensor_path(DataType::int8) == !volta);
    CHECK(gpu.has_tensor_path(DataType::int4) == !(volta || hopper));
    CHECK(gpu.has_tensor_path(DataType::fp8) == hopper);
    CHECK((gpu.sm.tensor_sparse[DataType::fp16] > 0) == !(volta || turing));
    CHECK(gpu.sm.registers == 65536);
    CHECK(gpu.sm.shared_memory_per_cta.value <= gpu.sm.shared_memory.value);
  }
}

TEST_CASE("every source key in the data files resolves in SOURCES.md", "[arch]") {
  const std::set<std::string> known = keys_in(source_text("arch/SOURCES.md"));
  REQUIRE(known.size() > 20);
  for (const auto files : {embedded_gpus(), embedded_chips(), embedded_calibrations()}) {
    for (const auto& file : files) {
      for (const auto& key : keys_in(std::string(file.text))) {
        INFO(file.name << ": [" << key << "]");
        CHECK(known.count(key) == 1);
      }
    }
  }
}
