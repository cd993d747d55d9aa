// SPDX-License-Identifier: MIT
// User files, MIG slices and --set: what is taken, what is refused and with which words.
#include "arch/loader.hpp"

#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "arch/units/error.hpp"
#include "arch/units/literals.hpp"
#include "tests/support/catch.hpp"

using namespace voltaic;
using namespace voltaic::literals;
using arch::parse_override;
using arch::resolve_gpu;
using Json = nlohmann::ordered_json;

namespace {

/// A file in a folder of its own, removed at the end.
class TempFile {
 public:
  explicit TempFile(const std::string& text, const std::string& name = "toy.json") {
    std::filesystem::create_directories(folder_);
    std::ofstream(path(name), std::ios::binary) << text;
    path_ = path(name);
  }
  ~TempFile() { std::filesystem::remove_all(folder_); }
  TempFile(const TempFile&) = delete;
  TempFile& operator=(const TempFile&) = delete;
  const std::string& str() const { return path_; }

 private:
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("voltaic_loader_test_" + std::to_string(counter_++));
  std::string path_;
  static inline int counter_ = 0;
};

std::string message(const std::function<void()>& action) {
  try {
    action();
  } catch (const std::exception& e) {
    return e.what();
  }
  return "(no error)";
}

/// The error of a full description in which one thing was changed, without the folder's name.
std::string refusal(const std::function<void(Json&)>& change) {
  Json json = Json::parse(resolve_gpu("a100-sxm4-40gb").json);
  change(json);
  const TempFile file(json.dump());
  std::string text = message([&] { resolve_gpu(file.str()); });
  CHECK(text.find('\n') == std::string::npos);
  const auto at = text.find("toy.json");
  return at == std::string::npos ? text : text.substr(at);
}

std::string set_error(const std::string& text) {
  return message([&] { resolve_gpu("a100-sxm4-40gb", {parse_override(text)}); });
}

arch::GpuSpec with(const std::vector<std::string>& sets, const std::string& gpu = "a100-sxm4-40gb") {
  std::vector<arch::Override> overrides;
  for (const auto& s : sets) overrides.push_back(parse_override(s));
  return resolve_gpu(gpu, overrides).spec;
}

}  // namespace

TEST_CASE("a resolved GPU written as JSON and read back is the same GPU", "[arch][loader]") {
  for (const auto& name : {"a100-sxm4-40gb", "v100-pcie-32gb", "h100-sxm5-80gb", "t4"}) {
    INFO(name);
    const auto first = resolve_gpu(name);
    const TempFile file(first.json);
    const auto second = resolve_gpu(file.str());
    CHECK(second.json == first.json);
    CHECK(second.modified);
    CHECK(second.spec.mig.size() == first.spec.mig.size());
  }
}

TEST_CASE("a file may start from a built-in and change some numbers", "[arch][loader]") {
  const TempFile file(R"({"base": "a100-sxm4-80gb", "dram": {"peak_bandwidth_bytes_per_s": 3e12},
    "sm": {"count": {"value": 120, "source": "assumed: a rumour"}}})",
                      "fat.json");
  const auto gpu = resolve_gpu(file.str());
  CHECK(gpu.spec.name == "fat");
  CHECK(gpu.spec.dram.peak_bandwidth == 3000_GBps);
  CHECK(gpu.spec.sm.count == 120);
  CHECK(gpu.spec.power.limit == Watts{400});
  CHECK(gpu.modified);
}

