// SPDX-License-Identifier: MIT
// Layers of fitted values: what replaces what, what a board and a measuring session see, and which files are refused.
#include "arch/calibration_document.hpp"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "arch/loader.hpp"
#include "arch/units/error.hpp"
#include "tests/support/catch.hpp"

using namespace voltaic;
using arch::Architecture;
using arch::CalibrationDocument;

namespace {

/// A file that disappears with the test.
struct TemporaryFile {
  explicit TemporaryFile(const std::string& text)
      : path(std::filesystem::temp_directory_path() / ("voltaic-calibration-" + std::to_string(getpid()) + ".json")) {
    std::ofstream(path, std::ios::binary) << text;
  }
  ~TemporaryFile() {
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
  }
  std::filesystem::path path;
};

CalibrationDocument document(const std::string& text) {
  return CalibrationDocument::read(TemporaryFile(text).path.string());
}

constexpr const char* kToy = R"({
  "schema": "voltaic.calibration/1", "architecture": "volta", "date": "2026-01-02", "source": "toy",
  "law": {"share": {"value": 0.5, "source": "toy"}, "list": [1, 2], "word": "first", "kept": 3},
  "boards": {"one": {"law": {"share": 0.6}, "sessions": {"late": {"law": {"share": 0.7}}}}},
  "sessions": {"late": {"law": {"kept": 4}}, "early": {"law": {"share": 0.1}}}})";

std::string refusal(const std::string& text) {
  try {
    document(text);
  } catch (const ConfigError& e) {
    return e.what();
  }
  return "";
}
bool says(const std::string& text, const std::string& word) {
  return text.find(word) != std::string::npos && text.find('\n') == std::string::npos;
}

}  // namespace

TEST_CASE("a board's values replace the architecture's, a session's those of the board", "[arch][calibration]") {
  const auto d = document(kToy);
  CHECK(d.tree("other").number("law.share") == 0.5);
  CHECK(d.tree("one").number("law.share") == 0.6);
  CHECK(d.tree("one", "late").number("law.share") == 0.7);
  CHECK(d.tree("one", "late").number("law.kept") == 4);
  CHECK(d.tree("one").number("law.kept") == 3);
  // A session that every board has reaches those that say nothing of it.
  CHECK(d.tree("other", "late").number("law.share") == 0.5);
  CHECK(d.tree("other", "late").number("law.kept") == 4);
  CHECK(d.tree("other", "early").number("law.share") == 0.1);
  CHECK(d.tree("one", "never").number("law.share") == 0.6);
  CHECK(arch::in_session(d.tree("one"), "late").number("law.share") == 0.7);
}

TEST_CASE("values laid over others replace or join them", "[arch][calibration]") {
  auto d = document(kToy);
  CalibrationDocument over;
  over.set("law.share", 0.9);
  over.set("law.list", std::vector<double>{7});
  over.set("law.extra.deep", 5.0);
  d.overlay(over);
  CHECK(d.number("law.share") == 0.9);
  CHECK(d.tree("x").numbers("law.list") == std::vector<double>{7});
  CHECK(d.number("law.extra.deep") == 5);
  CHECK(d.number("law.kept") == 3);
  CHECK(d.tree("x").word("law.word") == "first");
  // What a board says for itself still wins.
  CHECK(d.tree("one").number("law.share") == 0.6);
  CHECK(d.date() == "2026-01-02");
}

TEST_CASE("set makes what is missing and keeps the source of what is there", "[arch][calibration]") {
  auto d = document(kToy);
  d.set("law.share", 0.25);
  CHECK(d.number("law.share") == 0.25);
  CHECK(d.text().find("\"source\": \"toy\"") != std::string::npos);
  d.set("boards.two.law.share", 0.75);
  CHECK(d.tree("two").number("law.share") == 0.75);
  CHECK(d.tree("one").number("law.share") == 0.6);
  d.set("law.word", std::string_view("second"));
  CHECK(d.tree("x").word("law.word") == "second");
  d.set_json("law.more", R"({"a": 1, "b": [2]})");
  CHECK(d.number("law.more.a") == 1);
  CHECK(d.has("law.more.b"));
  CHECK_FALSE(d.has("law.more.c"));
  CHECK_FALSE(d.has("boards.three"));
  CHECK_THROWS_AS(d.number("law.missing"), ConfigError);
  CHECK_THROWS_AS(d.number("law.word"), ConfigError);
}

