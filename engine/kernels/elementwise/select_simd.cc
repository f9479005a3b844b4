// Loops of selection by a condition.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/select_simd.cc"
#include "hwy/foreach_target.h"

#include <cstdint>

#include "hwy/highway.h"

#include "kernels/elementwise/elementwise.h"

HWY_BEFORE_NAMESPACE();
namespace paddle::cpu::HWY_NAMESPACE {
namespace {

// Both values are read first, so that the loop has no branches; the compiler vectorizes it for each
// target.
template <class T>
void select(const void* const* in, void* out, int64_t n, const double*) {
  const auto* const condition = static_cast<const uint8_t*>(in[0]);
  const T* const x = static_cast<const T*>(in[1]);
  const T* const y = static_cast<const T*>(in[2]);
  T* const result = static_cast<T*>(out);
  for (int64_t i = 0; i < n; ++i) {
    const T a = x[i], b = y[i];
    result[i] = condition[i] != 0 ? a : b;
  }
}

}  // namespace

Loop select_loop_of(int64_t item) {
  return visit_unsigned_of_size(
      item, [](auto tag) -> Loop { return &select<decltype(tag)>; },
      []() -> Loop { return nullptr; });
}

}  // namespace paddle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace paddle::cpu {
HWY_EXPORT(select_loop_of);
Loop select_loop(int64_t item) { return HWY_DYNAMIC_DISPATCH(select_loop_of)(item); }
}  // namespace paddle::cpu
#endif
