// SPDX-License-Identifier: MIT
#include "sim/report/json.hpp"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "arch/units/error.hpp"
#include "sim/report/detail/json_writer.hpp"
#include "sim/report/units.hpp"
#include "tests/sim/report/toy_prediction.hpp"
#include "tests/support/catch.hpp"

using namespace voltaic;
using Json = nlohmann::ordered_json;

namespace {

std::vector<std::string> keys(const Json& j) {
  std::vector<std::string> out;
  for (const auto& [key, value] : j.items()) out.push_back(key);
  return out;
}

}  // namespace

TEST_CASE("a prediction's document has the keys of the contract, in its order", "[report][json]") {
  const Json j = Json::parse(report::prediction_json(test::toy_prediction(), "predict", "0.1.0"));
  CHECK(keys(j) == std::vector<std::string>{"schema", "tool_version", "calibration", "command", "inputs", "request",
                                            "assumptions", "warnings", "result"});
  CHECK(j["schema"] == "voltaic.prediction/1.0");
  CHECK(j["calibration"] == Json{{"id", "toy"}, {"date", "2026-11-30"}});
  CHECK(keys(j["result"]) == std::vector<std::string>{"time_s", "share_of_total", "interval_s", "throughput", "flop",
                                                      "mac", "other_flop", "model_flop_utilization", "memory_bytes",
                                                      "energy_j", "average_power_w", "cost_usd", "co2_g",
                                                      "null_reasons", "bound", "layers", "unmodelled"});
}

TEST_CASE("numbers survive the round trip and whole numbers stay integers", "[report][json]") {
  const report::Prediction p = test::toy_prediction();
  const Json r = Json::parse(report::prediction_json(p, "predict", "0.1.0"))["result"];
  CHECK(r["time_s"]["total"].get<double>() == p.total.value);
  CHECK(r["flop"].is_number_integer());
  CHECK(r["flop"] == 4000);
  CHECK(r["memory_bytes"]["capacity"] == p.memory.capacity);
  CHECK(r["energy_j"].is_null());
  CHECK(r["null_reasons"]["energy_j"] == "no power model");
  CHECK(r["cost_usd"].get<double>() == 1.5e-8);
  CHECK_FALSE(r["null_reasons"].contains("cost_usd"));
  CHECK(r["throughput"]["tokens_per_s"].is_null());
}

TEST_CASE("layers hold their kernels, whose times add up to theirs", "[report][json]") {
  const Json r = Json::parse(report::prediction_json(test::toy_prediction(), "predict", "0.1.0"))["result"];
  REQUIRE(r["layers"].size() == 2);
  CHECK(r["layers"][1]["kernels"].size() == 2);
  for (const auto& layer : r["layers"]) {
    double sum = 0;
    for (const auto& k : layer["kernels"]) sum += k["time_s"].get<double>();
    CHECK_THAT(sum, WithinRel(layer["time_s"].get<double>(), 1e-12));
  }
  const Json& k = r["layers"][0]["kernels"][0];
  CHECK(k["grid"] == Json{12, 1, 1});
  CHECK(k["cycles"] == 10000);  // 10 us at 1 GHz
  CHECK(k["bound"] == "fma");
  CHECK_THAT(k["utilization"]["fma"].get<double>(), WithinRel(0.5, 1e-12));
}

TEST_CASE("request values that read as numbers or booleans become such", "[report][json]") {
  const Json q = Json::parse(report::prediction_json(test::toy_prediction(), "predict", "0.1.0"))["request"];
  CHECK(q["batch"] == 4);
  CHECK(q["quiet"] == true);
  CHECK(q["precision"] == "fp32");
  CHECK(q["version"] == "01");  // no JSON number
}

