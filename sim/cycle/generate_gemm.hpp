// SPDX-License-Identifier: MIT
// What the generators of matrix products and convolutions share: a product as one CTA sees it, how blocks of a matrix
// are cut into warp-wide requests, and the software-pipelined main loop.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "arch/spec.hpp"
#include "sim/cycle/detail/emit.hpp"
#include "sim/cycle/program.hpp"
#include "sim/kernel/launch.hpp"

namespace voltaic::cycle::gemm {

using detail::Emitter;

/// A block of a matrix that a CTA moves: `rows` runs of `run` contiguous bytes whose starts lie `pitch` bytes apart.
/// Rows and bytes beyond the matrix are predicated off: `filled_rows` and `filled_run` are means over the CTAs.
struct Block {
  double rows = 1, run = 128;
  double filled_rows = 1, filled_run = 128;
  double pitch = 128;
  double widest = 16;       ///< Bytes that a lane moves at once.
  double most_run = 1e9;    ///< Contiguous bytes of one request at most.
  double kept_sectors = 0;  ///< Share of sectors cut by the start of a run that L1 still holds from the step before.
  double reused = 0;        ///< Share of sectors that L1 holds from a step shortly before.
};

/// Where the block of a CTA lies, for tags and channels.
struct Place {
  std::array<double, 3> per_cta{};
  double base = 0;
  std::array<double, kLoopDepth> per_trip{};
};

struct Request {
  std::uint16_t access = 0;
  int warps = 1;  ///< Warps below this index make it.
};
/// The requests of a CTA for one block, in the order in which a warp makes its own. Sectors add up to those of the
/// filled part.
std::vector<Request> requests(Emitter& e, std::uint16_t tensor, const Block& block, const Place& place, int warps);

/// An operand, or the result, on its way through a CTA.
struct Operand {
  Tensor tensor;
  bool along_k = true;  ///< Contiguous along k.
  int tile = 128;       ///< Rows (A) or columns (B) of the CTA's tile,
  double filled = 128;  ///< and those of them that the matrix has, on average.
  double element = 4;   ///< Bytes in global memory.
  double pitch = 512;   ///< Bytes between rows (or between elements of k).
  double widest = 16;
  double address = 2;  ///< Integer instructions per request: addresses, bounds, places in an image.
  std::array<double, 3> per_cta{};
  bool past_l1 = false;   ///< Copied to shared memory without a place in L1.
  double most_run = 1e9;  ///< Contiguous bytes at most: rows of an image.
  double reused = 0;      ///< Share of sectors that L1 holds from a step shortly before.
};

struct Product {
  std::string name;
  Operand a, b;
  Operand c;        ///< `tile` is not used; rows lie along n.
  double rows = 1;  ///< Filled rows of a mean tile of C, and its columns.
  double columns = 1;
  double steps = 1;     ///< Of the k loop of one CTA, of tile.tile_k each.
  double k_filled = 1;  ///< Share of those steps that k has.
  kernel::GemmTile tile;
  DataType math = DataType::fp32;
  double math_bytes = 4;      ///< Of an operand as it is multiplied.
  double b_shared_bytes = 4;  ///< Of an element of B in shared memory.
  bool c_along_m = false;     ///< C is contiguous along m rather than n.
  bool bias = false, dequantise = false, sparse = false;
  bool stores = true;         ///< False: another program adds and stores the parts of a split k.
  bool partial = false;       ///< Stores FP32 sums that a second kernel adds.
  double epilogue_bytes = 0;  ///< Read per element of C by the epilogue: a residual.
  kernel::CtaResources cta;
  std::array<std::int64_t, 3> grid{1, 1, 1};
};

/// CTAs of a kernel that one SM holds.
int resident(const kernel::CtaResources& cta, int most, const arch::GpuSpec& gpu);
/// Copies what is the program's: shape, grid, resources.
void shape_program(Emitter& e, const Product& p, const arch::GpuSpec& gpu);

/// Panels of A and B that waves of resident CTAs touch, summed over the waves. `square`: tiles in flight form a square
/// block rather than whole rows of tiles.
struct Panels {
  double a = 1, b = 1;
};
Panels wave_panels(double across, double down, double deep, double in_flight, double area_ratio, bool square);

/// Something that a warp does beside multiplying.
using Side = std::function<void(Emitter&)>;

/// One group of k of a warp: fragments from shared memory, conversions, multiplications.
struct Group {
  struct Load {
    Op op = Op::load_shared;
    std::uint16_t access = 0;
    double count = 1;
  };
  std::vector<Load> fragments;
  struct Work {
    Op op = Op::alu;
    double count = 0;
  };
  std::vector<Work> convert;  ///< Between load and multiplication.
  Op math = Op::ffma;
  double count = 64;
  int last_stall = 1;  ///< Until the next group may add to the same accumulators.
};

/// How tiles reach shared memory.
struct Feed {
  bool async = false;  ///< LDGSTS, `stages` deep; else through registers, one step ahead.
  int stages = 2;
  struct Store {
    std::uint16_t access = 0;
    double count = 1;
    double pack = 0;       ///< Integer instructions that pack narrow loads.
    double transform = 0;  ///< Additions between load and store: Winograd's.
  };
  Store a, b;
};

/// First loads, the k loop and its drain. Scoreboards 0 and 1: fragments; 2 to 5: operands on their way.
void emit_main_loop(Emitter& e, const Product& p, const Group& group, int groups, const Feed& feed);
/// Waits for arguments in constant memory, `lines` of its first cache and `from_l2` of its second, that a kernel's
/// first CTA on an SM does not find there.
void fetch_arguments(Emitter& e, double lines, double from_l2, const arch::GpuSpec& gpu);
/// What a CTA does before its first load: arguments; its place; address and bounds of each of a warp's requests in a
/// step; cleared accumulators.
void emit_prologue(Emitter& e, double accumulators, double requests, const arch::GpuSpec& gpu);
/// Requests of a warp for both operands in a step.
double requests_per_step(const Product& p);
/// The block of an operand in one step of the k loop.
Block step_block(const Operand& operand, double tile_k, double k_filled);

/// Stores the tile of C, `values` per lane, in `pieces` that pass through shared memory where `shuffled`.
struct Epilogue {
  double values = 64;  ///< Per lane.
  double accumulator_bytes = 4;
  int pieces = 1;
  bool shuffled = false;
  Op scale = Op::ffma;
  double most_run = 1e9;      ///< Contiguous bytes of a store.
  bool narrow_by_xu = false;  ///< Conversions to narrower types take the special-function lanes.
};
void emit_epilogue(Emitter& e, const Product& p, const Epilogue& epilogue, const arch::GpuSpec& gpu);

Program simt_program(const Product& p, const arch::GpuSpec& gpu);
Program tensor_program(const Product& p, const arch::GpuSpec& gpu);
/// One row of outputs per warp, k over its lanes.
Program gemv_program(const Product& p, const arch::GpuSpec& gpu);
/// Adds the parts of a split k: a kernel of its own.
Program reduce_program(const kernel::Launch& launch, const kernel::GemmKernel& kernel, const arch::GpuSpec& gpu);
/// Adds the parts of a split k in place: CTAs of a tile wait for each other.
Program chain_program(const Product& p, double outputs, double parts, const arch::GpuSpec& gpu);

/// The tensor instruction for a type.
MmaShape mma_shape(DataType math, bool sparse, arch::Architecture architecture);

/// The product of a launch, ready for its program.
Product make_product(const kernel::Launch& launch, const kernel::GemmKernel& kernel, const arch::GpuSpec& gpu);

}  // namespace voltaic::cycle::gemm
