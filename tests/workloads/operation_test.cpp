// SPDX-License-Identifier: MIT
// Single operations as workloads.
#include "tests/support/catch.hpp"
#include "tests/workloads/support.hpp"

namespace voltaic::workloads {
namespace {

std::string usage(const std::string& text) {
  return test::message_of<UsageError>([&] { build_operation(text, {}); });
}

}  // namespace

TEST_CASE("a matrix product of 65536 cubed is counted without overflow", "[workloads][operation]") {
  const Workload workload = build_operation("op:matmul,m=65536,n=65536,k=65536", {});
  CHECK(workload.graph.nodes().size() == 1);
  CHECK(test::macs(workload) == 0x1p48);
}

TEST_CASE("a copy moves the bytes it names, whatever the precision", "[workloads][operation]") {
  const Workload workload = build_operation("op:copy,bytes=1GiB", {});
  const auto& node = workload.graph.nodes().front();
  CHECK(workload.graph.tensor(node.inputs[0]).bytes() == 0x1p30);
  CHECK_FALSE(is_floating(workload.graph.tensor(node.inputs[0]).dtype));
  const Workload odd = build_operation("op:copy,bytes=1001", {});
  CHECK(odd.graph.tensor(odd.graph.nodes().front().inputs[0]).bytes() == 1001);
}

TEST_CASE("operations take their shapes from their keys", "[workloads][operation]") {
  const Workload conv = build_operation("op:conv2d,n=2,c=64,h=56,w=56,k=128,r=3,s=3,stride=2,padding=1", {});
  CHECK(conv.graph.tensor(conv.graph.outputs[0]).shape == graph::Shape{2, 128, 28, 28});
  const Workload bmm = build_operation("op:matmul,batch=8,m=16,n=32,k=64", {});
  CHECK(bmm.graph.tensor(bmm.graph.outputs[0]).shape == graph::Shape{8, 16, 32});
  const Workload attention =
      build_operation("op:attention,batch=2,heads=8,kv_heads=2,seq=1,seq_kv=100,head_dim=64", {});
  CHECK(attention.graph.tensor(attention.graph.nodes()[0].inputs[1]).shape == graph::Shape{2, 2, 100, 64});
  const Workload linear = build_operation("op:linear,m=8,n=16,k=32", {});
  CHECK(linear.parameters == 16 * 32 + 16);
  for (const std::string op :
       {"softmax", "layer_norm", "rms_norm", "gelu", "add", "where", "masked_fill", "reduce_sum", "cast", "rope",
        "add_scalar", "dropout", "cross_entropy", "log_softmax", "maximum", "compare_scalar"}) {
    CAPTURE(op);
    CHECK(build_operation("op:" + op + ",rows=12,cols=16", {}).graph.nodes().size() == 1);
  }
}

TEST_CASE("a recurrent layer lists weights and biases of each layer and direction", "[workloads][operation]") {
  const Workload lstm = build_operation("op:lstm,seq=5,batch=3,input=7,hidden=11,layers=2,bidirectional=1", {});
  REQUIRE(lstm.graph.nodes().size() == 1);
  CHECK(lstm.graph.nodes()[0].inputs.size() == 1 + 4 * 4);
  CHECK(lstm.graph.tensor(lstm.graph.nodes()[0].outputs[0]).shape == graph::Shape{5, 3, 22});
  // 15 rows, 2 directions, 4 gates of 11: the input of 7 and then 22 wide, the state of 11 twice.
  CHECK_THAT(graph::count(lstm.graph, lstm.graph.nodes()[0]).mac, WithinRel(15.0 * 2 * 44 * (7 + 22 + 22), 1e-12));
  CHECK(usage("op:gru,batch=4,hidden=8").find("'seq' is missing") != std::string::npos);
  CHECK(usage("op:rnn,seq=4,hidden=8,layers=5000") == "op:rnn: layers: expected up to 1024, got 5000");
}

TEST_CASE("operations that make no sense are refused by name", "[workloads][operation]") {
  CHECK(usage("op:matmul,m=1,n=2,kk=3") == "op:matmul: expected keys m, n, k, batch, got 'kk'; did you mean 'k'?");
  CHECK(usage("op:matmul,m=1,n=2") == "op:matmul: expected keys m, n, k, batch, 'k' is missing");
  CHECK(usage("op:matmul,m=1,n=2,k=0") == "op:matmul: k: expected at least 1, got 0");
  CHECK(usage("op:matmul,m=1,n=2,k=1.5") == "op: k: expected a whole number up to 2^62, got '1.5'");
  CHECK(usage("op:matmul,m=1,m=1") == "op:matmul: expected each key once, got 'm' twice");
  CHECK(usage("op:sofmax,rows=1,cols=1") == "op:sofmax: no such operation; did you mean 'softmax'?");
  CHECK(usage("op:matmul,m=99999999999999999999,n=1,k=1") ==
        "op: m: expected a whole number up to 2^62, got '99999999999999999999'");
  CHECK(usage("op:attention,heads=32,kv_heads=7,seq=8,head_dim=64") ==
        "op:attention: kv_heads: expected a divisor of heads 32, got 7");
  CHECK(usage("op:conv2d,c=6,h=8,w=8,k=8,r=3,s=3,groups=4") == "op:conv2d: groups: expected a divisor of c 6, got 4");
  CHECK_THROWS_AS(build_operation("op:add,rows=4611686018427387904,cols=2", {}), ConfigError);
  CHECK_THROWS_AS(build_operation("op:lstm,rows=1,cols=1", {}), UnsupportedError);
}

}  // namespace voltaic::workloads
