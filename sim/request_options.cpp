// SPDX-License-Identifier: MIT
// The table of request options: how each is typed, kept and shown.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "arch/quantity_text.hpp"
#include "arch/units/error.hpp"
#include "sim/request.hpp"

namespace voltaic {
namespace {

using workloads::AttentionForm;
using workloads::RunPhase;

[[noreturn]] void refuse(std::string_view option, std::string_view expected, std::string_view got) {
  throw UsageError(fmt::format("--{}: expected {}, got '{}'", option, expected, one_line(got)));
}

std::int64_t whole_number(std::string_view option, std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 1) {
    refuse(option, "a whole number of at least 1", text);
  }
  return value;
}

template <class Enum>
Enum choice(std::string_view option, std::string_view text, std::optional<Enum> parsed, std::string_view known) {
  if (!parsed) refuse(option, fmt::format("one of {}", known), text);
  return *parsed;
}

std::string shown(const std::optional<std::int64_t>& v) {
  return v ? std::to_string(*v) : "model default";
}

[[noreturn]] void not_built(std::string_view what) {
  throw UnsupportedError(fmt::format("{} is not built yet", what));
}

void set_mode(Request& r, std::string_view v) {
  if (v != "inference" && v != "training") refuse("mode", "inference or training", v);
  r.training = v == "training";
}

void set_phase(Request& r, std::string_view v) {
  if (v == "whole") {
    r.phase = RunPhase::whole;
  } else if (v == "prefill") {
    r.phase = RunPhase::prefill;
  } else if (v == "decode") {
    r.phase = RunPhase::decode;
  } else {
    refuse("phase", "whole, prefill or decode", v);
  }
}

std::string phase_name(const Request& r) {
  switch (r.phase) {
    case RunPhase::whole: return "whole";
    case RunPhase::prefill: return "prefill";
    case RunPhase::decode: return "decode";
  }
  return "";
}

void set_generate(Request& r, std::string_view v) {
  constexpr std::int64_t kMost = 2147483647;
  const std::int64_t tokens = whole_number("generate", v);
  if (tokens > kMost) refuse("generate", fmt::format("a whole number from 1 to {}", kMost), v);
  r.generate = tokens;
}

void set_image(Request& r, std::string_view v) {
  const auto x = v.find('x');
  if (x == std::string_view::npos) refuse("image", "HxW, like 224x224", v);
  r.image_height = whole_number("image", v.substr(0, x));
  r.image_width = whole_number("image", v.substr(x + 1));
}

void set_dim(Request& r, std::string_view v) {
  const auto equals = v.find('=');
  if (equals == std::string_view::npos || equals == 0) refuse("dim", "name=N", v);
  r.dims[std::string(v.substr(0, equals))] = whole_number("dim", v.substr(equals + 1));
}

std::string dims_shown(const Request& r) {
  std::string out;
  for (const auto& [name, value] : r.dims) out += fmt::format("{}{}={}", out.empty() ? "" : ",", name, value);
  return out;
}

std::string overrides_shown(const Request& r) {
  std::string out;
  for (const auto& o : r.overrides) {
    out += fmt::format("{}{}{}={}", out.empty() ? "" : ",", o.path, o.multiply ? "*" : "", o.value);
  }
  return out;
}

void set_precision(Request& r, std::string_view v) {
  r.precision = choice("precision", v, graph::parse_precision(v),
                       "fp64, fp32, tf32, fp16, bf16, int8, int4, w8a16, w4a16, fp8, mixed-fp16, mixed-bf16");
}

void set_sparsity(Request& r, std::string_view v) {
  if (v != "none" && v != "2:4") refuse("sparsity", "none or 2:4", v);
  r.sparsity = v == "2:4";
}

void set_attention(Request& r, std::string_view v) {
  if (v == "auto") {
    r.attention.reset();
  } else if (v == "flash") {
    r.attention = AttentionForm::flash;
  } else if (v == "unfused") {
    r.attention = AttentionForm::unfused;
  } else {
    refuse("attention", "auto, flash or unfused", v);
  }
}

void set_engine(Request& r, std::string_view v) {
  const auto parsed = parse_engine(v);
  if (!parsed) refuse("engine", "roofline, analytic or cycle", v);
  r.engine = *parsed;
}

void set_sample(Request& r, std::string_view v) {
  const auto parsed = parse_sample(v);
  if (!parsed) refuse("sample", "steady or full", v);
  r.sampling.sample = *parsed;
}

void set_l2(Request& r, std::string_view v) {
  const auto parsed = parse_l2_model(v);
  if (!parsed) refuse("l2", "footprint or tags", v);
  r.sampling.l2 = *parsed;
}

double quantity(std::string_view option, std::string_view unit, std::string_view example, std::string_view text) {
  try {
    const double value = arch::parse_quantity(text, unit);
    if (value > 0) return value;
  } catch (const UsageError&) {
    // Said below, with the option's name.
  }
  refuse(option, example, text);
}

void set_power_cap(Request& r, std::string_view v) {
  r.operating.power_cap = Watts{quantity("power-cap", "w", "watts, like 250W", v)};
}

void set_clock(Request& r, std::string_view v) {
  r.operating.clock = Hertz{quantity("clock", "hz", "a clock, like 1200MHz", v)};
}

/// Bits that change between operands cost energy; how many do is between none and those of random numbers.
void set_operands(Request& r, std::string_view v) {
  if (v == "random") {
    r.operating.toggle = 1;
  } else if (v == "constant") {
    r.operating.toggle = 0;
  } else {
    const char* end = v.data() + v.size();
    double value = 0;
    const auto [at, error] = std::from_chars(v.data(), end, value);
    if (error != std::errc{} || at != end || !(value >= 0 && value <= 1)) {
      refuse("operands", "random, constant or a share from 0 to 1", v);
    }
    r.operating.toggle = value;
  }
}

std::string operands_shown(const Request& r) {
  const double t = r.operating.toggle;
  return t == 1 ? "random" : t == 0 ? "constant" : fmt::format("{}", t);
}

double positive_number(std::string_view option, std::string_view text) {
  constexpr double kLeast = 1e-12;
  constexpr double kMost = 1e12;
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || at != end || !(value >= kLeast && value <= kMost)) {
    refuse(option, "a number from 1e-12 to 1e12", text);
  }
  return value;
}

