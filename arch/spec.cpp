// SPDX-License-Identifier: MIT
#include "arch/spec.hpp"

#include <algorithm>

namespace voltaic::arch {

FlopsPerSecond GpuSpec::tensor_peak(DataType t) const {
  if (!has_tensor_path(t)) return {0};
  return {2 * sm.tensor[t] * static_cast<double>(sm.count) * clocks.boost.value};
}

FlopsPerSecond GpuSpec::sparse_peak(DataType t) const {
  if (!has_sparse_path(t)) return {0};
  return {2 * sm.tensor_sparse[t] * static_cast<double>(sm.count) * clocks.boost.value};
}

FlopsPerSecond GpuSpec::cuda_core_peak(DataType t) const {
  return {2 * sm.cuda_core[t] * static_cast<double>(sm.count) * clocks.boost.value};
}

FlopsPerSecond GpuSpec::peak(DataType t) const {
  return std::max(tensor_peak(t), cuda_core_peak(t));
}

std::string_view to_string(Architecture a) {
  switch (a) {
    case Architecture::volta: return "volta";
    case Architecture::turing: return "turing";
    case Architecture::ampere: return "ampere";
    case Architecture::hopper: return "hopper";
  }
  return "unknown";
}

}  // namespace voltaic::arch
