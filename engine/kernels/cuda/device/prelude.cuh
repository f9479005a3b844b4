// The beginning of every program: types, conversions, and the form of kernels. NVRTC compiles it
// for the GPU, and tests compile it for the CPU with a header that emulates the GPU
// (PADDLE_EMULATION).
//
// A kernel has one argument, a structure, which the host fills in:
//   PADDLE_KERNEL(name, Arguments) { … arguments.… }

#ifndef PADDLE_EMULATION
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
#define PADDLE_DEVICE __device__ __forceinline__
#define PADDLE_SAME_STORE __device__ __forceinline__
#define PADDLE_KERNEL(name, Arguments) \
  extern "C" __global__ void __launch_bounds__(kBlockThreads, 1) name(const Arguments arguments)
#endif

#define PADDLE_BOX_MULLER_INLINE PADDLE_DEVICE
#define PADDLE_SPECIAL_INLINE PADDLE_DEVICE

constexpr int kBlockThreads = 256;

// --- element types ---

/// 16-bit floats are stored; arithmetic is that of float.
struct bf16 {
  uint16_t bits;
};
struct f16 {
  uint16_t bits;
};
/// 16 bytes that are copied as they are.
struct alignas(16) u128 {
  uint64_t low, high;
};

PADDLE_DEVICE float as_float(uint32_t bits) {
  float out;
  memcpy(&out, &bits, 4);
  return out;
}
PADDLE_DEVICE uint32_t as_bits(float value) {
  uint32_t out;
  memcpy(&out, &value, 4);
  return out;
}
PADDLE_DEVICE double as_double(uint64_t bits) {
  double out;
  memcpy(&out, &bits, 8);
  return out;
}
PADDLE_DEVICE uint64_t as_bits(double value) {
  uint64_t out;
  memcpy(&out, &value, 8);
  return out;
}

PADDLE_DEVICE float minus_infinity(float) { return as_float(0xff800000u); }
PADDLE_DEVICE double minus_infinity(double) { return as_double(0xfff0000000000000ull); }

PADDLE_DEVICE float widen(bf16 x) { return as_float((uint32_t)x.bits << 16); }
/// To the nearest, ties to even; NaN stays NaN.
PADDLE_DEVICE bf16 to_bf16(float x) {
  const uint32_t bits = as_bits(x);
  bf16 out;
  out.bits = (bits & 0x7fffffffu) > 0x7f800000u
                 ? (uint16_t)((bits >> 16) | 0x40)
                 : (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1)) >> 16);
  return out;
}

PADDLE_DEVICE float widen(f16 x) {
  const uint32_t sign = (uint32_t)(x.bits & 0x8000) << 16, rest = x.bits & 0x7fff;
  if (rest >= 0x7c00) return as_float(sign | 0x7f800000u | (rest & 0x3ff) << 13);
  if (rest >= 0x400) return as_float(sign | ((rest << 13) + 0x38000000u));
  const float tiny = (float)rest * 0x1p-24f;  // exact
  return as_float(sign | as_bits(tiny));
}
PADDLE_DEVICE f16 to_f16(float x) {
  const uint32_t bits = as_bits(x), size = bits & 0x7fffffffu;
  uint32_t out;
  if (size > 0x7f800000u) {
    out = 0x7e00 | ((size >> 13) & 0x3ff);
  } else if (size >= 0x477ff000u) {
    out = 0x7c00;
  } else if (size >= 0x38800000u) {
    const uint32_t small = size - 0x38000000u;
    out = (small + 0xfffu + ((small >> 13) & 1)) >> 13;
  } else {
    // The sum has the result in its low bits, rounded by the addition.
    out = as_bits(as_float(size) + 0.5f) - as_bits(0.5f);
  }
  f16 result;
  result.bits = (uint16_t)(out | (bits >> 16 & 0x8000));
  return result;
}

// --- conversions ---

/// A float as an integer: rounded towards zero, then the low bits; what 64 bits do not hold is
/// their least value.
PADDLE_DEVICE int64_t to_int64(double x) {
  return x >= -0x1p63 && x < 0x1p63 ? (int64_t)x : (int64_t)0x8000000000000000ull;
}
PADDLE_DEVICE int64_t to_int64(float x) {
  return x >= -0x1p63f && x < 0x1p63f ? (int64_t)x : (int64_t)0x8000000000000000ull;
}
template <class F>
PADDLE_DEVICE uint64_t to_uint64(F x) {
  if (x >= (F)0x1p63) return x < (F)0x1p64 ? (uint64_t)x : 0x8000000000000000ull;
  return (uint64_t)to_int64(x);
}

