// SPDX-License-Identifier: MIT
// Hugging Face configurations: what is read, and how each senseless field is refused.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tests/support/catch.hpp"
#include "tests/workloads/support.hpp"

namespace voltaic::workloads {
namespace {

using Json = nlohmann::json;
using test::refusal_of_config;

Json bert() {
  return {{"model_type", "bert"},          {"hidden_size", 1024},       {"num_hidden_layers", 2},
          {"num_attention_heads", 16},     {"intermediate_size", 4096}, {"vocab_size", 30522},
          {"max_position_embeddings", 512}};
}

Json llama() {
  return {{"model_type", "llama"},    {"hidden_size", 64},        {"num_hidden_layers", 1},
          {"num_attention_heads", 4}, {"intermediate_size", 128}, {"vocab_size", 1000}};
}

std::string with(Json config, const char* key, const Json& value) {
  config[key] = value;
  return refusal_of_config(config.dump());
}

std::int64_t parameters(const Json& config) {
  return import_huggingface(config.dump(), "config.json", {}).parameters;
}

}  // namespace

TEST_CASE("a field is refused with its place, what it should be and what it is", "[workloads][huggingface]") {
  CHECK(with(bert(), "num_attention_heads", 7) ==
        "config.json: /num_attention_heads: expected a divisor of hidden_size 1024, got 7");
  CHECK(with(bert(), "hidden_size", -1024) ==
        "config.json: /hidden_size: expected an integer from 1 to 16777216, got -1024");
  CHECK(with(bert(), "hidden_size", 0) == "config.json: /hidden_size: expected an integer from 1 to 16777216, got 0");
  CHECK(with(bert(), "hidden_size", 1024.5) ==
        "config.json: /hidden_size: expected an integer from 1 to 16777216, got 1024.5");
  CHECK(with(bert(), "hidden_size", "1024") ==
        "config.json: /hidden_size: expected an integer from 1 to 16777216, got \"1024\"");
  CHECK(with(bert(), "hidden_size", true) ==
        "config.json: /hidden_size: expected an integer from 1 to 16777216, got true");
  CHECK(with(bert(), "hidden_size", nullptr) ==
        "config.json: /hidden_size: expected an integer from 1 to 16777216, got nothing");
  CHECK(with(bert(), "vocab_size", 18446744073709551615ULL) ==
        "config.json: /vocab_size: expected an integer from 1 to 2147483647, got 18446744073709551615");
  CHECK(with(bert(), "num_hidden_layers", 100000) ==
        "config.json: /num_hidden_layers: expected an integer from 1 to 4096, got 100000");
  CHECK(with(bert(), "hidden_dropout_prob", 1.5) ==
        "config.json: /hidden_dropout_prob: expected a number in [0, 1), got 1.5");
  CHECK(with(llama(), "num_key_value_heads", 3) ==
        "config.json: /num_key_value_heads: expected a divisor of num_attention_heads 4, got 3");
  CHECK(with(llama(), "tie_word_embeddings", 1) == "config.json: /tie_word_embeddings: expected true or false, got 1");
}

TEST_CASE("every field a family needs is missed by name", "[workloads][huggingface]") {
  for (const std::string key : {"hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size",
                                "vocab_size", "max_position_embeddings"}) {
    Json config = bert();
    config.erase(key);
    CHECK_THAT(refusal_of_config(config.dump()), Catch::Matchers::StartsWith("config.json: /" + key + ": expected"));
  }
}

TEST_CASE("text that is no clean JSON object is refused on one line", "[workloads][huggingface]") {
  CHECK(refusal_of_config("") == "config.json: expected JSON, got an empty file");
  CHECK(refusal_of_config("[1]") == "config.json: expected a JSON object, got [1]");
  CHECK(refusal_of_config("{\n  \"a\": nan}") ==
        "config.json: line 2, column 9: expected JSON, got text that does not parse");
  CHECK(refusal_of_config("{\"a\": 1e999}") == "config.json: expected numbers within double range, got a larger one");
  CHECK(refusal_of_config("{\"model_type\": \"bert\", \"model_type\": \"gpt2\"}") ==
        "config.json: expected each key once, got 'model_type' twice");
  const std::string deep = "{\"a\": " + std::string(200, '[') + std::string(200, ']') + "}";
  CHECK(refusal_of_config(deep) == "config.json: expected nesting up to 64 levels, got more");
  CHECK(refusal_of_config(R"({"model_type": 3})") == "config.json: /model_type: expected a string, got 3");
}

TEST_CASE("a byte order mark and CRLF line ends are no obstacle", "[workloads][huggingface]") {
  std::string text = bert().dump(2);
  for (std::size_t at = 0; (at = text.find('\n', at)) != std::string::npos; at += 2) text.replace(at, 1, "\r\n");
  CHECK(import_huggingface("\xef\xbb\xbf" + text, "config.json", {}).parameters == parameters(bert()));
}

TEST_CASE("an unsupported family is refused with the list of those that are", "[workloads][huggingface]") {
  const auto refusal =
      test::message_of<UnsupportedError>([] { import_huggingface(R"({"model_type": "falcon"})", "config.json", {}); });
  CHECK(refusal ==
        "config.json: /model_type: 'falcon' is not supported; supported: bert, electra, gpt2, opt, llama, mistral, "
        "mixtral, qwen2, qwen3, "
        "switch_transformers, t5, vit");
  Json config = bert();
  config["hidden_act"] = "softsign";
  CHECK_THROWS_AS(import_huggingface(config.dump(), "config.json", {}), UnsupportedError);
}

TEST_CASE("grouped heads, biases and tied embeddings change the count as they should", "[workloads][huggingface]") {
  // h = 64, 4 heads of 16, f = 128, v = 1000: 4 h^2 + 3 h f + 2 h per layer, 2 v h + h around it.
  const std::int64_t base = 4 * 64 * 64 + 3 * 64 * 128 + 2 * 64 + 2 * 1000 * 64 + 64;
  CHECK(parameters(llama()) == base);
  Json config = llama();
  config["tie_word_embeddings"] = true;
  CHECK(parameters(config) == base - 64000);
  config = llama();
  config["num_key_value_heads"] = 1;
  CHECK(parameters(config) == base - 2 * 64 * 48);
  config["attention_bias"] = true;
  CHECK(parameters(config) == base - 2 * 64 * 48 + 64 + 16 + 16 + 64);
  config = llama();
  config["head_dim"] = 32;
  CHECK(parameters(config) == base + 4 * 64 * 64);
}

TEST_CASE("Qwen3-0.6B has its published number of parameters: own head size, key and query norms, tied table",
          "[workloads][huggingface]") {
  const Json config{{"model_type", "qwen3"},     {"hidden_size", 1024},      {"num_hidden_layers", 28},
                    {"num_attention_heads", 16}, {"num_key_value_heads", 8}, {"head_dim", 128},
                    {"intermediate_size", 3072}, {"vocab_size", 151936},     {"tie_word_embeddings", true}};
  CHECK(parameters(config) == 596049920);
}

TEST_CASE("OPT-350m projects its narrow embeddings and normalises after its blocks", "[workloads][huggingface]") {
  const Json config{{"model_type", "opt"},
                    {"hidden_size", 1024},
                    {"num_hidden_layers", 24},
                    {"num_attention_heads", 16},
                    {"ffn_dim", 4096},
                    {"vocab_size", 50272},
                    {"max_position_embeddings", 2048},
                    {"word_embed_proj_dim", 512},
                    {"do_layer_norm_before", false}};
  CHECK(parameters(config) == 331196416);
}

TEST_CASE("sizes that overflow are refused, not wrapped", "[workloads][huggingface]") {
  BuildOptions options;
  options.batch = 2147483647;
  options.seq = 2147483647;
  for (Json config : {llama(), Json{{"model_type", "t5"},
                                    {"d_model", 8},
                                    {"d_kv", 8},
                                    {"d_ff", 8},
                                    {"num_layers", 1},
                                    {"num_heads", 1},
                                    {"vocab_size", 8}}}) {
    CHECK_THROWS_AS(import_huggingface(config.dump(), "config.json", options), ConfigError);
  }
  options.batch = 0;
  CHECK(test::message_of<UsageError>([&] { import_huggingface(llama().dump(), "config.json", options); }) ==
        "--batch: expected an integer from 1 to 2147483647, got 0");
}

TEST_CASE("defaults that were taken are stated", "[workloads][huggingface]") {
  const Workload workload = import_huggingface(bert().dump(), "config.json", {});
  CHECK(std::find(workload.assumptions.begin(), workload.assumptions.end(), "batch 1") != workload.assumptions.end());
  CHECK(std::find(workload.assumptions.begin(), workload.assumptions.end(), "sequence length 512") !=
        workload.assumptions.end());
}

TEST_CASE("a configuration names its head and the width of its embeddings", "[workloads][huggingface]") {
  Json config = bert();
  const std::int64_t plain = parameters(config);
  config["architectures"] = {"BertForQuestionAnswering"};
  // No pooler of 1024^2 + 1024; two scores per token.
  CHECK(parameters(config) == plain - (1024 * 1024 + 1024) + 2 * 1024 + 2);
  config["architectures"] = {7, nullptr, "BertForMaskedLM"};
  CHECK(parameters(config) == plain);
  CHECK(with(bert(), "architectures", "BertForQuestionAnswering") ==
        "config.json: /architectures: expected an array, got \"BertForQuestionAnswering\"");
  config["model_type"] = "electra";
  config["architectures"] = {"ElectraForQuestionAnswering"};
  config["embedding_size"] = 1024;
  const std::int64_t wide = parameters(config);
  config["embedding_size"] = 128;
  // Tables and norm of 128 instead of 1024 columns, a dense layer to 1024.
  CHECK(parameters(config) == wide - (30522 + 512 + 2 + 2) * (1024 - 128) + 128 * 1024 + 1024);
}

}  // namespace voltaic::workloads