TEST_CASE("a full description is refused with file, pointer, expectation and finding", "[arch][loader]") {
  CHECK(refusal([](Json& j) { j["dram"]["stream_efficiency"]["value"] = 1.3; }) ==
        "toy.json: /dram/stream_efficiency: expected (0, 1], got 1.3");
  CHECK(refusal([](Json& j) { j["sm"]["count"] = 108; }) ==
        "toy.json: /sm/count: expected {\"value\", \"source\"}, got 108 without a source");
  CHECK(refusal([](Json& j) { j["sm"]["count"]["source"] = "trust me"; }).find("/sm/count/source: expected") !=
        std::string::npos);
  CHECK(refusal([](Json& j) { j["sm"]["count"]["value"] = 0; }) ==
        "toy.json: /sm/count: expected a whole number from 1 to 1000000, got 0");
  CHECK(refusal([](Json& j) { j["sm"]["count"]["value"] = 10.5; }) ==
        "toy.json: /sm/count: expected a whole number from 1 to 1000000, got 10.5");
  CHECK(refusal([](Json& j) { j["sm"]["count"]["value"] = "108"; }) ==
        "toy.json: /sm/count: expected a number, got the text \"108\"");
  CHECK(refusal([](Json& j) { j["sm"]["count"]["value"] = nullptr; }) ==
        "toy.json: /sm/count: expected a number, got null");
  CHECK(refusal([](Json& j) { j["clocks"]["boost_hz"]["value"] = -1; }) ==
        "toy.json: /clocks/boost_hz: expected a number above 0 and up to 1e18, got -1");
  CHECK(refusal([](Json& j) { j["clocks"]["boost_hz"]["value"] = 1e300; }) ==
        "toy.json: /clocks/boost_hz: expected a number above 0 and up to 1e18, got 1e+300");
  CHECK(refusal([](Json& j) { j["dram"].erase("idle_latency_s"); }) == "toy.json: /dram/idle_latency_s: missing");
  CHECK(refusal([](Json& j) { j.erase("l1"); }) == "toy.json: /l1/capacity_bytes: missing");
  CHECK(refusal([](Json& j) { j.erase("chip"); }) == "toy.json: /chip: missing");
  CHECK(refusal([](Json& j) { j["architecture"] = "pascal"; }) ==
        "toy.json: /architecture: expected volta, turing, ampere or hopper, got \"pascal\"");
  CHECK(refusal([](Json& j) { j["dram"]["peak_bandwith_bytes_per_s"] = 1; }) ==
        "toy.json: /dram/peak_bandwith_bytes_per_s: unknown key; the nearest is /dram/peak_bandwidth_bytes_per_s");
  CHECK(refusal([](Json& j) { j["mig"] = 3; }) == "toy.json: /mig: expected a list of profiles, got 3");
  CHECK(refusal([](Json& j) { j["sm"] = Json::array(); }).find("/sm: unknown key") != std::string::npos);
}

TEST_CASE("a stated peak must agree with lanes x clock x 2 within 2 %", "[arch][loader]") {
  // 108 x 64 x 2 x 1.41 GHz = 19.49 TFLOP/s against 21: 7.2 % apart.
  CHECK(refusal([](Json& j) { j["peak"]["fp32_flop_per_s"]["value"] = 21e12; }) ==
        "toy.json: /peak/fp32_flop_per_s: expected the stated peak within 2 % of lanes x clock x 2, got 2.1e+13 "
        "against 1.949e+13 "
        "(7.2 % apart)");
  CHECK(refusal([](Json& j) { j["peak"]["fp32_flop_per_s"]["value"] = 19.2e12; }) == "(no error)");
  CHECK(refusal([](Json& j) {
          j["peak"]["fp31_flop_per_s"] = Json{{"value", 1}, {"source", "assumed: x"}};
        }).find("unknown key") != std::string::npos);
  CHECK(refusal([](Json& j) { j.erase("peak"); }).find("/peak: expected the stated peaks") != std::string::npos);
}

TEST_CASE("fields that contradict each other are refused", "[arch][loader]") {
  CHECK(refusal([](Json& j) { j["clocks"]["base_hz"]["value"] = 2e9; }) ==
        "toy.json: clocks.base: expected at most the boost clock (1410 MHz), got 2000 MHz");
  CHECK(refusal([](Json& j) { j["dram"]["usable_bytes"]["value"] = 1e12; }).find("dram.usable: expected at most") !=
        std::string::npos);
  CHECK(refusal([](Json& j) { j["sm"]["cuda_core"]["fp32"]["value"] = 128; }).find("expected the FP32 lanes") !=
        std::string::npos);
}

