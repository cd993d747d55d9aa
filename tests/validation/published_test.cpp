// SPDX-License-Identifier: MIT
// Published whole-network tables: which request each row asks for, what is skipped and why, speed-ups between rows. The
// figures of the sample tables are invented.
#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "arch/units/error.hpp"
#include "tests/support/catch.hpp"
#include "validation/compare/published_hosts.hpp"
#include "validation/compare/published_rows.hpp"

namespace voltaic::validation {
namespace {

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

const std::string kHeader =
    "model,submodel,framework,container,gpu,num_gpus,interconnect,nodes,mode,precision,batch_per_gpu,seq_or_size,flags,"
    "throughput,unit,throughput_per_gpu,lat_avg_ms,lat_p50_ms,lat_p90_ms,lat_p95_ms,lat_p99_ms,server_compute_infer_ms,"
    "time_to_train,time_to_train_unit,source_file,heading,source_line,commit\n";

/// A row of reference models.
struct Cells {
  std::string model = "ResNet-50 v1.5", submodel = {}, framework = "PyTorch", gpu = "V100-SXM2-16GB", gpus = "1";
  std::string mode = "training", precision = "FP32", batch = "64", size = {}, flags = {}, throughput = "320",
              unit = "images/s";
  std::string latency = {}, time_to_train = {}, heading = "Results";
  std::string line() const {
    return model + "," + submodel + "," + framework + ",," + gpu + "," + gpus + ",,," + mode + "," + precision + "," +
           batch + "," + size + "," + flags + "," + throughput + "," + unit + ",," + latency + ",,,,,," +
           time_to_train + ",,README.md," + heading + ",1,abc\n";
  }
};

CsvTable table_of(const std::vector<Cells>& rows) {
  std::string text = kHeader;
  for (const Cells& row : rows) text += row.line();
  return CsvTable::parse(text, "sample.csv");
}

PublishedRow row_of(const Cells& cells) {
  const CsvTable table = table_of({cells});
  PublishedRow row;
  const auto kind = published_table(table);
  REQUIRE(kind.has_value());
  CHECK(read_published_row(table, *kind, 0, row) == "");
  return row;
}

PublishedAsk ask_of(const Cells& cells) {
  PublishedAsk ask;
  CHECK(ask_published(published_map("deeplearningexamples"), row_of(cells), ask) == "");
  return ask;
}

std::string refusal(const Cells& cells) {
  const CsvTable table = table_of({cells});
  PublishedRow row;
  std::string reason = read_published_row(table, *published_table(table), 0, row);
  PublishedAsk ask;
  return reason.empty() ? ask_published(published_map("deeplearningexamples"), row, ask) : reason;
}

TEST_CASE("every shipped mapping of published tables can be read", "[validation][published]") {
  CHECK(published_sources().size() >= 5);
  for (const auto& source : published_sources()) CHECK(!published_map(source).entries.empty());
  CHECK_THROWS_AS(published_map("nobody"), ConfigError);
}

TEST_CASE("a mapping with a slip is refused by place", "[validation][published]") {
  const auto refused = [](const std::string& entry) {
    try {
      parse_published_map(R"({"source": "x", "entries": [)" + entry + "]}", "x.json");
    } catch (const ConfigError& e) {
      return std::string(e.what());
    }
    return std::string("taken");
  };
  CHECK(refused(R"({"model": "A", "workload": "resnet50"})") == "taken");
  CHECK(holds(refused(R"({"model": "A"})"), "/entries/0/workload"));
  CHECK(holds(refused(R"({"model": "A", "workload": "b", "skip": "c"})"), "/entries/0/workload"));
  CHECK(holds(refused(R"({"workload": "b"})"), "/entries/0/model"));
  CHECK(holds(refused(R"({"model": "A", "workload": "b", "sequence": 3})"), "/entries/0/sequence"));
  CHECK(holds(refused(R"({"model": "A", "workload": "b", "seq": -3})"), "/entries/0/seq"));
  CHECK(holds(refused(R"({"model": "A", "workload": "b", "seq": "row9"})"), "/entries/0/seq"));
  CHECK(holds(refused(R"({"model": "A", "workload": "b", "batch": {"": 0.5}})"), "/entries/0/batch/"));
  CHECK(holds(refused("3"), "/entries/0"));
  CHECK_THROWS_AS(parse_published_map("{", "x.json"), ConfigError);
  CHECK_THROWS_AS(parse_published_map("[]", "x.json"), ConfigError);
}

TEST_CASE("a training row asks for a step of its network", "[validation][published]") {
  const PublishedAsk ask = ask_of({});
  CHECK(ask.request.workload == "resnet50");
  CHECK(ask.request.gpu == "v100-sxm2-16gb");
  CHECK(ask.request.training);
  CHECK(ask.request.batch == 64);
  CHECK(ask.request.precision == graph::Precision::fp32);
  CHECK(ask.request.framework == kernel::Framework::eager);
  CHECK(ask.request.optimizer == graph::Optimizer::momentum);
  CHECK_THAT(ask.pair.measured, WithinRel(0.2, 1e-12));  // 64 images at 320 per second
  CHECK(ask.pair.op == "network");
  CHECK(ask.pair.mode == "training");
  CHECK(ask.pair.dtype == "FP32");
  CHECK(ask.pair.origin == "ResNet-50 v1.5, PyTorch");
  CHECK(ask.pair.family == "ResNet-50 v1.5 training");
}

TEST_CASE("precision, compiler and engine follow the row's words", "[validation][published]") {
  // This source tells FP32 from TF32; others mean what frameworks then did by default.
  const Cells ampere{.gpu = "A100-SXM4-40GB", .precision = "FP32"};
  CHECK(ask_of(ampere).request.precision == graph::Precision::fp32);
  PublishedAsk plain;
  CHECK(ask_published(published_map("lambda"), row_of(ampere), plain) == "");
  CHECK(plain.request.precision == graph::Precision::tf32);
  CHECK(ask_of({.precision = "mixed"}).request.precision == graph::Precision::mixed_fp16);
  CHECK(ask_of({.mode = "inference", .precision = "FP16"}).request.precision == graph::Precision::fp16);
  CHECK(ask_of({.framework = "TensorFlow1", .flags = "XLA"}).request.framework == kernel::Framework::xla);
  CHECK(ask_of({.framework = "TensorFlow1", .flags = "XLA=OFF"}).request.framework == kernel::Framework::eager);
  CHECK(ask_of({.framework = "MXNet"}).request.framework == kernel::Framework::graph);
  const PublishedAsk engine =
      ask_of({.framework = "PaddlePaddle", .mode = "inference", .precision = "INT8", .heading = "Paddle-TRT results"});
  CHECK(engine.request.framework == kernel::Framework::tensorrt);
  CHECK(engine.request.precision == graph::Precision::int8);
}

TEST_CASE("latency stands in where there is no throughput", "[validation][published]") {
  const PublishedAsk ask = ask_of({.mode = "inference", .batch = "4", .throughput = "", .unit = "", .latency = "12.5"});
  CHECK_THAT(ask.pair.measured, WithinRel(12.5e-3, 1e-12));
}

TEST_CASE("accumulated passes share one optimizer step", "[validation][published]") {
  const Cells bert{.model = "BERT",
                   .submodel = "large pre-training",
                   .precision = "mixed",
                   .batch = "4096",
                   .size = "128",
                   .flags = "Accumulation steps (FP32 and FP16)=128 and 64",
                   .throughput = "200",
                   .unit = "sequences/s"};
  const PublishedAsk whole = ask_of(bert);
  CHECK(whole.request.batch == 64);  // 4096 sequences in 64 passes
  CHECK(whole.accumulated == 64);
  CHECK_THAT(whole.pair.measured, WithinRel(0.32, 1e-12));

  Cells single = bert;
  single.precision = "FP32";
  CHECK(ask_of(single).request.batch == 32);

  Cells pass = bert;  // the batch of a pass stands beside that of a step
  pass.batch = "64";
  pass.flags = "Accumulated Batch size / GPU (TF32 and FP16)=4096 and 4096; " + bert.flags;
  CHECK(ask_of(pass).request.batch == 64);
  CHECK(ask_of(pass).accumulated == 64);

  const Accumulation gradient = accumulation_of(
      row_of({.precision = "mixed", .flags = "\"Gradient Accumulation: mixed precision, FP32=1024 , 2048\""}));
  CHECK(gradient.steps == 1024);
  CHECK(!gradient.in_batch);
  CHECK(accumulation_of(row_of({.flags = "Grad accumulation=16"})).steps == 16);
  CHECK(accumulation_of(row_of({})).steps == 1);
}

TEST_CASE("boards that tables spell in their own way have a name of ours", "[validation][published]") {
  CHECK(published_gpu("V100-SXM2-32GB") == "v100-sxm2-32gb");
  CHECK(published_gpu("V100-SXM3-32GB-H") == "v100-sxm3-32gb");
  CHECK(published_gpu("V100") == "v100-sxm2-16gb");
  CHECK(published_gpu("A100") == "a100-sxm4-40gb");
  CHECK(published_gpu("A100-SXM4-80GB MIG 1g.10gb") == "a100-sxm4-80gb:1g.10gb");
  CHECK(published_gpu("A30-24GB") == "a30");
  CHECK(published_gpu("MI250").empty());
}

TEST_CASE("rows that hold nothing to predict say why", "[validation][published]") {
  CHECK(refusal({.gpus = "8"}) == "several GPUs");
  CHECK(refusal({.throughput = "", .time_to_train = "29"}) == std::string(kNoTime));
  CHECK(holds(refusal({.mode = "inference", .flags = "backend=PyTorch"}), "server"));
  CHECK(holds(refusal({.model = "SIM"}), "not in the zoo"));
  CHECK(holds(refusal({.model = "Nobody's net"}), "no entry"));
  CHECK(holds(refusal({.gpu = "MI250"}), "MI250"));
  CHECK(refusal({.batch = ""}) == "batch not stated");
  CHECK(refusal({.precision = ""}) == "precision not stated");
  CHECK(holds(refusal({.precision = "FP6"}), "FP6"));
  CHECK(holds(refusal({.unit = "tokens/s"}), "tokens/s"));
  CHECK(holds(refusal({.model = "BERT", .submodel = "base", .framework = "TensorFlow1", .mode = "inference"}),
              "sequence length"));
}

TEST_CASE("figures that make no sense are refused by place", "[validation][published]") {
  CHECK_THROWS_AS(refusal({.throughput = "-3"}), ConfigError);
  CHECK_THROWS_AS(refusal({.throughput = "0"}), ConfigError);
  CHECK_THROWS_AS(refusal({.throughput = "fast"}), ConfigError);
  CHECK_THROWS_AS(refusal({.mode = "sleeping"}), ConfigError);
  CHECK(refusal({.batch = "0.5"}) == "batch not stated");
}

TEST_CASE("numbers are taken out of sizes", "[validation][published]") {
  CHECK(numbers_of("224x224x160x4") == std::vector<double>{224, 224, 160, 4});
  CHECK(numbers_of("128 6.99") == std::vector<double>{128, 6.99});
  CHECK(numbers_of("").empty());
  CHECK(numbers_of("1 2 3 4 5 6 7 8 9 10").size() == 8);
}

/// A prediction off by `factor`, for a row that has its measured time.
PublishedAsk predicted(Cells cells, double factor) {
  PublishedAsk ask = ask_of(cells);
  ask.pair.predicted = factor * ask.pair.measured;
  return ask;
}

TEST_CASE("speed-ups pair rows that differ in one thing", "[validation][published]") {
  std::vector<PublishedAsk> asks;
  asks.push_back(predicted({.precision = "FP32", .throughput = "300"}, 1.0));
  asks.push_back(predicted({.precision = "mixed", .throughput = "900"}, 1.5));
  asks.push_back(predicted({.gpu = "A100-SXM4-40GB", .precision = "TF32", .throughput = "600"}, 0.8));
  asks.push_back(predicted({.precision = "FP32", .batch = "128", .throughput = "330"}, 1.1));
  asks.push_back(predicted({.framework = "MXNet", .precision = "mixed", .throughput = "1000"}, 1.0));

  std::map<std::string, std::vector<RatioPair>> by_kind;
  for (const auto& pair : ratio_pairs(asks)) by_kind[pair.kind].push_back(pair);
  REQUIRE(by_kind["A100 over V100"].size() == 1);
  CHECK_THAT(by_kind["A100 over V100"][0].measured, WithinRel(2.0, 1e-12));
  CHECK_THAT(by_kind["A100 over V100"][0].predicted, WithinRel(2.5, 1e-12));  // 2 / 0.8
  REQUIRE(by_kind["16 bits over 32"].size() == 1);
  CHECK_THAT(by_kind["16 bits over 32"][0].measured, WithinRel(3.0, 1e-12));
  CHECK_THAT(by_kind["16 bits over 32"][0].predicted, WithinRel(2.0, 1e-12));  // 3 / 1.5
  REQUIRE(by_kind["batch scaling"].size() == 1);
  CHECK_THAT(by_kind["batch scaling"][0].measured, WithinRel(1.1, 1e-12));
  CHECK_THAT(by_kind["batch scaling"][0].predicted, WithinRel(1.0, 1e-12));  // 1.1 / 1.1
}

TEST_CASE("repeats of a run are one side of a speed-up, by their median", "[validation][published]") {
  std::vector<PublishedAsk> asks;
  for (const char* rate : {"200", "300", "900"}) asks.push_back(predicted({.throughput = rate}, 1.0));
  asks.push_back(predicted({.precision = "mixed", .throughput = "600"}, 1.0));
  const auto pairs = ratio_pairs(asks);
  REQUIRE(pairs.size() == 1);
  CHECK_THAT(pairs[0].measured, WithinRel(2.0, 1e-12));
}

TEST_CASE("statistics of speed-ups are by kind", "[validation][published]") {
  const auto lines = ratios({{"a", "", 1, 1.1}, {"b", "", 2, 1}, {"a", "", 1, 0.7}});
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].kind == "a");
  CHECK(lines[0].pairs == 2);
  CHECK_THAT(lines[0].mape, WithinRel(0.2, 1e-12));
  CHECK_THAT(lines[0].bias, WithinRel(-0.1, 1e-12));
  CHECK_THAT(lines[1].median_ape, WithinRel(0.5, 1e-12));
}

