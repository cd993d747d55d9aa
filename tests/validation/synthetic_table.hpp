// SPDX-License-Identifier: MIT
// Tables of single operations that the model itself timed under known parameters: what a fit must find is known.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "arch/calibration_document.hpp"
#include "arch/loader.hpp"
#include "sim/cost/engine.hpp"
#include "sim/cost/single_op.hpp"
#include "tests/support/program.hpp"
#include "validation/compare/kernel_rows.hpp"

namespace voltaic::test {

/// A GPU under a calibration that need not be the one that ships.
struct Bench {
  Bench(const arch::CalibrationDocument& document, const std::string& name, const std::string& session)
      : gpu(arch::resolve_gpu(name)) {
    gpu.calibration = document.tree(name, session);
    library = cost::make_library(gpu);
    protocol = std::make_unique<cost::SingleOp>(gpu);
  }
  std::vector<kernel::Launch> launches(const validation::KernelRow& row) const {
    return validation::lower_row(row, gpu.spec, *library);
  }
  double seconds(const validation::KernelRow& row) const { return protocol->time(launches(row)).time.value; }

  arch::ResolvedGpu gpu;
  std::unique_ptr<kernel::LibraryChoice> library;
  std::unique_ptr<cost::SingleOp> protocol;
};

/// What the laboratory does to the time of a row; 1 where it reports what the model says.
using Distortion = std::function<double(const validation::KernelRow&)>;

struct TableText {
  std::string columns;            ///< Without latency_us.
  std::vector<std::string> rows;  ///< Without a time.
};

inline std::string kernel_cells(const kernel::Launch& launch) {
  const auto* gemm = std::get_if<kernel::GemmKernel>(&launch.detail);
  if (gemm == nullptr) return ",,,";
  const auto& t = gemm->tile;
  const std::string word = t.name.ends_with('s') ? "_sliced" : t.name.ends_with('c') ? "_cutlass" : "";
  return fmt::format("sgemm_{}x{}{},{},{},{}", t.tile_n, t.tile_m, word, t.tile_m, t.tile_n, t.split_k);
}

/// The table as CSV, each row timed on its GPU in its session under `truth`; `kernels`: with the columns a profiler
/// adds.
inline std::string timed(const TableText& table, const arch::CalibrationDocument& truth, bool kernels = false,
                         const Distortion& distortion = {}) {
  std::string text = table.columns + ",latency_us\n";
  for (const auto& row : table.rows) text += row + ",1\n";
  const auto read = validation::read_kernel_rows(validation::CsvTable::parse(text, "synthetic.csv"));
  std::map<std::pair<std::string, std::string>, std::unique_ptr<Bench>> benches;
  std::string out = table.columns + (kernels ? ",kernel,tile_m,tile_n,grid_z" : "") + ",latency_us\n";
  for (const auto& row : read.rows) {
    auto& bench = benches[{row.gpu, row.origin}];
    if (!bench) bench = std::make_unique<Bench>(truth, row.gpu, row.origin);
    const auto launches = bench->launches(row);
    const double seconds = bench->protocol->time(launches).time.value * (distortion ? distortion(row) : 1);
    out += table.rows[row.line] + (kernels ? "," + kernel_cells(launches.front()) : "");
    out += fmt::format(",{:.9g}\n", seconds * 1e6);
  }
  return out;
}

/// Evenly spread in the logarithm, the same in every run.
class Draw {
 public:
  explicit Draw(unsigned seed) : random_(seed) {}
  std::int64_t operator()(double low, double high) {
    const double u = static_cast<double>(random_() - 1) / 2147483645.0;
    return static_cast<std::int64_t>(std::llround(low * std::pow(high / low, u)));
  }

 private:
  std::minstd_rand random_;
};

/// `count` shapes of each operation from a thousand to a hundred million elements.
inline TableText pointwise_table(const std::string& gpu, const std::vector<std::string>& ops, int count,
                                 const std::string& origin = "lab", unsigned seed = 7) {
  TableText out{"op,origin,gpu,rows,cols", {}};
  for (const auto& op : ops) {
    Draw draw(seed);
    for (int i = 0; i < count; ++i) {
      const std::int64_t rows = draw(16, 65536);
      out.rows.push_back(fmt::format("{},{},{},{},{}", op, origin, gpu, rows, 4 * draw(16, 512)));
    }
  }
  return out;
}

/// Products from microseconds to a second.
inline TableText product_table(const std::string& gpu, const std::string& op, int count,
                               const std::string& origin = "lab", unsigned seed = 7) {
  TableText out{"op,origin,gpu,b,m,n,k", {}};
  Draw draw(seed);
  for (int i = 0; i < count; ++i) {
    const bool linear = op == "linear";
    const std::int64_t b = linear ? 1 : draw(2, 256), m = draw(32, linear ? 16384 : 1024),
                       n = draw(32, linear ? 16384 : 1024), k = draw(32, linear ? 16384 : 1024);
    out.rows.push_back(fmt::format("{},{},{},{},{},{},{}", op, origin, gpu, b, m, n, k));
  }
  return out;
}

inline void append(TableText& to, const TableText& from) {
  to.rows.insert(to.rows.end(), from.rows.begin(), from.rows.end());
}

}  // namespace voltaic::test
