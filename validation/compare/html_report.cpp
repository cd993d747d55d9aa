// SPDX-License-Identifier: MIT
#include "validation/compare/validate.hpp"

namespace voltaic::validation {

std::string validation_html(const Validation&) {
  return "";
}

}  // namespace voltaic::validation
