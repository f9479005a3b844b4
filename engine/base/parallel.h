#pragma once
// parallel_for over index ranges on one process-wide pool (OpenMP, or std::thread in
// thread-sanitizer builds). Only executor threads may open parallel regions; loader workers run
// their kernels serially.

#include <cstdint>
#include <type_traits>

namespace paddle {

/// Number of threads that parallel_for uses; at first the cores this process may use, counted
/// from the affinity mask and the cgroup's quota.
int thread_count();
void set_thread_count(int threads);
int available_cores();

/// Re-executes the program with the same arguments so that OpenMP threads spin for a tenth of a
/// millisecond before they sleep; returns if that is already so or not possible. libgomp reads its
/// settings before main() and spins for milliseconds by default. On a busy machine the awaited
/// thread may be queued after the spinning one on the same core, at every parallel region, which
/// was measured to take twenty times the time. Call it before anything is read or written.
/// OMP_WAIT_POLICY and GOMP_SPINCOUNT are respected.
void restart_with_short_spin_waits(char** argv);

/// Marks the calling thread as one that must not open parallel regions (loader workers).
void forbid_parallel_regions_on_this_thread();

namespace parallel_detail {
using RangeFn = void (*)(void* closure, int64_t begin, int64_t end);
void run(int64_t count, int64_t grain, void* closure, RangeFn fn);
}  // namespace parallel_detail

/// Calls `body(begin, end)` over disjoint ranges that cover [0, count); ranges hold at least
/// `grain` elements, and their bounds depend only on count, grain and the thread count.
/// An exception in `body` is rethrown on the calling thread.
template <class Body>
void parallel_for(int64_t count, int64_t grain, Body&& body) {
  parallel_detail::run(count, grain, &body, [](void* closure, int64_t begin, int64_t end) {
    (*static_cast<std::remove_reference_t<Body>*>(closure))(begin, end);
  });
}

}  // namespace paddle