void set_accumulation(Request& r, std::string_view v) {
  constexpr std::int64_t kMost = 4096;
  const std::int64_t steps = whole_number("accumulation", v);
  if (steps > kMost) refuse("accumulation", fmt::format("a whole number from 1 to {}", kMost), v);
  r.accumulation = steps;
}

void set_optimizer_kernels(Request& r, std::string_view v) {
  if (v != "fused" && v != "per-tensor") refuse("optimizer-kernels", "fused or per-tensor", v);
  r.per_tensor_optimizer = v == "per-tensor";
}

void set_layout(Request& r, std::string_view v) {
  if (v != "auto" && v != "nchw" && v != "nhwc") refuse("layout", "auto, nchw or nhwc", v);
  r.layout = v == "auto" ? Layout::automatic : v == "nhwc" ? Layout::channels_last : Layout::channels_first;
}

std::string layout_name(const Request& r) {
  switch (r.layout) {
    case Layout::automatic: return "auto";
    case Layout::channels_first: return "nchw";
    case Layout::channels_last: return "nhwc";
  }
  return "";
}

void set_input_rate(Request& r, std::string_view v) {
  r.input_rate = positive_number("input-rate", v);
}
void set_host_scale(Request& r, std::string_view v) {
  r.host_scale = positive_number("host-scale", v);
}

constexpr std::array<std::string_view, 4> kInputCopies{"none", "pageable", "pinned", "overlapped"};

void set_input_copy(Request& r, std::string_view v) {
  const auto* at = std::find(kInputCopies.begin(), kInputCopies.end(), v);
  if (at == kInputCopies.end()) refuse("input-copy", "none, pageable, pinned or overlapped", v);
  r.input_copy = static_cast<InputCopy>(at - kInputCopies.begin());
}

std::string input_copy_name(const Request& r) {
  return std::string(kInputCopies[static_cast<std::size_t>(r.input_copy)]);
}

