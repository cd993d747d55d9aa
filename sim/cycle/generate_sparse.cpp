// SPDX-License-Identifier: MIT
// Products with a sparse matrix as cuSPARSE's csrmm runs them: a warp per row of A and 32 columns of the result walks
// over the row's stored elements and gathers rows of B.
#include <algorithm>
#include <cmath>

#include "sim/cycle/detail/emit.hpp"
#include "sim/cycle/detail/product.hpp"
#include "sim/cycle/generate.hpp"

namespace voltaic::cycle {
namespace {

using namespace detail;

constexpr double kLanes = 32, kWarps = 4, kSector = 32, kMost = 1e15;
constexpr int kBounds = 0, kEntry = 1, kGather = 2, kBroadcast = 3;

double d(std::int64_t v) {
  return static_cast<double>(v);
}

struct Sparse {
  const kernel::SparseKernel& k;
  const arch::GpuSpec& gpu;
  Emitter& e;
  Product product;
  std::uint16_t matrix = 0, dense = 0, result = 0;

  double rows() const { return std::max(1.0, d(k.rows)); }
  double degree() const { return std::max(1e-9, d(k.nnz) / rows()); }
  /// Rows that hold anything, where the mean is below one element.
  double working_rows() const { return std::max(1.0, std::min(rows(), d(k.nnz))); }
  double length() const { return std::max(1.0, degree()); }
  double pieces() const { return std::max(1.0, std::ceil(d(k.features) / kLanes)); }
  double entry_bytes() const { return k.index_bytes + (k.sampled ? 0 : k.value_bytes); }
  double lanes_in_use() const { return std::min(kLanes, d(k.features)); }

  void tensors() {
    const double once = pieces();
    Tensor a;
    a.name = "A";
    a.unique_bytes = d(k.nnz) * entry_bytes() + (rows() + 1) * k.index_bytes;
    a.wave_bytes = a.unique_bytes * (k.sampled ? 1 : once);
    matrix = e.tensor(std::move(a));
    Tensor b;
    b.name = "B";
    const double width = d(k.features) * k.element_bytes;
    b.unique_bytes = std::min(std::max(1.0, d(k.cols)), d(k.nnz)) * width;
    // Entries meet rows of B in no order: between two touches of a row as much passes as there is of B.
    b.wave_bytes = std::max(b.unique_bytes, d(k.nnz) * width);
    dense = e.tensor(std::move(b));
    Tensor c;
    c.name = k.sampled ? "left" : "C";
    c.unique_bytes = c.wave_bytes = rows() * width;
    if (k.transposed) c.wave_bytes = std::max(c.unique_bytes, d(k.nnz) * width);
    c.written = !k.sampled;
    result = e.tensor(std::move(c));
  }

  /// Start and end of the row.
  void begin(double warps_in_z) {
    e.program.warps = static_cast<int>(kWarps);
    e.program.registers_per_thread = 32;
    e.program.grid[0] = count(working_rows() / kWarps);
    e.program.grid[1] = count(warps_in_z);
    const auto bounds = e.access(global_access(matrix, 1, 2 * k.index_bytes));
    e.address(10);
    e.memory(Op::load_global, bounds, 1, kBounds);
    e.wait(bit(kBounds)).math(Op::alu, 4, Next::dependent);
  }

  static std::int64_t count(double v) { return static_cast<std::int64_t>(std::clamp(std::ceil(v - 1e-9), 1.0, kMost)); }
  /// Elements in flight: the compiler unrolls the walk by four.
  double unrolled() const { return std::clamp(std::floor(length()), 1.0, 4.0); }

  /// Addresses of gathers for real tags: rows of an operand that fits L2 come again, of a larger one they do not while
  /// L2 remembers them.
  Access scattered(Access a) const {
    constexpr std::int64_t kFar = 1000003 * 128;  // lines apart
    const double bytes = e.program.tensors[a.tensor].unique_bytes;
    const bool fits = bytes <= gpu.l2.capacity.value;
    a.per_cta[0] = fits ? static_cast<std::int64_t>(bytes / d(e.program.grid[0])) : kFar;
    a.per_warp = fits ? static_cast<std::int64_t>(bytes / kWarps) : 7 * kFar;
    a.per_trip[0] = fits ? static_cast<std::int64_t>(bytes / length()) : 31 * kFar;
    return a;
  }

  double math_per_gather() const {
    return std::max(1.0, (product.op == Op::ffma || product.op == Op::dfma) ? 1.0 : kLanes / product.macs);
  }

  /// Loads up to 32 indices and values at once, then hands them round by shuffles.
  void by_rows() {
    begin(pieces());
    const double u = unrolled();
    Access entries = global_access(matrix, 1, std::min(kLanes, length()) * entry_bytes());
    // A row's entries arrive in one request per 32: charged to each unrolled step in proportion.
    entries.l1_hit = std::clamp(1 - u / std::min(kLanes, std::max(u, length())), 0.0, 1.0);
    const auto entry = e.access(entries);
    const auto gather = e.access(scattered(global_access(dense, 1, lanes_in_use() * k.element_bytes)));
    e.open_loop(1);
    e.mean_trips(length() / u, d(e.program.grid[0]));
    e.memory(Op::load_global, entry, 1, kEntry);
    e.wait(bit(kEntry)).variable(Op::shuffle, k.value_bytes > 0 ? 2 * u : u, kBroadcast);
    e.wait(bit(kBroadcast)).math(Op::imad, 2 * u, Next::dependent);
    if (k.transposed) {
      scatter(u);
    } else {
      e.memory(Op::load_global, gather, u, kGather);
      e.wait(bit(kGather)).math(product.op, u * math_per_gather(), Next::dependent);
    }
    e.address(3);
    e.close_loop();
    const double stores = rows() / working_rows();
    if (!k.transposed) {
      e.memory(Op::store_global, e.access(global_access(result, 1, lanes_in_use() * k.element_bytes)), stores);
    }
  }

