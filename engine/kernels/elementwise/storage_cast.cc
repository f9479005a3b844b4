// The 8-bit floats are those of "FP8 Formats for Deep Learning" (Micikevicius et al., 2022), the
// "fnuz" kinds those of "8-bit Numerical Formats for Deep Neural Networks" (Noune et al., 2022),
// e8m0 and e2m1 those of the OCP Microscaling Formats specification, 1.0.

#include "kernels/elementwise/storage_cast.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/parallel.h"
#include "tensor/to_integer.h"

namespace paddle::cpu {
namespace {

/// A value between two types: an integer, or a complex number.
struct ScalarValue {
  double real = 0, imaginary = 0;
  int64_t integer = 0;
  bool is_integer = false;

  static ScalarValue of(double real, double imaginary = 0) { return {real, imaginary, 0, false}; }
  static ScalarValue of_integer(int64_t value) {
    return {static_cast<double>(value), 0, value, true};
  }
};

/// A small float format: sign, exponent, mantissa.
struct Format {
  int exponent_bits, mantissa_bits, bias;
  double max_finite;
  enum class Overflow : uint8_t { kInfinity, kNan, kSaturate } overflow;
  bool is_fnuz;  ///< the code of -0 is NaN ("fnuz")
  uint8_t nan;   ///< without the sign; 0 if the format has no NaN

  int sign_bit() const { return exponent_bits + mantissa_bits; }
};

using Overflow = Format::Overflow;

const Format& format_of(DType dtype) {
  static constexpr Format kE4M3FN{4, 3, 7, 448, Overflow::kSaturate, false, 0x7f};
  static constexpr Format kE5M2{5, 2, 15, 57344, Overflow::kInfinity, false, 0x7f};
  static constexpr Format kE4M3FNUZ{4, 3, 8, 240, Overflow::kNan, true, 0x80};
  static constexpr Format kE5M2FNUZ{5, 2, 16, 57344, Overflow::kNan, true, 0x80};
  static constexpr Format kE2M1{2, 1, 1, 6, Overflow::kSaturate, false, 0};
  switch (dtype) {
    case DType::kF8E4M3FN:
      return kE4M3FN;
    case DType::kF8E5M2:
      return kE5M2;
    case DType::kF8E4M3FNUZ:
      return kE4M3FNUZ;
    case DType::kF8E5M2FNUZ:
      return kE5M2FNUZ;
    default:
      return kE2M1;
  }
}

double decode(const Format& f, uint8_t code) {
  const bool negative = (code >> f.sign_bit() & 1) != 0;
  const int magnitude = code & ((1 << f.sign_bit()) - 1);
  if (f.is_fnuz && code == f.nan) return std::numeric_limits<double>::quiet_NaN();
  const int exponent = magnitude >> f.mantissa_bits;
  const int mantissa = magnitude & ((1 << f.mantissa_bits) - 1);
  const double value = exponent == 0 ? std::ldexp(mantissa, 1 - f.bias - f.mantissa_bits)
                                     : std::ldexp(mantissa + (1 << f.mantissa_bits),
                                                  exponent - f.bias - f.mantissa_bits);
  if (value > f.max_finite) {
    const bool infinite = f.overflow == Overflow::kInfinity && mantissa == 0;
    return infinite ? std::copysign(std::numeric_limits<double>::infinity(), negative ? -1 : 1)
                    : std::numeric_limits<double>::quiet_NaN();
  }
  return negative ? -value : value;
}

uint8_t encode(const Format& f, double value) {
  const int sign = std::signbit(value) ? 1 << f.sign_bit() : 0;
  const int infinity = ((1 << f.exponent_bits) - 1) << f.mantissa_bits;
  const auto with_sign = [&](int code) { return static_cast<uint8_t>(code | sign); };
  const auto code_of = [&](double magnitude) {
    const int exponent = std::max(std::ilogb(magnitude), 1 - f.bias);
    const int quantum = exponent - f.mantissa_bits;
    const int mantissa = static_cast<int>(std::ldexp(magnitude, -quantum));
    const bool normal = mantissa >= 1 << f.mantissa_bits;
    return normal ? ((exponent + f.bias) << f.mantissa_bits) + mantissa - (1 << f.mantissa_bits)
                  : mantissa;
  };
  const double magnitude = std::abs(value);
  if (std::isnan(value)) {
    if (f.nan == 0) return with_sign(code_of(f.max_finite));
    return f.is_fnuz ? f.nan : with_sign(f.nan);
  }
  double rounded = magnitude;
  if (magnitude > 0 && std::isfinite(magnitude)) {
    const int quantum = std::max(std::ilogb(magnitude), 1 - f.bias) - f.mantissa_bits;
    rounded = std::ldexp(std::nearbyint(std::ldexp(magnitude, -quantum)), quantum);
  }
  if (rounded > f.max_finite) {
    if (f.overflow == Overflow::kSaturate) return with_sign(code_of(f.max_finite));
    if (f.overflow == Overflow::kInfinity) return with_sign(infinity);
    return f.is_fnuz ? f.nan : with_sign(f.nan);
  }
  if (rounded == 0) return f.is_fnuz ? uint8_t{0} : with_sign(0);
  return with_sign(code_of(rounded));
}

/// e8m0: a power of two, or NaN. Rounds half up and drops the sign.
double decode_power(uint8_t code) {
  return code == 0xff ? std::numeric_limits<double>::quiet_NaN() : std::ldexp(1.0, code - 127);
}
uint8_t encode_power(double value) {
  const uint32_t bits = std::bit_cast<uint32_t>(static_cast<float>(value));
  const uint32_t exponent = bits >> 23 & 0xff, mantissa = bits & 0x7fffff;
  if (exponent == 0xff) return 0xff;
  const bool up = exponent > 0 ? mantissa >= 0x400000 : mantissa > 0x400000;
  return static_cast<uint8_t>(exponent + (up ? 1 : 0));
}

/// Element `index` (in elements of the type) from `base`.
ScalarValue load(DType dtype, const std::byte* base, int64_t index) {
  const int bits = info(dtype).bits;
  if (is_complex(dtype)) {
    if (dtype == DType::kC64) {
      const float* const pair = reinterpret_cast<const float*>(base) + 2 * index;
      return ScalarValue::of(static_cast<double>(pair[0]), static_cast<double>(pair[1]));
    }
    const double* const pair = reinterpret_cast<const double*>(base) + 2 * index;
    return ScalarValue::of(pair[0], pair[1]);
  }
  if (!info(dtype).has_kernels) {
    const int per_byte = 8 / bits;
    const int shift = static_cast<int>(index % per_byte) * bits;
    const int code = std::to_integer<int>(base[index / per_byte]) >> shift & ((1 << bits) - 1);
    if (dtype == DType::kF8E8M0) return ScalarValue::of(decode_power(static_cast<uint8_t>(code)));
    if (is_float(dtype))
      return ScalarValue::of(decode(format_of(dtype), static_cast<uint8_t>(code)));
    const bool negative = info(dtype).kind == DTypeKind::kSigned && (code >> (bits - 1)) != 0;
    return ScalarValue::of_integer(negative ? code - (1 << bits) : code);
  }
  return visit_dtype(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T value = reinterpret_cast<const T*>(base)[index];
    if constexpr (std::is_integral_v<T>)
      return ScalarValue::of_integer(static_cast<int64_t>(value));
    else if constexpr (std::is_same_v<T, double>)
      return ScalarValue::of(value);
    else
      return ScalarValue::of(static_cast<double>(static_cast<float>(value)));
  });
}

int64_t truncated(const ScalarValue& number) {
  return number.is_integer ? number.integer : to_integer<int64_t>(number.real);
}

/// The bits of a value in a dtype of at most 8 bits.
int code_of(DType dtype, const ScalarValue& number) {
  if (dtype == DType::kF8E8M0) return encode_power(number.real);
  if (is_float(dtype)) return encode(format_of(dtype), number.real);
  return static_cast<int>(truncated(number) & ((1 << info(dtype).bits) - 1));
}

void store(DType dtype, std::byte* base, int64_t index, const ScalarValue& number) {
  if (dtype == DType::kC64) {
    float* const pair = reinterpret_cast<float*>(base) + 2 * index;
    pair[0] = static_cast<float>(number.real);
    pair[1] = static_cast<float>(number.imaginary);
  } else if (dtype == DType::kC128) {
    double* const pair = reinterpret_cast<double*>(base) + 2 * index;
    pair[0] = number.real;
    pair[1] = number.imaginary;
  } else if (!info(dtype).has_kernels) {
    base[index] = static_cast<std::byte>(code_of(dtype, number));
  } else {
    visit_dtype(dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      T* const target = reinterpret_cast<T*>(base) + index;
      if constexpr (std::is_same_v<T, bool>)
        *target = number.real != 0 || number.imaginary != 0;
      else if constexpr (std::is_integral_v<T>)
        *target = static_cast<T>(truncated(number));
      else if constexpr (std::is_same_v<T, double>)
        *target = number.real;
      else
        *target = T(static_cast<float>(number.real));
    });
  }
}

}  // namespace

