// SPDX-License-Identifier: MIT
// What kind of file an input is, from its content.
#include <nlohmann/json.hpp>

#include "arch/units/error.hpp"
#include "workloads/import/json_fields.hpp"

namespace voltaic::workloads {
namespace {

using Json = nlohmann::json;
using Kind = ContentKind::Kind;

/// Stops at the first top-level key that tells what the file is.
class TopLevelKeys final : public nlohmann::json_sax<Json> {
 public:
  ContentKind result;

  bool key(string_t& name) override {
    if (depth_ == 1) key_ = name;
    if (depth_ == 1 && name == "traceEvents") return found(Kind::foreign, "a Chrome or PyTorch profiler trace");
    if (depth_ == 1 && name == "weight_map")
      return found(Kind::foreign, "a weight index; its config.json describes the model");
    return true;
  }
  bool string(string_t& value) override {
    if (depth_ != 1) return true;
    if (key_ == "schema") {
      if (value == "voltaic.graph/1") return found(Kind::graph, "");
      if (value.starts_with("voltaic.graph/"))
        return found(Kind::foreign, "a layer graph of version '" + one_line(value, 40) + "'");
      return found(Kind::unknown, "\"schema\" is '" + one_line(value, 40) + "', expected 'voltaic.graph/1'");
    }
    if (key_ == "model_type") return found(Kind::huggingface, "");
    if (key_ == "_class_name") return found(Kind::foreign, "a diffusers configuration ('" + one_line(value, 40) + "')");
    return true;
  }
  bool start_object(std::size_t) override { return deeper(); }
  bool end_object() override { return shallower(); }
  bool start_array(std::size_t) override { return deeper(); }
  bool end_array() override { return shallower(); }
  bool null() override { return scalar("null"); }
  bool boolean(bool) override { return scalar("a boolean"); }
  bool number_integer(number_integer_t) override { return scalar("a number"); }
  bool number_unsigned(number_unsigned_t) override { return scalar("a number"); }
  bool number_float(number_float_t, const string_t&) override { return scalar("a number"); }
  bool binary(binary_t&) override { return true; }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }

 private:
  bool found(Kind kind, std::string name) {
    result = {kind, std::move(name)};
    return false;
  }
  /// A "schema" or "model_type" of the wrong type is for its reader to refuse, with the field's name.
  bool scalar(const char*) {
    if (depth_ == 1 && key_ == "model_type") return found(Kind::huggingface, "");
    if (depth_ == 1 && key_ == "schema") return found(Kind::graph, "");
    return true;
  }
  bool deeper() {
    ++depth_;
    return depth_ <= 100000;
  }
  bool shallower() {
    --depth_;
    return true;
  }

  std::string key_;
  int depth_ = 0;
};

ContentKind detect_binary(std::string_view text) {
  if (text.starts_with("\x1f\x8b")) return {Kind::unknown, "gzip data; expected it decompressed"};
  if (text.starts_with("\x28\xb5\x2f\xfd")) return {Kind::unknown, "zstd data; expected it decompressed"};
  if (text.starts_with("GGUF")) return {Kind::foreign, "a GGUF model"};
  if (text.starts_with("PK\x03\x04")) return {Kind::foreign, "a zip archive (a PyTorch checkpoint?)"};
  if (text.starts_with("\x89HDF")) return {Kind::foreign, "an HDF5 model"};
  if (text.starts_with("SQLite format 3")) return {Kind::foreign, "an SQLite database (an Nsight Systems export?)"};
  if (text.size() > 9 && text[8] == '{' && text[7] == 0)
    return {Kind::foreign, "a safetensors file; its config.json describes the model"};
  // ONNX: field 1 (ir_version, a varint below 32) first, then another field of ModelProto.
  if (text.size() > 2 && text[0] == 0x08 && text[1] > 0 && text[1] < 32) return {Kind::foreign, "an ONNX model"};
  return {};
}

}  // namespace

ContentKind detect_kind(std::string_view text) {
  ContentKind kind = detect_binary(text);
  if (kind.kind != Kind::unknown || !kind.name.empty()) return kind;
  std::string_view body = text;
  if (body.starts_with("\xef\xbb\xbf")) body.remove_prefix(3);
  const std::size_t first = body.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {Kind::unknown, "an empty file"};
  if (body[first] != '{') return {Kind::unknown, "text that is no JSON object"};
  TopLevelKeys keys;
  const bool complete = Json::sax_parse(body.begin(), body.end(), &keys);
  if (keys.result.kind != Kind::unknown || !keys.result.name.empty()) return keys.result;
  if (!complete) return {Kind::huggingface, ""};  // broken JSON: its reader says where
  return {Kind::unknown, "an object without \"schema\" and \"model_type\""};
}

}  // namespace voltaic::workloads
