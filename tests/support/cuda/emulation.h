// The names of device code, for compiling it for the CPU: the threads of a block run one after the
// other on stacks of their own (fake_driver.cc), and switch at barriers.
#pragma once

#include <math.h>
#include <stdint.h>
#include <string.h>

#define PADDLE_EMULATION 1

struct EmulatedIndex {
  unsigned x, y, z;
};
struct Emulation {
  EmulatedIndex thread, block, block_size, grid_size;
  void (*barrier)();
  unsigned long long round;
};
__attribute__((visibility("hidden"))) inline Emulation paddle_emulation;
extern "C" __attribute__((visibility("default"))) inline Emulation* paddle_emulation_state() {
  return &paddle_emulation;
}
// Keeps the function in the library.
__attribute__((used, visibility("hidden"))) inline Emulation* (*const paddle_keep_state)() =
    paddle_emulation_state;

#define threadIdx paddle_emulation.thread
#define blockIdx paddle_emulation.block
#define blockDim paddle_emulation.block_size
#define gridDim paddle_emulation.grid_size
#define __shared__ static
#define __device__
#define PADDLE_DEVICE inline
#define PADDLE_SAME_STORE PADDLE_ATOMIC inline
#define PADDLE_KERNEL(name, Arguments)                                                 \
  static inline void name##_body(const Arguments& arguments);                          \
  extern "C" __attribute__((visibility("default"))) unsigned long name##_bytes;        \
  unsigned long name##_bytes = sizeof(Arguments);                                      \
  extern "C" __attribute__((visibility("default"))) void name(const void* arguments) { \
    name##_body(*(const Arguments*)arguments);                                         \
  }                                                                                    \
  static inline void name##_body(const Arguments& arguments)

#ifdef PADDLE_RACE_CHECK
#define PADDLE_ATOMIC __attribute__((no_sanitize("thread"), noinline))
#include "race_check.h"
#else
#define PADDLE_ATOMIC
#endif

inline void __syncthreads() { paddle_emulation.barrier(); }

PADDLE_ATOMIC inline unsigned long long atomicCAS(unsigned long long* at,
                                                  unsigned long long expected,
                                                  unsigned long long value) {
  const unsigned long long before = *at;
  if (before == expected) *at = value;
  return before;
}

PADDLE_ATOMIC inline unsigned atomicAdd(unsigned* at, unsigned value) {
  const unsigned before = *at;
  *at += value;
  return before;
}
inline void __threadfence() {}

inline uint64_t __umul64hi(uint64_t a, uint64_t b) {
  return (uint64_t)((unsigned __int128)a * b >> 64);
}
