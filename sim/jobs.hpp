// SPDX-License-Identifier: MIT
// How many threads work; results never depend on it.
#pragma once

#include <cstddef>
#include <functional>

namespace voltaic {

/// Runs `work` where for_all() uses at most `jobs` threads; 0: all cores.
void with_jobs(int jobs, const std::function<void()>& work);

/// one(0) ... one(count - 1), several at a time. Of several that throw, the first in order is heard.
void for_all(std::size_t count, const std::function<void(std::size_t)>& one);

}  // namespace voltaic
