// SPDX-License-Identifier: MIT
// A synthetic kernel that streams and multiplies: each element read, `inner_iters` multiply-adds on it, written. What
// is held against the table is the energy of its bytes and operations at the rates that the table states: how fast
// chains of dependent multiply-adds run is no part of the power law.
#include <fmt/format.h>

#include <cmath>

#include "arch/units/error.hpp"
#include "sim/cost/power.hpp"
#include "validation/compare/kernel_rows.hpp"
#include "validation/compare/power_rows.hpp"

namespace voltaic::validation {
namespace {

constexpr const char* kFamily = "watts of synthetic kernels";

/// A second of the kernel at the row's rates and clock.
struct Second {
  double bytes = 0, flop = 0;
  Hertz clock;
  DataType type = DataType::fp32;
};

double cell(const PowerReader& reader, std::size_t row, const char* column) {
  const auto value = reader.figure(row, column);
  if (!value) throw ConfigError(reader.table().place(row), column, "expected a number, got an empty cell");
  return *value;
}

/// Element bytes follow from the intensity: 2 (iterations + 1) operations on an element that is read and written.
std::optional<DataType> type_of(double iterations, double intensity) {
  constexpr double kRounding = 0.05;
  const double bytes = (iterations + 1) / intensity;
  if (std::abs(bytes - 4) < 4 * kRounding) return DataType::fp32;
  if (std::abs(bytes - 8) < 8 * kRounding) return DataType::fp64;
  return std::nullopt;
}

double watts(const arch::ResolvedGpu& gpu, const Second& second) {
  kernel::Launch launch;
  launch.math = second.type;
  launch.work.mac = second.flop / 2;
  kernel::KernelCost cost;
  cost.time = Seconds{1};
  cost.clock = second.clock;
  cost.dram_traffic = Bytes{second.bytes};
  cost.l2_traffic = cost.dram_traffic;
  cost.leg(kernel::Bound::dram) = cost.time;
  cost::PowerModel(gpu).charge(launch, cost);
  return (cost.energy / cost.time).value;
}

void predict_row(PowerReader& reader, std::size_t row) {
  const CsvTable& table = reader.table();
  const auto measured = reader.figure(row, "power_w");
  if (!measured) return reader.skip(std::string(kNoWatts));
  const auto intensity = table.text(row, "flop_per_byte");
  const auto iterations = table.integer(row, "inner_iters");
  if (!iterations || *iterations < 0) {
    throw ConfigError(table.place(row), "inner_iters", "expected a count of at least 0");
  }
  const std::string key = fmt::format("roof|{}|{}", intensity, *iterations);
  if (!reader.wants("roofline", key)) return;
  const std::string name = reader.gpu(row);
  if (name.empty())
    return reader.miss(fmt::format("GPU {} is unknown", one_line(table.text(row, "gpu"))), kFamily, row);
  const auto type = type_of(static_cast<double>(*iterations), cell(reader, row, "flop_per_byte"));
  if (!type) return reader.miss("a kernel on neither four nor eight byte elements", kFamily, row);
  Request request = reader.request(name);
  request.operating.toggle = 0;  // operands hardly change, and registers hold them
  const auto simulator = reader.runner().simulator(request);
  const Second second{1e9 * cell(reader, row, "bw_gbps"), 1e9 * cell(reader, row, "gflops"),
                      Hertz{1e6 * cell(reader, row, "clock_mhz")}, *type};
  Pair pair;
  pair.unit = Unit::watts;
  pair.gpu = one_line(table.text(row, "gpu"));
  pair.op = "roofline";
  pair.dtype = std::string(to_string(*type));
  pair.mode = "watts";
  pair.origin = one_line(table.text(row, "source"));
  pair.label = fmt::format("{} FLOP per byte", one_line(intensity));
  pair.measured = *measured;
  pair.fit = is_fit_key(key);
  pair.family = kFamily;
  pair.explanation = fmt::format("{:.0f} GB/s and {:.1f} TFLOP/s as measured, constant operands", second.bytes * 1e-9,
                                 second.flop * 1e-12);
  answer(pair, watts(simulator->gpu(), second), power_half_width(simulator->gpu(), "power"));
  reader.out().pairs.push_back(std::move(pair));
}

}  // namespace

void predict_roofline_rows(PowerReader& reader) {
  for (std::size_t row = 0; row < reader.table().rows(); ++row) predict_row(reader, row);
}

}  // namespace voltaic::validation
