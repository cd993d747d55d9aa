// SPDX-License-Identifier: MIT
// Lowering of sparse products, bags, gathers, regions, sorting, pools and losses: launches and bytes by hand.
#include <cmath>
#include <random>
#include <string>
#include <unordered_set>
#include <vector>

#include "arch/loader.hpp"
#include "sim/cost/engine.hpp"
#include "sim/kernel/lowering.hpp"
#include "sim/kernel/popularity.hpp"
#include "tests/support/catch.hpp"

using namespace voltaic;
using graph::OpType;
using kernel::Framework;
using kernel::Launch;
using kernel::Lookups;
using kernel::Lowered;
using kernel::VectorKernel;

namespace {

class NoLibrary final : public kernel::LibraryChoice {
 public:
  kernel::GemmTile choose(const kernel::GemmProblem&) const override { return {}; }
  kernel::ConvKernel choose(const kernel::ConvProblem&) const override { return {}; }
};

using Pairs = std::vector<std::pair<std::string, graph::Attributes::Value>>;
struct Input {
  graph::Shape shape;
  DataType dtype = DataType::fp32;
};
Input ids(graph::Shape shape) {
  return {std::move(shape), DataType::int64};
}

Lowered lower(OpType op, const std::vector<Input>& inputs, const Pairs& pairs = {}, int outputs = 1,
              Framework framework = Framework::eager, const std::string& gpu_name = "a100-sxm4-40gb") {
  graph::OpGraph g;
  graph::Node node;
  node.id = "n";
  node.op = op;
  for (const Input& in : inputs) {
    node.inputs.push_back(
        g.add_tensor({.name = "x" + std::to_string(g.tensors().size()), .shape = in.shape, .dtype = in.dtype}));
  }
  for (const auto& [name, value] : pairs) node.attributes.set(name, value);
  std::vector<std::string> names;
  for (int i = 0; i < outputs; ++i) names.push_back("y" + std::to_string(i));
  const graph::NodeId id = graph::append(g, node, names);
  const arch::ResolvedGpu gpu = arch::resolve_gpu(gpu_name);
  return kernel::lower(g, g.node(id), {gpu.spec, NoLibrary(), framework});
}

const VectorKernel& detail(const Launch& launch) {
  return std::get<VectorKernel>(launch.detail);
}

double time_of(const Lowered& lowered, const std::string& gpu_name = "a100-sxm4-40gb") {
  const arch::ResolvedGpu gpu = arch::resolve_gpu(gpu_name);
  const auto engine = cost::make_engine(cost::EngineKind::analytic, gpu);
  double t = 0;
  for (const Launch& launch : lowered.launches) {
    const kernel::KernelCost cost = engine->cost(launch);
    INFO(launch.name);
    CHECK(std::isfinite(cost.time.value));
    CHECK(cost.time.value > 0);
    CHECK(cost.time.value >= cost.roofline.value * (1 - 1e-9));
    t += cost.time.value;
  }
  return t;
}

std::string names(const Lowered& lowered) {
  std::string text;
  for (const Launch& launch : lowered.launches) text += (text.empty() ? "" : " ") + launch.name;
  return text;
}

std::int64_t i(std::int64_t value) {
  return value;
}

Lowered bag(std::int64_t rows, std::int64_t width, std::int64_t samples, std::int64_t lookups, double zipf) {
  return lower(OpType::embedding_bag, {ids({samples, lookups}), {{rows, width}}}, {{"zipf", zipf}});
}

double dram_bytes(const Lowered& lowered, const std::string& gpu_name) {
  const arch::ResolvedGpu gpu = arch::resolve_gpu(gpu_name);
  const auto engine = cost::make_engine(cost::EngineKind::analytic, gpu);
  double bytes = 0;
  for (const Launch& launch : lowered.launches) bytes += engine->cost(launch).dram_traffic.value;
  return bytes;
}

/// Different rows among `lookups` drawn ones, rank r with weight r^-zipf.
double drawn_rows(std::int64_t rows, std::int64_t lookups, double zipf) {
  std::vector<double> weights;
  for (std::int64_t r = 1; r <= rows; ++r) weights.push_back(std::pow(static_cast<double>(r), -zipf));
  std::discrete_distribution<std::int64_t> draw(weights.begin(), weights.end());
  std::mt19937_64 random(7);
  std::unordered_set<std::int64_t> met;
  for (std::int64_t n = 0; n < lookups; ++n) met.insert(draw(random));
  return static_cast<double>(met.size());
}

}  // namespace

