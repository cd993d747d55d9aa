// SPDX-License-Identifier: MIT
#include "validation/fit/product_choice_fit.hpp"

#include <ceres/ceres.h>
#include <fmt/format.h>
#include <tbb/parallel_for.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <map>

#include "sim/cost/gemm_choice.hpp"
#include "sim/cost/single_op.hpp"

namespace voltaic::validation {
namespace {

constexpr double kCap = 0.5;       ///< Largest loss of one row: beyond, a mistake is a mistake.
constexpr std::size_t kOften = 6;  ///< Rows that make a (kernel, parts) a candidate.
constexpr std::size_t kFewestRows = 150;
constexpr double kRidge = 1e-4;
constexpr double kLossScale = 30;  ///< Brings the second step's gradients to the size of the first's.

/// One (kernel, parts of k) for one row.
struct Candidate {
  std::uint32_t kernel = 0;
  float loss = 0;
  std::vector<float> shared, own;
};
struct ChoiceRow {
  std::vector<Candidate> candidates;
  int observed = -1;  ///< Index of the candidate that ran; -1: it is none.
  double weight = 1;
};

struct Lists {
  std::vector<std::string> names;  ///< Kernels, in the law's order.
  std::vector<std::vector<double>> splits;
};

/// Where each kernel's terms lie in the weight vector.
struct Layout {
  std::size_t own = 0, kernels = 0;
  std::size_t size() const { return cost::SimtChoice::kShared + kernels * own; }
  std::size_t at(std::size_t kernel) const { return cost::SimtChoice::kShared + kernel * own; }
};

double score(const Candidate& c, const Layout& layout, const double* w) {
  double sum = 0;
  for (std::size_t i = 0; i < c.shared.size(); ++i) sum += static_cast<double>(c.shared[i]) * w[i];
  const double* own = w + layout.at(c.kernel);
  for (std::size_t i = 0; i < c.own.size(); ++i) sum += static_cast<double>(c.own[i]) * own[i];
  return sum;
}

void add_terms(const Candidate& c, const Layout& layout, double factor, double* out) {
  for (std::size_t i = 0; i < c.shared.size(); ++i) out[i] += factor * static_cast<double>(c.shared[i]);
  double* own = out + layout.at(c.kernel);
  for (std::size_t i = 0; i < c.own.size(); ++i) own[i] += factor * static_cast<double>(c.own[i]);
}

/// Probabilities of a row's candidates under the softmax of the score.
void softmax(const ChoiceRow& row, const Layout& layout, const double* w, std::vector<double>& p) {
  p.resize(row.candidates.size());
  double most = -1e300;
  for (std::size_t i = 0; i < p.size(); ++i) most = std::max(most, p[i] = score(row.candidates[i], layout, w));
  double sum = 0;
  for (double& x : p) sum += x = std::exp(x - most);
  for (double& x : p) x /= sum;
}

struct Sum {
  double value = 0;
  std::vector<double> gradient;
};

/// Likelihood of what was observed, or expected loss, with its gradient in the weights; rows in fixed blocks, so that
/// sums do not depend on the number of threads.
Sum objective(const std::vector<ChoiceRow>& rows, const Layout& layout, const double* w, bool likelihood) {
  constexpr std::size_t kBlock = 256;
  const std::size_t blocks = (rows.size() + kBlock - 1) / kBlock;
  std::vector<Sum> parts(blocks);
  tbb::parallel_for(std::size_t{0}, blocks, [&](std::size_t b) {
    Sum& sum = parts[b];
    sum.gradient.assign(layout.size(), 0);
    std::vector<double> p;
    for (std::size_t r = b * kBlock; r < std::min(rows.size(), (b + 1) * kBlock); ++r) {
      const ChoiceRow& row = rows[r];
      if (likelihood && row.observed < 0) continue;
      softmax(row, layout, w, p);
      if (likelihood) {
        const auto seen = static_cast<std::size_t>(row.observed);
        sum.value -= row.weight * std::log(p[seen] + 1e-30);
        for (std::size_t i = 0; i < p.size(); ++i) {
          add_terms(row.candidates[i], layout, row.weight * (p[i] - (i == seen ? 1 : 0)), sum.gradient.data());
        }
        continue;
      }
      double expected = 0;
      for (std::size_t i = 0; i < p.size(); ++i) expected += p[i] * static_cast<double>(row.candidates[i].loss);
      sum.value += row.weight * expected;
      for (std::size_t i = 0; i < p.size(); ++i) {
        const double slope = p[i] * (static_cast<double>(row.candidates[i].loss) - expected);
        add_terms(row.candidates[i], layout, row.weight * slope, sum.gradient.data());
      }
    }
  });
  Sum out{0, std::vector<double>(layout.size(), 0)};
  for (const Sum& part : parts) {
    out.value += part.value;
    for (std::size_t i = 0; i < out.gradient.size(); ++i) out.gradient[i] += part.gradient[i];
  }
  return out;
}

/// Directions in which the terms of a row's candidates differ, each of unit variance: L-BFGS converges there.
Eigen::MatrixXd decorrelated(const std::vector<ChoiceRow>& rows, const Layout& layout) {
  const auto n = static_cast<Eigen::Index>(layout.size());
  Eigen::MatrixXd covariance = Eigen::MatrixXd::Zero(n, n);
  Eigen::VectorXd mean(n), term(n);
  for (const ChoiceRow& row : rows) {
    mean.setZero();
    const double share = 1.0 / static_cast<double>(row.candidates.size());
    for (const Candidate& c : row.candidates) add_terms(c, layout, share, mean.data());
    for (const Candidate& c : row.candidates) {
      term = -mean;
      add_terms(c, layout, 1, term.data());
      covariance.selfadjointView<Eigen::Lower>().rankUpdate(term, row.weight);
    }
  }
  Eigen::MatrixXd full = covariance.selfadjointView<Eigen::Lower>();
  const Eigen::VectorXd deviation = full.diagonal().cwiseSqrt().array() + 1e-9;
  full = deviation.cwiseInverse().asDiagonal() * full * deviation.cwiseInverse().asDiagonal();
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> eigen(full);
  const Eigen::VectorXd scale = (eigen.eigenvalues().array().max(0) + 1e-5).rsqrt();
  return deviation.cwiseInverse().asDiagonal() * eigen.eigenvectors() * scale.asDiagonal();
}

class Objective final : public ceres::FirstOrderFunction {
 public:
  Objective(const std::vector<ChoiceRow>& rows, const Layout& layout, const Eigen::MatrixXd& basis, bool likelihood)
      : rows_(rows), layout_(layout), basis_(basis), likelihood_(likelihood) {}
  int NumParameters() const override { return static_cast<int>(basis_.cols()); }
  bool Evaluate(const double* x, double* cost, double* gradient) const override {
    const Eigen::Map<const Eigen::VectorXd> inner(x, basis_.cols());
    const Eigen::VectorXd w = basis_ * inner;
    const Sum sum = objective(rows_, layout_, w.data(), likelihood_);
    const double scale = likelihood_ ? 1 : kLossScale;
    const double ridge = likelihood_ ? kRidge : kRidge * 0.02;
    *cost = scale * sum.value + ridge * inner.squaredNorm();
    if (gradient != nullptr) {
      const Eigen::Map<const Eigen::VectorXd> outer(sum.gradient.data(), basis_.rows());
      Eigen::Map<Eigen::VectorXd>(gradient, basis_.cols()) = scale * (basis_.transpose() * outer) + 2 * ridge * inner;
    }
    return true;
  }

