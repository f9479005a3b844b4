#include "base/parallel.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <thread>
#include <utility>
#include <vector>

#ifdef PADDLE_USE_OPENMP
#include <omp.h>
#endif

#include "base/cgroup.h"
#include "base/files.h"
#include "base/thread_scope.h"

namespace paddle {
namespace {

int& configured_threads() {
  static int threads = available_cores();
  return threads;
}

thread_local bool serial_thread = false;
thread_local int own_threads = 0;  // of a ThreadScope; 0: those of the process

/// Makes the parallel regions of libraries that this thread calls use as many threads.
void tell_libraries() {
#ifdef PADDLE_USE_OPENMP
  omp_set_num_threads(thread_count());
#endif
}

}  // namespace

int available_cores() {
#ifdef PADDLE_USE_OPENMP
  int cores = omp_get_num_procs();  // of the process, where OMP_PROC_BIND bound this thread to one
#else
  cpu_set_t set;
  CPU_ZERO(&set);
  int cores = 1;
  if (sched_getaffinity(0, sizeof set, &set) == 0) cores = std::max(1, CPU_COUNT(&set));
#endif
  if (const auto limit = cgroup_limits().cores)
    cores = std::min(cores, std::max(1, static_cast<int>(std::min(*limit, 65536.0) + 0.5)));
  return cores;
}

int thread_count() {
  if (serial_thread) return 1;
  return own_threads > 0 ? own_threads : configured_threads();
}

void set_thread_count(int threads) {
  configured_threads() = std::max(1, threads);
  tell_libraries();
}

ThreadScope::ThreadScope(int threads) : before_(std::exchange(own_threads, std::max(1, threads))) {
  tell_libraries();
}

ThreadScope::~ThreadScope() {
  own_threads = before_;
  tell_libraries();
}

void forbid_parallel_regions_on_this_thread() {
  serial_thread = true;
  tell_libraries();
}

void restart_with_short_spin_waits([[maybe_unused]] char** argv) {
#ifdef PADDLE_USE_OPENMP
  if (thread_count() == 1 || std::getenv("OMP_WAIT_POLICY") || std::getenv("GOMP_SPINCOUNT"))
    return;
  const std::string program = program_path();
  if (!program.empty() && setenv("GOMP_SPINCOUNT", "5000", 1) == 0) execv(program.c_str(), argv);
#endif
}

namespace parallel_detail {

void run(int64_t count, int64_t grain, void* closure, RangeFn fn) {
  if (count <= 0) return;
  const int64_t most = std::max<int64_t>(1, count / std::max<int64_t>(1, grain));
  const int64_t parts = std::min<int64_t>(thread_count(), most);
#ifdef PADDLE_USE_OPENMP
  if (parts == 1 || omp_in_parallel()) {
    fn(closure, 0, count);
    return;
  }
#else
  if (parts == 1) {
    fn(closure, 0, count);
    return;
  }
#endif
  std::exception_ptr failure;
  const auto part = [&](int64_t i) {
    const int64_t begin = count * i / parts, end = count * (i + 1) / parts;
    try {
      fn(closure, begin, end);
    } catch (...) {
#ifdef PADDLE_USE_OPENMP
#pragma omp critical(paddle_parallel_failure)
#endif
      if (!failure) failure = std::current_exception();
    }
  };
#ifdef PADDLE_USE_OPENMP
#pragma omp parallel for num_threads(static_cast <int>(parts)) schedule(static, 1)
  for (int64_t i = 0; i < parts; ++i) part(i);
#else
  std::vector<std::exception_ptr> failures(static_cast<size_t>(parts));
  std::vector<std::thread> threads;
  for (int64_t i = 1; i < parts; ++i)
    threads.emplace_back([&, i] {
      try {
        fn(closure, count * i / parts, count * (i + 1) / parts);
      } catch (...) {
        failures[static_cast<size_t>(i)] = std::current_exception();
      }
    });
  part(0);
  for (std::thread& thread : threads) thread.join();
  for (const auto& each : failures)
    if (each && !failure) failure = each;
#endif
  if (failure) std::rethrow_exception(failure);
}

}  // namespace parallel_detail
}  // namespace paddle
