// SPDX-License-Identifier: MIT
#include <algorithm>
#include <string>

#include "arch/units/error.hpp"
#include "sim/quantised.hpp"
#include "tests/support/catch.hpp"

using namespace voltaic;
using graph::Precision;

namespace {

/// What a precision is on one GPU: nothing to say, a warning, or a refusal that names what is missing.
enum class Answer { runs, warns, refused };

Answer answer(const std::string& gpu, Precision precision) {
  const auto spec = arch::resolve_gpu(gpu).spec;
  try {
    return check_precision(spec, precision).empty() ? Answer::runs : Answer::warns;
  } catch (const UnsupportedError& e) {
    const std::string text = e.what();
    CHECK(text.find(gpu) == 0);
    CHECK(text.find(": it multiplies in fp64") != std::string::npos);
    CHECK(text.find('\n') == std::string::npos);
    return Answer::refused;
  }
}

struct Generation {
  std::vector<std::string> gpus;
  std::vector<Precision> refused;
  std::vector<Precision> warned;
  bool sparse;
};

// fp64 outside tensor cores and fp32 run everywhere, fp16 and what is built on it too.
const std::vector<Generation> kGenerations{
    {{"v100-pcie-16gb", "v100-pcie-32gb", "v100-sxm2-16gb", "v100-sxm2-32gb", "v100-sxm3-32gb"},
     {Precision::tf32, Precision::bf16, Precision::mixed_bf16, Precision::fp8, Precision::int4},
     {Precision::int8},
     false},
    {{"t4"}, {Precision::tf32, Precision::bf16, Precision::mixed_bf16, Precision::fp8}, {}, false},
    {{"a100-pcie-40gb", "a100-pcie-80gb", "a100-sxm4-40gb", "a100-sxm4-80gb", "a100-sxm4-40gb:3g.20gb", "a30", "a10",
      "a40"},
     {Precision::fp8},
     {},
     true},
    {{"h100-pcie-80gb", "h100-sxm5-80gb", "h200-sxm5-141gb"}, {Precision::int4}, {}, true},
};

bool has(const std::vector<Precision>& list, Precision p) {
  return std::find(list.begin(), list.end(), p) != list.end();
}

}  // namespace

TEST_CASE("every shipped GPU refuses what it lacks, warns of DP4A and runs the rest", "[precision]") {
  for (const Generation& generation : kGenerations) {
    for (const std::string& gpu : generation.gpus) {
      for (const Precision p : graph::all_precisions()) {
        INFO(gpu << " " << graph::to_string(p));
        const Answer expected = has(generation.refused, p)  ? Answer::refused
                                : has(generation.warned, p) ? Answer::warns
                                                            : Answer::runs;
        CHECK(answer(gpu, p) == expected);
      }
    }
  }
  std::size_t covered = 0;
  for (const Generation& generation : kGenerations) covered += generation.gpus.size();
  CHECK(covered == arch::gpu_names().size() + 1);  // And one slice.
}

TEST_CASE("2:4 sparsity came with Ampere, and slices have what their parent has", "[precision][sparsity]") {
  for (const Generation& generation : kGenerations) {
    for (const std::string& gpu : generation.gpus) {
      INFO(gpu);
      const auto spec = arch::resolve_gpu(gpu).spec;
      if (!generation.sparse) {
        CHECK_THROWS_AS(check_sparsity(spec, Precision::fp16), UnsupportedError);
        continue;
      }
      CHECK(check_sparsity(spec, Precision::fp16).empty());
      CHECK(spec.sparse_peak(DataType::fp16).value == 2 * spec.tensor_peak(DataType::fp16).value);
      CHECK(check_sparsity(spec, Precision::fp32).find("changes nothing in fp32") != std::string::npos);
    }
  }
}

TEST_CASE("without tensor cores there is no weight-only kernel and no sparse path", "[precision][sparsity]") {
  const auto spec = arch::resolve_gpu("a100-sxm4-80gb", {{"gpu.sm.tensor_cores", "0", false}}).spec;
  CHECK_THROWS_AS(check_precision(spec, Precision::w4a16), UnsupportedError);
  CHECK_THROWS_AS(check_precision(spec, Precision::w8a16), UnsupportedError);
  CHECK_THROWS_AS(check_sparsity(spec, Precision::fp16), UnsupportedError);
}

TEST_CASE("quantised and sparse weights are for inference, one at a time", "[precision][sparsity]") {
  CHECK_NOTHROW(check_inference_only(false, Precision::w4a16, false));
  CHECK_NOTHROW(check_inference_only(false, Precision::int8, true));
  CHECK_NOTHROW(check_inference_only(true, Precision::fp16, false));
  CHECK_THROWS_AS(check_inference_only(true, Precision::w8a16, false), UnsupportedError);
  CHECK_THROWS_AS(check_inference_only(true, Precision::fp16, true), UnsupportedError);
  CHECK_THROWS_AS(check_inference_only(false, Precision::w8a16, true), UnsupportedError);
}

TEST_CASE("how weights are stored is among the assumptions", "[precision]") {
  CHECK(storage_assumptions(Precision::fp16, false).empty());
  CHECK(storage_assumptions(Precision::w4a16, false).at(0).find("128 weights") != std::string::npos);
  CHECK(storage_assumptions(Precision::w8a16, false).at(0).find("output channel") != std::string::npos);
  CHECK(storage_assumptions(Precision::int8, true).size() == 2);
}
