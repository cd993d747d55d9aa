// SPDX-License-Identifier: MIT
// Parameters and multiply-adds of the zoo against the published figures of each model.
#include <set>

#include "tests/support/catch.hpp"
#include "tests/workloads/support.hpp"

namespace voltaic::workloads {

using test::load;

TEST_CASE("every zoo model has exactly its published number of parameters", "[workloads][parameters]") {
  const std::vector<std::pair<std::string, std::int64_t>> published{{"resnet18", 11689512},
                                                                    {"resnet50", 25557032},
                                                                    {"resnet101", 44549160},
                                                                    {"resnet152", 60192808},
                                                                    {"vgg16", 138357544},
                                                                    {"vit-b16", 86567656},
                                                                    {"bert-base", 109482240},
                                                                    {"bert-large", 335141888},
                                                                    {"gpt2", 124439808},
                                                                    {"gpt2-medium", 354823168},
                                                                    {"gpt2-large", 774030080},
                                                                    {"gpt2-xl", 1557611200},
                                                                    {"opt-125m", 125239296},
                                                                    {"opt-1.3b", 1315758080},
                                                                    {"opt-2.7b", 2651596800},
                                                                    {"opt-6.7b", 6658473984},
                                                                    {"opt-13b", 12853473280},
                                                                    {"llama-7b", 6738415616},
                                                                    {"llama-2-7b", 6738415616},
                                                                    {"llama-2-13b", 13015864320},
                                                                    {"llama-2-70b", 68976648192},
                                                                    {"llama-3-8b", 8030261248},
                                                                    {"llama-3.1-8b", 8030261248},
                                                                    {"llama-3.1-70b", 70553706496},
                                                                    {"llama-3.1-405b", 405853388800},
                                                                    {"llama-3.2-1b", 1235814400},
                                                                    {"llama-3.2-3b", 3212749824},
                                                                    {"mistral-7b", 7241732096},
                                                                    {"qwen2-7b", 7615616512},
                                                                    {"qwen2.5-0.5b", 494032768},
                                                                    {"qwen2.5-1.5b", 1543714304},
                                                                    {"qwen2.5-3b", 3085938688},
                                                                    {"qwen2.5-7b", 7615616512},
                                                                    {"qwen2.5-14b", 14770033664},
                                                                    {"qwen2.5-32b", 32763876352},
                                                                    {"qwen2.5-72b", 72706203648},
                                                                    {"qwen3-8b", 8190735360},
                                                                    {"mixtral-8x7b", 46702792704},
                                                                    {"mixtral-8x22b", 140620634112},
                                                                    {"t5-small", 60506624},
                                                                    {"t5-base", 222903552},
                                                                    {"t5-large", 737668096},
                                                                    {"t5-3b", 2851598336},
                                                                    {"t5-11b", 11307321344}};
  for (const auto& [name, parameters] : published) {
    CAPTURE(name);
    CHECK(load(name).parameters == parameters);
    CHECK(load(name, true).parameters == parameters);
  }
}

TEST_CASE("the graph holds each parameter once, and BERT its head besides", "[workloads][parameters]") {
  for (const std::string name : {"resnet50", "gpt2-large", "llama-3.1-8b", "t5-large"}) {
    CAPTURE(name);
    const Workload workload = load(name);
    CHECK(graph::parameter_count(workload.graph) == workload.parameters);
  }
  // A 1024 x 2 classifier and its bias.
  CHECK(graph::parameter_count(load("bert-large").graph) == 335141888 + 2050);
}

TEST_CASE("a mixture of experts uses a part of its parameters for a token", "[workloads][parameters]") {
  // 32 layers leave 6 of 8 experts of 3 x 4096 x 14336 idle: 46,702,792,704 - 33,822,867,456.
  CHECK(load("mixtral-8x7b").parameters_active_per_token == 12879925248);
  CHECK(load("llama-3.1-8b").parameters_active_per_token == 8030261248);
  // 12 + 12 sparse layers leave 3 of 4 experts of 2 x 1024 x 16384 idle.
  const Workload sparse = load("switch-xl");
  CHECK(sparse.parameters - sparse.parameters_active_per_token == 24LL * 3 * 2 * 1024 * 16384);
}

TEST_CASE("decode keeps the weights of what it does not run", "[workloads][parameters]") {
  BuildOptions options;
  options.phase = RunPhase::decode;
  for (const std::string name : {"t5-large", "switch-xl", "mixtral-8x7b", "gpt2"}) {
    CAPTURE(name);
    CHECK(load_workload(name, options).parameters == load(name).parameters);
  }
}

TEST_CASE("multiply-adds of the convolution networks match the published counts", "[workloads][mac]") {
  CHECK(test::macs(load("resnet18")) > 1.81e9);
  CHECK(test::macs(load("resnet18")) < 1.82e9);
  CHECK(test::macs(load("resnet50")) >= 4.08e9);
  CHECK(test::macs(load("resnet50")) < 4.11e9);
  CHECK(test::macs(load("vgg16")) > 15.47e9);
  CHECK(test::macs(load("vgg16")) < 15.5e9);
  // Work is linear in the batch.
  CHECK_THAT(test::macs(load("resnet50", false, 32)), WithinRel(32 * test::macs(load("resnet50")), 1e-12));
}

TEST_CASE("multiply-adds of BERT-large follow from its shapes", "[workloads][mac]") {
  // Per layer and token: 4 h^2 + 2 h f = 12,582,912, and 2 s h for the two attention products (s = 512, h = 1024);
  // 24 layers, 512 tokens; plus the pooler 1024^2 and the two-class head.
  const double expected = 24.0 * 512 * (12582912 + 2.0 * 512 * 1024) + 1024.0 * 1024 + 2048;
  CHECK_THAT(test::macs(load("bert-large")), WithinRel(expected, 1e-12));
}

TEST_CASE("zoo names are unique, described and load", "[workloads][zoo]") {
  std::set<std::string> names;
  for (const ZooEntry& entry : zoo()) {
    CAPTURE(entry.name);
    CHECK(names.insert(entry.name).second);
    CHECK(!entry.description.empty());
    const Workload workload = load(entry.name, true);
    CHECK(workload.kind == "zoo");
    CHECK(workload.graph.loss != UINT32_MAX);
    std::set<std::string> ids;
    for (const auto& node : workload.graph.nodes()) CHECK(ids.insert(node.id).second);
  }
}

}  // namespace voltaic::workloads
