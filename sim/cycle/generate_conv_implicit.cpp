// SPDX-License-Identifier: MIT
// Convolutions as implicit products: rows of the product are pixels, gathered from the image tap by tap. On CUDA cores
// in NCHW: pixels are contiguous, one load each, and L1 holds what the tap before has fetched. On tensor cores in NHWC:
// channels are contiguous, padded to 8, and images in NCHW are changed before and after.
#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/cycle/generate_conv.hpp"

namespace voltaic::cycle::conv {
namespace {

using gemm::Operand;
using gemm::Product;

constexpr double kAligned = 8;            ///< Channels that tensor-core kernels move at once.
constexpr double kOffsetArithmetic = 10;  ///< Place and bounds of a pixel's tap, computed.
constexpr double kOffsetTable = 4;        ///< The same from a table of offsets.

double d(std::int64_t v) {
  return static_cast<double>(std::max<std::int64_t>(v, 1));
}

double up(double v, double unit) {
  return std::ceil(v / unit) * unit;
}

Operand side(std::string name, double unique, int tile, double extent, double element) {
  Operand o;
  o.tensor.name = std::move(name);
  o.tensor.unique_bytes = unique;
  o.tensor.cold = false;
  o.tile = std::max(1, tile);
  o.filled = extent / std::ceil(extent / o.tile);
  o.element = element;
  return o;
}

class Implicit {
 public:
  Implicit(const kernel::Launch& launch, const kernel::ConvKernel& kernel, const arch::GpuSpec& gpu)
      : conv_(kernel.problem), kernel_(kernel), gpu_(gpu), tensor_(kernel.tile.tensor_cores) {
    p_.name = launch.name;
    p_.tile = kernel.tile;
    p_.tile.tile_m = std::max(1, p_.tile.tile_m);
    p_.tile.tile_n = std::max(1, p_.tile.tile_n);
    p_.tile.tile_k = std::max(1, p_.tile.tile_k);
    p_.math = conv_.math;
    p_.math_bytes = p_.b_shared_bytes = tensor_ ? bytes_per_element(conv_.math) : conv_.element_bytes;
    p_.bias = conv_.bias && conv_.pass == kernel::ConvPass::forward;
    p_.cta = launch.cta;
    for (std::size_t i = 0; i < 3; ++i) p_.grid[i] = std::max<std::int64_t>(1, launch.grid[i]);
    sizes();
    operands();
    waves();
  }

  const Product& product() const { return p_; }
  double outputs() const { return groups_ * g_.m * g_.n; }

 private:
  /// Tensor-core kernels pad channels to what they move at once.
  void sizes() {
    g_ = kernel::implicit_gemm(conv_);
    groups_ = d(conv_.groups);
    const double c = d(conv_.c) / groups_, k = d(conv_.k) / groups_;
    if (tensor_) {
      const double taps = kernel::spatial(conv_.filter);
      if (conv_.pass == kernel::ConvPass::forward) g_.k = up(c, kAligned) * taps;
      if (conv_.pass == kernel::ConvPass::dgrad) g_.k = up(k, kAligned) * taps;
    }
    const double split = d(p_.tile.split_k);
    const double part = std::max(1.0, g_.k / split);
    p_.steps = std::max(1.0, std::ceil(std::ceil(part) / p_.tile.tile_k - 1e-9));
    p_.k_filled = std::min(1.0, part / (p_.steps * p_.tile.tile_k));
    p_.partial = split > 1;
  }

  void operands() {
    const kernel::ConvBytes bytes = kernel::conv_bytes(conv_);
    const double e = conv_.element_bytes;
    const bool forward = conv_.pass == kernel::ConvPass::forward;
    const bool wgrad = conv_.pass == kernel::ConvPass::wgrad;
    const double image = forward || wgrad ? bytes.input : bytes.output;
    if (wgrad) {
      p_.a = side("output gradient", bytes.output, p_.tile.tile_m, g_.m, e);
      p_.b = side("input", image, p_.tile.tile_n, g_.n, e);
      plain(p_.a);
      gathered(p_.b);
    } else {
      p_.a = side(forward ? "input" : "output gradient", image, p_.tile.tile_m, g_.m, e);
      p_.b = side("weights", bytes.weights, p_.tile.tile_n, g_.n, e);
      gathered(p_.a);
      weights(p_.b);
    }
    p_.rows = p_.a.filled;
    p_.columns = p_.b.filled;
    p_.c.tensor.name = "result";
    p_.c.tensor.written = true;
    p_.c.tensor.cold = false;
    p_.c.element = p_.partial ? 4 : e;
    p_.c_along_m = !tensor_ && !wgrad;
    p_.c.pitch = p_.c.element * (p_.c_along_m ? kernel::spatial(forward ? conv_.out : conv_.in) : g_.n);
    p_.c.widest = widest(p_.c.pitch);
    const double results = outputs() * (p_.partial ? d(p_.tile.split_k) : 1);
    p_.c.tensor.unique_bytes = p_.c.tensor.wave_bytes = p_.c.element * results;
    if (forward && !p_.partial) p_.epilogue_bytes = bytes.epilogue / std::max(1.0, outputs());
  }

  static double widest(double row_bytes) {
    double bytes = 16;
    while (bytes > 1 && std::fmod(row_bytes, bytes) != 0) bytes /= 2;
    return bytes;
  }