TEST_CASE("distinct rows follow from popularity", "[kernel][popularity]") {
  // Uniform: R (1 - (1 - 1/R)^N) = 100 (1 - 0.99^50).
  CHECK_THAT(kernel::row_traffic({100, 50, 0}, 0).distinct, WithinRel(100 * (1 - std::pow(0.99, 50)), 1e-9));
  // Two rows with 2/3 and 1/3: 1 - (1/3)^3 + 1 - (2/3)^3.
  CHECK_THAT(kernel::row_traffic({2, 3, 1}, 0).distinct, WithinRel(2 - 1.0 / 27 - 8.0 / 27, 1e-9));
  CHECK(kernel::row_traffic({1, 1000, 0}, 0).distinct == 1);
  CHECK(kernel::row_traffic({0, 5, 1}, 0).distinct == 0);
  // Sums over ranges of ranks agree with single ranks.
  double single = 0;
  double total = 0;
  for (int r = 1; r <= 20000; ++r) total += std::pow(r, -1.05);
  for (int r = 1; r <= 20000; ++r) single += 1 - std::pow(1 - std::pow(r, -1.05) / total, 30000);
  CHECK_THAT(kernel::row_traffic({20000, 30000, 1.05}, 0).distinct, WithinRel(single, 1e-3));
}

TEST_CASE("a cache fetches a row again when others have taken its place", "[kernel][popularity]") {
  // Uniform rows in a cache of a quarter of them: three of four lookups miss in the long run.
  const kernel::RowTraffic t = kernel::row_traffic({1000, 1e6, 0}, 250);
  CHECK_THAT(t.fetched, WithinRel(0.75e6, 1e-3));
  CHECK(kernel::row_traffic({1000, 1e6, 0}, 1000).fetched == kernel::row_traffic({1000, 1e6, 0}, 1000).distinct);
  // No cache: every lookup is fetched.
  CHECK_THAT(kernel::row_traffic({1000, 1e4, 0}, 0).fetched, WithinRel(1e4, 1e-6));
}

TEST_CASE("rows met and fetched grow with lookups and shrink with skew", "[kernel][popularity]") {
  for (const double rows : {10.0, 1e4, 1e7, 4.6e18}) {
    double previous = 0;
    for (const double count : {1.0, 100.0, 1e4, 1e6, 1e9}) {
      double uniform = 0;
      double steeper = 2 * count;
      for (const double s : {0.0, 0.3, 0.8, 1.0, 1.2, 3.0, 10.0}) {
        const kernel::RowTraffic t = kernel::row_traffic({rows, count, s}, 5000);
        INFO(rows << " rows, " << count << " lookups, exponent " << s);
        CHECK(t.distinct >= 1 - 1e-9);
        CHECK(t.distinct <= std::min(rows, count) * (1 + 1e-9));
        CHECK(t.fetched >= t.distinct);
        CHECK(t.fetched <= count);
        CHECK(t.fetched <= steeper * (1 + 1e-3));
        steeper = t.fetched;
        if (s == 0) uniform = t.fetched;
      }
      CHECK(uniform >= previous);
      previous = uniform;
    }
  }
}

