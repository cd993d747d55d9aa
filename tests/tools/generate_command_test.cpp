// SPDX-License-Identifier: MIT
#include <nlohmann/json.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/program.hpp"

TEST_CASE("a completion reports its first token, its steps and its layers by phase", "[commands][generate]") {
  const auto run = voltaic::test::voltaic("predict gpt2 --generate 40 --seq 32 --json");
  REQUIRE(run.code == 0);
  const auto result = nlohmann::json::parse(run.out).at("result");
  const auto& g = result.at("generation");
  CHECK(g.at("prompt_tokens") == 32);
  CHECK(g.at("generated_tokens") == 40);
  const double steps = 39 * g.at("time_per_output_token_s").at("mean").get<double>();
  CHECK_THAT(g.at("time_to_first_token_s").get<double>() + steps,
             WithinRel(result.at("time_s").at("total").get<double>(), 1e-9));
  CHECK(result.at("layers").front().at("repeats") == 1);
  CHECK(result.at("layers").back().at("repeats") == 39);
  CHECK_FALSE(nlohmann::json::parse(voltaic::test::voltaic("predict gpt2 --seq 32 --json").out)
                  .at("result")
                  .contains("generation"));
}

TEST_CASE("a completion is explained, compared and swept like a step", "[commands][generate]") {
  const auto explained = voltaic::test::voltaic("explain gpt2 --generate 8 --seq 32 --json");
  REQUIRE(explained.code == 0);
  CHECK(nlohmann::json::parse(explained.out).at("result").at("sensitivities").size() == 6);
  const auto page = voltaic::test::voltaic("predict gpt2 --generate 8 --seq 32");
  CHECK(page.out.find("first token after") != std::string::npos);
  CHECK(voltaic::test::voltaic("compare gpt2 --generate 8 --seq 32 --framework compiled,compiled-graph").code == 0);
  const auto one = voltaic::test::voltaic("sweep gpt2 --generate 4:64:*2 --seq 32 --csv --jobs 1");
  const auto many = voltaic::test::voltaic("sweep gpt2 --generate 4:64:*2 --seq 32 --csv --jobs 4");
  CHECK(one.code == 0);
  CHECK(one.out == many.out);
}

TEST_CASE("what generates no tokens exits with the code of its kind", "[commands][generate]") {
  CHECK(voltaic::test::voltaic("predict bert-large --generate 4").code == 4);
  CHECK(voltaic::test::voltaic("predict gpt2 --generate 4 --phase decode").code == 2);
  CHECK(voltaic::test::voltaic("predict gpt2 --generate 4 --mode training").code == 2);
  CHECK(voltaic::test::voltaic("predict gpt2 --generate 4 --context 8").code == 2);
  CHECK(voltaic::test::voltaic("predict gpt2 --generate 1000 --seq 100").code == 3);
}