TEST_CASE("explain adds its sensitivities, predict has none", "[report][json]") {
  report::Prediction p = test::toy_prediction();
  p.sensitivities = {{"gpu.dram.peak_bandwidth", "*1.1", 0.95}};
  const Json j = Json::parse(report::prediction_json(p, "explain", "0.1.0"));
  CHECK(j["schema"] == "voltaic.explain/1.0");
  CHECK(j["result"]["sensitivities"][0]["time_ratio"] == 0.95);
  CHECK_FALSE(Json::parse(report::prediction_json(p, "predict", "0.1.0"))["result"].contains("sensitivities"));
}

TEST_CASE("NaN and infinity never reach a document", "[report][json]") {
  report::Prediction p = test::toy_prediction();
  p.flop = std::numeric_limits<double>::quiet_NaN();
  CHECK_THROWS_AS(report::prediction_json(p, "predict", "0.1.0"), InternalError);
  CHECK_THROWS_AS(report::shortest(std::numeric_limits<double>::infinity()), InternalError);
}

TEST_CASE("text is escaped and broken UTF-8 is repaired", "[report][json]") {
  report::JsonWriter w(0);
  w.begin_array();
  w.value("a\"b\\c\n\x01");
  w.value(std::string("ok \xC3\xA9 bad \xC3( \xED\xA0\x80"));
  w.end_array();
  const Json j = Json::parse(w.take());
  CHECK(j[0] == "a\"b\\c\n\x01");
  CHECK(j[1] == "ok \xC3\xA9 bad \xEF\xBF\xBD( \xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
}

TEST_CASE("shortest numbers read back the same", "[report][json]") {
  for (const double v : {0.1, 1.0 / 3, 1e300, 5e-324, 123456789012345678.0, -2.5, 1e15, 9007199254740993.0}) {
    CHECK(std::strtod(report::shortest(v).c_str(), nullptr) == v);
  }
  CHECK(report::shortest(8.0) == "8");
  CHECK(report::shortest(0.1) == "0.1");
}

TEST_CASE("a sweep point is one line, with its error when it has no answer", "[report][json]") {
  report::SweepPoint good;
  good.set = {{"batch", "2"}};
  good.time = Seconds{1e-3};
  good.samples_per_s = 2000;
  report::SweepPoint bad;
  bad.set = {{"batch", "4"}};
  bad.error = "no";
  const std::string line = report::sweep_point_json(good);
  CHECK(line.find('\n') == std::string::npos);
  CHECK(Json::parse(line)["set"]["batch"] == 2);
  CHECK(Json::parse(report::sweep_point_json(bad))["time_s"].is_null());
  CHECK(Json::parse(report::sweep_point_json(bad))["error"] == "no");
}

TEST_CASE("every schema is JSON and names the document it describes", "[report][schema]") {
  const auto names = report::schema_names();
  CHECK(names.size() == 11);
  for (const auto& name : names) {
    const Json schema = Json::parse(report::schema_text(name));
    CHECK(schema["properties"]["command"]["const"] == name);
  }
  CHECK(report::schema_text("nothing").empty());
}

TEST_CASE("the schema of predictions asks for exactly what a prediction writes", "[report][schema]") {
  const Json j = Json::parse(report::prediction_json(test::toy_prediction(), "predict", "0.1.0"));
  const Json schema = Json::parse(report::schema_text("predict"));
  CHECK(j["schema"] == schema["properties"]["schema"]["const"]);
  CHECK(keys(j["result"]) == schema["properties"]["result"]["required"].get<std::vector<std::string>>());
  const Json& kernel = schema["$defs"]["kernel"];
  CHECK(keys(j["result"]["layers"][0]["kernels"][0]) == kernel["required"].get<std::vector<std::string>>());
}

TEST_CASE("a foreign result is framed in the envelope unchanged", "[report][json]") {
  report::Envelope e;
  e.command = "list";
  const Json j = Json::parse(report::document_json(e, R"({"b": [1, 2.5, null, true, "x"], "a": 12345678901234})"));
  CHECK(j["result"].dump() == R"({"b":[1,2.5,null,true,"x"],"a":12345678901234})");
  CHECK(j["calibration"].is_null());
  CHECK_THROWS_AS(report::document_json(e, "{"), InternalError);
}