TEST_CASE("a bag reads ids, offsets and each distinct row once, and writes a row per sample", "[kernel][embedding]") {
  const Lowered l = bag(1, 128, 1000, 20, 0);
  REQUIRE(l.launches.size() == 1);
  // 20000 ids and 1001 offsets of 8 bytes, one row of 512.
  CHECK(l.launches[0].work.read.value == 8 * 20000 + 8 * 1001 + 512);
  CHECK(l.launches[0].work.written.value == 1000 * 512);
  CHECK(l.launches[0].work.other_flop == 20000 * 128);
  CHECK(l.launches[0].grid[0] == 125);  // A warp per bag, eight to a CTA.
  CHECK(detail(l.launches[0]).reread_bytes == 19999 * 512);
  CHECK(detail(l.launches[0]).far_bytes == 0);
  // A table of 5 GB: rows hardly meet again, and come from DRAM when they do.
  const Lowered large = bag(10'000'000, 128, 2048, 26, 0);
  CHECK_THAT(large.launches[0].work.read.value, WithinRel(8.0 * 2048 * 26 + 8 * 2049 + 512.0 * 2048 * 26, 0.01));
  // Rows of 16 bytes are fetched as sectors of 32.
  const Lowered narrow = bag(100'000'000, 4, 65536, 10, 0);
  CHECK_THAT(detail(narrow.launches[0]).far_bytes, WithinRel(16 * 655360.0, 0.02));
}

