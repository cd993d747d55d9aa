// SPDX-License-Identifier: MIT
// Kernel tables: what is recognised, what each row becomes, and that senseless cells are named.
#include "validation/compare/kernel_rows.hpp"

#include <string>

#include "arch/loader.hpp"
#include "arch/units/error.hpp"
#include "sim/cost/engine.hpp"
#include "tests/support/catch.hpp"

using namespace voltaic;
using namespace voltaic::validation;

namespace {

constexpr const char* kProducts = "op,origin,gpu,b,m,n,k,dtype,kernel,grid_z,tile_m,tile_n,latency_us\n";
constexpr const char* kConvolutions = "op,gpu,b,c_in,c_out,ksize,h_in,stride,pad,alg,latency_us\n";
constexpr const char* kVectors = "op,gpu,rows,cols,latency_us\n";

CsvTable table(const std::string& header, const std::string& rows) {
  return CsvTable::parse(header + rows, "t.csv");
}

/// The one line of a refusal, or empty when the table is read.
std::string refusal(const std::string& header, const std::string& row) {
  try {
    read_kernel_rows(table(header, row + "\n"));
  } catch (const ConfigError& e) {
    return e.what();
  }
  return "";
}

bool names(const std::string& message, const std::string& word) {
  return message.find(word) != std::string::npos && message.find('\n') == std::string::npos;
}

}  // namespace

TEST_CASE("kernel tables are recognised by their columns, in any order", "[validation][kernel_rows]") {
  CHECK(is_kernel_table(table(kProducts, "")));
  CHECK(is_kernel_table(table(kConvolutions, "")));
  CHECK(is_kernel_table(table(kVectors, "")));
  CHECK(is_kernel_table(table("latency_us,cols,rows,gpu,op\n", "")));
  CHECK_FALSE(is_kernel_table(table("op,gpu,rows,latency_us\n", "")));
  CHECK_FALSE(is_kernel_table(table("op,gpu,rows,cols,e2e_ms\n", "")));
}

TEST_CASE("a product row becomes the problem that the framework multiplies", "[validation][kernel_rows]") {
  const auto read =
      read_kernel_rows(table(kProducts,
                             "linear,test,V100-PCIE-32GB,1,512,1024,256,fp32,volta_sgemm_128x64_tn,3,64,128,70\n"
                             "bmm,train,H100-SXM5-80GB,16,128,64,32,fp16,,0,0,0,30.5\n"));
  REQUIRE(read.rows.size() == 2);
  const KernelRow& linear = read.rows[0];
  CHECK(linear.gpu == "v100-pcie-32gb");
  CHECK(linear.origin == "test");
  CHECK(linear.key == "gemm|1|512|1024|256");
  CHECK(linear.label == "1 x 512 x 1024 x 256");
  CHECK(linear.product.linear);
  CHECK(linear.product.transpose_b);
  CHECK(linear.product.bias);
  CHECK_THAT(linear.measured_s, WithinRel(70e-6, 1e-12));
  CHECK_THAT(linear.size, WithinRel(2.0 * 512 * 1024 * 256, 1e-12));
  CHECK(linear.observed.known());
  CHECK(linear.observed.split_k == 3);
  CHECK(linear.observed.tile_n == 128);
  const KernelRow& bmm = read.rows[1];
  CHECK(bmm.product.batch == 16);
  CHECK_FALSE(bmm.product.linear);
  CHECK_FALSE(bmm.product.transpose_b);
  CHECK(bmm.product.math == DataType::fp16);
  CHECK_THAT(bmm.product.a_bytes, WithinRel(2.0, 1e-12));
  CHECK(bmm.observed.split_k == 1);  // its grid_z is the batch
  CHECK_FALSE(bmm.observed.known());
}

TEST_CASE("a convolution row knows its output, a vector row its tensors", "[validation][kernel_rows]") {
  const auto conv = read_kernel_rows(table(kConvolutions, "conv,T4,2,3,8,3,11,2,1,fft,99\n"));
  REQUIRE(conv.rows.size() == 1);
  CHECK(conv.rows[0].convolution.out[2] == 6);  // (11 + 2 - 3) / 2 + 1
  CHECK(conv.rows[0].key == "conv|2|3|8|3|11|2|1");
  CHECK(conv.rows[0].observed.algorithm == "fft");
  CHECK_THAT(conv.rows[0].size, WithinRel(2.0 * 2 * 8 * 36 * 27, 1e-12));
  const auto vector = read_kernel_rows(table(kVectors, "add,T4,8,16,20\npowu,T4,8,16,20\nlayernorm,T4,8,16,20\n"));
  REQUIRE(vector.rows.size() == 3);
  CHECK(vector.rows[0].tensor_inputs == 2);
  CHECK_THAT(vector.rows[0].size, WithinRel(4.0 * 8 * 16 * 3, 1e-12));
  CHECK(vector.rows[1].tensor_inputs == 1);
  CHECK(vector.rows[1].key == "powu|8|16");
  CHECK(vector.rows[0].dtype == "fp32");
}

