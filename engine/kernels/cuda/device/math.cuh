// Elementary functions of floats, of one name for both widths: those of the library, and sines that
// use no local memory.

namespace fn {

#define PADDLE_MATH1(name, f32, f64)                   \
  PADDLE_DEVICE float name(float x) { return f32(x); } \
  PADDLE_DEVICE double name(double x) { return f64(x); }
#define PADDLE_MATH2(name, f32, f64)                               \
  PADDLE_DEVICE float name(float x, float y) { return f32(x, y); } \
  PADDLE_DEVICE double name(double x, double y) { return f64(x, y); }
PADDLE_MATH1(exp, ::expf, ::exp)
PADDLE_MATH1(expm1, ::expm1f, ::expm1)
PADDLE_MATH1(exp2, ::exp2f, ::exp2)
PADDLE_MATH1(log, ::logf, ::log)
PADDLE_MATH1(log2, ::log2f, ::log2)
PADDLE_MATH1(log10, ::log10f, ::log10)
PADDLE_MATH1(log1p, ::log1pf, ::log1p)
PADDLE_MATH1(asin, ::asinf, ::asin)
PADDLE_MATH1(acos, ::acosf, ::acos)
PADDLE_MATH1(atan, ::atanf, ::atan)
PADDLE_MATH1(sinh, ::sinhf, ::sinh)
PADDLE_MATH1(cosh, ::coshf, ::cosh)
PADDLE_MATH1(tanh, ::tanhf, ::tanh)
PADDLE_MATH1(asinh, ::asinhf, ::asinh)
PADDLE_MATH1(acosh, ::acoshf, ::acosh)
PADDLE_MATH1(atanh, ::atanhf, ::atanh)
PADDLE_MATH1(erf, ::erff, ::erf)
PADDLE_MATH1(erfc, ::erfcf, ::erfc)
PADDLE_MATH1(cbrt, ::cbrtf, ::cbrt)
PADDLE_MATH1(sqrt, ::sqrtf, ::sqrt)
PADDLE_MATH1(floor_of, ::floorf, ::floor)
PADDLE_MATH1(ceil_of, ::ceilf, ::ceil)
PADDLE_MATH1(rint_of, ::rintf, ::rint)
PADDLE_MATH1(trunc_of, ::truncf, ::trunc)
PADDLE_MATH1(abs_of, ::fabsf, ::fabs)
PADDLE_MATH2(pow_of, ::powf, ::pow)
PADDLE_MATH2(atan2, ::atan2f, ::atan2)
PADDLE_MATH2(hypot, ::hypotf, ::hypot)
PADDLE_MATH2(fmod_of, ::fmodf, ::fmod)
PADDLE_MATH2(copysign, ::copysignf, ::copysign)
PADDLE_MATH2(nextafter, ::nextafterf, ::nextafter)
#undef PADDLE_MATH1
#undef PADDLE_MATH2

// The library reduces large arguments of sines in local memory; these take off quarter turns in
// registers.

/// 2 / pi after a word of zeros.
__device__ constexpr uint64_t kTwoOverPi[] = {0,
                                              0xa2f9836e4e441529ull,
                                              0xfc2757d1f534ddc0ull,
                                              0xdb6295993c439041ull,
                                              0xfe5163abdebbc561ull,
                                              0xb7246e3a424dd2e0ull,
                                              0x06492eea09d1921cull,
                                              0xfe1deb1cb129a73eull,
                                              0xe88235f52ebb4484ull,
                                              0xe99c7026b45f7e41ull,
                                              0x3991d639835339f4ull,
                                              0x9c845f8bbdf9283bull,
                                              0x1ff897ffde05980full,
                                              0xef2f118b5a0a6d1full,
                                              0x6d367ecf27cb09b7ull,
                                              0x4f463f669e5fea2dull,
                                              0x7527bac7ebe5f17bull,
                                              0x3d0739f78a5292eaull,
                                              0x6bfb5fb11f8d5d08ull,
                                              0x56033046fc7b6babull};

/// As `less_quarters` for |x| >= 2^31: the product of the number's digits and those of 2 / pi that
/// count (Payne and Hanek, "Radian reduction for trigonometric functions", 1983).
PADDLE_DEVICE double less_many_quarters(double x, int& quarter) {
  const uint64_t bits = as_bits(x);
  const int exponent = (int)(bits >> 52 & 0x7ff);
  if (exponent == 0x7ff) {
    quarter = 0;
    return x - x;
  }
  // |x| is `digits` times 2^(exponent - 1075); digits of 2 / pi with weights of 4 and more then are
  // whole turns.
  const uint64_t digits = (bits & 0x000fffffffffffffull) | 0x0010000000000000ull;
  const int start = 62 + exponent - 1075, word = start / 64, shift = start % 64;
  uint64_t window[3];
#pragma unroll
  for (int i = 0; i < 3; ++i)
    window[i] = shift == 0
                    ? kTwoOverPi[word + i]
                    : kTwoOverPi[word + i] << shift | kTwoOverPi[word + i + 1] >> (64 - shift);
  const uint64_t low_carry = __umul64hi(digits, window[2]);
  const uint64_t middle_product = digits * window[1], middle = middle_product + low_carry;
  const uint64_t high =
      digits * window[0] + __umul64hi(digits, window[1]) + (uint64_t)(middle < middle_product);
  // Two bits of quarters, then the fraction of one.
  int64_t fraction = (int64_t)(high << 2 | middle >> 62);
  quarter = (int)(high >> 62) + (fraction < 0 ? 1 : 0);
  double rest = (double)fraction * 0x1p-64 + (double)(middle << 2) * 0x1p-128;
  rest = rest * 0x1.921fb54442d18p+0;
  if (x < 0) {
    quarter = -quarter;
    rest = -rest;
  }
  quarter &= 3;
  return rest;
}

/// x - n pi/2 for the nearest integer n; the low bits of n are returned in `quarter`.
PADDLE_DEVICE double less_quarters(double x, int& quarter) {
  if (!(::fabs(x) < 0x1p31)) return less_many_quarters(x, quarter);
  const double n = ::rint(x * 0x1.45f306dc9c883p-1);
  quarter = (int)((int64_t)n & 3);
  double rest = ::fma(-n, 0x1.921fb54442d18p+0, x);
  return ::fma(-n, 0x1.1a62633145c07p-54, rest);
}
PADDLE_DEVICE double sine_near_zero(double r) {
  const double z = r * r;
  double s = -0x1.ae5e63cdf2cb9p-26 + z * 0x1.5d9246eabc767p-33;
  s = 0x1.71de3574baee4p-19 + z * s;
  s = -0x1.a01a019c0e4ccp-13 + z * s;
  s = 0x1.111111110f861p-7 + z * s;
  s = -0x1.5555555555549p-3 + z * s;
  return r + r * (z * s);
}
PADDLE_DEVICE double cosine_near_zero(double r) {
  const double z = r * r;
  double c = 0x1.1ee9ea6cae629p-29 + z * -0x1.8fadd06635c83p-37;
  c = -0x1.27e4f807d6047p-22 + z * c;
  c = 0x1.a01a019caef34p-16 + z * c;
  c = -0x1.6c16c16c15162p-10 + z * c;
  c = 0x1.555555555554cp-5 + z * c;
  const double half = 0.5 * z, rest = 1.0 - half;
  return rest + ((1.0 - rest - half) + z * z * c);
}
PADDLE_DEVICE double sin(double x) {
  int quarter;
  const double r = less_quarters(x, quarter);
  const double value = quarter & 1 ? cosine_near_zero(r) : sine_near_zero(r);
  return quarter & 2 ? -value : value;
}
PADDLE_DEVICE double cos(double x) {
  int quarter;
  const double r = less_quarters(x, quarter);
  const double value = quarter & 1 ? sine_near_zero(r) : cosine_near_zero(r);
  return (quarter + 1) & 2 ? -value : value;
}
PADDLE_DEVICE double tan(double x) { return sin(x) / cos(x); }
PADDLE_DEVICE float sin(float x) { return (float)sin((double)x); }
PADDLE_DEVICE float cos(float x) { return (float)cos((double)x); }
PADDLE_DEVICE float tan(float x) { return (float)tan((double)x); }

}  // namespace fn
