// Complex numbers, and the functions of elementwise operations on them. Functions that are not
// algebraic are computed in double. math.cuh and scalar.cuh stand before.

template <class T>
struct Complex {
  T re, im;

  Complex() = default;
  PADDLE_DEVICE Complex(T real, T imaginary) : re(real), im(imaginary) {}
  template <class R>
  PADDLE_DEVICE explicit Complex(R real) : re((T)real), im((T)0) {}
  template <class U>
  PADDLE_DEVICE explicit Complex(Complex<U> z) : re((T)z.re), im((T)z.im) {}
};
typedef Complex<float> c64;
typedef Complex<double> c128;

template <class T>
struct IsFloat<Complex<T>> {
  static constexpr bool value = true;
};

/// To real types the imaginary part is dropped; as a bool, whether the number is not 0.
template <class To, class T>
PADDLE_DEVICE To convert(Complex<T> z) {
  if constexpr (IsSame<To, bool>::value) {
    return z.re != (T)0 || z.im != (T)0;
  } else if constexpr (IsSame<To, c64>::value || IsSame<To, c128>::value) {
    return (To)z;
  } else {
    return convert<To>(z.re);
  }
}

template <class T>
PADDLE_DEVICE Complex<T> operator+(Complex<T> a, Complex<T> b) {
  return {a.re + b.re, a.im + b.im};
}
template <class T>
PADDLE_DEVICE Complex<T> operator-(Complex<T> a, Complex<T> b) {
  return {a.re - b.re, a.im - b.im};
}
template <class T>
PADDLE_DEVICE Complex<T> operator-(Complex<T> z) {
  return {-z.re, -z.im};
}
template <class T>
PADDLE_DEVICE Complex<T> operator*(Complex<T> a, Complex<T> b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
/// Smith, "Algorithm 116: Complex division" (1962): no overflow between the operands.
template <class T>
PADDLE_DEVICE Complex<T> operator/(Complex<T> a, Complex<T> b) {
  const T c = b.re, d = b.im;
  if (fn::abs_of(c) >= fn::abs_of(d)) {
    if (c == (T)0 && d == (T)0) return {a.re / fn::abs_of(c), a.im / fn::abs_of(c)};
    const T ratio = d / c, scale = (T)1 / (c + d * ratio);
    return {(a.re + a.im * ratio) * scale, (a.im - a.re * ratio) * scale};
  }
  const T ratio = c / d, scale = (T)1 / (c * ratio + d);
  return {(a.re * ratio + a.im) * scale, (a.im * ratio - a.re) * scale};
}
template <class T>
PADDLE_DEVICE Complex<T>& operator+=(Complex<T>& a, Complex<T> b) {
  return a = a + b;
}
template <class T>
PADDLE_DEVICE bool operator==(Complex<T> a, Complex<T> b) {
  return a.re == b.re && a.im == b.im;
}
template <class T>
PADDLE_DEVICE bool operator!=(Complex<T> a, Complex<T> b) {
  return !(a == b);
}

namespace complex_math {

PADDLE_DEVICE c128 times_i(c128 z) { return {-z.im, z.re}; }
PADDLE_DEVICE c128 over_i(c128 z) { return {z.im, -z.re}; }

PADDLE_DEVICE c128 exp(c128 z) {
  const double size = ::exp(z.re);
  if (z.im == 0) return {size, z.im};
  return size == 0 ? c128(0.0) : c128(size * fn::cos(z.im), size * fn::sin(z.im));
}
PADDLE_DEVICE c128 log(c128 z) {
  const double x = ::fabs(z.re), y = ::fabs(z.im), high = x > y ? x : y, low = x > y ? y : x;
  // Near 1 the logarithm of the rounded absolute value would have few digits.
  const double size = high > 0.5 && high < 2 ? 0.5 * ::log1p((high - 1) * (high + 1) + low * low)
                                             : ::log(::hypot(z.re, z.im));
  return {size, ::atan2(z.im, z.re)};
}
PADDLE_DEVICE c128 sqrt(c128 z) {
  if (z.re == 0 && z.im == 0) return {0.0, z.im};
  if (fn::isinf(z.im)) return {::fabs(z.im), z.im};
  // Numbers whose sum would overflow are a quarter of themselves meanwhile.
  const bool large = ::fabs(z.re) > 0x1p1020 || ::fabs(z.im) > 0x1p1020;
  if (large) z = {z.re * 0.25, z.im * 0.25};
  const double root = ::sqrt((::fabs(z.re) + ::hypot(z.re, z.im)) * 0.5);
  const double other = z.im / (2 * root), factor = large ? 2 : 1;
  if (z.re >= 0) return {root * factor, other * factor};
  return {::fabs(other) * factor, ::copysign(root, z.im) * factor};
}
PADDLE_DEVICE c128 sinh(c128 z) {
  return {::sinh(z.re) * fn::cos(z.im), ::cosh(z.re) * fn::sin(z.im)};
}
PADDLE_DEVICE c128 cosh(c128 z) {
  return {::cosh(z.re) * fn::cos(z.im), ::sinh(z.re) * fn::sin(z.im)};
}

// Kahan, "Branch cuts for complex elementary functions" (1987).
PADDLE_DEVICE c128 tanh(c128 z) {
  if (::fabs(z.re) > 22)
    return {::copysign(1.0, z.re), 4 * fn::sin(z.im) * fn::cos(z.im) * ::exp(-2 * ::fabs(z.re))};
  const double tangent = fn::tan(z.im), sine = ::sinh(z.re), squared = 1 + tangent * tangent;
  const double divisor = 1 + squared * sine * sine;
  return {squared * ::sqrt(1 + sine * sine) * sine / divisor, tangent / divisor};
}
PADDLE_DEVICE c128 asin(c128 z) {
  const c128 low = sqrt(c128(1 - z.re, -z.im)), high = sqrt(c128(1 + z.re, z.im));
  return {::atan2(z.re, low.re * high.re - low.im * high.im),
          ::asinh(low.re * high.im - low.im * high.re)};
}
PADDLE_DEVICE c128 acos(c128 z) {
  const c128 low = sqrt(c128(1 - z.re, -z.im)), high = sqrt(c128(1 + z.re, z.im));
  return {2 * ::atan2(low.re, high.re), ::asinh(high.re * low.im - high.im * low.re)};
}
PADDLE_DEVICE c128 acosh(c128 z) {
  const c128 low = sqrt(c128(z.re - 1, z.im)), high = sqrt(c128(z.re + 1, z.im));
  return {::asinh(low.re * high.re + low.im * high.im), 2 * ::atan2(low.im, high.re)};
}
PADDLE_DEVICE c128 atanh(c128 z) {
  const double x = ::fabs(z.re), y = ::fabs(z.im), rest = 1 - x;
  // Next to a pole the square of y vanishes.
  const double size =
      rest == 0 && y < 1e-150 ? 0.5 * ::log(2 / y) : 0.25 * ::log1p(4 * x / (rest * rest + y * y));
  return {::copysign(size, z.re), 0.5 * ::atan2(2 * z.im, (1 - z.re) * (1 + z.re) - y * y)};
}

/// log(1 + z), exact near 0.
PADDLE_DEVICE c128 log1p(c128 z) {
  if (!(::fabs(z.re) < 0.5 && ::fabs(z.im) < 0.5)) return log(c128(1 + z.re, z.im));
  return {0.5 * ::log1p(z.re * (2 + z.re) + z.im * z.im), ::atan2(z.im, 1 + z.re)};
}
/// exp(z) - 1, exact near 0.
PADDLE_DEVICE c128 expm1(c128 z) {
  const double half = fn::sin(z.im / 2);
  return {::expm1(z.re) * fn::cos(z.im) - 2 * half * half, ::exp(z.re) * fn::sin(z.im)};
}
PADDLE_DEVICE c128 sigmoid(c128 z) { return c128(1) / (c128(1) + exp(-z)); }
/// Small whole powers are products, which are exact where a logarithm is not.
PADDLE_DEVICE c128 pow(c128 base, c128 exponent) {
  if (exponent == c128(0)) return c128(1);
  if (base == c128(0)) return exponent.re > 0 ? c128(0) : exp(exponent * log(base));
  const double n = exponent.re;
  if (exponent.im != 0 || n != ::floor(n) || !(::fabs(n) <= 32)) return exp(exponent * log(base));
  c128 result(1), factor = base;
  for (int left = (int)::fabs(n); left != 0; left >>= 1) {
    if (left & 1) result = result * factor;
    factor = factor * factor;
  }
  return n < 0 ? c128(1) / result : result;
}

}  // namespace complex_math

namespace fn {

template <class T>
PADDLE_DEVICE T abs(Complex<T> z) {
  return (T)::hypot((double)z.re, (double)z.im);
}
template <class T>
PADDLE_DEVICE T angle(Complex<T> z) {
  return atan2(z.im, z.re);
}
template <class T>
PADDLE_DEVICE T real(Complex<T> z) {
  return z.re;
}
template <class T>
PADDLE_DEVICE T imag(Complex<T> z) {
  return z.im;
}
template <class T>
PADDLE_DEVICE Complex<T> complex(T real, T imaginary) {
  return {real, imaginary};
}
template <class T>
PADDLE_DEVICE Complex<T> conj(Complex<T> z) {
  return {z.re, -z.im};
}

#define PADDLE_COMPLEX2(name, operation)                      \
  template <class T>                                          \
  PADDLE_DEVICE Complex<T> name(Complex<T> a, Complex<T> b) { \
    return a operation b;                                     \
  }
PADDLE_COMPLEX2(add, +)
PADDLE_COMPLEX2(subtract, -)
PADDLE_COMPLEX2(multiply, *)
PADDLE_COMPLEX2(divide, /)
#undef PADDLE_COMPLEX2

template <class T>
PADDLE_DEVICE Complex<T> pow(Complex<T> a, Complex<T> b) {
  return (Complex<T>)complex_math::pow((c128)a, (c128)b);
}

#define PADDLE_COMPLEX1(name, value)                \
  template <class T>                                \
  PADDLE_DEVICE Complex<T> name(Complex<T> given) { \
    using namespace complex_math;                   \
    const c128 z(given);                            \
    return (Complex<T>)(value);                     \
  }
PADDLE_COMPLEX1(neg, -z)
PADDLE_COMPLEX1(square, z* z)
PADDLE_COMPLEX1(reciprocal, c128(1) / z)
PADDLE_COMPLEX1(sqrt, complex_math::sqrt(z))
PADDLE_COMPLEX1(rsqrt, c128(1) / complex_math::sqrt(z))
PADDLE_COMPLEX1(exp, complex_math::exp(z))
PADDLE_COMPLEX1(expm1, complex_math::expm1(z))
PADDLE_COMPLEX1(log, complex_math::log(z))
PADDLE_COMPLEX1(log2, complex_math::log(z) / c128(0.69314718055994530942))
PADDLE_COMPLEX1(log10, complex_math::log(z) / c128(2.30258509299404568402))
PADDLE_COMPLEX1(log1p, complex_math::log1p(z))
PADDLE_COMPLEX1(sin, over_i(complex_math::sinh(times_i(z))))
PADDLE_COMPLEX1(cos, complex_math::cosh(times_i(z)))
PADDLE_COMPLEX1(tan, over_i(complex_math::tanh(times_i(z))))
PADDLE_COMPLEX1(asin, complex_math::asin(z))
PADDLE_COMPLEX1(acos, complex_math::acos(z))
PADDLE_COMPLEX1(atan, over_i(complex_math::atanh(times_i(z))))
PADDLE_COMPLEX1(sinh, complex_math::sinh(z))
PADDLE_COMPLEX1(cosh, complex_math::cosh(z))
PADDLE_COMPLEX1(tanh, complex_math::tanh(z))
PADDLE_COMPLEX1(asinh, over_i(complex_math::asin(times_i(z))))
PADDLE_COMPLEX1(acosh, complex_math::acosh(z))
PADDLE_COMPLEX1(atanh, complex_math::atanh(z))
PADDLE_COMPLEX1(sigmoid, complex_math::sigmoid(z))
PADDLE_COMPLEX1(silu, z* complex_math::sigmoid(z))
PADDLE_COMPLEX1(log_sigmoid, -complex_math::log(c128(1) + complex_math::exp(-z)))
PADDLE_COMPLEX1(sign, z == c128(0) ? c128(0) : z / c128(::hypot(z.re, z.im)))
#undef PADDLE_COMPLEX1

template <class T>
PADDLE_DEVICE Complex<T> round(Complex<T> z) {
  return {rint_of(z.re), rint_of(z.im)};
}
template <class T>
PADDLE_DEVICE Complex<T> round_digits(Complex<T> z, double digits) {
  return {round_digits(z.re, digits), round_digits(z.im, digits)};
}
/// `before`: 0 if the bias is added before scaling.
template <class T>
PADDLE_DEVICE Complex<T> scale(Complex<T> z, double real, double imaginary, double bias,
                               double before) {
  const Complex<T> factor((T)real, (T)imaginary);
  return before == 0 ? (z + Complex<T>(bias)) * factor : z * factor + Complex<T>(bias);
}

template <class T>
PADDLE_DEVICE bool is_zero(Complex<T> z) {
  return z == Complex<T>(0);
}
template <class T>
PADDLE_DEVICE bool equal(Complex<T> a, Complex<T> b) {
  return a == b;
}
template <class T>
PADDLE_DEVICE bool not_equal(Complex<T> a, Complex<T> b) {
  return a != b;
}
template <class T>
PADDLE_DEVICE bool logical_and(Complex<T> a, Complex<T> b) {
  return !is_zero(a) && !is_zero(b);
}
template <class T>
PADDLE_DEVICE bool logical_or(Complex<T> a, Complex<T> b) {
  return !is_zero(a) || !is_zero(b);
}
template <class T>
PADDLE_DEVICE bool logical_xor(Complex<T> a, Complex<T> b) {
  return is_zero(a) != is_zero(b);
}
template <class T>
PADDLE_DEVICE bool logical_not(Complex<T> z) {
  return is_zero(z);
}
template <class T>
PADDLE_DEVICE bool isnan(Complex<T> z) {
  return isnan(z.re) || isnan(z.im);
}
template <class T>
PADDLE_DEVICE bool isinf(Complex<T> z) {
  return isinf(z.re) || isinf(z.im);
}
template <class T>
PADDLE_DEVICE bool isfinite(Complex<T> z) {
  return isfinite(z.re) && isfinite(z.im);
}

}  // namespace fn