TEST_CASE("the split is zlib's crc32 of the key modulo ten", "[validation][kernel_rows]") {
  // crc32("123456789") = 0xCBF43926 = 3421780262, the checksum's published check value.
  CHECK(is_fit_key("123456789"));
  // crc32("") = 0; crc32("a") = 0xE8B7BE43 = 3904355907.
  CHECK(is_fit_key(""));
  CHECK_FALSE(is_fit_key("a"));
}

TEST_CASE("rows of unknown GPUs, operations and types are counted with the reason", "[validation][kernel_rows]") {
  const auto read = read_kernel_rows(table("op,gpu,rows,cols,dtype,latency_us\n",
                                           "add,MI250,8,8,fp32,20\nadd,MI250,9,8,fp32,20\nfrobnicate,T4,8,8,fp32,20\n"
                                           "add,T4,8,8,fp12,20\nadd,T4,8,8,fp32,\nadd,T4,8,8,fp32,20\n"));
  CHECK(read.rows.size() == 1);
  const std::vector<std::pair<std::string, std::int64_t>> expected{{"GPU MI250 is unknown", 2},
                                                                   {"dtype fp12 is unknown for add", 1},
                                                                   {"no measured time", 1},
                                                                   {"op frobnicate is unknown", 1}};
  CHECK(read.skipped == expected);
  CHECK(read.skipped_lines == std::vector<std::size_t>{0, 1, 2, 3, 4});
}

TEST_CASE("a senseless cell is refused with its line and column", "[validation][kernel_rows]") {
  CHECK(names(refusal(kVectors, "add,T4,0,8,20"), "rows"));
  CHECK(names(refusal(kVectors, "add,T4,-5,8,20"), "line 2"));
  CHECK(names(refusal(kVectors, "add,T4,,8,20"), "rows"));
  CHECK(names(refusal(kVectors, "add,T4,2.5,8,20"), "rows"));
  CHECK(names(refusal(kVectors, "add,T4,eight,8,20"), "rows"));
  CHECK(names(refusal(kVectors, "add,T4,9e18,8,20"), "rows"));
  CHECK(names(refusal(kVectors, "add,T4,1099511627776,1099511627776,20"), "elements"));
  for (const char* time : {"nan", "inf", "-1", "0", "1e-320", "1e300", "fast"}) {
    INFO(time);
    CHECK(names(refusal(kVectors, std::string("add,T4,8,8,") + time), "latency_us"));
  }
  CHECK(names(refusal(kProducts, "linear,x,T4,2,8,8,8,fp32,,1,0,0,20"), "linear"));
  CHECK(names(refusal(kProducts, "bmm,x,T4,1,8,8,-8,fp32,,1,0,0,20"), "k"));
  CHECK(names(refusal(kConvolutions, "conv,T4,1,3,8,7,3,1,0,,20"), "ksize"));
  CHECK(names(refusal(kConvolutions, "conv,T4,1,3,8,3,8,0,1,,20"), "stride"));
  CHECK(names(refusal(kConvolutions, "conv,T4,1,3,8,3,8,1,-1,,20"), "pad"));
}

TEST_CASE("every kind of row lowers to what the library launches", "[validation][kernel_rows]") {
  const arch::ResolvedGpu gpu = arch::resolve_gpu("a100-pcie-40gb");
  const auto library = cost::make_library(gpu);
  const auto launches = [&](const CsvTable& t) {
    return lower_row(read_kernel_rows(t).rows.at(0), gpu.spec, *library);
  };
  const auto product = launches(table(kProducts, "linear,x,A100-PCIE-40GB,1,64,64,64,fp32,,1,0,0,20\n"));
  REQUIRE_FALSE(product.empty());
  CHECK_THAT(product[0].work.mac, WithinRel(64.0 * 64 * 64, 1e-12));
  const auto conv = launches(table(kConvolutions, "conv,A100-PCIE-40GB,1,3,8,3,11,1,1,,20\n"));
  REQUIRE_FALSE(conv.empty());
  CHECK(std::holds_alternative<kernel::ConvKernel>(conv[0].detail));
  const auto add = launches(table(kVectors, "add,A100-PCIE-40GB,64,32,20\n"));
  REQUIRE(add.size() == 1);
  CHECK_THAT(add[0].work.read.value, WithinRel(4.0 * 2 * 64 * 32, 1e-12));
  CHECK_THAT(add[0].work.written.value, WithinRel(4.0 * 64 * 32, 1e-12));
  // A row of any size below the limits lowers without overflow.
  CHECK_FALSE(launches(table(kProducts, "bmm,x,A100-PCIE-40GB,1,1,1,1099511627776,fp32,,1,0,0,20\n")).empty());
  CHECK_FALSE(launches(table(kVectors, "softmax,A100-PCIE-40GB,900,1000000000000,20\n")).empty());
}
