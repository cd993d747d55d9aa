// SPDX-License-Identifier: MIT
// Builders of networks that draw images, one file each.
#pragma once

#include "workloads/builder.hpp"

namespace voltaic::workloads {

void build_dcgan(const BuildOptions& options, Workload& workload);
void build_dcgan_generator(const BuildOptions& options, Workload& workload);
void build_stylegan2(const BuildOptions& options, Workload& workload);
void build_stable_diffusion_unet(const BuildOptions& options, Workload& workload);

}  // namespace voltaic::workloads