/// For options of the design whose part is still to come: the neutral value is taken, any other exits 4 by name.
template <int Which>
void set_future(Request&, std::string_view v) {
  constexpr std::string_view kNames[] = {"--system", "--gpus", "--devices", "--parallel", "--global-batch"};
  constexpr std::string_view kNeutral[] = {"", "1", "0", "", ""};
  if (Which == 1) whole_number("gpus", v);
  if (v != kNeutral[Which] || v.empty()) not_built(fmt::format("{} {}", kNames[Which], one_line(v)));
}

}  // namespace

const std::vector<RequestOption>& request_options() {
  static const std::vector<RequestOption> table{
      {"gpu", "NAME|FILE", "GPU by name, MIG slice (NAME:PROFILE) or JSON file", false, false,
       [](Request& r, std::string_view v) {
         if (v.empty()) refuse("gpu", "a name or a file", v);
         r.gpu = v;
       },
       [](const Request& r) { return r.gpu; }},
      {"mode", "inference|training", "training is forward, backward and optimizer step", false, false, set_mode,
       [](const Request& r) { return std::string(r.training ? "training" : "inference"); }},
      {"phase", "whole|prefill|decode", "part of an autoregressive request", false, false, set_phase, phase_name},
      {"batch", "N", "samples per step", false, true,
       [](Request& r, std::string_view v) { r.batch = whole_number("batch", v); },
       [](const Request& r) { return shown(r.batch); }},
      {"seq", "N", "tokens per sample", false, true,
       [](Request& r, std::string_view v) { r.seq = whole_number("seq", v); },
       [](const Request& r) { return shown(r.seq); }},
      {"context", "N", "tokens already in the KV cache (decode)", false, true,
       [](Request& r, std::string_view v) { r.context = whole_number("context", v); },
       [](const Request& r) { return shown(r.context); }},
      {"generate", "N", "a whole completion: prefill of the prompt (--seq), then decode steps until N tokens", false,
       true, set_generate,
       [](const Request& r) { return r.generate ? std::to_string(*r.generate) : std::string("none"); }},
      {"image", "HxW", "input image size", false, false, set_image,
       [](const Request& r) {
         return r.image_height ? fmt::format("{}x{}", *r.image_height, *r.image_width) : std::string("model default");
       }},
      {"dim", "name=N", "value of a named dimension of a graph file", true, true, set_dim, dims_shown},
      {"precision", "TYPE",
       "fp64 fp32 tf32 fp16 bf16 int8 int4 w8a16 w4a16 fp8 mixed-fp16 mixed-bf16; fp32 never means TF32", false, false,
       set_precision, [](const Request& r) { return std::string(to_string(r.resolved_precision())); }},
      {"framework", "NAME", "eager graph compiled compiled-graph xla tensorrt: launch and fusion behaviour", false,
       false,
       [](Request& r, std::string_view v) {
         r.framework = choice("framework", v, kernel::parse_framework(v),
                              "eager, graph, compiled, compiled-graph, xla, tensorrt");
       },
       [](const Request& r) { return std::string(to_string(r.framework)); }},
      {"optimizer", "NAME", "sgd momentum adam adamw lamb (training)", false, false,
       [](Request& r, std::string_view v) {
         r.optimizer = choice("optimizer", v, graph::parse_optimizer(v), "sgd, momentum, adam, adamw, lamb");
       },
       [](const Request& r) { return std::string(to_string(r.optimizer)); }},
      {"attention", "auto|flash|unfused", "fused attention kernel or separate products and softmax", false, false,
       set_attention,
       [](const Request& r) {
         return std::string(r.resolved_attention() == AttentionForm::flash ? "flash" : "unfused");
       }},
      {"engine", "roofline|analytic|cycle", "the bound, the calibrated model, or warps on a simulated SM", false, false,
       set_engine, [](const Request& r) { return std::string(to_string(r.engine)); }},
      {"sample", "steady|full", "cycle engine: extrapolate loops and waves, or simulate every CTA", false, false,
       set_sample, [](const Request& r) { return std::string(to_string(r.sampling.sample)); }},
      {"l2", "footprint|tags", "cycle engine: L2 hits from footprints, or from a tag array", false, false, set_l2,
       [](const Request& r) { return std::string(to_string(r.sampling.l2)); }},
      {"set", "path=value", "what-if on a field of the GPU: gpu.dram.peak_bandwidth=2.4TB/s, gpu.sm.count*=1.5", true,
       true, [](Request& r, std::string_view v) { r.overrides.push_back(arch::parse_override(v)); }, overrides_shown},
      {"power-cap", "W", "power limit set below the board's own: 250W", false, true, set_power_cap,
       [](const Request& r) {
         return r.operating.power_cap ? fmt::format("{}W", r.operating.power_cap->value)
                                      : std::string("the board's limit");
       }},
      {"clock", "HZ", "SM clock locked to at most this: 1200MHz", false, true, set_clock,
       [](const Request& r) {
         return r.operating.clock ? arch::format_quantity(r.operating.clock->value, "hz") : std::string("boost");
       }},
      {"operands", "random|constant", "contents of operands: constant ones take less energy per operation", false,
       false, set_operands, operands_shown},
      {"calibration", "FILE", "fitted values of your own (voltaic calibrate), laid over those that ship", false, false,
       [](Request& r, std::string_view v) {
         if (v.empty()) refuse("calibration", "a file", v);
         r.calibration = v;
       },
       [](const Request& r) { return r.calibration.empty() ? std::string("built in") : r.calibration; }},
      {"sparsity", "none|2:4", "2:4 sparse weights in matrix products (Ampere and later, inference)", false, false,
       set_sparsity, [](const Request& r) { return std::string(r.sparsity ? "2:4" : "none"); }},
      {"system", "NAME", "several GPUs (not built yet)", false, false, set_future<0>,
       [](const Request&) { return std::string("none"); }},
      {"gpus", "N", "number of GPUs (only 1 yet)", false, false, set_future<1>,
       [](const Request&) { return std::string("1"); }},
      {"devices", "LIST", "devices of a system (not built yet)", false, false, set_future<2>,
       [](const Request&) { return std::string("0"); }},
      {"parallel", "SPEC", "dp=,tp=,pp=,... (not built yet)", false, false, set_future<3>,
       [](const Request&) { return std::string("none"); }},
      {"global-batch", "N", "samples per step over all replicas (not built yet)", false, false, set_future<4>,
       [](const Request&) { return std::string("batch"); }},
      {"recompute", "none|selective|full", "run activations again in backward instead of keeping them (training)",
       false, false,
       [](Request& r, std::string_view v) {
         r.recompute = choice("recompute", v, graph::parse_recompute(v), "none, selective, full");
       },
       [](const Request& r) { return std::string(to_string(r.recompute)); }},
      {"accumulation", "N", "micro-steps of batch/N samples per optimizer step (training)", false, true,
       set_accumulation, [](const Request& r) { return std::to_string(r.accumulation); }},
      {"optimizer-kernels", "fused|per-tensor", "multi-tensor kernels, or a plain loop over parameters (training)",
       false, false, set_optimizer_kernels,
       [](const Request& r) { return std::string(r.per_tensor_optimizer ? "per-tensor" : "fused"); }},
      {"layout", "auto|nchw|nhwc",
       "tensors of convolutions in memory; auto: nhwc where they multiply in 16 bits or less", false, false, set_layout,
       layout_name},
      {"input-rate", "N", "samples per second that the input pipeline delivers; a step waits for its samples", false,
       true, set_input_rate,
       [](const Request& r) { return r.input_rate > 0 ? fmt::format("{}", r.input_rate) : std::string("no limit"); }},
      {"input-copy", "none|pageable|pinned|overlapped",
       "inputs come over the host link: from ordinary or page-locked memory, or hidden behind the step before", false,
       false, set_input_copy, input_copy_name},
      {"host-scale", "X", "host and launch times times this: 2 is a host half as fast", false, true, set_host_scale,
       [](const Request& r) { return fmt::format("{}", r.host_scale); }},
  };
  return table;
}

const RequestOption& request_option(std::string_view name) {
  std::vector<std::string> names;
  for (const auto& option : request_options()) {
    if (option.name == name) return option;
    names.emplace_back(option.name);
  }
  const std::string near = nearest(name, names);
  throw UsageError(
      fmt::format("--{}: no such option{}", one_line(name), near.empty() ? "" : ", did you mean --" + near + "?"));
}

void set_option(Request& request, std::string_view name, std::string_view value) {
  const auto& option = request_option(name);
  option.set(request, value);
  request.given.insert(std::string(option.name));
}

}  // namespace voltaic