TEST_CASE("a copy is its own, and text is the whole of a document", "[arch][calibration]") {
  auto d = document(kToy);
  const CalibrationDocument copy = d;
  d.set("law.share", 0.01);
  CHECK(copy.number("law.share") == 0.5);
  CHECK(copy.text() != d.text());
  CHECK(CalibrationDocument().text() == "{}\n");
  // Headers of a file are no parameters.
  CHECK_FALSE(copy.has("schema"));
  CHECK_FALSE(copy.has("date"));
  CHECK_FALSE(copy.has("architecture"));
}

TEST_CASE("fitted values lie over priors, a file of one's own over both, and keep what it does not name",
          "[arch][calibration]") {
  const std::string path = "single_op.add.floor_s";
  const auto priors = CalibrationDocument::built_in(Architecture::volta, false);
  const auto shipped = CalibrationDocument::built_in(Architecture::volta);
  CHECK(priors.tree("v100-pcie-32gb").number(path) > 0);
  CHECK(shipped.tree("v100-pcie-32gb").number(path) > 0);
  const TemporaryFile file(R"({"schema": "voltaic.calibration/1", "date": "2099-01-01",
    "boards": {"v100-pcie-32gb": {"single_op": {"add": {"floor_s": 0.001}}}}})");
  const auto gpu = arch::resolve_gpu("v100-pcie-32gb", {}, file.path.string());
  CHECK(gpu.calibration.number(path) == 0.001);
  CHECK(gpu.calibration.number("single_op.add.launch_s") ==
        arch::resolve_gpu("v100-pcie-32gb").calibration.number("single_op.add.launch_s"));
  CHECK(gpu.calibration_id.find("with") != std::string::npos);
  // Other boards, and later questions without the file, are not touched.
  CHECK(arch::resolve_gpu("v100-sxm2-16gb", {}, file.path.string()).calibration.number(path) < 0.0005);
  CHECK(arch::resolve_gpu("v100-pcie-32gb").calibration.number(path) < 0.0005);
}

TEST_CASE("what is fitted and shipped names its rows", "[arch][calibration]") {
  for (const auto a : {Architecture::volta, Architecture::turing, Architecture::ampere, Architecture::hopper}) {
    const auto priors = CalibrationDocument::built_in(a, false);
    const auto shipped = CalibrationDocument::built_in(a);
    CHECK(shipped.text() != priors.text());
    CHECK_FALSE(shipped.date().empty());
  }
}

TEST_CASE("numbers laid into a tree leave the tree as it was", "[arch][calibration]") {
  const auto tree = document(kToy).tree("one");
  const auto other = arch::with_numbers(tree, {{"law.share", 0.2}, {"law.new.one", 3}});
  CHECK(other.number("law.share") == 0.2);
  CHECK(other.number("law.new.one") == 3);
  CHECK(tree.number("law.share") == 0.6);
  CHECK_FALSE(tree.has("law.new"));
}

TEST_CASE("a file that is no calibration is refused on one line", "[arch][calibration]") {
  CHECK(says(refusal("[1, 2]"), "expected an object"));
  CHECK(says(refusal("{}"), "/schema: expected \"voltaic.calibration/1\", got nothing"));
  CHECK(says(refusal(R"({"schema": "voltaic.graph/1"})"), "/schema"));
  CHECK(says(refusal(R"({"schema": 1})"), "/schema"));
  CHECK(says(refusal(R"({"schema": "voltaic.calibration/1", "boards": [1]})"), "/boards"));
  CHECK(says(refusal(R"({"schema": "voltaic.calibration/1", "sessions": 3})"), "/sessions"));
  CHECK(says(refusal("{\"schema\": "), ".json"));
  CHECK(says(refusal(""), ".json"));
  CHECK(says(refusal(R"({"schema": "voltaic.calibration/1", "law": {"x": NaN}})"), ".json"));
  CHECK_THROWS_AS(CalibrationDocument::read("no/such/file.json"), ConfigError);
  CHECK_THROWS_AS(CalibrationDocument::read("."), ConfigError);
}

TEST_CASE("a board or session that holds no object changes nothing", "[arch][calibration]") {
  const auto d = document(
      R"({"schema": "voltaic.calibration/1", "law": {"x": 1}, "boards": {"one": 3}, "sessions": {"late": [1]}})");
  CHECK(d.tree("one").number("law.x") == 1);
  CHECK(d.tree("one", "late").number("law.x") == 1);
}