  /// A is stored by columns: each entry's share goes to its row of the result by an atomic.
  void scatter(double u) {
    e.math(product.op, u * math_per_gather(), Next::dependent);
    e.memory(Op::atomic, e.access(scattered(global_access(result, 1, lanes_in_use() * k.element_bytes))), u);
  }

  /// SDDMM: the row of the left operand stays in registers; a dot product per stored element.
  void sampled() {
    begin(1);
    const double u = unrolled();
    const double width = d(k.features) * k.element_bytes;
    const double request = std::min(width, kLanes * k.element_bytes);
    const double loads = std::max(1.0, std::ceil(width / request));
    const auto left = e.access(global_access(result, 1, request));
    const auto right = e.access(scattered(global_access(dense, 1, request)));
    const auto entry = e.access(global_access(matrix, 1, u * k.index_bytes));
    Tensor out;
    out.name = "values";
    out.unique_bytes = out.wave_bytes = d(k.nnz) * k.value_bytes;
    out.written = true;
    const auto store = e.access(global_access(e.tensor(std::move(out)), 1, u * k.value_bytes));
    e.memory(Op::load_global, left, loads, kEntry);
    e.open_loop(1);
    e.mean_trips(length() / u, d(e.program.grid[0]));
    e.memory(Op::load_global, entry, 1, kGather);
    e.wait(bit(kGather)).math(Op::imad, 2 * u, Next::dependent);
    e.memory(Op::load_global, right, loads * u, kGather);
    e.wait(static_cast<std::uint8_t>(bit(kGather) | bit(kEntry)));
    e.math(product.op, u * loads * math_per_gather(), Next::dependent);
    for (int i = 0; i < 5; ++i) {  // over the 32 lanes
      e.variable(Op::shuffle, u, kBroadcast);
      e.wait(bit(kBroadcast)).math(Op::ffma, u, Next::dependent);
    }
    e.memory(Op::store_global, store);
    e.close_loop();
  }

  /// B by columns: a lane takes an entry of the row, and one column of B after another is gathered from.
  void by_columns() {
    begin(pieces());
    const double entries = std::min(kLanes, length());
    // Of the entries in a row one in 1/p columns is there; neighbours share a sector of 32 bytes now and then.
    const double p = std::clamp(length() / std::max(1.0, d(k.cols)), 1e-12, 1.0);
    const double in_sector = std::max(1.0, kSector / std::max(k.element_bytes, 0.5));
    const double apart =
        std::max(1 / in_sector, -std::expm1(in_sector * std::log1p(-std::min(p, 1 - 1e-12))) / (in_sector * p));
    Access gather = global_access(dense, std::max(1.0, std::round(entries * std::min(1.0, apart))), k.element_bytes);
    const auto column = e.access(scattered(gather));
    const auto entry = e.access(global_access(matrix, 1, entries * entry_bytes()));
    const double columns = lanes_in_use(), at_once = std::min(4.0, columns);
    e.open_loop(1);
    e.mean_trips(length() / entries, d(e.program.grid[0]));
    e.memory(Op::load_global, entry, 1, kEntry);
    e.wait(bit(kEntry)).math(Op::imad, 2, Next::dependent);
    e.open_loop(columns / at_once);
    e.memory(Op::load_global, column, at_once, kGather);
    e.wait(bit(kGather)).math(product.op, at_once * math_per_gather(), Next::dependent);
    e.address(2);
    e.close_loop();
    e.close_loop();
    for (double i = 0; i < 5; ++i) {  // sums over lanes, 32 columns at once
      e.variable(Op::shuffle, std::ceil(columns / std::exp2(i)), kBroadcast);
      e.wait(bit(kBroadcast)).math(Op::ffma, std::ceil(columns / std::exp2(i)), Next::dependent);
    }
    // Neighbouring rows' results share sectors, which L2 joins.
    Access out = global_access(result, columns, k.element_bytes);
    e.memory(Op::store_global, e.access(out), rows() / working_rows());
  }
};

}  // namespace

std::vector<Part> generate_sparse(const kernel::Launch& launch, const kernel::SparseKernel& k,
                                  const arch::GpuSpec& gpu) {
  Emitter e(launch.name, gpu);
  Sparse kernel{k, gpu, e, product_of(gpu, k.math, false)};
  kernel.tensors();
  if (k.sampled) {
    kernel.sampled();
  } else if (k.column_major) {
    kernel.by_columns();
  } else {
    kernel.by_rows();
  }
  return {Part{e.finish()}};
}

}  // namespace voltaic::cycle
