// SPDX-License-Identifier: MIT
// Networks that draw images.
#include "workloads/generative.hpp"

#include "workloads/zoo.hpp"

namespace voltaic::workloads {
namespace {

constexpr ZooModel kModels[] = {
    {"dcgan", "generative", "DCGAN, 64x64: a training step of generator and discriminator", build_dcgan},
    {"dcgan-generator", "generative", "DCGAN generator, 64x64", build_dcgan_generator},
    {"stylegan2", "generative", "StyleGAN2 generator, configuration F, 1024x1024", build_stylegan2},
    {"stable-diffusion-unet", "generative", "U-Net of Stable Diffusion 1.x: one denoising step at 512x512",
     build_stable_diffusion_unet},
};

}  // namespace

std::span<const ZooModel> generative_models() {
  return kModels;
}

}  // namespace voltaic::workloads