TEST_CASE("rows that read the same are told apart by their order", "[validation][published]") {
  PublishedRow row = row_of({.model = "BERT",
                             .submodel = "large fine-tuning squad",
                             .framework = "TensorFlow2",
                             .mode = "inference",
                             .precision = "FP16",
                             .batch = "8",
                             .size = "128",
                             .unit = "sequences/s"});
  PublishedAsk first, second;
  CHECK(ask_published(published_map("deeplearningexamples"), row, first) == "");
  row.occurrence = 1;
  CHECK(ask_published(published_map("deeplearningexamples"), row, second) == "");
  CHECK(first.request.workload == "bert-large-squad");
  CHECK(second.request.workload == "bert-base-squad");
}

TEST_CASE("tables of evaluation hold inference", "[validation][published]") {
  CHECK(row_of({.heading = "Results > Evaluation performance"}).mode == "inference");
  CHECK(row_of({.heading = "Results > Training performance"}).mode == "training");
}

/// Rows of two networks whose host takes `scale` times the calibrated one and `step_s` around each step, on a GPU that
/// needs 4 ms.
std::vector<HostSample> samples_of(double scale, double step_s) {
  std::vector<HostSample> out;
  for (int i = 0; i < 12; ++i) {
    HostSample s;
    s.model = i % 2 == 0 ? "one" : "two";
    s.framework = "PyTorch";
    s.mode = "inference";
    s.profile = "eager";
    s.generation = "v100";
    s.fit = true;
    const double host_s = 1e-3 * (1 + i);
    for (const double k : kHostScales) s.predicted_s.push_back(std::max(4e-3, k * host_s));
    s.measured_s = s.at(scale) + step_s;
    out.push_back(std::move(s));
  }
  return out;
}

