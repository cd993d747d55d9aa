// SPDX-License-Identifier: MIT
#include "validation/compare/published_hosts.hpp"

#include <fmt/format.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>

namespace voltaic::validation {
namespace {

using Samples = std::vector<const HostSample*>;

constexpr double kPrice = 0.03, kOwnScalePrice = 0.04, kCut = 0.6;
constexpr std::size_t kFewest = 3, kFewestForScale = 5;
constexpr double kLongestStep = 7e-3, kLongestHandledStep = 75e-3;  ///< Of loops, and of loops that handle samples.

/// Two digits are all that such rows determine.
double two_digits(double value) {
  const double unit = std::pow(10.0, std::floor(std::log10(value)) - 1);
  return std::round(value / unit) * unit;
}

std::vector<double> geometric(double first, double last, double factor) {
  std::vector<double> values{0};
  for (double v = first; v <= last; v *= factor) values.push_back(two_digits(v));
  return values;
}

const std::vector<double>& scales() {
  static const std::vector<double> values = [] {
    std::vector<double> out;
    for (int tenth = 5; tenth <= 24; ++tenth) out.push_back(0.1 * tenth);
    out.insert(out.end(), {2.6, 2.8, 3, 3.3, 3.6, 4});
    return out;
  }();
  return values;
}

double loss(double predicted, double measured) {
  return std::min(std::abs(std::log(predicted / measured)), kCut);
}

struct Loop {
  double cost = 0, step_s = 0, sample_s = 0;
};

/// The cheapest loop of one network around its simulated steps.
Loop best_loop(const Samples& rows, double scale, bool handles_samples) {
  Loop best;
  for (const HostSample* r : rows) best.cost += loss(r->at(scale), r->measured_s);
  if (rows.size() < kFewest) return best;
  const double price = kPrice * static_cast<double>(rows.size());
  const auto steps = geometric(1e-4, handles_samples ? kLongestHandledStep : kLongestStep, 1.35);
  const auto per_sample = handles_samples ? geometric(2e-5, 2.5e-2, 1.35) : std::vector<double>{0};
  for (const double step : steps) {
    for (const double sample : per_sample) {
      double cost = price * ((step > 0 ? 1 : 0) + (sample > 0 ? 1 : 0));
      for (const HostSample* r : rows) cost += loss(r->at(scale) + step + sample * r->batch, r->measured_s);
      if (cost < best.cost) best = {cost, step, sample};
    }
  }
  return best;
}

/// The rows of one network under one profile: those that its loop is fitted on, and those that only weigh the scale.
struct Network {
  std::string model, mode;  ///< Mode empty: any.
  bool handles_samples = false;
  Samples loop, others;
  double cost(double scale) const {
    double sum = best_loop(loop, scale, handles_samples).cost;
    for (const HostSample* r : others) sum += loss(r->at(scale), r->measured_s);
    return sum / std::sqrt(static_cast<double>(loop.size() + others.size()));
  }
};

std::vector<Network> networks_of(const PublishedMap& map, const Samples& rows) {
  std::vector<Network> out;
  for (const HostSample* r : rows) {
    const bool handled = map.handles_samples(r->model, r->mode);
    const std::string mode = handled ? r->mode : "";
    auto at =
        std::find_if(out.begin(), out.end(), [&](const Network& n) { return n.model == r->model && n.mode == mode; });
    if (at == out.end()) at = out.insert(out.end(), Network{r->model, mode, handled, {}, {}});
    // Steps of training are long enough to hide a loop; what is left there is the GPU's.
    (handled || r->mode == "inference" ? at->loop : at->others).push_back(r);
  }
  return out;
}

/// A scale of its own where a network's loop differs from those of its framework.
double scale_of(const Network& network, double common) {
  if (network.loop.size() < kFewestForScale) return common;
  const double price = kOwnScalePrice * static_cast<double>(network.loop.size());
  double best = common;
  double best_cost = best_loop(network.loop, common, network.handles_samples).cost;
  for (const double scale : scales()) {
    const double cost = best_loop(network.loop, scale, network.handles_samples).cost + price;
    if (cost < best_cost) {
      best_cost = cost;
      best = scale;
    }
  }
  return best;
}

double common_scale(const std::vector<Network>& networks) {
  constexpr double kTowardsOne = 0.02;
  double best = 1;
  double best_cost = HUGE_VAL;
  for (const double scale : scales()) {
    double cost = kTowardsOne * std::abs(std::log(scale));
    for (const Network& n : networks) cost += n.cost(scale);
    if (cost < best_cost) {
      best_cost = cost;
      best = scale;
    }
  }
  return best;
}

}  // namespace

double HostSample::at(double scale) const {
  const auto* above = std::upper_bound(std::begin(kHostScales), std::end(kHostScales), scale);
  if (above == std::begin(kHostScales)) return predicted_s.front();
  if (above == std::end(kHostScales)) return predicted_s.back();
  const auto i = static_cast<std::size_t>(above - std::begin(kHostScales));
  const double share = (scale - kHostScales[i - 1]) / (kHostScales[i] - kHostScales[i - 1]);
  return predicted_s[i - 1] + share * (predicted_s[i] - predicted_s[i - 1]);
}

std::vector<HostSample> host_samples(Runner& runner, const CsvTable& table, PublishedTable kind) {
  std::vector<HostSample> samples;
  std::vector<PublishedAsk> asks;
  for (auto& [row, ask] : published_asks(table, kind)) {
    HostSample s;
    s.model = row.model;
    s.framework = row.framework;
    s.mode = row.mode;
    s.profile = kernel::to_string(ask.request.framework);
    if (row.flags.find("TorchScript") != std::string::npos) s.flags = "TorchScript";
    s.generation = ask.request.gpu.substr(0, ask.request.gpu.find('-'));
    s.batch = static_cast<double>(ask.request.batch.value_or(1));
    s.measured_s = ask.pair.measured;
    s.fit = ask.pair.fit;
    s.predicted_s.resize(std::size(kHostScales));
    samples.push_back(std::move(s));
    asks.push_back(std::move(ask));
  }
  tbb::parallel_for(std::size_t{0}, asks.size(), [&](std::size_t i) {
    for (std::size_t k = 0; k < std::size(kHostScales); ++k) {
      Request request = asks[i].request;
      request.host_scale = kHostScales[k];
      try {
        const report::Prediction p = runner.predict(request);
        samples[i].predicted_s[k] = (p.total - p.optimizer).value + p.optimizer.value / asks[i].accumulated;
      } catch (const std::runtime_error&) {
        samples[i].predicted_s.clear();
        return;
      }
    }
  });
  std::erase_if(samples, [](const HostSample& s) { return s.predicted_s.empty() || !(s.predicted_s.front() > 0); });
  return samples;
}

std::vector<PublishedHost> fit_hosts(const PublishedMap& map, const std::vector<HostSample>& samples) {
  std::map<std::tuple<std::string, std::string, std::string, std::string>, Samples> groups;
  for (const HostSample& s : samples) {
    if (s.fit) groups[{s.framework, s.profile, s.generation, s.flags}].push_back(&s);
  }
  // Flags match a part: hosts that ask for one stand before those that ask for none.
  std::vector<PublishedHost> own_flagged, flagged, own, common;
  for (const auto& [key, rows] : groups) {
    if (rows.size() < kFewest) continue;
    const auto networks = networks_of(map, rows);
    PublishedHost host;
    std::tie(host.framework, host.profile, host.gpu, host.flags) = key;
    host.scale = common_scale(networks);
    for (const Network& n : networks) {
      PublishedHost special = host;
      special.model = n.model;
      special.mode = n.mode;
      special.scale = scale_of(n, host.scale);
      const Loop loop = best_loop(n.loop, special.scale, n.handles_samples);
      special.step_s = loop.step_s;
      special.sample_s = loop.sample_s;
      if (special.step_s > 0 || special.sample_s > 0 || special.scale != host.scale) {
        (host.flags.empty() ? own : own_flagged).push_back(std::move(special));
      }
    }
    (host.flags.empty() ? common : flagged).push_back(std::move(host));
  }
  for (auto* part : {&flagged, &own, &common}) own_flagged.insert(own_flagged.end(), part->begin(), part->end());
  return own_flagged;
}

std::string hosts_file(const std::string& source, const std::vector<PublishedHost>& hosts) {
  using Json = nlohmann::ordered_json;
  std::string out = fmt::format(
      "{{\n  \"source\": {},\n  \"note\": \"Hosts of the source against those of the calibration, fitted on fit rows "
      "(README.md).\",\n  \"hosts\": [",
      Json(source).dump());
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    const PublishedHost& h = hosts[i];
    Json j;
    const std::pair<const char*, const std::string*> words[] = {{"model", &h.model}, {"framework", &h.framework},
                                                                {"mode", &h.mode},   {"profile", &h.profile},
                                                                {"flags", &h.flags}, {"gpu", &h.gpu}};
    for (const auto& [name, word] : words) {
      if (!word->empty()) j[name] = *word;
    }
    j["scale"] = std::round(100 * h.scale) / 100;
    std::string line = j.dump();
    line.pop_back();
    if (h.step_s > 0) line += fmt::format(",\"step_s\":{:.2g}", h.step_s);
    if (h.sample_s > 0) line += fmt::format(",\"sample_s\":{:.2g}", h.sample_s);
    out += fmt::format("{}\n    {}}}", i > 0 ? "," : "", line);
  }
  return out + "\n  ]\n}\n";
}

}  // namespace voltaic::validation
