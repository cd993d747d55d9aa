// SPDX-License-Identifier: MIT
#include "sim/jobs.hpp"

#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <exception>
#include <vector>

namespace voltaic {

void with_jobs(int jobs, const std::function<void()>& work) {
  const int cores = tbb::this_task_arena::max_concurrency();
  tbb::task_arena arena(jobs > 0 ? std::min(jobs, cores) : cores);
  arena.execute(work);
}

void for_all(std::size_t count, const std::function<void(std::size_t)>& one) {
  std::vector<std::exception_ptr> failed(count);
  tbb::parallel_for(tbb::blocked_range<std::size_t>(0, count, 1), [&](const tbb::blocked_range<std::size_t>& range) {
    for (std::size_t i = range.begin(); i < range.end(); ++i) {
      try {
        one(i);
      } catch (...) {
        failed[i] = std::current_exception();
      }
    }
  });
  for (const auto& e : failed) {
    if (e) std::rethrow_exception(e);
  }
}

}  // namespace voltaic
