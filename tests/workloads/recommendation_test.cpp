// SPDX-License-Identifier: MIT
// Recommendation networks against published sizes.
#include "tests/support/catch.hpp"
#include "tests/workloads/support.hpp"
#include "tests/workloads/training.hpp"

namespace voltaic::workloads {

TEST_CASE("NeuMF on MovieLens-20M has the parameters of the benchmark", "[workloads][recommendation]") {
  // 31,832,577 [MLPerf reference]: (138,493 + 26,744) rows of 64 + 128, a tower 256-256-128-64, a head over 128.
  CHECK(test::load("ncf").parameters == 31832577);
  CHECK_THAT(test::macs(test::load("ncf")), WithinRel(256.0 * 256 + 256 * 128 + 128 * 64 + 128, 1e-12));
}

TEST_CASE("DLRM holds 15.6 GiB of tables and its towers", "[workloads][recommendation]") {
  constexpr std::int64_t kRows = 32709138;
  CHECK_THAT(static_cast<double>(kRows) * 128 * 4 / 1024 / 1024 / 1024, WithinRel(15.6, 1e-3));
  const std::int64_t bottom = 13 * 512 + 512 + 512 * 256 + 256 + 256 * 128 + 128;
  const std::int64_t top = 480 * 1024 + 1024 + 1024 * 1024 + 1024 + 1024 * 512 + 512 + 512 * 256 + 256 + 256 + 1;
  CHECK(test::load("dlrm").parameters == kRows * 128 + bottom + top);
  // Without biases; 27 x 27 dot products of 128.
  const double macs = 13 * 512 + 512.0 * 256 + 256 * 128 + 27.0 * 27 * 128 + 480 * 1024.0 + 1024.0 * 1024 +
                      1024 * 512.0 + 512.0 * 256 + 256;
  CHECK_THAT(test::macs(test::load("dlrm", false, 64)), WithinRel(64 * macs, 1e-12));
}

TEST_CASE("DCN v2 crosses 3,456 features three times through a rank of 512", "[workloads][recommendation]") {
  const double cross = 3 * 2 * 3456.0 * 512;
  const double towers =
      13 * 512 + 512.0 * 256 + 256 * 128 + 3456 * 1024.0 + 1024.0 * 1024 + 1024 * 512.0 + 512.0 * 256 + 256;
  CHECK_THAT(test::macs(test::load("dcn-v2")), WithinRel(cross + towers, 1e-12));
}

TEST_CASE("the autoencoder over 20,108 items is 600-200-600", "[workloads][recommendation]") {
  // 20,108 x 600 + 600, 600 x 400 + 400, 200 x 600 + 600, 600 x 20,108 + 20,108 [Liang18].
  CHECK(test::load("vae-cf").parameters == 24511308);
}

TEST_CASE("Wide & Deep has five layers of 1024", "[workloads][recommendation]") {
  const auto widths = [](const Workload& workload) {
    std::int64_t wide = 0;
    for (const auto& node : workload.graph.nodes()) {
      if (node.op == graph::OpType::linear && workload.graph.tensor(node.outputs[0]).shape[1] == 1024) ++wide;
    }
    return wide;
  };
  CHECK(widths(test::load("wide-deep")) == 5);
}

TEST_CASE("tables of clicks are updated where they lie, the rest is trained", "[workloads][recommendation]") {
  for (const std::string name : {"ncf", "dlrm", "dcn-v2", "wide-deep", "vae-cf"}) {
    CAPTURE(name);
    CHECK(test::untrained(test::load(name, true, 8)).empty());
  }
  const Workload dlrm = test::load("dlrm", true, 8);
  CHECK(test::count_ops(dlrm, graph::OpType::embedding_bag) == 1);
}

TEST_CASE("popularity is an option of models with tables", "[workloads][recommendation]") {
  const auto with = [](const std::string& name, const std::string& dim, std::int64_t value) {
    BuildOptions options;
    options.dims = {{dim, value}};
    return load_workload(name, options);
  };
  double exponent = 0;
  const Workload skewed = with("dlrm", "zipf", 105);
  for (const auto& node : skewed.graph.nodes()) {
    if (node.op == graph::OpType::embedding_bag) exponent = node.attributes.number("zipf", 0);
  }
  CHECK(exponent == 1.05);
  CHECK(test::contains(test::message_of<UsageError>([&] { with("dlrm", "zip", 105); }), "did you mean 'zipf'?"));
  CHECK(test::contains(test::message_of<UsageError>([&] { with("ncf", "zipf", 105); }), "no such dim"));
  CHECK(test::contains(test::message_of<ConfigError>([&] { with("dlrm", "zipf", 5000); }), "zipf"));
}

}  // namespace voltaic::workloads