 private:
  const std::vector<ChoiceRow>& rows_;
  const Layout& layout_;
  const Eigen::MatrixXd& basis_;
  bool likelihood_;
};

Eigen::VectorXd minimise(const std::vector<ChoiceRow>& rows, const Layout& layout, const Eigen::MatrixXd& basis,
                         bool likelihood, Eigen::VectorXd start, int iterations) {
  const ceres::GradientProblem problem(new Objective(rows, layout, basis, likelihood));
  ceres::GradientProblemSolver::Options options;
  options.max_num_iterations = iterations;
  options.logging_type = ceres::SILENT;
  ceres::GradientProblemSolver::Summary summary;
  ceres::Solve(options, problem, start.data(), &summary);
  return start;
}

/// Loss and hits of the highest score.
std::pair<double, double> taken(const std::vector<ChoiceRow>& rows, const Layout& layout, const double* w) {
  double loss = 0, hits = 0, total = 0, seen = 0;
  for (const ChoiceRow& row : rows) {
    std::size_t best = 0;
    double most = -1e300;
    for (std::size_t i = 0; i < row.candidates.size(); ++i) {
      const double s = score(row.candidates[i], layout, w);
      if (s <= most) continue;
      most = s;
      best = i;
    }
    loss += row.weight * static_cast<double>(row.candidates[best].loss);
    total += row.weight;
    if (row.observed < 0) continue;
    seen += row.weight;
    const auto& ran = row.candidates[static_cast<std::size_t>(row.observed)];
    hits += ran.kernel == row.candidates[best].kernel ? row.weight : 0;
  }
  return {loss / std::max(total, 1e-9), hits / std::max(seen, 1e-9)};
}

/// (kernel, parts) seen often enough; every kernel of the law unsplit.
Lists candidates_of(std::span<const FitRow> rows, const cost::SimtLaw& law) {
  Lists out;
  std::map<std::pair<std::string, double>, std::size_t> seen;
  for (const FitRow& row : rows) {
    const auto* gemm = std::get_if<kernel::GemmKernel>(&row.launches.front().detail);
    if (gemm != nullptr) ++seen[{gemm->tile.name, static_cast<double>(gemm->tile.split_k)}];
  }
  for (const auto& kernel : law.kernels()) {
    out.names.push_back(kernel.name);
    out.splits.emplace_back(1, 1.0);
    for (const auto& [key, n] : seen) {
      if (key.first == kernel.name && key.second > 1 && n >= kOften) out.splits.back().push_back(key.second);
    }
  }
  return out;
}

struct Machine {
  Machine(arch::ResolvedGpu resolved, const char* section)
      : gpu(std::move(resolved)),
        law(gpu.calibration.at(section)),
        choice(gpu.calibration.at(section)),
        protocol(gpu) {}
  arch::ResolvedGpu gpu;
  cost::SimtLaw law;
  cost::SimtChoice choice;
  cost::SingleOp protocol;
};

ChoiceRow choice_row(const FitRow& row, const Machine& m, const Lists& lists) {
  ChoiceRow out;
  const auto& ran = std::get<kernel::GemmKernel>(row.launches.front().detail).tile;
  const cost::SimtProblem problem(row.row->product);
  const auto seconds = [&](const std::vector<kernel::Launch>& launches) {
    return m.protocol.time(launches).time.value;
  };
  const double observed = seconds(row.launches);
  for (std::size_t k = 0; k < lists.names.size(); ++k) {
    const cost::SimtKernel& kernel = m.law.kernel(lists.names[k]);
    for (const double split : lists.splits[k]) {
      if (!cost::SimtChoice::may_split(problem, split)) continue;
      Candidate c;
      c.kernel = static_cast<std::uint32_t>(k);
      c.shared.resize(cost::SimtChoice::kShared);
      c.own.resize(m.choice.own_terms());
      m.choice.terms(kernel, problem, split, c.shared.data(), c.own.data());
      const auto launches = kernel::gemm_launches(row.row->product, cost::to_tile(kernel, split), m.gpu.spec);
      c.loss = static_cast<float>(std::min(kCap, std::abs(std::log(seconds(launches) / observed))));
      if (kernel.name == ran.name && split == static_cast<double>(ran.split_k)) {
        out.observed = static_cast<int>(out.candidates.size());
      }
      out.candidates.push_back(std::move(c));
    }
  }
  return out;
}

/// Largest weight 100: only the order of scores is meant.
void write(const Layout& layout, const Lists& lists, const std::string& section, const Eigen::VectorXd& w,
           arch::CalibrationDocument& document) {
  const double scale = 100 / std::max(1e-9, w.cwiseAbs().maxCoeff());
  const auto slice = [&](std::size_t from, std::size_t count) {
    std::vector<double> out(count);
    for (std::size_t i = 0; i < count; ++i) out[i] = scale * w[static_cast<Eigen::Index>(from + i)];
    return out;
  };
  document.set(section + ".choice.weights", slice(0, cost::SimtChoice::kShared));
  for (std::size_t k = 0; k < lists.names.size(); ++k) {
    const std::string kernel = fmt::format("{}.kernels.{}", section, lists.names[k]);
    document.set(kernel + ".splits", lists.splits[k]);
    document.set(kernel + ".score", slice(layout.at(k), layout.own));
  }
}

}  // namespace

ProductChoiceFit fit_product_choice(const RowTimes& times, std::span<const FitRow> all, bool linear,
                                    arch::CalibrationDocument& document, arch::CalibrationDocument& fitted) {
  ProductChoiceFit out;
  out.kept_prior = true;
  const std::string section = linear ? "gemm_simt.linear" : "gemm_simt.bmm";
  std::vector<FitRow> rows;
  for (const FitRow& row : all) {
    if (row.row->observed.known() && !row.launches.empty()) rows.push_back(row);
  }
  std::vector<std::unique_ptr<Machine>> machines;
  for (std::size_t p = 0; p < times.places().size(); ++p) {
    machines.push_back(std::make_unique<Machine>(times.gpu(p, document), section.c_str()));
  }
  if (rows.size() < kFewestRows || machines.front()->choice.fixed()) return out;
  const Lists lists = candidates_of(rows, machines.front()->law);
  Layout layout;
  layout.own = machines.front()->choice.own_terms();
  layout.kernels = lists.names.size();

  // A session with few rows, of large aligned shapes, counts up to twice.
  std::map<std::size_t, double> per_place;
  for (const FitRow& row : rows) per_place[row.place] += 1;
  double most = 0;
  for (const auto& [place, n] : per_place) most = std::max(most, n);
  std::vector<ChoiceRow> data(rows.size());
  tbb::parallel_for(std::size_t{0}, rows.size(), [&](std::size_t i) {
    data[i] = choice_row(rows[i], *machines[rows[i].place], lists);
    constexpr double kMost = 2;
    data[i].weight = std::min(kMost, most / per_place.at(rows[i].place)) / static_cast<double>(rows.size());
  });

  Eigen::VectorXd prior = Eigen::VectorXd::Zero(static_cast<Eigen::Index>(layout.size()));
  const auto shared = document.tree(times.places().front().name).numbers(section + ".choice.weights");
  std::copy(shared.begin(), shared.end(), prior.data());
  for (std::size_t k = 0; k < lists.names.size(); ++k) {
    const auto& own = machines.front()->law.kernel(lists.names[k]).score;
    if (own.size() == layout.own) std::copy(own.begin(), own.end(), prior.data() + layout.at(k));
  }
  std::tie(out.loss_prior, out.hit_prior) = taken(data, layout, prior.data());

  const Eigen::MatrixXd basis = decorrelated(data, layout);
  const Eigen::VectorXd zero = Eigen::VectorXd::Zero(basis.cols());
  const Eigen::VectorXd likely = minimise(data, layout, basis, true, zero, 150);
  Eigen::VectorXd best = prior;
  out.loss = out.loss_prior;
  out.hit = out.hit_prior;
  for (const double factor : {1.0, 2.0, 4.0}) {
    const Eigen::VectorXd w = basis * minimise(data, layout, basis, false, factor * likely, 100);
    const auto [loss, hit] = taken(data, layout, w.data());
    if (loss >= out.loss) continue;
    out.loss = loss;
    out.hit = hit;
    best = w;
    out.kept_prior = false;
  }
  out.rows = static_cast<std::int64_t>(rows.size());
  for (const auto& s : lists.splits) out.candidates += static_cast<std::int64_t>(s.size());
  out.weights = static_cast<std::int64_t>(layout.size());
  if (out.kept_prior) return out;
  write(layout, lists, section, best, document);
  write(layout, lists, section, best, fitted);
  return out;
}

}  // namespace voltaic::validation
