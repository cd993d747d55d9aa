// SPDX-License-Identifier: MIT
// VGG [Simonyan15] for 1000 classes.
#include "workloads/convnets.hpp"

namespace voltaic::workloads {

void build_vgg(const std::array<Dim, 5>& counts, const BuildOptions& options, Workload& workload) {
  const ImageSizes sizes = resolve_image(options, 224, workload);
  require_own_size(sizes, 224, "its classifier reads 7x7 features", workload);
  GraphWriter w(workload.graph, workload.name, sizes.training);
  TensorId x = vgg_features(w, image_input(w, sizes), {.counts = counts});
  w.scope("classifier");
  x = w.reshape("flatten", x, {sizes.batch, w.dim(x, 1) * w.dim(x, 2) * w.dim(x, 3)});
  for (const std::string number : {"1", "2"}) {
    x = w.apply(OpType::relu, "relu" + number, {w.linear("fc" + number, x, 4096, true)});
    x = w.dropout("dropout" + number, x, 0.5);
  }
  classify(w, workload, w.linear("fc3", x, 1000, true));
}

}  // namespace voltaic::workloads
