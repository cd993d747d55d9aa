// SPDX-License-Identifier: MIT
#include "arch/detail/chips.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "arch/detail/embedded_data.hpp"
#include "arch/detail/strict_json.hpp"
#include "arch/units/error.hpp"

namespace voltaic::arch::detail {
namespace {

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return text;
}

/// All chips by name in small letters.
const std::map<std::string, Description, std::less<>>& all_chips() {
  static const auto chips = [] {
    std::map<std::string, Description, std::less<>> out;
    for (const EmbeddedFile& embedded : embedded_chips()) {
      const std::string file(embedded.name);
      Description chip;
      decode_chip(parse_trusted(embedded.text, file), file, chip);
      out.emplace(lower(chip.spec.chip), std::move(chip));
    }
    return out;
  }();
  return chips;
}

std::string_view chip_of(Architecture architecture) {
  switch (architecture) {
    case Architecture::volta: return "gv100";
    case Architecture::turing: return "tu104";
    case Architecture::ampere: return "ga100";
    case Architecture::hopper: return "gh100";
  }
  return "";
}

}  // namespace

void take_from_chip(Description& d) {
  const auto& chips = all_chips();
  auto chip = chips.find(lower(d.spec.chip));
  const bool known = chip != chips.end();
  if (!known) chip = chips.find(chip_of(d.spec.architecture));
  ensure(chip != chips.end(), "every architecture has a chip");
  Description theirs = chip->second;
  const auto from = fields_of(theirs.spec);
  const auto to = fields_of(d.spec);
  std::size_t taken = 0;
  for (std::size_t i = 0; i < from.size(); ++i) {  // MIG profiles are last and no chip has any
    if (theirs.sources[i].empty() || !d.sources[i].empty()) continue;
    to[i].set(from[i].get());
    d.sources[i] = theirs.sources[i];
    ++taken;
  }
  if (!known && taken > 0) {
    d.notes.push_back(
        fmt::format("no figures of a chip {}: {} numbers of the {} stand in", d.spec.chip, taken, theirs.spec.chip));
  }
}

}  // namespace voltaic::arch::detail
