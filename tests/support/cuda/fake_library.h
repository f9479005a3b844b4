#pragma once
// For stand-ins of NVIDIA's libraries: the stand-in for the driver in this process, and elements of
// the types that both compute with.

#include <dlfcn.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include "fake_driver.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

/// The stand-in for the driver, which the program has opened; ends the process without it.
template <class Function>
Function driver_function(const char* name) {
  static void* const driver =
      dlopen(PADDLE_FAKE_CUDA_FOLDER "/libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  void* const found = driver ? dlsym(driver, name) : nullptr;
  if (!found) {
    std::fprintf(stderr, "the stand-in for the driver is not loaded\n");
    std::abort();
  }
  return reinterpret_cast<Function>(found);
}

/// Whether a variable is 1: without it a stand-in cannot be used, so that tests ask for it.
inline bool is_wanted(const char* variable) {
  const char* const value = std::getenv(variable);
  return value && std::strcmp(value, "1") == 0;
}

/// Whether this call of a function is to fail: the nth, if the variable is "<function>:<n>".
inline bool is_planted(const char* variable, const std::string& function) {
  const char* const wanted = std::getenv(variable);
  if (!wanted) return false;
  static auto& mutex = *new std::mutex;
  static auto& calls = *new std::map<std::string, uint64_t>;
  const std::lock_guard guard(mutex);
  return wanted == function + ":" + std::to_string(++calls[function]);
}

enum class Element { kF32, kF16, kBF16 };

inline size_t size_of(Element type) { return type == Element::kF32 ? 4 : 2; }

inline float load(Element type, const void* at, int64_t index) {
  if (type == Element::kF32) return static_cast<const float*>(at)[index];
  const uint16_t bits = static_cast<const uint16_t*>(at)[index];
  if (type == Element::kBF16) {
    const uint32_t wide = static_cast<uint32_t>(bits) << 16;
    float out = 0;
    std::memcpy(&out, &wide, sizeof out);
    return out;
  }
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  float out = exponent == 0    ? std::ldexp(static_cast<float>(fraction), -24)
              : exponent == 31 ? (fraction ? NAN : INFINITY)
                               : std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
  return bits & 0x8000 ? -out : out;
}

/// Rounds to the nearest, ties to even.
inline void store(Element type, void* at, int64_t index, float value) {
  if (type == Element::kF32) {
    static_cast<float*>(at)[index] = value;
    return;
  }
  uint16_t bits = 0;
  if (type == Element::kBF16) {
    uint32_t wide = 0;
    std::memcpy(&wide, &value, sizeof wide);
    bits = std::isnan(value) ? static_cast<uint16_t>(wide >> 16 | 0x40)
                             : static_cast<uint16_t>((wide + 0x7fff + (wide >> 16 & 1)) >> 16);
  } else if (std::isnan(value)) {
    bits = 0x7e00;
  } else {
    const float size = std::fabs(value);
    int exponent = 0;
    std::frexp(size, &exponent);
    // The distance between neighbors is 2^(exponent - 11), at least 2^-24.
    const int unit = exponent - 11 < -24 ? -24 : exponent - 11;
    const float rounded = std::nearbyint(std::ldexp(size, -unit));
    const float whole = std::ldexp(rounded, unit);
    if (std::isinf(size) || whole >= 65520.0f) {
      bits = 0x7c00;
    } else if (whole < 0x1p-14f) {
      bits = static_cast<uint16_t>(std::ldexp(whole, 24));
    } else {
      std::frexp(whole, &exponent);
      bits = static_cast<uint16_t>((exponent + 14) << 10 |
                                   (static_cast<int>(std::ldexp(whole, 11 - exponent)) & 1023));
    }
    if (std::signbit(value)) bits |= 0x8000;
  }
  static_cast<uint16_t*>(at)[index] = bits;
}

}  // namespace