  /// The image, read once per tap.
  void gathered(Operand& o) const {
    const bool wgrad = conv_.pass == kernel::ConvPass::wgrad;
    const bool dgrad = conv_.pass == kernel::ConvPass::dgrad;
    const double taps = kernel::spatial(conv_.filter);
    o.address = kernel_.algorithm == kernel::ConvAlgorithm::implicit_gemm ? kOffsetArithmetic : kOffsetTable;
    if (tensor_) {
      const double channels = up(d(dgrad ? conv_.k : conv_.c) / groups_, kAligned);
      o.along_k = !wgrad;
      o.pitch = o.element * channels;
      o.widest = widest(o.pitch);
      o.most_run = o.pitch;
      return;
    }
    // Neighbouring pixels lie together as far as a row of the image goes, and start anywhere.
    const double row = d(dgrad ? conv_.in[2] : conv_.out[2]);
    const double apart = dgrad ? 1 : d(conv_.stride[2]);
    o.along_k = wgrad;
    o.pitch = o.element;
    o.widest = o.element;
    o.most_run = o.element * row * apart;
    o.reused = std::clamp(1 - d(conv_.stride[1]) * d(conv_.stride[2]) / taps, 0.0, 1.0);
  }

  /// Filters: contiguous along k forward, across it where the roles of channels are swapped.
  void weights(Operand& o) const {
    const bool forward = conv_.pass == kernel::ConvPass::forward;
    o.along_k = forward;
    o.pitch = o.element * (forward ? g_.k : g_.n);
    o.widest = tensor_ ? widest(o.pitch) : o.element;
  }

  /// The gradient that wgrad multiplies: pixels are k.
  void plain(Operand& o) const {
    o.along_k = !tensor_;
    o.pitch = o.element * (o.along_k ? kernel::spatial(conv_.out) : g_.m);
    o.widest = tensor_ ? widest(o.pitch) : o.element;
  }

  /// CTAs go along pixels first, then filters, then groups and parts of k.
  void waves() {
    const double in_flight = d(gpu_.sm.count) * gemm::resident(p_.cta, p_.tile.ctas_per_sm, gpu_);
    const double down = static_cast<double>(p_.grid[0]), across = static_cast<double>(p_.grid[1]);
    const gemm::Panels panels = gemm::wave_panels(down, across, static_cast<double>(p_.grid[2]), in_flight, 1, false);
    // Here the walk is along rows of tiles: panels.b counts those of A.
    const auto distinct = [&](Operand& o, double tiles, double count) {
      const double each = o.tensor.unique_bytes / std::max(1.0, tiles * static_cast<double>(p_.grid[2]));
      o.tensor.wave_bytes = std::max(o.tensor.unique_bytes, each * count);
    };
    distinct(p_.a, down, panels.b);
    distinct(p_.b, across, panels.a);
    p_.a.per_cta = {p_.a.tensor.unique_bytes / down, 0, p_.a.tensor.unique_bytes / d(p_.grid[2])};
    p_.b.per_cta = {0, p_.b.tensor.unique_bytes / across, p_.b.tensor.unique_bytes / d(p_.grid[2])};
    p_.c.per_cta = {p_.tile.tile_m * (p_.c_along_m ? p_.c.element : p_.c.pitch),
                    p_.tile.tile_n * (p_.c_along_m ? p_.c.pitch : p_.c.element), g_.m * g_.n * p_.c.element};
  }

  const kernel::ConvProblem& conv_;
  const kernel::ConvKernel& kernel_;
  const arch::GpuSpec& gpu_;
  bool tensor_;
  kernel::ImplicitGemm g_;
  double groups_ = 1;
  Product p_;
};

/// A change between NCHW and NHWC, through shared memory in the library's kernels: both sides are contiguous.
Part layout_part(const char* name, double bytes, double element, const arch::GpuSpec& gpu) {
  constexpr double kPerThread = 4;
  Stream s;
  s.name = name;
  s.items = std::max(1.0, bytes / element / kPerThread);
  s.loads = s.stores = kPerThread;
  s.load_bytes = s.store_bytes = element;
  s.read_unique = s.written = bytes;
  return stream_part(s, gpu);
}

}  // namespace

std::vector<Part> implicit_parts(const kernel::Launch& launch, const kernel::ConvKernel& kernel,
                                 const arch::GpuSpec& gpu) {
  const kernel::ConvProblem& c = kernel.problem;
  const Implicit implicit(launch, kernel, gpu);
  const Product& p = implicit.product();
  const kernel::ConvBytes bytes = kernel::conv_bytes(c);
  const bool change = kernel.tile.tensor_cores && !c.channels_last && kernel::spatial(c.in) > 1;
  std::vector<Part> out;
  if (change && c.pass != kernel::ConvPass::dgrad)
    out.push_back(layout_part("nchwToNhwcKernel", bytes.input, c.element_bytes, gpu));
  if (change && c.pass != kernel::ConvPass::forward)
    out.push_back(layout_part("nchwToNhwcKernel", bytes.output, c.element_bytes, gpu));
  out.push_back({kernel.tile.tensor_cores ? gemm::tensor_program(p, gpu) : gemm::simt_program(p, gpu)});
  if (p.partial) {
    const double parts = d(kernel.tile.split_k);
    Stream sum;
    sum.name = launch.name + " splitKreduce";
    sum.items = std::max(1.0, implicit.outputs() / 4);
    sum.loads = parts;
    sum.load_bytes = 16;
    sum.stores = 1;
    sum.store_bytes = 4 * c.element_bytes;
    sum.additions = 4 * parts;
    sum.read_unique = 4 * parts * implicit.outputs();
    sum.written = c.element_bytes * implicit.outputs();
    out.push_back(stream_part(sum, gpu));
  }
  if (change && c.pass == kernel::ConvPass::forward)
    out.push_back(layout_part("nhwcToNchwKernel", bytes.output, c.element_bytes, gpu));
  if (change && c.pass == kernel::ConvPass::dgrad)
    out.push_back(layout_part("nhwcToNchwKernel", bytes.input, c.element_bytes, gpu));
  return out;
}

}  // namespace voltaic::cycle::conv
