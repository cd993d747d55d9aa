// SPDX-License-Identifier: MIT
// What is fitted on which rows: scopes, bounds, and what other boards inherit.
#include "validation/fit/plan.hpp"

#include <algorithm>
#include <set>

#include "tests/support/catch.hpp"

using namespace voltaic;
using namespace voltaic::validation;

namespace {

constexpr const char* kFirst = "a100-pcie-80gb";
constexpr const char* kSecond = "a100-pcie-40gb";

arch::CalibrationDocument priors(arch::Architecture architecture = arch::Architecture::ampere) {
  return arch::CalibrationDocument::built_in(architecture, false);
}

std::set<std::string> paths(FitFamily family, const std::vector<FitBoard>& boards) {
  std::set<std::string> out;
  for (const auto& p : fit_plan(family, priors(), boards)) out.insert(p.path);
  return out;
}
bool has(const std::set<std::string>& all, const std::string& path) {
  return all.count(path) > 0;
}

KernelRow row_of(RowKind kind, graph::OpType op = graph::OpType::add, bool linear = true) {
  KernelRow row;
  row.kind = kind;
  row.vector_op = op;
  row.product.linear = linear;
  return row;
}

}  // namespace

TEST_CASE("every row belongs to one family", "[validation][plan]") {
  CHECK(family_of(row_of(RowKind::convolution)) == FitFamily::convolution);
  CHECK(family_of(row_of(RowKind::product)) == FitFamily::linear);
  CHECK(family_of(row_of(RowKind::product, graph::OpType::add, false)) == FitFamily::batched);
  CHECK(family_of(row_of(RowKind::vector, graph::OpType::softmax)) == FitFamily::softmax);
  CHECK(family_of(row_of(RowKind::vector, graph::OpType::layer_norm)) == FitFamily::layer_norm);
  CHECK(family_of(row_of(RowKind::vector, graph::OpType::tanh)) == FitFamily::pointwise);
  CHECK(to_string(FitFamily::batched) == "batched product");
}

TEST_CASE("priors lie inside their bounds and come from the document", "[validation][plan]") {
  struct Board {
    arch::Architecture architecture;
    const char* name;
  };
  for (const Board& board : {Board{arch::Architecture::volta, "v100-pcie-32gb"},
                             {arch::Architecture::ampere, kFirst},
                             {arch::Architecture::turing, "t4"},
                             {arch::Architecture::hopper, "h100-sxm5-80gb"}}) {
    const auto document = priors(board.architecture);
    for (std::size_t f = 0; f < kFitFamilies; ++f) {
      std::set<std::string> seen;
      for (const auto& p : fit_plan(static_cast<FitFamily>(f), document, {{board.name, {"a", "b"}, board.name}})) {
        INFO(p.path);
        CHECK(p.lower <= p.prior);
        CHECK(p.prior <= p.upper);
        CHECK(p.width > 0);
        CHECK((!p.logarithmic || p.lower > 0));
        CHECK(seen.insert(p.path).second);
        // An effect that the prior says is absent stays absent.
        CHECK(p.prior != 0);
      }
      CHECK_FALSE(seen.empty());
    }
  }
}

TEST_CASE("units are those that the path states", "[validation][plan]") {
  for (const auto& p : fit_plan(FitFamily::linear, priors(), {{kFirst, {"lab"}, kFirst}})) {
    if (p.path.ends_with("_s")) CHECK(p.unit == "s");
    if (p.path.ends_with("_cycles")) CHECK(p.unit == "cycles");
    if (p.path.ends_with("_bytes")) CHECK(p.unit == "bytes");
    if (p.path.ends_with("efficiency")) CHECK(p.unit.empty());
  }
}

TEST_CASE("the library's kernels belong to the architecture, host times and streams to each board",
          "[validation][plan]") {
  const std::vector<FitBoard> boards{{kFirst, {"lab"}, kFirst}, {kSecond, {"lab"}, kSecond}};
  const auto linear = paths(FitFamily::linear, boards);
  CHECK(has(linear, "gemm_simt.linear.kernels.64x128.efficiency"));
  CHECK_FALSE(has(linear, std::string("boards.") + kSecond + ".gemm_simt.linear.kernels.64x128.efficiency"));
  const auto pointwise = paths(FitFamily::pointwise, boards);
  for (const char* board : {kFirst, kSecond}) {
    CHECK(has(linear, std::string("boards.") + board + ".single_op.linear.floor_s"));
    CHECK(has(pointwise, std::string("boards.") + board + ".vector.kinds.elementwise.stream_share"));
    CHECK(has(pointwise, std::string("boards.") + board + ".single_op.add.launch_s"));
  }
}

TEST_CASE("the reference in its first session starts at boost by definition; others have a start of their own",
          "[validation][plan]") {
  const auto own = [](const char* board, const char* tail) { return std::string("boards.") + board + tail; };
  const auto all = paths(FitFamily::linear, {{kFirst, {"a", "b"}, kFirst}, {kSecond, {"a", "c"}, kSecond}});
  CHECK_FALSE(has(all, own(kFirst, ".gemm_simt.linear.start_share")));
  CHECK(has(all, own(kSecond, ".gemm_simt.linear.start_share")));
  CHECK(has(all, own(kFirst, ".sessions.b.gemm_simt.linear.start_share")));
  CHECK(has(all, own(kSecond, ".sessions.c.gemm_simt.linear.clock_share")));
  CHECK_FALSE(has(all, own(kFirst, ".sessions.a.gemm_simt.linear.start_share")));
  // Rows without a session name none.
  for (const auto& path : paths(FitFamily::linear, {{kFirst, {""}, kFirst}}))
    CHECK(path.find("sessions") == std::string::npos);
}

TEST_CASE("boards without rows inherit what the reference says of kernels and host, but no clock",
          "[validation][plan]") {
  auto document = priors();
  const auto set = [&](const std::string& path, double value) {
    FitParameter p;
    p.path = path;
    const double values[] = {value};
    apply({p}, values, kFirst, document);
  };
  const auto at = [&](const char* board, const char* path) { return document.tree(board).number(path); };
  set(std::string("boards.") + kFirst + ".single_op.add.floor_s", 7e-5);
  CHECK(at(kFirst, "single_op.add.floor_s") == 7e-5);
  CHECK(at("a30", "single_op.add.floor_s") == 7e-5);
  set("gemm_simt.linear.kernels.64x128.efficiency", 0.5);
  CHECK(at(kSecond, "gemm_simt.linear.kernels.64x128.efficiency") == 0.5);
  const double clock = at("a30", "gemm_simt.linear.clock_share");
  set(std::string("boards.") + kFirst + ".gemm_simt.linear.clock_share", 0.5);
  CHECK(at(kFirst, "gemm_simt.linear.clock_share") == 0.5);
  CHECK(at("a30", "gemm_simt.linear.clock_share") == clock);
  const double there = at("a30", "single_op.mul.floor_s");
  set(std::string("boards.") + kSecond + ".single_op.mul.floor_s", 9e-5);
  CHECK(at(kSecond, "single_op.mul.floor_s") == 9e-5);
  CHECK(at("a30", "single_op.mul.floor_s") == there);
  set(std::string("boards.") + kFirst + ".sessions.late.gemm_simt.linear.start_share", 0.7);
  CHECK(document.tree(kFirst, "late").number("gemm_simt.linear.start_share") == 0.7);
  CHECK(at(kFirst, "gemm_simt.linear.start_share") == at("a30", "gemm_simt.linear.start_share"));
}
