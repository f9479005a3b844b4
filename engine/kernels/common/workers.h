#pragma once
// Parallel tasks with per-worker memory. A worker processes consecutive tasks, on whatever thread
// it runs.

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/parallel.h"

namespace paddle::cpu {

/// Calls `body(first task, last task, worker)` for all workers; a thread gets at least `grain`
/// workers.
template <class Body>
void for_each_worker(int64_t tasks, int64_t workers, Body body, int64_t grain = 1) {
  parallel_for(workers, grain, [&](int64_t begin, int64_t end) {
    for (int64_t w = begin; w < end; ++w) body(tasks * w / workers, tasks * (w + 1) / workers, w);
  });
}

/// Calls `body(task, worker_scratch)` for all tasks, where `worker_scratch` are the
/// `bytes_per_worker` bytes of `scratch` that belong to the task's worker.
template <class Body>
void for_each_task(int64_t tasks, int64_t workers, std::byte* scratch, size_t bytes_per_worker,
                   Body body, int64_t grain = 1) {
  const auto run = [&](int64_t first, int64_t last, int64_t worker) {
    std::byte* const worker_scratch = scratch + static_cast<size_t>(worker) * bytes_per_worker;
    for (int64_t task = first; task < last; ++task) body(task, worker_scratch);
  };
  for_each_worker(tasks, workers, run, grain);
}

/// Number of threads that pays off for this many multiplications.
inline int64_t threads_for(int64_t multiplications) {
  constexpr int64_t kMultiplicationsPerThread = 200'000;
  return std::clamp<int64_t>(multiplications / kMultiplicationsPerThread, 1, thread_count());
}

}  // namespace paddle::cpu