TEST_CASE("hosts are found again in rows that they made", "[validation][published]") {
  for (const double step_s : {0.0, 1.5e-3}) {
    const auto hosts = fit_hosts(samples_of(2, step_s));
    REQUIRE(hosts.size() == 1);
    CHECK(hosts[0].framework == "PyTorch");
    CHECK(hosts[0].gpu == "v100");
    CHECK_THAT(hosts[0].scale, WithinRel(2.0, 0.06));
    CHECK(std::abs(hosts[0].step_s - step_s) < 3e-4);
  }
  auto report = samples_of(2, 0);
  for (auto& s : report) s.fit = false;
  CHECK(fit_hosts(report).empty());  // only fit rows are looked at
}

TEST_CASE("a file of hosts reads back", "[validation][published]") {
  const auto hosts = fit_hosts(samples_of(1.4, 1.5e-3));
  const PublishedMap map = parse_published_map(hosts_file("x", hosts), "x.hosts.json");
  REQUIRE(map.hosts.size() == 1);
  CHECK_THAT(map.hosts[0].scale, WithinRel(hosts[0].scale, 1e-3));
  PublishedRow row;
  row.framework = "PyTorch";
  CHECK(map.host_of(row, "eager", "v100-sxm2-16gb").scale == map.hosts[0].scale);
  CHECK(map.host_of(row, "graph", "v100-sxm2-16gb").scale == 1);
  CHECK(map.host_of(row, "eager", "v1000").scale == 1);
}

