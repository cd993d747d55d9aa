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

TEST_CASE("operations on images, indices and targets are single nodes with the shapes of their keys",
          "[workloads][operation]") {
  const auto shape = [](const std::string& text) {
    const Workload workload = build_operation("op:" + text, {});
    CAPTURE(text);
    CHECK(workload.graph.nodes().size() == 1);
    return workload.graph.tensor(workload.graph.outputs[0]).shape;
  };
  using graph::Shape;
  CHECK(shape("conv1d,n=2,c=64,w=100,k=32,s=5,padding=2") == Shape{2, 32, 100});
  CHECK(shape("conv3d,c=32,d=8,h=16,w=16,k=64,t=3,r=3,s=3,padding=1,stride=2") == Shape{1, 64, 4, 8, 8});
  CHECK(shape("conv_transpose1d,c=8,w=10,k=4,s=4,stride=2,output_padding=1") == Shape{1, 4, 23});
  CHECK(shape("conv_transpose2d,n=128,c=1024,h=4,w=4,k=512,r=4,s=4,stride=2,padding=1") == Shape{128, 512, 8, 8});
  CHECK(shape("conv_transpose3d,c=8,d=4,h=4,w=4,k=4,t=2,r=2,s=2,stride=2") == Shape{1, 4, 8, 8, 8});
  CHECK(shape("max_pool1d,c=8,w=10,kernel=2") == Shape{1, 8, 5});
  CHECK(shape("avg_pool2d,c=8,h=10,w=12,kernel=3,stride=1,padding=1") == Shape{1, 8, 10, 12});
  CHECK(shape("max_pool3d,c=8,d=4,h=10,w=12,kernel=2") == Shape{1, 8, 2, 5, 6});
  CHECK(shape("resize,n=1,c=8,h=10,w=12,linear=1") == Shape{1, 8, 20, 24});
  CHECK(shape("roi_align,c=256,h=50,w=68,regions=512") == Shape{512, 256, 7, 7});
  CHECK(shape("nms,boxes=1000,keep=100") == Shape{100});
  CHECK(shape("spmm,rows=5,cols=7,features=16,nnz=30,values=0") == Shape{5, 16});
  CHECK(shape("sddmm,rows=5,cols=7,features=16,nnz=30") == Shape{30});
  CHECK(shape("embedding_bag,rows=1000,width=64,batch=32,lookups=20,zipf_percent=105") == Shape{32, 64});
  CHECK(shape("gather,rows=100,cols=16,count=300") == Shape{300, 16});
  CHECK(shape("scatter_add,rows=100,cols=16,count=300") == Shape{100, 16});
  CHECK(shape("sort,rows=3,cols=100") == Shape{3, 100});
  CHECK(shape("topk,rows=3,cols=100,k=5") == Shape{3, 5});
  CHECK(shape("cumsum,rows=3,cols=100") == Shape{3, 100});
  for (const std::string op : {"mse_loss", "smooth_l1_loss", "bce_loss"}) CHECK(shape(op + ",rows=9,cols=4").empty());
  CHECK(shape("ctc_loss,time=100,batch=8,classes=29,labels=20").empty());

  CHECK(usage("op:topk,rows=3,cols=100,k=101") == "op:topk: k: expected up to 100, got 101");
  CHECK(usage("op:nms,boxes=10,keep=11") == "op:nms: keep: expected up to 10, got 11");
  CHECK(usage("op:embedding_bag,rows=9,width=8,batch=4,zipf_percent=1001") ==
        "op:embedding_bag: zipf_percent: expected up to 1000, got 1001");
  CHECK(usage("op:conv3d,c=32,h=16,w=16,k=64,t=3,r=3,s=3").ends_with("'d' is missing"));
  CHECK_THROWS_AS(build_operation("op:max_pool1d,c=8,w=1,kernel=3", {}), ConfigError);
  CHECK_THROWS_AS(build_operation("op:roi_align,c=256,h=50,w=68,regions=512,size=4611686018427387904", {}),
                  ConfigError);
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
  CHECK_THROWS_AS(build_operation("op:all_reduce,rows=1,cols=1", {}), UnsupportedError);
}

}  // namespace voltaic::workloads
