// SPDX-License-Identifier: MIT
// Fuzzes the reader of Hugging Face configurations: any bytes give a graph or one of the errors a user can cause.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "arch/units/error.hpp"
#include "workloads/builder.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  voltaic::workloads::BuildOptions options;
  options.training = size % 2 == 0;
  if (!options.training && size % 3 == 0) options.phase = voltaic::workloads::RunPhase::decode;
  if (size % 5 == 0) options.attention = voltaic::workloads::AttentionForm::flash;
  try {
    (void)voltaic::workloads::import_huggingface(text, "config.json", options);
  } catch (const voltaic::ConfigError&) {
  } catch (const voltaic::UnsupportedError&) {
  } catch (const voltaic::UsageError&) {
  }
  return 0;
}