TEST_CASE("more lookups are never faster, popular rows never slower", "[kernel][embedding][property]") {
  for (const std::int64_t rows : {i(1000), i(100'000), i(20'000'000)}) {
    for (const std::int64_t width : {i(8), i(64), i(128)}) {
      double fewer = 0;
      for (const std::int64_t lookups : {i(1), i(8), i(64), i(512)}) {
        INFO(rows << " rows of " << width << ", " << lookups << " lookups");
        const double uniform = time_of(bag(rows, width, 4096, lookups, 0));
        CHECK(uniform >= fewer * (1 - 1e-9));
        fewer = uniform;
        double flatter = uniform;
        for (const double zipf : {0.6, 1.05, 1.5}) {
          const double skewed = time_of(bag(rows, width, 4096, lookups, zipf));
          CHECK(skewed <= flatter * (1 + 1e-3));
          flatter = skewed;
        }
      }
    }
  }
  // Skew pays where the table is far larger than L2: 2 GB.
  CHECK(time_of(bag(4'000'000, 128, 65536, 50, 1.2)) < 0.6 * time_of(bag(4'000'000, 128, 65536, 50, 0)));
}

TEST_CASE("a bag over a table larger than L2 reads each different row from DRAM", "[kernel][embedding]") {
  // 1e6 rows of 256 bytes, 81920 lookups: 78656 rows when all are alike, 20.1 MB; 25900 of Zipf 1.05, 6.6 MB.
  const std::string roomy = "a100-sxm4-40gb";  // L2 holds all rows met: none comes twice.
  const double uniform = dram_bytes(bag(1'000'000, 64, 4096, 20, 0), roomy);
  const double skewed = dram_bytes(bag(1'000'000, 64, 4096, 20, 1.05), roomy);
  CHECK_THAT(uniform, WithinRel(20.1e6, 0.01));
  CHECK_THAT(skewed, WithinRel(6.6e6, 0.01));
  CHECK_THAT(uniform, WithinRel(256 * drawn_rows(1'000'000, 81920, 0), 0.02));
  CHECK_THAT(skewed, WithinRel(256 * drawn_rows(1'000'000, 81920, 1.05), 0.02));
  // The flatter popularity is, the more comes from DRAM; a small L2 lets rows come twice, never less than once.
  double steeper = 0;
  for (const double zipf : {3.0, 1.5, 1.05, 0.6, 0.3, 0.0}) {
    INFO("exponent " << zipf);
    const double bytes = dram_bytes(bag(1'000'000, 64, 4096, 20, zipf), roomy);
    CHECK(bytes > steeper);
    CHECK(dram_bytes(bag(1'000'000, 64, 4096, 20, zipf), "v100-sxm2-16gb") >= bytes);
    steeper = bytes;
  }
  // A table that stays in L2 need not come at all: 10,000 rows, 2.6 MB.
  CHECK(detail(bag(10'000, 64, 4096, 20, 0).launches[0]).cold_bytes == 0);
  CHECK(dram_bytes(bag(10'000, 64, 4096, 20, 0), roomy) < 0.1e6);
}

TEST_CASE("bags of rows without elements cost their ids alone", "[kernel][embedding]") {
  CHECK(time_of(bag(1000, 0, 32, 5, 0)) > 0);
  CHECK(time_of(lower(OpType::embedding_bag_backward, {{{32, 0}}, ids({32, 5})}, {{"rows", i(1000)}})) > 0);
}

TEST_CASE("a bag's gradient sorts ids and sums by row", "[kernel][embedding]") {
  const Pairs rows{{"rows", i(65536)}};
  const Lowered dense = lower(OpType::embedding_bag_backward, {{{2048, 64}}, ids({2048, 10})}, rows);
  // Sixteen bits tell rows apart: two digits.
  CHECK(names(dense) ==
        "vectorized_elementwise_kernel<4> DeviceRadixSortHistogramKernel DeviceRadixSortExclusiveSumKernel "
        "DeviceRadixSortOnesweepKernel DeviceRadixSortOnesweepKernel "
        "split_embedding_backward_codegen_kernel_warp_per_row");
  CHECK(dense.launches[0].work.written.value == 65536 * 64 * 4);
  CHECK(dense.launches[3].work.read.value == 12 * 20480);
  Pairs fused = rows;
  fused.push_back({"fused_update", i(1)});
  const Lowered updating = lower(OpType::embedding_bag_backward, {{{2048, 64}}, ids({2048, 10})}, fused);
  CHECK(updating.launches.size() == dense.launches.size() - 1);  // Nothing to clear.
  CHECK(updating.launches.back().work.read > dense.launches.back().work.read);
  CHECK(time_of(updating) < time_of(dense));
}

TEST_CASE("gathers take what they hand out, scatters distinct rows once through memory", "[kernel][embedding]") {
  // 1e6 lookups in 100 rows of 64 bytes.
  const Lowered gathered = lower(OpType::gather, {{{100, 16}}, ids({1'000'000})});
  CHECK_THAT(gathered.launches[0].work.read.value, WithinRel(8e6 + 64e6, 1e-6));
  CHECK(gathered.launches[0].work.written.value == 64e6);
  CHECK(detail(gathered.launches[0]).far_bytes == 0);
  const Lowered scattered = lower(OpType::scatter_add, {{{1'000'000, 16}}, ids({1'000'000})}, {{"rows", i(100)}});
  REQUIRE(scattered.launches.size() == 2);
  CHECK(scattered.launches[0].work.written.value == 6400);
  CHECK_THAT(scattered.launches[1].work.read.value, WithinRel(8e6 + 64e6 + 6400, 1e-6));
  CHECK_THAT(scattered.launches[1].work.written.value, WithinRel(6400, 1e-6));
  CHECK_THAT(detail(scattered.launches[1]).reread_bytes, WithinRel(2 * (64e6 - 6400), 1e-6));
  CHECK(lower(OpType::gather, {{{0, 16}}, ids({0})}).launches.empty());
}

TEST_CASE("a sparse product reads its structure, its values and the rows it meets", "[kernel][sparse]") {
  const Lowered l = lower(OpType::spmm, {{{1000, 64}}, ids({8000}), {{8000}}}, {{"rows", i(500)}});
  REQUIRE(l.launches.size() == 1);
  const auto& k = std::get<kernel::SparseKernel>(l.launches[0].detail);
  CHECK(k.rows == 500);
  CHECK(k.cols == 1000);
  CHECK(k.nnz == 8000);
  CHECK(l.launches[0].work.mac == 8000 * 64);
  CHECK(l.launches[0].work.read.value == 8 * 8000 + 8 * 501 + 4 * 8000 + 4 * 1000 * 64);
  CHECK(l.launches[0].work.written.value == 4 * 500 * 64);
  const Lowered ones =
      lower(OpType::spmm, {{{1000, 64}}, ids({8000})}, {{"rows", i(500)}, {"reduce", std::string("mean")}});
  REQUIRE(ones.launches.size() == 2);
  CHECK(ones.launches[0].work.mac == 0);
  CHECK(ones.launches[0].work.other_flop == 8000 * 64);
  CHECK(ones.launches[1].work.written.value == 4 * 500 * 64);
  // Values are brought into the transpose's order first.
  CHECK(lower(OpType::spmm, {{{1000, 64}}, ids({8000}), {{8000}}}, {{"rows", i(500)}, {"transposed", i(1)}})
            .launches.size() == 2);
  CHECK(
      std::get<kernel::SparseKernel>(lower(OpType::sddmm, {{{500, 64}}, {{1000, 64}}, ids({8000})}).launches[0].detail)
          .sampled);
  // No entries: zeroes.
  CHECK(names(lower(OpType::spmm, {{{1000, 64}}, ids({0})}, {{"rows", i(5)}})) == "vectorized_elementwise_kernel<4>");
}

TEST_CASE("sorting takes a pass per digit, or one CTA per row", "[kernel][sort]") {
  // Indices, histogram, its sum, four passes over 4-byte keys and 8-byte values.
  const Lowered l = lower(OpType::sort, {{{1'000'000}}}, {}, 2);
  REQUIRE(l.launches.size() == 7);
  CHECK(l.launches[0].work.written.value == 8e6);
  CHECK(l.launches[1].work.read.value == 4e6);
  for (std::size_t pass = 3; pass < 7; ++pass) {
    CHECK(l.launches[pass].work.read.value == 12e6);
    CHECK(l.launches[pass].work.written.value == 12e6);
  }
  CHECK(lower(OpType::sort, {{{1'000'000}, DataType::fp16}}, {}, 2).launches.size() == 5);
  const Lowered rows = lower(OpType::sort, {{{500, 1000}}}, {}, 2);
  CHECK(rows.launches.back().name == "radixSortKVInPlace");
  CHECK(rows.launches.back().grid[0] == 500);
  // Several long rows are brought together by a second sort.
  CHECK(lower(OpType::sort, {{{3, 1'000'000}}}, {}, 2).launches.size() == 7 + 3);
  // 15e9 pairs per second is what 100 bytes per pair leave of 1.5 TB/s.
  const double t = time_of(lower(OpType::sort, {{{100'000'000}}}, {}, 2));
  CHECK(1e8 / t > 5e9);
  CHECK(1e8 / t < 20e9);
}

TEST_CASE("suppression compares pairs on the GPU and scans on the host", "[kernel][detection]") {
  const Pairs keep{{"keep", i(1000)}};
  const Lowered l = lower(OpType::nms, {{{6000, 4}}, {{6000}}}, keep);
  const auto at = [&](std::string_view name) -> const Launch& {
    for (const Launch& launch : l.launches) {
      if (launch.name == name) return launch;
    }
    FAIL("no launch " << name);
    return l.launches[0];
  };
  CHECK(at("nms_kernel_impl").grid[0] == 94);
  CHECK(at("nms_kernel_impl").grid[1] == 94);
  CHECK(at("nms_kernel_impl").work.written.value == 8.0 * 94 * 6000);
  CHECK(std::get<kernel::TransferKernel>(at("Memcpy DtoH").detail).bytes.value == 8.0 * 94 * 6000);
  CHECK(l.host_calls > 5);
  const Lowered engine = lower(OpType::nms, {{{6000, 4}}, {{6000}}}, keep, 1, Framework::tensorrt);
  CHECK(names(engine).find("Memcpy") == std::string::npos);
  CHECK(lower(OpType::nms, {{{0, 4}}, {{0}}}, {{"keep", i(0)}}).launches.empty());
  CHECK(time_of(lower(OpType::nms, {{{12000, 4}}, {{12000}}}, keep)) > time_of(l));
}

TEST_CASE("regions read the part of the map they touch", "[kernel][detection]") {
  const Pairs size{{"size", i(7)}};
  // Few regions touch 4 corners of 4 samples per element; many touch all of the map.
  const Lowered few = lower(OpType::roi_align, {{{1, 256, 200, 200}}, {{1, 5}}}, size);
  CHECK(few.launches[0].work.read.value == 4.0 * 16 * 256 * 49 + 20);
  const Lowered many = lower(OpType::roi_align, {{{1, 256, 50, 50}}, {{1000, 5}}}, size);
  CHECK(many.launches[0].work.read.value == 4.0 * 256 * 2500 + 1000 * 20);
  CHECK(many.launches[0].work.written.value == 4.0 * 1000 * 256 * 49);
  const Lowered back = lower(OpType::roi_align_backward, {{{1000, 256, 7, 7}}, {{1000, 5}}},
                             {{"input_shape", graph::Shape{1, 256, 50, 50}}});
  REQUIRE(back.launches.size() == 2);
  CHECK(back.launches[0].work.written.value == 4.0 * 256 * 2500);
  CHECK(time_of(back) > time_of(many));
}

TEST_CASE("pools of volumes clear what their gradient adds to", "[kernel][pooling]") {
  const Lowered forward = lower(OpType::max_pool3d, {{{2, 8, 16, 16, 16}}}, {{"kernel", i(2)}});
  REQUIRE(forward.launches.size() == 1);
  const double n = 2 * 8 * 16 * 16 * 16;
  CHECK(forward.launches[0].work.read.value == 4 * n);
  CHECK(forward.launches[0].work.written.value == 12 * n / 8);  // Values and 64-bit places.
  CHECK(detail(forward.launches[0]).cols == 8);
  CHECK(detail(lower(OpType::avg_pool1d, {{{2, 8, 16}}}, {{"kernel", i(4)}}).launches[0]).cols == 4);
  const Lowered back =
      lower(OpType::pool_backward, {{{2, 8, 8, 8, 8}}, {{2, 8, 16, 16, 16}}},
            {{"of", std::string("max_pool3d")}, {"kernel", i(2)}, {"input_shape", graph::Shape{2, 8, 16, 16, 16}}});
  REQUIRE(back.launches.size() == 2);
  CHECK(back.launches[0].work.written.value == 4 * n);
  CHECK(back.launches[1].work.read.value == 12 * n / 8);
}

TEST_CASE("a connectionist loss waits for each step of time", "[kernel][loss]") {
  const std::vector<Input> inputs{{{500, 16, 29}}, ids({16, 100})};
  const Lowered l = lower(OpType::ctc_loss, inputs);
  REQUIRE(l.launches.size() == 3);
  // 201 states: 256 threads each, four samples to a CTA.
  CHECK(l.launches[0].cta.threads == 1024);
  CHECK(l.launches[0].grid[0] == 4);
  CHECK(l.launches[0].work.written.value == 4.0 * 500 * 16 * 201);
  CHECK(detail(l.launches[0]).passes == 500);
  const double t = time_of(l);
  CHECK(t > 500 * 0.2e-6);  // No step in less than a trip to L2 and back.
  CHECK(t < 500 * 2e-6);
  CHECK_THAT(time_of(lower(OpType::ctc_loss, {{{1000, 16, 29}}, ids({16, 100})})) / t, WithinRel(2.0, 0.15));
  const Lowered back = lower(OpType::ctc_loss_backward, {{{500, 16, 29}}, ids({16, 100}), {{}}});
  // Clear, beta, probabilities, five passes over blanks and nine over steps, what labels take away.
  CHECK(back.launches.size() == 3 + 14 + 1);
  CHECK(back.launches[1].name == "ctc_loss_backward_log_beta_gpu_kernel");
  CHECK(back.launches.back().name == "ctc_loss_backward_collect_nonblank_gpu_kernel");
  // A small problem: 2 * 100 + 2.4 * 16 + 0.2 * 29 is below 450.
  CHECK(names(lower(OpType::ctc_loss_backward, {{{100, 16, 29}}, ids({16, 30}), {{}}})) ==
        "vectorized_elementwise_kernel<4> ctc_loss_backward_log_beta_gpu_kernel ctc_loss_backward_collect_gpu_kernel");
  CHECK(lower(OpType::ctc_loss, {{{0, 16, 29}}, ids({16, 100})}).launches.empty());
  CHECK(lower(OpType::ctc_loss, {{{500, 16, 29}}, ids({16, 0})}).launches.size() == 3);
}

TEST_CASE("distances take a kernel and a mean, cross entropy of logits five kernels", "[kernel][loss]") {
  CHECK(lower(OpType::smooth_l1_loss, {{{9, 4}}, {{9, 4}}}).launches.size() == 2);
  CHECK(lower(OpType::bce_loss, {{{9, 4}}, {{9, 4}}}).launches.size() == 5);
  CHECK(lower(OpType::bce_loss, {{{9, 4}}, {{9, 4}}}, {}, 1, Framework::compiled).launches.size() == 2);
  CHECK(lower(OpType::bce_loss_backward, {{{9, 4}}, {{9, 4}}, {{}}}).launches.size() == 4);
}

TEST_CASE("labels are walked by one CTA of a thread per sixteen", "[kernel][loss]") {
  const auto threads = [](std::int64_t rows) {
    return lower(OpType::cross_entropy, {{{rows, 40}}, ids({rows})}).launches[1].cta.threads;
  };
  CHECK(threads(8) == 32);
  CHECK(threads(2048) == 128);
  CHECK(threads(169343) == 1024);
}

TEST_CASE("long rows are selected and scanned by the whole GPU", "[kernel][reduction]") {
  const Lowered one = lower(OpType::topk, {{{1, 1'000'000}}}, {{"k", i(10)}}, 2);
  CHECK(one.launches[0].name == "radixFindKthValues");
  CHECK(one.launches[0].grid[0] == 245);
  CHECK(one.launches[0].work.read.value == 4e6);
  CHECK(lower(OpType::topk, {{{64, 1000}}}, {{"k", i(10)}}, 2).launches[0].name == "gatherTopK");
  const Lowered scanned = lower(OpType::cumsum, {{{1'000'000}}});
  CHECK(scanned.launches[0].grid[0] == 521);
  CHECK(time_of(scanned) < 20e-6);
}

TEST_CASE("every GPU prices every operation by index above its roofline", "[kernel][property]") {
  for (const std::string gpu : {"v100-sxm2-16gb", "t4", "a100-sxm4-80gb", "a10", "h100-sxm5-80gb"}) {
    INFO(gpu);
    const auto priced = [&](OpType op, const std::vector<Input>& inputs, const Pairs& pairs = {}, int outputs = 1) {
      CHECK(time_of(lower(op, inputs, pairs, outputs, Framework::eager, gpu), gpu) > 0);
    };
    priced(OpType::spmm, {{{2708, 1433}}, {{10556}, DataType::int32}}, {{"rows", i(2708)}});
    priced(OpType::sddmm, {{{500, 64}}, {{1000, 64}}, ids({8000})});
    priced(OpType::embedding_bag, {ids({2048, 26}), {{1'000'000, 64}}}, {{"zipf", 1.05}});
    priced(OpType::embedding_bag_backward, {{{2048, 64}}, ids({2048, 26})}, {{"rows", i(1'000'000)}});
    priced(OpType::roi_align, {{{2, 256, 50, 68}}, {{512, 5}}}, {{"size", i(7)}});
    priced(OpType::nms, {{{2000, 4}}, {{2000}}}, {{"keep", i(500)}});
    priced(OpType::sort, {{{8732}}}, {}, 2);
    priced(OpType::sort, {{{64, 2000}}}, {}, 2);
    priced(OpType::topk, {{{4, 100'000}}}, {{"k", i(1000)}}, 2);
    priced(OpType::ctc_loss, {{{200, 8, 29}}, ids({8, 50})});
    priced(OpType::ctc_loss_backward, {{{200, 8, 29}}, ids({8, 50}), {{}}});
    priced(OpType::max_pool1d, {{{8, 64, 1000}}}, {{"kernel", i(3)}});
    priced(OpType::bce_loss, {{{64, 1}}, {{64, 1}}});
  }
}
