// The functions of elementwise operations, by the names of the CPU's loops. Parameters are the
// operations' numeric attributes, in the order of those loops. math.cuh stands before.

namespace fn {

/// `value` truncated and saturated to the range of an integer type.
template <class T>
PADDLE_DEVICE T clamped(double value) {
  constexpr bool kSigned = (T)-1 < (T)0;
  constexpr uint64_t kBits = IsSame<T, bool>::value ? 1 : sizeof(T) * 8;
  constexpr uint64_t kMax = kSigned       ? ((uint64_t)1 << (kBits - 1)) - 1
                            : kBits == 64 ? ~(uint64_t)0
                                          : ((uint64_t)1 << (kBits % 64)) - 1;
  const T low = kSigned ? (T)(-(int64_t)kMax - 1) : (T)0, high = (T)kMax;
  if (value <= (double)low) return low;
  if (value >= (double)high) return high;
  return (T)value;
}

template <class T>
PADDLE_DEVICE T add(T a, T b) {
  if constexpr (IsFloat<T>::value) {
    return a + b;
  } else {
    return (T)((uint64_t)a + (uint64_t)b);
  }
}
template <class T>
PADDLE_DEVICE T subtract(T a, T b) {
  if constexpr (IsFloat<T>::value) {
    return a - b;
  } else {
    return (T)((uint64_t)a - (uint64_t)b);
  }
}
template <class T>
PADDLE_DEVICE T multiply(T a, T b) {
  if constexpr (IsFloat<T>::value) {
    return a * b;
  } else {
    return (T)((uint64_t)a * (uint64_t)b);
  }
}
/// Division by zero yields 0, and the least number divided by -1 wraps around.
template <class T>
PADDLE_DEVICE T divide(T a, T b) {
  if constexpr (IsFloat<T>::value) {
    return a / b;
  } else {
    if (b == (T)0) return (T)0;
    if ((T)-1 < (T)0 && b == (T)-1) return (T)((uint64_t)0 - (uint64_t)a);
    return (T)(a / b);
  }
}
template <class T>
PADDLE_DEVICE T fmod(T a, T b) {
  if constexpr (IsFloat<T>::value) {
    return fmod_of(a, b);
  } else {
    if (b == (T)0 || ((T)-1 < (T)0 && b == (T)-1)) return (T)0;
    return (T)(a % b);
  }
}
template <class T>
PADDLE_DEVICE T remainder(T a, T b) {
  const T rest = fmod(a, b);
  return rest != (T)0 && (rest < (T)0) != (b < (T)0) ? (T)(rest + b) : rest;
}
template <class T>
PADDLE_DEVICE T floor_divide(T a, T b) {
  if constexpr (IsFloat<T>::value) {
    if (b == (T)0) return a / b;
    const T rest = fmod_of(a, b);
    T quotient = (a - rest) / b;
    if (rest != (T)0 && (rest < (T)0) != (b < (T)0)) quotient -= (T)1;
    if (quotient == (T)0) return copysign((T)0, a / b);
    const T rounded = floor_of(quotient);
    return quotient - rounded > (T)0.5 ? rounded + (T)1 : rounded;
  } else {
    const T quotient = divide(a, b);
    const bool between = b != (T)0 && fmod(a, b) != (T)0 && (a < (T)0) != (b < (T)0);
    return (T)(quotient - (T)between);
  }
}
template <class T>
PADDLE_DEVICE T maximum(T a, T b) {
  return a != a ? a : a > b ? a : b;
}
template <class T>
PADDLE_DEVICE T minimum(T a, T b) {
  return a != a ? a : a < b ? a : b;
}
template <class T>
PADDLE_DEVICE T fmax(T a, T b) {
  const T high = b > a ? b : a;
  return high == high ? high : b;
}
template <class T>
PADDLE_DEVICE T fmin(T a, T b) {
  const T low = b < a ? b : a;
  return low == low ? low : b;
}
template <class T>
PADDLE_DEVICE T pow(T base, T exponent) {
  if constexpr (IsFloat<T>::value) {
    return pow_of(base, exponent);
  } else {
    if ((T)-1 < (T)0 && exponent < (T)0) {
      if (base == (T)1) return (T)1;
      if (base == (T)-1) return exponent % 2 == 0 ? (T)1 : (T)-1;
      return (T)0;
    }
    uint64_t result = 1, factor = (uint64_t)base, left = (uint64_t)exponent;
    for (; left != 0; left >>= 1) {
      if (left & 1) result *= factor;
      factor *= factor;
    }
    return (T)result;
  }
}
template <class T>
PADDLE_DEVICE T neg(T x) {
  if constexpr (IsFloat<T>::value) {
    return -x;
  } else {
    return (T)((uint64_t)0 - (uint64_t)x);
  }
}
template <class T>
PADDLE_DEVICE T abs(T x) {
  if constexpr (IsFloat<T>::value) {
    return abs_of(x);
  } else {
    return x < (T)0 ? neg(x) : x;
  }
}
template <class T>
PADDLE_DEVICE T square(T x) {
  return multiply(x, x);
}
template <class T>
PADDLE_DEVICE T rsqrt(T x) {
  return (T)1 / sqrt(x);
}
template <class T>
PADDLE_DEVICE T reciprocal(T x) {
  return (T)1 / x;
}
template <class T>
PADDLE_DEVICE T floor(T x) {
  if constexpr (IsFloat<T>::value) {
    return floor_of(x);
  } else {
    return x;
  }
}
template <class T>
PADDLE_DEVICE T ceil(T x) {
  if constexpr (IsFloat<T>::value) {
    return ceil_of(x);
  } else {
    return x;
  }
}
template <class T>
PADDLE_DEVICE T round(T x, double /*digits: none*/ = 0) {
  if constexpr (IsFloat<T>::value) {
    return rint_of(x);
  } else {
    return x;
  }
}
template <class T>
PADDLE_DEVICE T trunc(T x) {
  if constexpr (IsFloat<T>::value) {
    return trunc_of(x);
  } else {
    return x;
  }
}
template <class T>
PADDLE_DEVICE T frac(T x) {
  if constexpr (IsFloat<T>::value) {
    return x - trunc_of(x);
  } else {
    return (T)0;
  }
}
template <class T>
PADDLE_DEVICE T sign(T x) {
  if constexpr (IsFloat<T>::value) {
    return x > (T)0 ? (T)1 : x < (T)0 ? (T)-1 : x + (T)0;
  } else {
    return (T)((int)(x > (T)0) - (int)(x < (T)0));
  }
}
template <class T>
PADDLE_DEVICE T scale(T x, double scale, double bias, double after) {
  if constexpr (IsFloat<T>::value) {
    return after == 0 ? (x + (T)bias) * (T)scale : x * (T)scale + (T)bias;
  } else {
    if (scale == ::floor(scale) && bias == ::floor(bias) && ::fabs(scale) < 0x1p53 &&
        ::fabs(bias) < 0x1p53) {
      const uint64_t factor = (uint64_t)(int64_t)scale, term = (uint64_t)(int64_t)bias;
      return (T)(after == 0 ? ((uint64_t)x + term) * factor : (uint64_t)x * factor + term);
    }
    const double value = (double)x;
    return clamped<T>(after == 0 ? (value + bias) * scale : value * scale + bias);
  }
}
template <class T>
PADDLE_DEVICE T clip(T x, double lower, double upper) {
  if constexpr (IsFloat<T>::value) {
    const T low = x < (T)lower ? (T)lower : x;
    return low > (T)upper ? (T)upper : low;
  } else {
    const double value = (double)x;
    if (value > upper) return clamped<T>(upper);
    return value < lower ? clamped<T>(lower) : x;
  }
}
template <class T>
PADDLE_DEVICE T lerp(T x, T y, T weight) {
  return x + weight * (y - x);
}
template <class T>
PADDLE_DEVICE T multiply_add(T x, T y, T z) {
  return x + y * z;
}

// --- activations ---

template <class T>
PADDLE_DEVICE T relu(T x) {
  return x < (T)0 ? (T)0 : x;
}
template <class T>
PADDLE_DEVICE T clamped_to(T x, double lower, double upper) {
  const T low = x < (T)lower ? (T)lower : x;
  return low > (T)upper ? (T)upper : low;
}
template <class T>
PADDLE_DEVICE T relu6(T x) {
  return clamped_to(x, 0, 6);
}
template <class T>
PADDLE_DEVICE T sigmoid(T x) {
  return (T)1 / ((T)1 + exp(-x));
}
/// log(1 + exp(x)).
template <class T>
PADDLE_DEVICE T soft_plus(T x) {
  return (x > (T)0 ? x : (T)0) + log1p(exp(-abs_of(x)));
}
template <class T>
PADDLE_DEVICE T log_sigmoid(T x) {
  return -soft_plus(-x);
}
template <class T>
PADDLE_DEVICE T silu(T x) {
  return x / ((T)1 + exp(-x));
}
template <class T>
PADDLE_DEVICE T gelu(T x) {
  return x * ((T)0.5 * ((T)1 + erf(x * (T)0.70710678118654752440)));
}
template <class T>
PADDLE_DEVICE T gelu_tanh(T x) {
  const T cube = x * x * x;
  const T inner = (T)0.79788456080286535588 * (x + (T)0.044715 * cube);
  return (T)0.5 * x * ((T)1 + tanh(inner));
}
template <class T>
PADDLE_DEVICE T softplus(T x, double beta, double threshold) {
  const T scaled = x * (T)beta;
  return scaled > (T)threshold ? x : soft_plus(scaled) / (T)beta;
}
template <class T>
PADDLE_DEVICE T mish(T x) {
  return x * tanh(soft_plus(x));
}
template <class T>
PADDLE_DEVICE T elu(T x, double alpha) {
  return x > (T)0 ? x : (T)alpha * expm1(x);
}
template <class T>
PADDLE_DEVICE T celu(T x, double alpha) {
  return x > (T)0 ? x : (T)alpha * expm1(x / (T)alpha);
}
template <class T>
PADDLE_DEVICE T selu(T x, double scale, double alpha) {
  return (T)scale * (x > (T)0 ? x : (T)alpha * expm1(x));
}
template <class T>
PADDLE_DEVICE T leaky_relu(T x, double slope) {
  return x < (T)0 ? x * (T)slope : x;
}
template <class T>
PADDLE_DEVICE T hardtanh(T x, double low, double high) {
  return clamped_to(x, low, high);
}
template <class T>
PADDLE_DEVICE T hardsigmoid(T x, double slope, double offset) {
  return clamped_to(x * (T)slope + (T)offset, 0, 1);
}
template <class T>
PADDLE_DEVICE T hardswish(T x) {
  return x > (T)5e37 ? x : x * clamped_to(x + (T)3, 0, 6) / (T)6;
}
template <class T>
PADDLE_DEVICE T hardshrink(T x, double threshold) {
  return abs_of(x) <= (T)threshold ? (T)0 : x;
}
template <class T>
PADDLE_DEVICE T softshrink(T x, double threshold) {
  const T t = (T)threshold;
  return abs_of(x) <= t ? (T)0 : x > t ? x - t : x + t;
}
template <class T>
PADDLE_DEVICE T thresholded_relu(T x, double threshold, double value) {
  return x > (T)threshold ? x : (T)value;
}
template <class T>
PADDLE_DEVICE T tanhshrink(T x) {
  return x - tanh(x);
}
template <class T>
PADDLE_DEVICE T softsign(T x) {
  return x / ((T)1 + abs_of(x));
}
template <class T>
PADDLE_DEVICE T stanh(T x, double a, double b) {
  return (T)b * tanh((T)a * x);
}
template <class T>
PADDLE_DEVICE T logaddexp(T a, T b) {
  const T high = a > b ? a : b;
  // inf - inf is undefined.
  return a == b ? high + (T)0.69314718055994530942 : high + log1p(exp(-abs_of(a - b)));
}

// --- functions of integers and less common ones ---

template <class T>
PADDLE_DEVICE T bitwise_and(T a, T b) {
  return (T)(a & b);
}
template <class T>
PADDLE_DEVICE T bitwise_or(T a, T b) {
  return (T)(a | b);
}
template <class T>
PADDLE_DEVICE T bitwise_xor(T a, T b) {
  return (T)(a ^ b);
}
template <class T>
PADDLE_DEVICE T bitwise_not(T x) {
  if constexpr (IsSame<T, bool>::value) {
    return !x;
  } else {
    return (T)~x;
  }
}
template <class T>
PADDLE_DEVICE T bitwise_left_shift(T a, T b) {
  return (uint64_t)b >= sizeof(T) * 8 ? (T)0 : (T)((uint64_t)a << (uint64_t)b);
}
template <class T>
PADDLE_DEVICE T bitwise_right_shift(T a, T b) {
  if ((uint64_t)b >= sizeof(T) * 8) return a < (T)0 ? (T)-1 : (T)0;
  return (T)(a >> b);
}
/// Without the sign.
template <class T>
PADDLE_DEVICE T logical_right_shift(T a, T b) {
  constexpr uint64_t kBits = sizeof(T) * 8, kMask = ~(uint64_t)0 >> (64 - kBits);
  return (uint64_t)b >= kBits ? (T)0 : (T)(((uint64_t)a & kMask) >> (uint64_t)b);
}
template <class T>
PADDLE_DEVICE T truncated_quotient(T a, T b) {
  return trunc_of(a / b);
}
template <class T>
PADDLE_DEVICE T gcd(T a, T b) {
  uint64_t x = (uint64_t)abs(a), y = (uint64_t)abs(b);
  while (y != 0) {
    const uint64_t rest = x % y;
    x = y;
    y = rest;
  }
  return (T)x;
}
template <class T>
PADDLE_DEVICE T lcm(T a, T b) {
  const uint64_t divisor = (uint64_t)gcd(a, b);
  return divisor == 0 ? (T)0 : (T)((uint64_t)abs(a) / divisor * (uint64_t)abs(b));
}
template <class T>
PADDLE_DEVICE T heaviside(T x, T at_zero) {
  if (x != x) return x;
  return x > (T)0 ? (T)1 : x < (T)0 ? (T)0 : at_zero;
}
template <class T>
PADDLE_DEVICE T ldexp(T a, T b) {
  return a * exp2(b);
}
template <class T>
PADDLE_DEVICE T round_digits(T x, double digits) {
  double unit = 1;
  for (double left = ::fabs(digits); left > 0; left -= 1) unit *= 10;
  const double value = (double)x;
  return (T)(digits >= 0 ? ::rint(value * unit) / unit : ::rint(value / unit) * unit);
}

// --- predicates ---

template <class T>
PADDLE_DEVICE bool equal(T a, T b) {
  return a == b;
}
template <class T>
PADDLE_DEVICE bool not_equal(T a, T b) {
  return a != b;
}
template <class T>
PADDLE_DEVICE bool less_than(T a, T b) {
  return a < b;
}
template <class T>
PADDLE_DEVICE bool less_equal(T a, T b) {
  return a <= b;
}
template <class T>
PADDLE_DEVICE bool greater_than(T a, T b) {
  return a > b;
}
template <class T>
PADDLE_DEVICE bool greater_equal(T a, T b) {
  return a >= b;
}
template <class T>
PADDLE_DEVICE bool logical_and(T a, T b) {
  return a != (T)0 && b != (T)0;
}
template <class T>
PADDLE_DEVICE bool logical_or(T a, T b) {
  return a != (T)0 || b != (T)0;
}
template <class T>
PADDLE_DEVICE bool logical_xor(T a, T b) {
  return (a != (T)0) != (b != (T)0);
}
template <class T>
PADDLE_DEVICE bool logical_not(T x) {
  return x == (T)0;
}
template <class T>
PADDLE_DEVICE bool isnan(T x) {
  return x != x;
}
template <class T>
PADDLE_DEVICE T largest() {
  if constexpr (sizeof(T) == 4) {
    return (T)0x1.fffffep127;
  } else {
    return (T)0x1.fffffffffffffp1023;
  }
}
template <class T>
PADDLE_DEVICE bool isposinf(T x) {
  if constexpr (IsFloat<T>::value) {
    return x > largest<T>();
  } else {
    return false;
  }
}
template <class T>
PADDLE_DEVICE bool isneginf(T x) {
  if constexpr (IsFloat<T>::value) {
    return x < -largest<T>();
  } else {
    return false;
  }
}
template <class T>
PADDLE_DEVICE bool isinf(T x) {
  return isposinf(x) || isneginf(x);
}
template <class T>
PADDLE_DEVICE bool isfinite(T x) {
  return x == x && !isinf(x);
}
template <class T>
PADDLE_DEVICE bool signbit(T x) {
  if constexpr (IsSame<T, float>::value) {
    return as_bits(x) >> 31 != 0;
  } else if constexpr (IsSame<T, double>::value) {
    return as_bits(x) >> 63 != 0;
  } else {
    return x < (T)0;
  }
}

/// The imaginary part of a real number.
template <class T>
PADDLE_DEVICE T imag(T) {
  return (T)0;
}

template <class T>
PADDLE_DEVICE T where(bool condition, T x, T y) {
  return condition ? x : y;
}

}  // namespace fn
