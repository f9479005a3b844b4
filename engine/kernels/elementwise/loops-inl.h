// Structure of a vector loop: full vectors, then the tail through a padded copy. Included once per
// target.

#if defined(PADDLE_KERNELS_LOOPS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef PADDLE_KERNELS_LOOPS_INL_H
#undef PADDLE_KERNELS_LOOPS_INL_H
#else
#define PADDLE_KERNELS_LOOPS_INL_H
#endif

#include <cstdint>
#include <cstring>

#include "hwy/highway.h"

#include "kernels/common/vector_math-inl.h"
#include "kernels/elementwise/loops.h"

HWY_BEFORE_NAMESPACE();
namespace paddle::cpu::HWY_NAMESPACE {

/// The loop of a functor `Vec F::operator()(Vec…, const double* params)` with `kArity` vectors.
template <class F, class T, int kArity>
struct VectorLoop {
  using D = Tag<T>;
  using V = Vec<T>;

  static HWY_INLINE V at(const T* const* in, int64_t i, const double* params) {
    const D d;
    if constexpr (kArity == 1) {
      return F()(hn::LoadU(d, in[0] + i), params);
    } else if constexpr (kArity == 2) {
      return F()(hn::LoadU(d, in[0] + i), hn::LoadU(d, in[1] + i), params);
    } else {
      return F()(hn::LoadU(d, in[0] + i), hn::LoadU(d, in[1] + i), hn::LoadU(d, in[2] + i), params);
    }
  }

  static void run(const void* const* operands, void* result, int64_t n, const double* params) {
    const D d;
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
    const T* in[kArity];
    for (int k = 0; k < kArity; ++k) in[k] = static_cast<const T*>(operands[k]);
    T* const out = static_cast<T*>(result);
    int64_t i = 0;
    for (; i + lanes <= n; i += lanes) hn::StoreU(at(in, i, params), d, out + i);
    if (i == n) return;
    constexpr size_t kLanes = hn::MaxLanes(D());
    HWY_ALIGN T padded[kArity][kLanes] = {};
    const T* tail[kArity];
    const size_t bytes = static_cast<size_t>(n - i) * sizeof(T);
    for (int k = 0; k < kArity; ++k) {
      std::memcpy(padded[k], in[k] + i, bytes);
      tail[k] = padded[k];
    }
    HWY_ALIGN T values[kLanes];
    hn::Store(at(tail, 0, params), d, values);
    std::memcpy(out + i, values, bytes);
  }
};

template <class F, int kArity>
constexpr LoopEntry vector_loop(const char* name) {
  return {name, &VectorLoop<F, float, kArity>::run, &VectorLoop<F, double, kArity>::run};
}

}  // namespace paddle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
