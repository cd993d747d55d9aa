// SPDX-License-Identifier: MIT
#include "validation/compare/published_rows.hpp"

#include <fmt/format.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <map>
#include <utility>

#include "arch/units/error.hpp"

namespace voltaic::validation {
namespace {

/// Everything that decides a prediction.
std::string key_of(const Request& request) {
  std::string key = request.workload;
  for (const auto& option : request_options()) key += '|' + option.get(request);
  return key;
}

struct Answer {
  double total_s = 0, passes_s = 0, optimizer_s = 0, low_s = 0, high_s = 0;
  std::string explanation, reason;
};

Answer answer(Runner& runner, const Request& request) {
  Answer out;
  try {
    const report::Prediction p = runner.predict(request);
    out.total_s = p.total.value;
    out.optimizer_s = p.optimizer.value;
    out.passes_s = p.total.value - p.optimizer.value;
    out.low_s = p.interval.low.value;
    out.high_s = p.interval.high.value;
    const auto largest = std::max_element(p.bound.begin(), p.bound.end());
    const auto at = static_cast<std::size_t>(largest - p.bound.begin());
    out.explanation =
        fmt::format("{:.0f} % bound by {}, host exposed {:.0f} %", 100 * *largest,
                    at < kernel::kBounds ? kernel::kBoundNames[at] : "launch", 100 * p.share_host_exposed);
    if (!p.fits()) out.explanation += ", does not fit as modelled";
    if (!p.unmodelled.empty()) out.explanation += fmt::format(", {} kinds of operations left out", p.unmodelled.size());
    if (!(out.total_s > 0)) out.reason = "nothing of it is modelled";
  } catch (const std::runtime_error& e) {
    out.reason = e.what();
  }
  return out;
}

/// The optimizer runs once for all passes that it accumulates over.
void fill(PublishedAsk& ask, const Answer& a) {
  Pair& pair = ask.pair;
  const double simulated = a.passes_s + a.optimizer_s / ask.accumulated;
  const double share = simulated / a.total_s;
  pair.predicted = simulated + ask.host_s;
  pair.low = share * a.low_s + ask.host_s;
  pair.high = share * a.high_s + ask.host_s;
  pair.explanation = a.explanation;
}

/// What tells rows of a table apart, figures and the heading's line aside.
std::string cells_of(const PublishedRow& row) {
  return fmt::format("{}|{}|{}|{}|{}|{}|{}|{}|{}", row.model, row.submodel, row.framework, row.gpu, row.mode,
                     row.precision, row.batch.value_or(0), row.size, row.flags);
}

bool is_common_gpu(std::string_view gpu) {
  return gpu.starts_with("V100") || gpu.starts_with("A100");
}

/// Rows read, with what became of each.
class Rows {
 public:
  Rows(const CsvTable& table, PublishedTable kind, Validation& out) : table_(table), kind_(kind), out_(out) {}

  void read() {
    coverage_.rows_total = 0;
    auto asks = published_asks(table_, kind_, [&](const PublishedRow& row, const std::string& reason, bool measured) {
      count(row);
      if (measured) {
        miss(reason, row.model + " " + row.mode, row.gpu);
      } else {
        skip(out_, reason);
      }
    });
    for (auto& [row, ask] : asks) {
      count(row);
      const auto& split = out_.options.split;
      if (split != "all" && (split == "fit") != ask.pair.fit) {
        skip(out_, ask.pair.fit ? "fit row" : "report row");
        continue;
      }
      ask.request.calibration = out_.options.calibration;
      asks_.push_back(std::move(ask));
    }
  }

  /// Equal requests are predicted once.
  void predict(Runner& runner) {
    std::map<std::string, std::size_t> index;
    std::vector<std::size_t> request_of;
    std::vector<const Request*> requests;
    for (const PublishedAsk& ask : asks_) {
      const auto [at, fresh] = index.try_emplace(key_of(ask.request), requests.size());
      if (fresh) requests.push_back(&ask.request);
      request_of.push_back(at->second);
    }
    std::vector<Answer> answers(requests.size());
    tbb::parallel_for(std::size_t{0}, requests.size(),
                      [&](std::size_t i) { answers[i] = answer(runner, *requests[i]); });
    std::vector<PublishedAsk> predicted;
    for (std::size_t i = 0; i < asks_.size(); ++i) {
      const Answer& a = answers[request_of[i]];
      PublishedAsk& ask = asks_[i];
      if (!a.reason.empty()) {
        miss(a.reason, ask.pair.family, ask.pair.gpu);
        continue;
      }
      fill(ask, a);
      if (is_common_gpu(ask.pair.gpu)) ++coverage_.rows;
      out_.pairs.push_back(ask.pair);
      predicted.push_back(std::move(ask));
    }
    asks_ = std::move(predicted);
  }

  void finish() {
    for (auto& pair : ratio_pairs(asks_)) out_.ratio_pairs.push_back(std::move(pair));
    coverage_.table = table_.path().substr(table_.path().rfind('/') + 1);
    coverage_.what = "V100 and A100, one GPU";
    if (coverage_.rows_total > 0) out_.coverage.push_back(coverage_);
  }

 private:
  void count(const PublishedRow& row) {
    if (row.gpus == 1 && is_common_gpu(row.gpu)) ++coverage_.rows_total;
  }
  void miss(const std::string& reason, const std::string& family, const std::string& gpu) {
    skip(out_, reason);
    ++out_.missed[{family, one_line(gpu, 40)}];
    ++out_.missed[{family, "all"}];
  }

  const CsvTable& table_;
  PublishedTable kind_;
  Validation& out_;
  std::vector<PublishedAsk> asks_;
  Coverage coverage_;
};

}  // namespace

std::vector<std::pair<PublishedRow, PublishedAsk>> published_asks(
    const CsvTable& table, PublishedTable kind,
    const std::function<void(const PublishedRow&, const std::string&, bool measured)>& refused) {
  const PublishedMap& map = published_map(source_of(kind));
  std::vector<std::pair<PublishedRow, PublishedAsk>> out;
  std::map<std::string, std::int64_t> seen;
  for (std::size_t i = 0; i < table.rows(); ++i) {
    PublishedRow row;
    PublishedAsk ask;
    std::string reason = read_published_row(table, kind, i, row);
    const bool measured = reason.empty();
    if (measured) {
      row.occurrence = seen[cells_of(row)]++;
      reason = ask_published(map, row, ask);
    }
    if (reason.empty()) {
      out.emplace_back(std::move(row), std::move(ask));
    } else if (refused) {
      refused(row, reason, measured);
    }
  }
  return out;
}

void predict_published_rows(Runner& runner, const CsvTable& table, PublishedTable kind, Validation& out) {
  Rows rows(table, kind, out);
  rows.read();
  rows.predict(runner);
  rows.finish();
}

}  // namespace voltaic::validation
