// SPDX-License-Identifier: MIT
// Training jobs under power limits: mean watts, and the time of the same work under a limit over that under the highest
// one of the job, which the steps of the network give without knowing how many there were.
#include <fmt/format.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <array>
#include <map>

#include "arch/units/error.hpp"
#include "validation/compare/kernel_rows.hpp"
#include "validation/compare/power_rows.hpp"
#include "validation/compare/stack_reader.hpp"

namespace voltaic::validation {
namespace {

constexpr const char* kTimes = "time under a power limit";
constexpr const char* kWatts = "watts of training under a power limit";

/// What a job of these words trains. Sequence lengths are customary for the data sets: the source states none.
struct Workload {
  std::string_view model, dataset, ours;
  std::int64_t seq;
};
constexpr std::array<Workload, 3> kWorkloads{{
    {"ResNet-50 v1.5", "imagenet", "resnet50", 0},
    {"BERT-base", "squad", "bert-base", 384},
    {"BERT-base", "sentiment140", "bert-base", 128},
}};

struct Run {
  std::size_t row = 0;
  double limit_w = 0, time_s = 0;
  std::optional<double> watts;
  double predicted_s = 0, predicted_w = 0;
  bool top = false;  ///< The highest limit of its job.
};
struct Job {
  std::string name, table_gpu, key;
  Request request;
  std::vector<Run> runs;
  std::string refused;
};

/// The type that a framework of the time multiplies FP32 tensors in.
graph::Precision default_precision(const arch::GpuSpec& gpu) {
  return gpu.has_tensor_path(DataType::tf32) ? graph::Precision::tf32 : graph::Precision::fp32;
}

/// Empty, or why the row cannot be predicted.
std::string read_job(PowerReader& reader, std::size_t row, Job& job) {
  const CsvTable& table = reader.table();
  const auto model = table.text(row, "model");
  const auto dataset = table.text(row, "dataset");
  const auto* at = std::find_if(kWorkloads.begin(), kWorkloads.end(),
                                [&](const Workload& w) { return w.model == model && w.dataset == dataset; });
  if (table.text(row, "batch_per_gpu").empty()) return "a window of work whose batch is not stated";
  if (at == kWorkloads.end()) return fmt::format("model {} is not in the zoo", one_line(model));
  if (size_cell(table, row, "num_gpus") != 1) return "several GPUs";
  const std::string gpu = reader.gpu(row);
  job.table_gpu = one_line(table.text(row, "gpu"));
  if (gpu.empty()) return fmt::format("GPU {} is unknown", job.table_gpu);
  const std::int64_t batch = size_cell(table, row, "batch_per_gpu");
  job.name = fmt::format("{} {} batch {}", model, dataset, batch);
  job.key = fmt::format("{}|{}|{}", model, dataset, batch);
  job.request = reader.request(gpu);
  job.request.workload = at->ours;
  job.request.training = true;
  job.request.batch = batch;
  if (at->seq > 0) job.request.seq = at->seq;
  job.request.precision = default_precision(reader.runner().simulator(job.request)->gpu().spec);
  return "";
}

/// Jobs in order of their first row.
std::vector<Job> read_jobs(PowerReader& reader) {
  const CsvTable& table = reader.table();
  std::vector<Job> jobs;
  std::map<std::string, std::size_t> index;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const auto limit = reader.figure(row, "power_limit_W");
    const auto time = reader.figure(row, "time_s");
    if (!limit || !time) {
      reader.skip(std::string(kNoTime));
      continue;
    }
    Job job;
    if (std::string reason = read_job(reader, row, job); !reason.empty()) {
      reader.miss(reason, kTimes, row);
      continue;
    }
    if (!reader.wants("network", job.key)) continue;
    const std::string id =
        fmt::format("{}|{}|{}|{}", job.table_gpu, job.key, table.text(row, "kind"), table.text(row, "source"));
    const auto [at, fresh] = index.try_emplace(id, jobs.size());
    if (fresh) jobs.push_back(std::move(job));
    jobs[at->second].runs.push_back({row, *limit, *time, reader.figure(row, "avg_gpu_W"), 0, 0, false});
  }
  for (Job& job : jobs) {
    std::max_element(job.runs.begin(), job.runs.end(), [](const Run& a, const Run& b) {
      return a.limit_w < b.limit_w;
    })->top = true;
  }
  return jobs;
}

void predict_job(Runner& runner, Job& job) {
  try {
    for (Run& run : job.runs) {
      Request request = job.request;
      request.operating.power_cap = Watts{run.limit_w};
      const report::Prediction p = runner.predict(request);
      run.predicted_s = p.total.value;
      run.predicted_w = p.average_power_w.value.value_or(0);
    }
  } catch (const std::runtime_error& e) {
    job.refused = e.what();
  }
}

Pair pair_of(const Job& job, const Run& run, const CsvTable& table) {
  Pair pair;
  pair.gpu = job.table_gpu;
  pair.op = "network";
  pair.dtype = std::string(graph::to_string(job.request.resolved_precision()));
  pair.origin = one_line(table.text(run.row, "dataset"));
  pair.label = fmt::format("{} at {:g} W", job.name, run.limit_w);
  pair.fit = is_fit_key(job.key);
  pair.explanation = "steps of this network alone: no input pipeline, no evaluation";
  return pair;
}

void record(PowerReader& reader, const Job& job) {
  const auto top = std::find_if(job.runs.begin(), job.runs.end(), [](const Run& r) { return r.top; });
  const arch::ResolvedGpu& gpu = reader.runner().simulator(job.request)->gpu();
  for (const Run& run : job.runs) {
    if (run.top) {
      reader.skip(std::string(kReference));
    } else if (top->predicted_s > 0) {
      Pair pair = pair_of(job, run, reader.table());
      pair.unit = Unit::ratio;
      pair.mode = "time_ratio";
      pair.family = kTimes;
      pair.measured = run.time_s / top->time_s;
      answer(pair, run.predicted_s / top->predicted_s, power_half_width(gpu, "power_cap"));
      reader.out().pairs.push_back(std::move(pair));
    }
    if (!run.watts) {
      reader.skip(std::string(kNoWatts));
      continue;
    }
    Pair pair = pair_of(job, run, reader.table());
    pair.unit = Unit::watts;
    pair.mode = "watts";
    pair.family = kWatts;
    pair.measured = *run.watts;
    answer(pair, run.predicted_w, power_half_width(gpu, "power"));
    reader.out().pairs.push_back(std::move(pair));
  }
}

}  // namespace

void predict_training_rows(PowerReader& reader) {
  std::vector<Job> jobs = read_jobs(reader);
  tbb::parallel_for(std::size_t{0}, jobs.size(), [&](std::size_t i) { predict_job(reader.runner(), jobs[i]); });
  for (const Job& job : jobs) {
    if (job.refused.empty()) {
      record(reader, job);
    } else {
      for (const Run& run : job.runs) reader.miss(job.refused, kTimes, run.row);
    }
  }
}

}  // namespace voltaic::validation
