// SPDX-License-Identifier: MIT
// Convolutions in a transformed space. Winograd in one kernel, F(2x2, 3x3): a CTA of 256 threads multiplies 32 filters
// by 32 tiles of 2x2 outputs at 16 points, 8 channels a step, transforming image and filters on their way to shared
// memory. In several kernels, F(4x4, 3x3), F(5x5, 5x5) and FFT: transforms as streams around a batched product.
#include <algorithm>
#include <cmath>

#include "sim/cycle/generate_conv.hpp"

namespace voltaic::cycle::conv {
namespace {

constexpr double kElement = 4;

double d(std::int64_t v) {
  return static_cast<double>(std::max<std::int64_t>(v, 1));
}

/// Additions of a two-dimensional transform from `in` to `out` points a side, about one per nonzero of the matrix.
double transform_additions(double in, double out) {
  return 0.6 * (in * out * in + out * in * out);
}

gemm::Operand streamed(const char* name, double unique, double wave, int elements, double filled, double most_run) {
  gemm::Operand o;
  o.tensor.name = name;
  o.tensor.unique_bytes = unique;
  o.tensor.wave_bytes = std::max(unique, wave);
  o.tensor.cold = false;
  o.along_k = false;
  o.tile = elements;
  o.filled = filled;
  o.element = kElement;
  o.pitch = kElement;
  o.widest = kElement;
  o.most_run = most_run;
  o.address = 4;
  return o;
}

}  // namespace

Part winograd_fused_part(const kernel::Launch& launch, const kernel::ConvKernel& kernel, const arch::GpuSpec& gpu) {
  constexpr int kStep = 8, kThreads = 256;
  constexpr double kFilters = 32, kTiles = 32, kPoints = 16;
  const kernel::ConvProblem& c = kernel.problem;
  const kernel::WinogradShape s = kernel::winograd_shape(c);
  const kernel::ConvBytes bytes = kernel::conv_bytes(c);
  const bool dgrad = c.pass == kernel::ConvPass::dgrad;
  const bool four = kernel.tile.name == "fused442";
  gemm::Product p;
  p.name = launch.name;
  p.tile = kernel.tile;
  p.tile.tile_k = kStep;
  p.tile.warps = kThreads / 32;
  p.tile.ctas_per_sm = std::max(1, p.tile.ctas_per_sm);
  p.cta = launch.cta;
  p.cta.threads = kThreads;
  for (std::size_t i = 0; i < 3; ++i) p.grid[i] = std::max<std::int64_t>(1, launch.grid[i]);
  const double blocks = d(p.grid[1]) * d(p.grid[2]);
  p.steps = std::max(1.0, std::ceil(s.in / kStep));
  p.k_filled = std::min(1.0, s.in / (p.steps * kStep));

  // 8 x 16 outputs of one image and their rim are 10 x 18 inputs; 8 x 4 outputs of four images 4 x 10 x 6.
  const double patch = four ? 240 : 180, row = four ? 6 : 18;
  const double pixels = s.n * s.h * s.w / blocks;  // filled, of 128
  const double image = dgrad ? bytes.output : bytes.input;
  const double across = d(p.grid[0]);
  const double in_flight = d(gpu.sm.count) * gemm::resident(p.cta, p.tile.ctas_per_sm, gpu);
  const double waves = std::max(1.0, across * blocks / in_flight);
  p.a = streamed("image", image, blocks * patch * s.in * kElement, static_cast<int>(patch), patch * pixels / 128,
                 row * kElement);
  p.b = streamed("filters", bytes.weights, bytes.weights * waves, 288, 288 * s.out / (kFilters * across), 1e9);
  p.b.address = 2;

  gemm::Emitter e(p.name, gpu);
  gemm::shape_program(e, p, gpu);
  const std::uint16_t quad = e.access(detail::shared_access(512));
  Access shared_quad = detail::shared_access(512);
  shared_quad.wavefronts = shared_quad.ideal_wavefronts = 2;  // lanes share quads, as in products
  gemm::Group group;
  group.fragments = {{Op::load_shared, e.access(shared_quad), 2}, {Op::load_shared, e.access(shared_quad), 2}};
  group.count = kPoints * kFilters * kTiles / kThreads;
  gemm::Feed feed;
  // A thread transforms one tile and one filter a step and stores 16 points of each.
  feed.a = {quad, kPoints / 4, 0, 32};
  feed.b = {quad, kPoints / 4, 0, 28};
  gemm::emit_prologue(e, group.count, gemm::requests_per_step(p), gpu);
  gemm::emit_main_loop(e, p, group, kStep, feed);

  // Points of a tile meet in shared memory: four results of 16 points per thread, 24 additions each.
  e.barrier();
  e.memory(Op::store_shared, quad, group.count / 4);
  e.barrier();
  e.memory(Op::load_shared, quad, group.count / 4, 0);
  e.wait(detail::bit(0)).math(Op::ffma, 4 * 24, detail::Next::dependent);
  gemm::Block result;
  result.rows = kFilters * 128 / (four ? 4 : 16);
  result.run = (four ? 4 : 16) * kElement;
  result.filled_rows = result.rows * pixels / 128 * s.out / (kFilters * across);
  result.filled_run = result.run;
  result.pitch = kElement * s.w;
  result.widest = kElement;
  Tensor out;
  out.name = "result";
  out.unique_bytes = out.wave_bytes = dgrad ? bytes.input : bytes.output;
  out.written = true;
  out.cold = false;
  gemm::Place place;
  place.per_cta = {kFilters * kElement * s.h * s.w, 128 * kElement, 0};
  for (const gemm::Request& r : gemm::requests(e, e.tensor(out), result, place, e.program.warps)) {
    e.address(3);
    if (r.warps < e.program.warps) e.only_warps(r.warps);
    e.memory(Op::store_global, r.access);
    e.all_warps();
  }
  return {e.finish()};
}

Part batched_part(const kernel::Launch& launch, const kernel::GemmTile& tile, const Batched& b,
                  const arch::GpuSpec& gpu) {
  const auto whole = [](double v) { return static_cast<std::int64_t>(std::clamp(std::ceil(v), 1.0, 1e15)); };
  kernel::GemmKernel k;
  k.problem.batch = whole(b.batch);
  k.problem.m = whole(b.m);
  k.problem.n = whole(b.n);
  k.problem.k = whole(b.k * b.scale);
  k.problem.linear = false;
  k.problem.transpose_a = true;  // transforms leave tiles beside each other
  k.tile = tile;
  k.tile.tensor_cores = false;
  k.tile.split_k = 1;
  k.tile.tile_k = 8;
  k.tile.warps = std::clamp(tile.tile_m * tile.tile_n / 2048, 2, 8);
  kernel::Launch product = launch;
  product.cta.threads = 32 * k.tile.warps;
  product.cta.shared_memory = Bytes{2.0 * 8 * kElement * (tile.tile_m + tile.tile_n)};
  product.grid[0] = whole(b.n / std::max(1, tile.tile_n));
  product.grid[1] = whole(b.m / std::max(1, tile.tile_m));
  product.grid[2] = whole(b.batch);
  return {gemm::simt_program(gemm::make_product(product, k, gpu), gpu)};
}

std::vector<Part> winograd_parts(const kernel::Launch& launch, const kernel::ConvKernel& kernel,
                                 const arch::GpuSpec& gpu) {
  const kernel::ConvProblem& c = kernel.problem;
  const kernel::WinogradShape s = kernel::winograd_shape(c);
  const kernel::ConvBytes bytes = kernel::conv_bytes(c);
  const double side = kernel::winograd_outputs(c), points = kernel::winograd_points(c);
  const double edge = std::sqrt(points);
  const double tiles = kernel::winograd_tiles(s, side, kernel.tile.name.empty() ? 1 : 16);
  const bool wgrad = c.pass == kernel::ConvPass::wgrad, dgrad = c.pass == kernel::ConvPass::dgrad;
  const auto transform = [&](const char* name, double items, double in_side, double out_side, double read,
                             double written) {
    Stream t;
    t.name = name;
    t.items = items;
    t.loads = in_side * in_side;
    t.stores = out_side * out_side;
    t.additions = transform_additions(in_side, out_side);
    t.read_unique = read;
    t.written = written;
    // Neighbouring tiles overlap by the filter's rim.
    t.reused = std::clamp(1 - read / std::max(1.0, items * in_side * in_side * kElement), 0.0, 1.0);
    return stream_part(t, gpu);
  };
  const double image = dgrad ? bytes.output : bytes.input;
  const double result = dgrad ? bytes.input : bytes.output;
  const double v = points * tiles * s.in * kElement, u = points * s.in * s.out * kElement;
  const double m = points * tiles * s.out * kElement;
  const double filter = d(c.filter[1]);
  std::vector<Part> out;
  out.push_back(transform("winograd input transform", tiles * s.in, edge, edge, image, v));
  if (wgrad) {
    out.push_back(transform("winograd gradient transform", tiles * s.out, side, edge, result, m));
    out.push_back(batched_part(launch, kernel.tile, {points, s.out, s.in, tiles, 1}, gpu));
    out.push_back(transform("winograd filter inverse", s.in * s.out, edge, filter, u, bytes.weights));
    return out;
  }
  out.push_back(transform("winograd filter transform", s.in * s.out, filter, edge, bytes.weights, u));
  out.push_back(batched_part(launch, kernel.tile, {points, tiles, s.out, s.in, 1}, gpu));
  out.push_back(transform("winograd output transform", tiles * s.out, edge, side, m, result));
  return out;
}

/// Complex products of 64 filters by 32 or 64 images in every bin; rows of an image are transformed by a warp each.
std::vector<Part> fft_parts(const kernel::Launch& launch, const kernel::ConvKernel& kernel, const arch::GpuSpec& gpu) {
  const kernel::ConvProblem& c = kernel.problem;
  const int side = kernel.tile.name == "fft16" ? 16 : 32;
  const kernel::FftShape fft = kernel::fft_shape(c, side);
  const kernel::WinogradShape s = kernel::winograd_shape(c);
  const double points = static_cast<double>(side) * side;
  constexpr double kComplex = 8;
  const double per_point = 5 * std::log2(points);  // operations of a fast transform
  const auto transform = [&](const char* name, double images, double read_points, double write_bytes, double read,
                             double written) {
    constexpr double kPerThread = 16;
    Stream t;
    t.name = name;
    t.items = std::max(1.0, images * points / kPerThread);
    t.loads = std::max(1.0, kPerThread * read_points / points);
    t.stores = kPerThread / 2;
    t.store_bytes = write_bytes;
    t.additions = kPerThread * per_point / 2;
    t.read_unique = read;
    t.written = written;
    return stream_part(t, gpu);
  };
  const double x = kComplex * fft.bins * s.n * s.in, y = kComplex * fft.bins * s.n * s.out;
  const double f = kComplex * fft.bins * s.in * s.out;
  const kernel::ConvBytes bytes = kernel::conv_bytes(c);
  const double image_points = std::min(points, s.h * s.w);
  std::vector<Part> out;
  out.push_back(
      transform("fft2d_r2c filters", s.in * s.out, d(c.filter[1]) * d(c.filter[2]), kComplex, bytes.weights, f));
  Part in = transform("fft2d_r2c images", s.n * s.in, image_points, kComplex, bytes.input / fft.chunks, x);
  in.times = in.starts = fft.chunks;
  out.push_back(std::move(in));
  kernel::GemmTile tile = kernel.tile;
  tile.tile_m = static_cast<int>(fft.batch_tile);
  tile.tile_n = 64;
  Part product = batched_part(launch, tile, {fft.bins, s.n, s.out, s.in, 4}, gpu);
  product.times = product.starts = fft.chunks;
  out.push_back(std::move(product));
  Part back = transform("fft2d_c2r images", s.n * s.out, points, kElement, y, bytes.output / fft.chunks);
  back.times = back.starts = fft.chunks;
  out.push_back(std::move(back));
  return out;
}

/// The image written out tap by tap, then a plain product.
std::vector<Part> explicit_parts(const kernel::Launch& launch, const kernel::ConvKernel& kernel,
                                 const arch::GpuSpec& gpu) {
  const kernel::ConvProblem& c = kernel.problem;
  const kernel::ImplicitGemm g = kernel::implicit_gemm(c);
  const kernel::ConvBytes bytes = kernel::conv_bytes(c);
  const double taps = kernel::spatial(c.filter);
  Stream columns;
  columns.name = "im2col";
  columns.items = std::max(1.0, g.m * g.k / taps);
  columns.loads = columns.stores = taps;
  columns.read_unique = bytes.input;
  columns.written = g.m * g.k * kElement;
  columns.reused = std::clamp(1 - 1 / taps, 0.0, 1.0);
  std::vector<Part> out;
  out.push_back(stream_part(columns, gpu));
  out.push_back(batched_part(launch, kernel.tile, {1, g.m, g.n, g.k, 1}, gpu));
  return out;
}

}  // namespace voltaic::cycle::conv