std::unique_ptr<Kernel> prepare_storage_cast(const KernelRequest& request) {
  const Layout source = request.operands[0];
  const DType to = request.results[0].dtype;
  if (source.dtype == DType::kString || to == DType::kString)
    fail(ErrorCode::kUsage, "cast: strings cannot be cast");
  if (info(source.dtype).bits < 8 && !source.is_contiguous())
    fail(ErrorCode::kUsage, "cast: ", text(source.dtype),
         " must be contiguous; copy the view first");
  const int64_t size = request.results[0].size();
  const int bits = info(to).bits;
  // Each byte is written by one thread.
  const int64_t per_unit = bits < 8 ? 8 / bits : 1;
  return make_kernel([=](const RunContext&, void* const* operands, void* const* results) {
    const std::byte* const in = static_cast<const std::byte*>(operands[0]);
    std::byte* const out = static_cast<std::byte*>(results[0]);
    const auto element = [&](int64_t flat) {
      int64_t offset = 0;
      for (size_t axis = source.shape.size(); axis-- > 0;) {
        offset += flat % source.shape[axis] * source.strides[axis];
        flat /= source.shape[axis];
      }
      return load(source.dtype, in, offset);
    };
    parallel_for((size + per_unit - 1) / per_unit, 4096, [&](int64_t begin, int64_t end) {
      for (int64_t unit = begin; unit < end; ++unit) {
        if (per_unit == 1) {
          store(to, out, unit, element(unit));
          continue;
        }
        int byte = 0;
        for (int64_t k = 0; k < per_unit && unit * per_unit + k < size; ++k)
          byte |= code_of(to, element(unit * per_unit + k)) << (k * bits);
        out[unit] = static_cast<std::byte>(byte);
      }
    });
  });
}

}  // namespace paddle::cpu