TEST_CASE("hostile files get one line that names the file", "[arch][loader]") {
  const auto text_error = [](const std::string& text) {
    const TempFile file(text);
    std::string what = message([&] { resolve_gpu(file.str()); });
    CHECK(what.find('\n') == std::string::npos);
    const auto at = what.find("toy.json");
    REQUIRE(at != std::string::npos);
    return what.substr(at);
  };
  CHECK(text_error("") == "toy.json: expected JSON, got an empty file");
  CHECK(text_error("  \r\n") == "toy.json: expected JSON, got an empty file");
  CHECK(text_error("[1, 2]") == "toy.json: /: expected an object, got a list");
  CHECK(text_error("{\"a\": 1, \"a\": 2}") == "toy.json: expected unique keys, got \"a\" twice in one object");
  CHECK(text_error(std::string(200, '[') + std::string(200, ']')) ==
        "toy.json: expected at most 64 levels of nesting, got more");
  CHECK(text_error("{\"sm\": NaN}").find("line 1") != std::string::npos);
  CHECK(text_error("{\"sm\": Infinity}").find("expected JSON") != std::string::npos);
  CHECK(text_error("{\"sm\": {\"count\": 1e400}}").find("expected finite numbers") != std::string::npos);
  CHECK(text_error("{\"sm\": {\"count\": 1").find("expected JSON") != std::string::npos);
  CHECK(text_error(std::string("\xff\xfe{\0}\0", 6)).find("expected JSON") != std::string::npos);
  CHECK(text_error("{\"base\": 3}") == "toy.json: /base: expected the name of a built-in GPU, got 3");
  CHECK(text_error("{\"base\": \"a100\"}").find("/base: expected the name of a built-in GPU") != std::string::npos);
  CHECK(text_error("{\"base\": \"t4\", \"sm\": {\"count\": -4}}") ==
        "toy.json: /sm/count: expected a whole number from 1 to 1000000, got -4");
}

TEST_CASE("a byte order mark and CRLF line ends are legal", "[arch][loader]") {
  const TempFile file("\xef\xbb\xbf{\r\n\"base\": \"t4\",\r\n\"power\": {\"limit_w\": 60}\r\n}\r\n");
  CHECK(resolve_gpu(file.str()).spec.power.limit == Watts{60});
}

TEST_CASE("a folder, a missing file and an unknown name are told apart", "[arch][loader]") {
  const TempFile file("{}");
  const std::string folder = std::filesystem::path(file.str()).parent_path().string();
  CHECK(message([&] { resolve_gpu(folder); }) == folder + ": expected a file, got a directory");
  CHECK(message([&] { resolve_gpu(folder + "/none.json"); }) == folder + "/none.json: expected a file, found none");
  CHECK(message([] { resolve_gpu("a100-sxm4-48gb"); }) ==
        "--gpu a100-sxm4-48gb: expected a GPU name or a JSON file; the nearest name is a100-sxm4-40gb");
  CHECK_THROWS_AS(resolve_gpu(""), ConfigError);
  CHECK_THROWS_AS(resolve_gpu(std::string("a\0b", 3)), ConfigError);
  CHECK(resolve_gpu("A100-SXM4-40GB").spec.name == "a100-sxm4-40gb");
}

TEST_CASE("a MIG slice owns its SMs and its share of memory", "[arch][mig]") {
  // 3g.20gb: 42 SMs, 4 of 8 memory slices: half of 1555 GB/s and of 40 MiB L2, which is one partition.
  const auto gpu = resolve_gpu("a100-sxm4-40gb:3g.20gb");
  CHECK(gpu.spec.name == "a100-sxm4-40gb:3g.20gb");
  CHECK(gpu.spec.sm.count == 42);
  CHECK_THAT(gpu.spec.dram.peak_bandwidth.value, WithinRel(777.5e9, 1e-12));
  CHECK(gpu.spec.l2.capacity == Bytes{20.0 * 1024 * 1024});
  CHECK(gpu.spec.l2.partitions == 1);
  CHECK(gpu.spec.l2.far_latency == gpu.spec.l2.latency);
  CHECK(gpu.spec.dram.usable == Bytes{19968.0 * 1024 * 1024});
  CHECK(gpu.spec.links.nvlinks == 0);
  CHECK(gpu.spec.clocks.boost == 1410_MHz);
  CHECK(gpu.modified);
  CHECK(gpu.notes.size() == 1);
  CHECK(resolve_gpu("a100-sxm4-40gb:7g.40gb").spec.sm.count == 98);
  CHECK(message([] { resolve_gpu("a30:3g.20gb"); }) ==
        "a30:3g.20gb: expected a MIG profile out of 1g.6gb, 1g.6gb+me, 2g.12gb, 2g.12gb+me, 4g.24gb");
  CHECK_THROWS_AS(resolve_gpu("v100-sxm2-16gb:1g.5gb"), UnsupportedError);
}