TEST_CASE("a published table is predicted, and says how much of it", "[validation][published]") {
  Runner runner;
  Validation v;
  const CsvTable table = table_of({{},
                                   {.precision = "mixed", .throughput = "800"},
                                   {.model = "SIM"},
                                   {.gpu = "T4", .mode = "inference", .precision = "FP16", .batch = "8"},
                                   {.gpus = "8"}});
  predict_published_rows(runner, table, *published_table(table), v);
  REQUIRE(v.pairs.size() == 3);
  for (const Pair& p : v.pairs) {
    CHECK(p.predicted > 0);
    CHECK(p.low <= p.predicted);
    CHECK(p.predicted <= p.high);
  }
  REQUIRE(v.coverage.size() == 1);
  CHECK(v.coverage[0].rows == 2);        // of V100
  CHECK(v.coverage[0].rows_total == 3);  // with the model that is none of the zoo
  REQUIRE(v.ratio_pairs.size() == 1);
  CHECK(v.ratio_pairs[0].kind == "16 bits over 32");
  CHECK(v.skipped.size() == 2);
  v.groups = group(v.pairs);
  v.ratios = ratios(v.ratio_pairs);
  const auto json = nlohmann::json::parse(validation_json(v));
  CHECK(json["ratios"][0]["pairs"] == 1);
  CHECK(json["coverage"][0]["rows_total"] == 3);
  CHECK(holds(validation_page(v, 100), "2 of 3 rows predicted"));
}

}  // namespace
}  // namespace voltaic::validation
