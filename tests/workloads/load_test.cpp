// SPDX-License-Identifier: MIT
// Telling a zoo name, a file and a mistake apart.
#include <filesystem>
#include <fstream>

#include "tests/support/catch.hpp"
#include "tests/workloads/support.hpp"
#include "workloads/sha256.hpp"

namespace voltaic::workloads {
namespace {

namespace fs = std::filesystem;

/// A folder that goes away with the test.
class Folder {
 public:
  Folder()
      : path_(fs::temp_directory_path() /
              ("voltaic_load_test_" + std::to_string(reinterpret_cast<std::uintptr_t>(this)))) {
    fs::create_directories(path_);
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ / name, std::ios::binary) << text;
    return (path_ / name).string();
  }
  std::string path() const { return path_.string(); }

 private:
  fs::path path_;
};

template <class Error>
std::string refusal(const std::string& what) {
  return test::message_of<Error>([&] { load_workload(what, {}); });
}

constexpr const char* kGraph = R"({"schema": "voltaic.graph/1", "name": "tiny", "dims": {"batch": 32},
  "inputs": [{"name": "x", "shape": ["batch", 784]}], "parameters": [{"name": "w", "shape": [10, 784]}],
  "nodes": [{"id": "fc", "op": "linear", "inputs": ["x", "w"], "outputs": ["y"]}], "outputs": ["y"]})";

}  // namespace

TEST_CASE("SHA-256 gives the digests of its standard", "[workloads][sha256]") {
  CHECK(sha256("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sha256("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK(sha256(std::string(1000000, 'a')) == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("the kind of a file is found from its content, not from its name", "[workloads][load]") {
  const Folder folder;
  const Workload graph = load_workload(folder.write("anything.bin", kGraph), {});
  CHECK(graph.kind == "graph file");
  CHECK(graph.name == "tiny");
  CHECK(graph.batch == 32);
  CHECK(graph.source_sha256 == sha256(kGraph));
  const Workload config = load_workload(
      folder.write(
          "notes",
          R"({"model_type": "gpt2", "n_embd": 8, "n_layer": 1, "n_head": 2, "vocab_size": 9, "n_positions": 16})"),
      {});
  CHECK(config.kind == "huggingface config");
  CHECK(config.tokens_per_sample == 16);
}

TEST_CASE("the batch given overrides the batch of a graph file", "[workloads][load]") {
  const Folder folder;
  BuildOptions options;
  options.batch = 4;
  const Workload workload = load_workload(folder.write("g.json", kGraph), options);
  CHECK(workload.batch == 4);
  CHECK(workload.graph.tensor(workload.graph.outputs[0]).shape == graph::Shape{4, 10});
}

TEST_CASE("what is known and not readable yet is named", "[workloads][load]") {
  const Folder folder;
  CHECK(test::contains(refusal<UnsupportedError>(folder.write("a.onnx", std::string("\x08\x07\x12\x07pytorch", 11))),
                       "an ONNX model"));
  CHECK(test::contains(refusal<UnsupportedError>(folder.write("t.json", R"({"traceEvents": []})")), "profiler trace"));
  CHECK(test::contains(refusal<UnsupportedError>(folder.write("g.json", R"({"schema": "voltaic.graph/2"})")),
                       "voltaic.graph/2"));
}

TEST_CASE("files that are none are refused on one line", "[workloads][load]") {
  const Folder folder;
  CHECK(refusal<ConfigError>(folder.path()) == folder.path() + ": expected a file, got a directory");
  const std::string missing = folder.path() + "/missing.json";
  CHECK(refusal<ConfigError>(missing) == missing + ": expected a file, found nothing there");
  const std::string kinds = ": expected a voltaic.graph/1 file or a Hugging Face config.json, got ";
  const auto refused_as = [&](const std::string& text, const std::string& got) {
    const std::string path = folder.write("x.json", text);
    CHECK(refusal<ConfigError>(path) == path + kinds + got);
  };
  refused_as("", "an empty file");
  refused_as("hello", "text that is no JSON object");
  refused_as(std::string("\x1f\x8b\x08\x00\x00", 5), "gzip data; expected it decompressed");
  refused_as("{\"a\": 1}", "an object without \"schema\" and \"model_type\"");
  refused_as(R"({"schema": "other/1"})", "\"schema\" is 'other/1', expected 'voltaic.graph/1'");
  const std::string broken = folder.write("b.json", "{\"a\": ");
  CHECK_THAT(refusal<ConfigError>(broken), Catch::Matchers::StartsWith(broken + ": line 1, column"));
  CHECK_THROWS_AS(load_workload("/dev/zero", {}), ConfigError);
}

TEST_CASE("a mistyped model name is answered with the nearest one", "[workloads][load]") {
  CHECK(refusal<UsageError>("bert-lrge") ==
        "workload 'bert-lrge': no such model or file; did you mean 'bert-large'?; see `voltaic list workloads`");
  CHECK_THROWS_AS(load_workload("", {}), UsageError);
  BuildOptions options;
  options.dims["layers"] = 3;
  CHECK_THROWS_AS(load_workload("gpt2", options), UsageError);
}

}  // namespace voltaic::workloads