TEST_CASE("a GPU has the latencies of its chip, which files and --set override", "[arch][chips]") {
  const auto a100 = resolve_gpu("a100-sxm4-40gb"), v100 = resolve_gpu("v100-sxm2-16gb");
  CHECK(a100.spec.pipeline.fma_latency == Cycles{4});
  CHECK(v100.spec.pipeline.half_latency == Cycles{6});
  CHECK(a100.spec.l2.slices == 80);
  CHECK(v100.spec.dram.channels == 32);
  CHECK(resolve_gpu("a30").spec.l2.slices == 48);  // the board's own file has fewer than its chip
  CHECK(with({"gpu.pipeline.fma_latency=6"}).pipeline.fma_latency == Cycles{6});
  CHECK(set_error("gpu.pipeline.fma_latncy=6").find("the nearest is gpu.pipeline.fma_latency") != std::string::npos);
  CHECK(set_error("gpu.pipeline.fma_latency=0").find("expected a number above 0 and up to 100000") !=
        std::string::npos);
  CHECK(set_error("gpu.pipeline.fma_latency=1e9").find("up to 100000") != std::string::npos);
  CHECK(set_error("gpu.dram.refresh_share=1").find("expected [0, 1), got 1") != std::string::npos);
  CHECK(set_error("gpu.l2.slices=0").find("expected a whole number") != std::string::npos);
  const TempFile file(R"({"base": "a100-sxm4-40gb", "pipeline": {"fma_latency_cycles": 5}, "l2": {"slices": 40}})");
  const auto changed = resolve_gpu(file.str());
  CHECK(changed.spec.pipeline.fma_latency == Cycles{5});
  CHECK(changed.spec.pipeline.alu_latency == a100.spec.pipeline.alu_latency);
  CHECK(changed.spec.l2.slices == 40);
}

TEST_CASE("a chip without a file takes the figures of one of its architecture and says so", "[arch][chips]") {
  Json json = Json::parse(resolve_gpu("a100-sxm4-40gb").json);
  json["chip"] = "GA900";
  CHECK(resolve_gpu(TempFile(json.dump()).str()).notes.size() == 1);  // its file has all of them
  json.erase("pipeline");
  const auto gpu = resolve_gpu(TempFile(json.dump()).str());
  REQUIRE(gpu.notes.size() == 2);
  CHECK(gpu.notes[0] == "no figures of a chip GA900: 18 numbers of the GA100 stand in");
  CHECK(gpu.spec.pipeline.mma_latency == resolve_gpu("a100-sxm4-40gb").spec.pipeline.mma_latency);
}

TEST_CASE("a MIG slice has its share of slices and channels, and at least one", "[arch][mig][chips]") {
  // 1 of 8 memory slices: 80 / 8 slices of L2, 40 / 8 channels.
  const auto one = resolve_gpu("a100-sxm4-40gb:1g.5gb").spec;
  CHECK(one.l2.slices == 10);
  CHECK(one.dram.channels == 5);
  const TempFile file(R"({"base": "a100-sxm4-40gb", "l2": {"slices": 2}})");
  CHECK(resolve_gpu(file.str()).spec.l2.slices == 2);
}

TEST_CASE("--set reaches every listed field by its path", "[arch][set]") {
  const auto gpu = resolve_gpu("a100-sxm4-40gb");
  for (const auto& field : gpu.fields) {
    INFO(field.path);
    const arch::Override o{field.path, "1", true};
    CHECK_NOTHROW(resolve_gpu("a100-sxm4-40gb", {o}));
  }
}

TEST_CASE("--set takes units and factors", "[arch][set]") {
  CHECK(with({"gpu.dram.peak_bandwidth=2.4TB/s"}).dram.peak_bandwidth == 2400_GBps);
  CHECK(with({"gpu.dram.peak_bandwidth_bytes_per_s=2.4e12"}).dram.peak_bandwidth == 2400_GBps);
  CHECK(with({"gpu.sm.count*=1.5"}).sm.count == 162);
  CHECK(with({"gpu.sm.count*=1.1"}).sm.count == 119);  // 118.8
  CHECK(with({"gpu.sm.tensor.fp8=2048"}).sm.tensor[DataType::fp8] == 2048);
  CHECK(with({"gpu.dram.technology=HBM9"}).dram.technology == "HBM9");
  const auto off = with({"gpu.sm.tensor_cores=0"});
  CHECK_FALSE(off.has_tensor_path(DataType::fp16));
  CHECK_THAT(off.peak(DataType::fp16).value, WithinRel(78e12, 1e-2));
}

