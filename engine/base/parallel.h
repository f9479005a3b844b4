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

/// Starts the program anew, with the same arguments, so that threads that wait for each other spin
/// for a tenth of a millisecond and then sleep; returns where that is so, or cannot be. libgomp,
/// which reads its settings before a program begins, spins for milliseconds. Beside other programs
/// the thread that is waited for may be on the core of the one that spins, and gets it only when
/// the scheduler's slice ends, at every region: twenty times the time of all the work. For programs
/// that work for long; nothing may have been read or written. OMP_WAIT_POLICY and GOMP_SPINCOUNT
/// are left as they are.
void restart_with_short_waits(char** argv);

/// Marks the calling thread as one that must not open parallel regions (loader workers).
void forbid_parallel_regions_on_this_thread();

namespace parallel_detail {
using RangeFn = void (*)(void* closure, int64_t begin, int64_t end);
void run(int64_t count, int64_t grain, void* closure, RangeFn fn);
}  // namespace parallel_detail

/// Calls `body(begin, end)` over disjoint ranges that cover [0, count); ranges hold at least
/// `grain` elements, and their bounds depend on count, grain and the thread count alone.
/// An exception in `body` is rethrown on the calling thread.
template <class Body>
void parallel_for(int64_t count, int64_t grain, Body&& body) {
  parallel_detail::run(count, grain, &body, [](void* closure, int64_t begin, int64_t end) {
    (*static_cast<std::remove_reference_t<Body>*>(closure))(begin, end);
  });
}

}  // namespace paddle
