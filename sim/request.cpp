// SPDX-License-Identifier: MIT
#include "sim/request.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "arch/units/error.hpp"
#include "sim/cost/busy_clock.hpp"
#include "sim/generate.hpp"
#include "sim/memory_use.hpp"
#include "sim/quantised.hpp"

namespace voltaic {
namespace {

bool sixteen_bits_or_less(graph::Precision p) {
  using graph::Precision;
  return p != Precision::fp64 && p != Precision::fp32 && p != Precision::tf32;
}

std::string graph_key(const Request& r) {
  const auto number = [](const std::optional<std::int64_t>& v) { return v ? std::to_string(*v) : std::string("-"); };
  std::string key =
      fmt::format("{}|{}|{}|{}|{}|{}|{}|{}|{}", r.workload, r.training, static_cast<int>(r.phase),
                  number(r.build_options().batch), number(r.seq), number(r.context), number(r.image_height),
                  number(r.image_width), static_cast<int>(r.resolved_attention()));
  for (const auto& [name, value] : r.dims) key += fmt::format("|{}={}", name, value);
  return key;
}

std::string gpu_key(const Request& r) {
  const auto& o = r.operating;
  std::string key = fmt::format("{}|{}|{}|{}|{}|{}|{}", r.gpu, r.calibration, static_cast<int>(r.engine), r.busy_s,
                                o.power_cap.value_or(Watts{0}).value, o.clock.value_or(Hertz{0}).value, o.toggle);
  for (const auto& set : r.overrides) key += fmt::format("|{}{}={}", set.path, set.multiply ? "*" : "", set.value);
  return key;
}

/// The value of `cache[key]`, made by `make` outside the lock when it is missing.
template <class T, class Make>
std::shared_ptr<const T> cached(std::mutex& mutex, std::map<std::string, std::shared_ptr<const T>>& cache,
                                const std::string& key, Make make) {
  {
    const std::lock_guard lock(mutex);
    if (const auto found = cache.find(key); found != cache.end()) return found->second;
  }
  auto made = make();
  const std::lock_guard lock(mutex);
  return cache.emplace(key, std::move(made)).first->second;
}

/// Defaults that the request took, in the words of the command line. Sizes are named by the workload itself.
void note_defaults(const Request& r, report::Prediction& p) {
  for (const auto& option : request_options()) {
    if (r.given.count(std::string(option.name)) != 0) continue;
    if (option.name == "gpu" || option.name == "mode" || option.name == "precision" || option.name == "framework" ||
        option.name == "engine" || option.name == "attention" || (option.name == "optimizer" && r.training)) {
      p.assumptions.push_back(fmt::format("--{} {} (default)", option.name, option.get(r)));
    }
  }
}

SimulationOptions options_for(const Request& request, const workloads::Workload& work) {
  SimulationOptions options;
  options.training = request.training;
  options.precision = request.resolved_precision();
  options.optimizer = request.optimizer;
  options.sparsity = request.sparsity;
  options.layout = request.layout;
  options.recompute = request.recompute;
  options.accumulation = request.accumulation;
  options.per_tensor_optimizer = request.per_tensor_optimizer;
  options.input_copy = request.input_copy;
  options.input_rate = request.input_rate;
  options.framework = request.framework;
  options.engine = request.engine;
  options.sampling = request.sampling;
  options.include_optimizer = request.include_optimizer;
  options.include_loss = request.include_loss;
  options.host_scale = request.host_scale;
  options.samples = static_cast<double>(work.batch * request.accumulation);
  options.tokens_per_sample = static_cast<double>(work.tokens_per_sample);
  options.kv_cache_elements = work.kv_cache_elements_per_token * static_cast<double>(work.kv_cache_tokens);
  return options;
}

void check_training_options(const Request& request) {
  if (!request.training) {
    const auto refuse = [](std::string_view option) {
      throw UsageError(fmt::format("--{}: belongs to --mode training", option));
    };
    if (request.recompute != graph::Recompute::none) refuse("recompute");
    if (request.accumulation > 1) refuse("accumulation");
    if (request.per_tensor_optimizer) refuse("optimizer-kernels");
    return;
  }
  const std::int64_t batch = request.batch.value_or(request.accumulation);
  if (batch % request.accumulation != 0) {
    throw UsageError(fmt::format("--accumulation: expected a divisor of the {} samples of --batch, got {}", batch,
                                 request.accumulation));
  }
}

void check_combination(const Request& request) {
  if (request.training && request.framework == kernel::Framework::tensorrt) {
    throw UnsupportedError(
        "--framework tensorrt is an inference engine; --mode training runs under eager, graph or compiled");
  }
  check_training_options(request);
  const auto& operating = request.operating;
  if (request.engine == cost::EngineKind::roofline && (operating.power_cap || operating.clock)) {
    throw UsageError("--engine roofline is the bound at the boost clock: it takes no --power-cap and no --clock");
  }
  for (const char* option : {"sample", "l2"}) {
    if (request.engine == cost::EngineKind::cycle || request.given.count(option) == 0) continue;
    throw UsageError(fmt::format("--{}: belongs to --engine cycle", option));
  }
}

/// The prefill of a completion; refuses what has none.
Request prefill_of(const Request& request) {
  if (request.training) throw UsageError("--generate: training generates no tokens; leave --mode training out");
  if (request.phase != workloads::RunPhase::whole) {
    throw UsageError("--generate is a prefill and its decode steps: it needs an autoregressive model and no --phase");
  }
  if (request.context) throw UsageError("--generate: the context grows from the prompt; give that with --seq");
  Request prefill = request;
  prefill.phase = workloads::RunPhase::prefill;
  prefill.generate.reset();
  return prefill;
}

}  // namespace

graph::Precision Request::resolved_precision() const {
  if (precision) return *precision;
  return training ? graph::Precision::mixed_fp16 : graph::Precision::fp16;
}

workloads::AttentionForm Request::resolved_attention() const {
  if (attention) return *attention;
  return sixteen_bits_or_less(resolved_precision()) ? workloads::AttentionForm::flash
                                                    : workloads::AttentionForm::unfused;
}

workloads::BuildOptions Request::build_options() const {
  workloads::BuildOptions o;
  o.training = training;
  o.phase = phase;
  o.batch = batch;
  if (accumulation > 1) o.batch = batch.value_or(accumulation) / accumulation;
  o.seq = seq;
  o.context = context;
  o.image_height = image_height;
  o.image_width = image_width;
  o.dims = dims;
  o.attention = resolved_attention();
  return o;
}

std::shared_ptr<const workloads::Workload> Runner::workload(const Request& request) {
  return cached(mutex_, workloads_, graph_key(request), [&] {
    return std::make_shared<const workloads::Workload>(
        workloads::load_workload(request.workload, request.build_options()));
  });
}

std::shared_ptr<const Simulator> Runner::simulator(const Request& request) {
  return cached(mutex_, simulators_, gpu_key(request), [&] {
    arch::ResolvedGpu gpu = arch::resolve_gpu(request.gpu, request.overrides, request.calibration);
    arch::operate(gpu, request.operating);
    if (request.busy_s > 0) gpu = cost::busy_for(gpu, Seconds{request.busy_s});
    return std::make_shared<const Simulator>(std::make_shared<const arch::ResolvedGpu>(std::move(gpu)), request.engine);
  });
}

SimulationOptions Runner::options(const Request& request) {
  return options_for(request, *workload(request));
}

report::Prediction Runner::predict_step(const Request& request) {
  return simulator(request)->predict(workload(request)->graph, options(request));
}

/// Decode graphs are made for their one use: a completion has too many to keep.
report::Prediction Runner::predict_generation(const Request& request) {
  const Request prefill = prefill_of(request);
  const auto sim = simulator(request);
  const auto prompt = workload(prefill);
  Request decode = prefill;
  decode.phase = workloads::RunPhase::decode;
  decode.seq = prompt->tokens_per_sample;
  const auto step = [&](std::int64_t context) {
    decode.context = context;
    workloads::Workload work = workloads::load_workload(decode.workload, decode.build_options());
    report::Prediction p = sim->predict(std::move(work.graph), options_for(decode, work));
    p.assumptions.insert(p.assumptions.begin(), work.assumptions.begin(), work.assumptions.end());
    p.warnings.insert(p.warnings.begin(), work.warnings.begin(), work.warnings.end());
    return p;
  };
  return complete(predict_step(prefill), {prompt->tokens_per_sample, *request.generate, prompt->context + 1}, step);
}

report::MemoryUse Runner::memory(const Request& request) {
  const auto sim = simulator(request);
  check_combination(request);
  const auto of_step = [&sim](const Request& step) {
    workloads::Workload work = workloads::load_workload(step.workload, step.build_options());
    const SimulationOptions options = options_for(step, work);
    return std::pair{sim->memory(std::move(work.graph), options), work.context};
  };
  if (!request.generate) return of_step(request).first;
  Request step = prefill_of(request);
  const auto [prefill, prompt] = of_step(step);
  if (*request.generate < 2) return prefill;
  step.phase = workloads::RunPhase::decode;
  step.context = prompt + *request.generate - 1;
  return memory_of_both(prefill, of_step(step).first);
}

report::Prediction Runner::predict(const Request& request) {
  const auto sim = simulator(request);
  check_combination(request);
  const bool engine = request.framework == kernel::Framework::tensorrt;
  const graph::Precision precision = engine ? engine_precision(sim->gpu().spec, request.resolved_precision())
                                            : request.resolved_precision();  // An engine may know better.
  const std::string warning = check_precision(sim->gpu().spec, precision);
  check_inference_only(request.training, request.resolved_precision(), request.sparsity);
  if (request.sparsity) check_sparsity(sim->gpu().spec, request.resolved_precision());
  const auto work = workload(request.generate ? prefill_of(request) : request);

  report::Prediction p = request.generate ? predict_generation(request) : predict_step(request);
  p.workload = work->name;
  p.input_path = work->source_path;
  p.input_sha256 = work->source_sha256;
  p.request.emplace_back("workload", request.workload);
  for (const auto& option : request_options()) {
    std::string value = option.get(request);
    if (option.name == "batch") value = std::to_string(work->batch * request.accumulation);
    if (option.name == "seq" && work->tokens_per_sample > 0 && !request.seq)
      value = std::to_string(work->tokens_per_sample);
    p.request.emplace_back(option.name, std::move(value));
  }
  std::vector<std::string> assumptions = std::move(p.assumptions);
  p.assumptions.clear();
  note_defaults(request, p);
  p.assumptions.insert(p.assumptions.end(), work->assumptions.begin(), work->assumptions.end());
  p.assumptions.insert(p.assumptions.end(), assumptions.begin(), assumptions.end());
  p.warnings.insert(p.warnings.begin(), work->warnings.begin(), work->warnings.end());
  if (!warning.empty() && std::find(p.warnings.begin(), p.warnings.end(), warning) == p.warnings.end()) {
    p.warnings.insert(p.warnings.begin(), warning);
  }
  return p;
}

}  // namespace voltaic
