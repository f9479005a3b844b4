// Finds races in emulated kernels. The compiler announces every access of code that it compiles
// with -fsanitize=thread; instead of its library, the functions here compare each with those of the
// other threads of the block since the last barrier. Two threads may not access a byte then if one
// writes, but by atomic functions. Ends the process with one line.
#pragma once

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

struct RaceCell {
  const void* at;
  unsigned long long round;
  int writer, reader;  // threads plus one, 0 for none; -1: several readers
};
#define PADDLE_HOOK __attribute__((no_sanitize("thread"), visibility("hidden"), noinline))

PADDLE_HOOK inline RaceCell* race_cells() {
  static RaceCell* const cells = (RaceCell*)calloc(size_t{1} << 20, sizeof(RaceCell));
  return cells;
}

PADDLE_HOOK inline void report_race(const char* what, const void* code) {
  Dl_info found = {};
  dladdr(code, &found);
  fprintf(stderr, "race: %s in %s, thread %u of block %u\n", what,
          found.dli_sname ? found.dli_sname : "a kernel", paddle_emulation.thread.x,
          paddle_emulation.block.x);
  fflush(stderr);
  abort();
}

PADDLE_HOOK inline void check_race(const void* start, unsigned bytes, bool writes,
                                   const void* code) {
  // Of more than one dimension, blocks have up to 1,024 threads.
  const EmulatedIndex t = paddle_emulation.thread, size = paddle_emulation.block_size;
  const int thread = (int)(t.x + size.x * (t.y + size.y * t.z)) + 1;
  for (unsigned i = 0; i < bytes; ++i) {
    const char* const at = (const char*)start + i;
    const uint64_t hash = (uint64_t)at * 0x9e3779b97f4a7c15ull;
    RaceCell* const cell = race_cells() + (hash >> 44);
    if (cell->at != at || cell->round != paddle_emulation.round)
      *cell = {at, paddle_emulation.round, 0, 0};
    if (writes) {
      if (cell->writer && cell->writer != thread) report_race("two threads write", code);
      if (cell->reader && cell->reader != thread)
        report_race("a thread writes what another one reads", code);
      cell->writer = thread;
    } else {
      if (cell->writer && cell->writer != thread)
        report_race("a thread reads what another one writes", code);
      cell->reader = cell->reader == 0 || cell->reader == thread ? thread : -1;
    }
  }
}

#define PADDLE_ACCESS(name, bytes, writes)                                                 \
  extern "C" __attribute__((no_sanitize("thread"), visibility("hidden"), used)) void name( \
      void* at) {                                                                          \
    check_race(at, bytes, writes, __builtin_return_address(0));                            \
  }
PADDLE_ACCESS(__tsan_read1, 1, false)
PADDLE_ACCESS(__tsan_read2, 2, false)
PADDLE_ACCESS(__tsan_read4, 4, false)
PADDLE_ACCESS(__tsan_read8, 8, false)
PADDLE_ACCESS(__tsan_read16, 16, false)
PADDLE_ACCESS(__tsan_write1, 1, true)
PADDLE_ACCESS(__tsan_write2, 2, true)
PADDLE_ACCESS(__tsan_write4, 4, true)
PADDLE_ACCESS(__tsan_write8, 8, true)
PADDLE_ACCESS(__tsan_write16, 16, true)
PADDLE_ACCESS(__tsan_unaligned_read2, 2, false)
PADDLE_ACCESS(__tsan_unaligned_read4, 4, false)
PADDLE_ACCESS(__tsan_unaligned_read8, 8, false)
PADDLE_ACCESS(__tsan_unaligned_read16, 16, false)
PADDLE_ACCESS(__tsan_unaligned_write2, 2, true)
PADDLE_ACCESS(__tsan_unaligned_write4, 4, true)
PADDLE_ACCESS(__tsan_unaligned_write8, 8, true)
PADDLE_ACCESS(__tsan_unaligned_write16, 16, true)
#define PADDLE_RANGE(name, writes)                                                         \
  extern "C" __attribute__((no_sanitize("thread"), visibility("hidden"), used)) void name( \
      void* at, unsigned long bytes) {                                                     \
    check_race(at, (unsigned)bytes, writes, __builtin_return_address(0));                  \
  }
PADDLE_RANGE(__tsan_read_range, false)
PADDLE_RANGE(__tsan_write_range, true)
#define PADDLE_IGNORED(name) \
  extern "C" __attribute__((no_sanitize("thread"), visibility("hidden"), used)) void name(void*) {}
PADDLE_IGNORED(__tsan_func_entry)
PADDLE_IGNORED(__tsan_vptr_update)
extern "C" __attribute__((no_sanitize("thread"), visibility("hidden"), used)) void
__tsan_func_exit() {}
extern "C" __attribute__((no_sanitize("thread"), visibility("hidden"), used)) void __tsan_init() {}
/// The guard of a static array of a class with constructors, which no thread writes to.
extern "C" __attribute__((no_sanitize("thread"), visibility("hidden"), used)) unsigned char
__tsan_atomic8_load(const volatile unsigned char* at, int) {
  return *at;
}
