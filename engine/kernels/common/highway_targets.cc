// The run-time part of Highway's dispatch: which instruction sets the machine has and which one is
// chosen. The rest of Highway is headers. Its own library does the same but calibrates a timer when
// it is loaded, which takes 3 to 4 ms: a third of a prediction's time from process start.

#include <cpuid.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>

#include "hwy/targets.h"

namespace hwy {
namespace {

/// Sets that every processor has; which of the two is compiled depends on the compiler.
constexpr int64_t kAlways = HWY_SCALAR | HWY_EMU128;

int64_t detect() {
  int64_t found = kAlways;
#if HWY_ARCH_X86
  // The builtin also checks that the operating system saves the wide registers.
  __builtin_cpu_init();
  unsigned a = 0, b = 0, c = 0, d = 0;
  const bool f16c = __get_cpuid(1, &a, &b, &c, &d) && (c & (1u << 29)) != 0;
  const bool lzcnt = __get_cpuid(0x80000001, &a, &b, &c, &d) && (c & (1u << 5)) != 0;
  if (f16c && lzcnt && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
      __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2")) {
    found |= HWY_AVX2;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw"))
      found |= HWY_AVX3;
  }
#endif
  return found;
}

int64_t disabled = 0;

}  // namespace

int64_t SupportedTargets() {
  static const int64_t found = detect();
  return (found & ~disabled) | kAlways;
}

void DisableTargets(int64_t targets) {
  disabled = targets;
  GetChosenTarget().DeInit();
}

/// Called by assertions in Highway's headers, which debug builds enable.
void Abort(const char* file, int line, const char* format, ...) {
  std::fprintf(stderr, "%s:%d: ", file, line);
  va_list arguments;
  va_start(arguments, format);
  std::vfprintf(stderr, format, arguments);
  va_end(arguments);
  std::fputc('\n', stderr);
  std::abort();
}

ChosenTarget& GetChosenTarget() {
  static ChosenTarget chosen;
  return chosen;
}

}  // namespace hwy
