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

constexpr double kCut = 0.6;
constexpr std::size_t kFewest = 6;

const std::vector<double>& scales() {
  static const std::vector<double> values = [] {
    std::vector<double> out;
    for (int tenth = 5; tenth <= 24; ++tenth) out.push_back(0.1 * tenth);
    out.insert(out.end(), {2.6, 2.8, 3, 3.3, 3.6, 4});
    return out;
  }();
  return values;
}

/// None, then from 0.1 ms on in steps of a third.
const std::vector<double>& steps() {
  static const std::vector<double> values = [] {
    constexpr double kShortest = 1e-4, kLongest = 1e-2, kFactor = 1.35;
    std::vector<double> out{0};
    for (double v = kShortest; v <= kLongest; v *= kFactor) {
      const double unit = std::pow(10.0, std::floor(std::log10(v)) - 1);
      out.push_back(std::round(v / unit) * unit);  // Two digits are all that such rows determine.
    }
    return out;
  }();
  return values;
}

/// Mean loss, and a price that keeps a number at nothing where rows do not ask for it (recorded graphs, say).
double cost(const Samples& rows, double scale, double step) {
  double sum = 0;
  for (const HostSample* r : rows) {
    const double predicted = r->at(scale) + (r->mode == "inference" ? step : 0);
    sum += std::min(std::abs(std::log(predicted / r->measured_s)), kCut);
  }
  constexpr double kPrice = 0.005;
  return sum / static_cast<double>(rows.size()) + kPrice * (std::abs(std::log(scale)) + (step > 0 ? 1 : 0));
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

std::vector<PublishedHost> fit_hosts(const std::vector<HostSample>& samples) {
  std::map<std::tuple<std::string, std::string, std::string, std::string>, Samples> groups;
  for (const HostSample& s : samples) {
    if (s.fit) groups[{s.framework, s.profile, s.generation, s.flags}].push_back(&s);
  }
  std::vector<PublishedHost> flagged, plain;  // Flags match a part: hosts that ask for one stand first.
  for (const auto& [key, rows] : groups) {
    if (rows.size() < kFewest) continue;
    PublishedHost host;
    std::tie(host.framework, host.profile, host.gpu, host.flags) = key;
    double best = HUGE_VAL;
    for (const double scale : scales()) {
      for (const double step : steps()) {
        const double here = cost(rows, scale, step);
        if (here >= best) continue;
        best = here;
        host.scale = scale;
        host.step_s = step;
      }
    }
    (host.flags.empty() ? plain : flagged).push_back(std::move(host));
  }
  flagged.insert(flagged.end(), plain.begin(), plain.end());
  return flagged;
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
    const std::pair<const char*, const std::string*> words[] = {
        {"framework", &h.framework}, {"profile", &h.profile}, {"flags", &h.flags}, {"gpu", &h.gpu}};
    for (const auto& [name, word] : words) {
      if (!word->empty()) j[name] = *word;
    }
    j["scale"] = std::round(100 * h.scale) / 100;
    std::string line = j.dump();
    line.pop_back();
    if (h.step_s > 0) line += fmt::format(",\"step_s\":{:.2g}", h.step_s);
    out += fmt::format("{}\n    {}}}", i > 0 ? "," : "", line);
  }
  return out + "\n  ]\n}\n";
}

}  // namespace voltaic::validation