TEST_CASE("--set keeps the fields that follow others consistent", "[arch][set]") {
  // Twice the SMs: twice the peak; bandwidth per SM of the L2 unchanged.
  const auto before = resolve_gpu("a100-sxm4-40gb").spec;
  const auto twice = with({"gpu.sm.count*=2"});
  CHECK_THAT(twice.peak(DataType::fp16).value, WithinRel(2 * before.peak(DataType::fp16).value, 1e-12));
  CHECK(twice.l2.bytes_per_cycle_per_sm == before.l2.bytes_per_cycle_per_sm);
  CHECK(with({"gpu.clocks.boost=1000MHz"}).clocks.sustained == 1000_MHz);
  CHECK(with({"gpu.clocks.boost=1000MHz"}).clocks.base == 1000_MHz);
  CHECK(with({"gpu.clocks.boost*=2"}).clocks.sustained == 2820_MHz);
  CHECK(with({"gpu.clocks.boost=1350MHz"}, "a100-pcie-40gb").clocks.sustained == 1275_MHz);
  CHECK(with({"gpu.sm.fp32_lanes=128"}).sm.cuda_core[DataType::fp32] == 128);
  CHECK(with({"gpu.sm.tensor_cores*=2"}).sm.tensor[DataType::fp16] == 2048);
  CHECK_THAT(with({"gpu.dram.capacity*=2"}).dram.usable.value, WithinRel(2 * before.dram.usable.value, 1e-12));
  CHECK(with({"gpu.sm.shared_memory=227KiB"}).l1.capacity == 227_KiB);
  CHECK(with({"gpu.power.limit=40W"}).power.idle == Watts{40});
}

TEST_CASE("a senseless --set gets one line", "[arch][set]") {
  CHECK(set_error("gpu.sm.count=0") == "--set gpu.sm.count=0: expected a whole number from 1 to 1000000, got 0");
  CHECK(set_error("gpu.sm.count=1.5") == "--set gpu.sm.count=1.5: expected a whole number from 1 to 1000000, got 1.5");
  CHECK(set_error("gpu.sm.count=-3") == "--set gpu.sm.count=-3: expected a whole number from 1 to 1000000, got -3");
  CHECK(set_error("gpu.dram.peak_bandwidth=nan") ==
        "--set gpu.dram.peak_bandwidth=nan: expected bytes per second (such as 2.4TB/s), got \"nan\"");
  CHECK(set_error("gpu.dram.peak_bandwidth=1e400").find("expected bytes per second") != std::string::npos);
  CHECK(set_error("gpu.dram.peak_bandwidth=inf").find("expected bytes per second") != std::string::npos);
  CHECK(set_error("gpu.dram.peak_bandwidth=12GHz").find("expected bytes per second") != std::string::npos);
  CHECK(set_error("gpu.dram.peak_bandwidth=0").find("expected a number above 0") != std::string::npos);
  CHECK(set_error("gpu.dram.peak_bandwidth*=1e18").find("expected a number above 0 and up to 1e18") !=
        std::string::npos);
  CHECK(set_error("gpu.dram.stream_efficiency=1.3").find("expected (0, 1], got 1.3") != std::string::npos);
  CHECK(set_error("gpu.dram.peak_bandwith=1TB/s") ==
        "--set gpu.dram.peak_bandwith=1TB/s: unknown path; the nearest is gpu.dram.peak_bandwidth");
  CHECK(set_error("dram.peak_bandwidth=1TB/s").find("the nearest is gpu.dram.peak_bandwidth") != std::string::npos);
  CHECK(set_error("calibration.no.such=1").find("unknown path") != std::string::npos);
  CHECK(set_error("gpu.clocks.base=9GHz") ==
        "--set gpu.clocks.base: expected at most the boost clock (1410 MHz), got 9000 MHz");
  CHECK(set_error("gpu.architecture=hopper").find("GPU file") != std::string::npos);
  CHECK_THROWS_AS(parse_override("gpu.sm.count"), UsageError);
  CHECK_THROWS_AS(parse_override("=3"), UsageError);
  CHECK_THROWS_AS(parse_override("*=3"), UsageError);
  CHECK_THROWS_AS(parse_override("gpu.sm.count="), UsageError);
}

TEST_CASE("--set changes a fitted number and nothing else", "[arch][set]") {
  const auto gpu = resolve_gpu("a100-sxm4-40gb");
  CHECK(gpu.calibration_id.find("ampere") != std::string::npos);
  if (!gpu.calibration.has("intervals")) return;
  const std::string family = gpu.calibration.keys("intervals").front();
  const std::string path = "intervals." + family + ".half_width";
  const auto changed = resolve_gpu("a100-sxm4-40gb", {arch::Override{"calibration." + path, "0.5", false}});
  CHECK(changed.calibration.number(path) == 0.5);
  CHECK(gpu.calibration.number(path) == resolve_gpu("a100-sxm4-40gb").calibration.number(path));
  CHECK(changed.modified);
}