template <class T>
struct IsFloat {
  static constexpr bool value = false;
};
template <>
struct IsFloat<float> {
  static constexpr bool value = true;
};
template <>
struct IsFloat<double> {
  static constexpr bool value = true;
};
template <class A, class B>
struct IsSame {
  static constexpr bool value = false;
};
template <class A>
struct IsSame<A, A> {
  static constexpr bool value = true;
};

/// The type in which values of a stored type are computed.
template <class T>
struct Computed {
  typedef T type;
};
template <>
struct Computed<bf16> {
  typedef float type;
};
template <>
struct Computed<f16> {
  typedef float type;
};

PADDLE_DEVICE float loaded(bf16 x) { return widen(x); }
PADDLE_DEVICE float loaded(f16 x) { return widen(x); }
template <class T>
PADDLE_DEVICE T loaded(T x) {
  return x;
}

/// A value in another type. bool counts as 0 or 1.
template <class To, class From>
PADDLE_DEVICE To convert(From from) {
  const auto x = loaded(from);
  typedef typename Computed<From>::type Wide;
  if constexpr (IsSame<To, From>::value) {
    return from;
  } else if constexpr (IsSame<To, bf16>::value) {
    return to_bf16((float)x);
  } else if constexpr (IsSame<To, f16>::value) {
    return to_f16((float)x);
  } else if constexpr (IsSame<To, bool>::value) {
    return x != (Wide)0;
  } else if constexpr (IsFloat<Wide>::value && IsSame<To, uint64_t>::value) {
    return to_uint64(x);
  } else if constexpr (IsFloat<Wide>::value && !IsFloat<To>::value) {
    return (To)to_int64(x);
  } else {
    return (To)x;
  }
}

// --- memory ---

/// Elements that are read and written together: 16 bytes at a time where they have as many.
template <class T, int kCount>
struct alignas(sizeof(T) * kCount < 16 ? sizeof(T) * kCount : 16) Pack {
  T values[kCount];
};

/// Stores a value that other threads store there as well at the same time.
template <class T>
PADDLE_SAME_STORE void store_same(T* at, T value) {
  *at = value;
}

/// n / divisor for n < 2^31, by a multiplication.
struct Divider {
  uint32_t divisor, multiplier, shift, unused;
};
PADDLE_DEVICE uint32_t divide(uint32_t n, Divider d) {
  return (uint32_t)(((uint64_t)n * d.multiplier >> 32) + n >> d.shift);
}

// --- errors in operands ---

struct DataError {
  int64_t site, value;
};
/// Records the first error of a stream.
PADDLE_DEVICE void record_error(DataError* error, int64_t site, int64_t value) {
  if (atomicCAS((unsigned long long*)&error->site, 0ull, (unsigned long long)site) == 0ull)
    error->value = value;
}

// --- sums of several blocks ---

/// Whether this block is the last of `blocks` that call this with the same counter; it then sees
/// what the others stored. The counter is 0 before and after. All threads of a block call it.
PADDLE_DEVICE bool is_last_block(uint32_t* counter, uint32_t blocks) {
  __shared__ bool is_last;
  if (blocks == 1) return true;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    is_last = atomicAdd(counter, 1u) + 1 == blocks;
    if (is_last) *counter = 0;
  }
  __syncthreads();
  __threadfence();
  return is_last;
}

// --- reductions within a block ---

/// Folds one value per thread of the block; all threads get the result. The order depends on the
/// number of threads only.
template <class T, class Fold>
PADDLE_DEVICE T fold_block(T value, Fold fold) {
  __shared__ T values[kBlockThreads];
  const int thread = (int)threadIdx.x;
  values[thread] = value;
  __syncthreads();
  for (int width = kBlockThreads / 2; width > 0; width /= 2) {
    if (thread < width) values[thread] = fold(values[thread], values[thread + width]);
    __syncthreads();
  }
  const T result = values[0];
  __syncthreads();
  return result;
}

struct FoldSum {
  template <class T>
  PADDLE_DEVICE T operator()(T a, T b) const {
    return a + b;
  }
};
/// NaN if either is.
struct FoldMax {
  template <class T>
  PADDLE_DEVICE T operator()(T a, T b) const {
    return a != a ? a : a > b ? a : b;
  }
};
struct FoldMin {
  template <class T>
  PADDLE_DEVICE T operator()(T a, T b) const {
    return a != a ? a : a < b ? a : b;
  }
};
struct FoldProd {
  template <class T>
  PADDLE_DEVICE T operator()(T a, T b) const {
    return a * b;
  }
};
struct FoldAll {
  template <class T>
  PADDLE_DEVICE T operator()(T a, T b) const {
    return (T)(a != (T)0 && b != (T)0);
  }
};
struct FoldAny {
  template <class T>
  PADDLE_DEVICE T operator()(T a, T b) const {
    return (T)(a != (T)0 || b != (T)0);
  }
};
