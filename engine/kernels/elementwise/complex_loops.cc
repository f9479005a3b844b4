// Loops over complex numbers, and the kernels that put them together from their parts. Products are
// written out: the operators of std::complex repair NaN results of infinite operands, which costs
// several times as much and which NumPy does not do either.

#include <cmath>
#include <complex>
#include <cstring>
#include <numbers>

#include "kernels/elementwise/elementwise.h"
#include "ops/generated/complex.h"
#include "tensor/complex.h"

namespace paddle::cpu {

std::unique_ptr<Kernel> prepare_cast(const KernelRequest& request);

namespace {

template <class T>
using C = std::complex<T>;

template <class T>
C<T> product(C<T> a, C<T> b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

/// Smith, "Algorithm 116: Complex division" (1962): no overflow between the operands.
template <class T>
C<T> quotient(C<T> a, C<T> b) {
  const T c = b.real(), d = b.imag();
  if (std::abs(c) >= std::abs(d)) {
    if (c == 0 && d == 0) return {a.real() / std::abs(c), a.imag() / std::abs(c)};
    const T ratio = d / c, scale = T(1) / (c + d * ratio);
    return {(a.real() + a.imag() * ratio) * scale, (a.imag() - a.real() * ratio) * scale};
  }
  const T ratio = c / d, scale = T(1) / (c * ratio + d);
  return {(a.real() * ratio + a.imag()) * scale, (a.imag() * ratio - a.real()) * scale};
}

template <class T>
T magnitude(C<T> z) {
  if constexpr (std::is_same_v<T, float>) {
    const double x = static_cast<double>(z.real()), y = static_cast<double>(z.imag());
    return static_cast<float>(std::sqrt(x * x + y * y));
  } else {
    return std::hypot(z.real(), z.imag());
  }
}

template <class T>
bool is_nan(C<T> z) {
  return std::isnan(z.real()) || std::isnan(z.imag());
}
template <class T>
bool is_infinite(C<T> z) {
  return std::isinf(z.real()) || std::isinf(z.imag());
}
template <class T>
bool is_zero(C<T> z) {
  return z.real() == 0 && z.imag() == 0;
}

/// log(1 + z), exact near 0.
template <class T>
C<T> log_of_one_plus(C<T> z) {
  const T x = z.real(), y = z.imag();
  const T size = T(0.5) * std::log1p(x * (T(2) + x) + y * y);
  return std::abs(x) < T(0.5) && std::abs(y) < T(0.5) ? C<T>(size, std::atan2(y, T(1) + x))
                                                      : std::log(C<T>(T(1) + x, y));
}

/// exp(z) - 1, exact near 0.
template <class T>
C<T> exp_minus_one(C<T> z) {
  const T half = std::sin(z.imag() / 2);
  return {std::expm1(z.real()) * std::cos(z.imag()) - T(2) * half * half,
          std::exp(z.real()) * std::sin(z.imag())};
}

/// Small whole powers are products, which are exact where a logarithm is not.
template <class T>
C<T> power(C<T> base, C<T> exponent) {
  if (is_zero(exponent)) return T(1);
  if (is_zero(base))
    return exponent.real() > 0 ? C<T>(0) : std::exp(product(exponent, std::log(base)));
  const T n = exponent.real();
  if (exponent.imag() == 0 && n == std::floor(n) && std::abs(n) <= 32) {
    C<T> result(1), factor = base;
    for (int left = static_cast<int>(std::abs(n)); left != 0; left >>= 1) {
      if (left & 1) result = product(result, factor);
      factor = product(factor, factor);
    }
    return n < 0 ? quotient(C<T>(1), result) : result;
  }
  return std::exp(product(exponent, std::log(base)));
}

template <class T>
C<T> logistic(C<T> z) {
  return quotient(C<T>(1), T(1) + std::exp(-z));
}

// clang-format off
struct Add { template <class T> C<T> operator()(C<T> a, C<T> b) const { return a + b; } };
struct Subtract { template <class T> C<T> operator()(C<T> a, C<T> b) const { return a - b; } };
struct Multiply { template <class T> C<T> operator()(C<T> a, C<T> b) const { return product(a, b); } };
struct Divide { template <class T> C<T> operator()(C<T> a, C<T> b) const { return quotient(a, b); } };
struct Pow { template <class T> C<T> operator()(C<T> a, C<T> b) const { return power(a, b); } };
struct Neg { template <class T> C<T> operator()(C<T> z) const { return -z; } };
struct Conj { template <class T> C<T> operator()(C<T> z) const { return std::conj(z); } };
struct Square { template <class T> C<T> operator()(C<T> z) const { return product(z, z); } };
struct Reciprocal { template <class T> C<T> operator()(C<T> z) const { return quotient(C<T>(1), z); } };
struct Sqrt { template <class T> C<T> operator()(C<T> z) const { return std::sqrt(z); } };
struct Rsqrt { template <class T> C<T> operator()(C<T> z) const { return quotient(C<T>(1), std::sqrt(z)); } };
struct Exp { template <class T> C<T> operator()(C<T> z) const { return std::exp(z); } };
struct Expm1 { template <class T> C<T> operator()(C<T> z) const { return exp_minus_one(z); } };
struct Log { template <class T> C<T> operator()(C<T> z) const { return std::log(z); } };
struct Log2 { template <class T> C<T> operator()(C<T> z) const { return std::log(z) / std::numbers::ln2_v<T>; } };
struct Log10 { template <class T> C<T> operator()(C<T> z) const { return std::log(z) / std::numbers::ln10_v<T>; } };
struct Log1p { template <class T> C<T> operator()(C<T> z) const { return log_of_one_plus(z); } };
struct Sin { template <class T> C<T> operator()(C<T> z) const { return std::sin(z); } };
struct Cos { template <class T> C<T> operator()(C<T> z) const { return std::cos(z); } };
struct Tan { template <class T> C<T> operator()(C<T> z) const { return std::tan(z); } };
struct Asin { template <class T> C<T> operator()(C<T> z) const { return std::asin(z); } };
struct Acos { template <class T> C<T> operator()(C<T> z) const { return std::acos(z); } };
struct Atan { template <class T> C<T> operator()(C<T> z) const { return std::atan(z); } };
struct Sinh { template <class T> C<T> operator()(C<T> z) const { return std::sinh(z); } };
struct Cosh { template <class T> C<T> operator()(C<T> z) const { return std::cosh(z); } };
struct Tanh { template <class T> C<T> operator()(C<T> z) const { return std::tanh(z); } };
struct Asinh { template <class T> C<T> operator()(C<T> z) const { return std::asinh(z); } };
struct Acosh { template <class T> C<T> operator()(C<T> z) const { return std::acosh(z); } };
struct Atanh { template <class T> C<T> operator()(C<T> z) const { return std::atanh(z); } };
struct Sigmoid { template <class T> C<T> operator()(C<T> z) const { return logistic(z); } };
struct Silu { template <class T> C<T> operator()(C<T> z) const { return product(z, logistic(z)); } };
struct LogSigmoid { template <class T> C<T> operator()(C<T> z) const { return -std::log(T(1) + std::exp(-z)); } };
struct Sign { template <class T> C<T> operator()(C<T> z) const { return is_zero(z) ? C<T>(0) : z / magnitude(z); } };
struct Round { template <class T> C<T> operator()(C<T> z) const { return {std::nearbyint(z.real()), std::nearbyint(z.imag())}; } };
/// params: digits
struct RoundDigits { template <class T> C<T> operator()(C<T> z, const double* p) const {
  const T unit = static_cast<T>(std::pow(10.0, std::abs(p[0])));
  const auto part = [&](T x) { return p[0] >= 0 ? std::nearbyint(x * unit) / unit : std::nearbyint(x / unit) * unit; };
  return {part(z.real()), part(z.imag())}; } };
/// params: real and imaginary part of the scale, bias, 0 if the bias is added before scaling
struct Scale { template <class T> C<T> operator()(C<T> z, const double* p) const {
  const C<T> scale(static_cast<T>(p[0]), static_cast<T>(p[1]));
  const T bias = static_cast<T>(p[2]);
  return p[3] == 0 ? product(z + bias, scale) : product(z, scale) + bias; } };

struct Real { template <class T> T operator()(C<T> z) const { return z.real(); } };
struct Imag { template <class T> T operator()(C<T> z) const { return z.imag(); } };
struct Abs { template <class T> T operator()(C<T> z) const { return magnitude(z); } };
struct Angle { template <class T> T operator()(C<T> z) const { return std::arg(z); } };

struct Equal { template <class T> bool operator()(C<T> a, C<T> b) const { return a == b; } };
struct NotEqual { template <class T> bool operator()(C<T> a, C<T> b) const { return a != b; } };
struct LogicalAnd { template <class T> bool operator()(C<T> a, C<T> b) const { return !is_zero(a) && !is_zero(b); } };
struct LogicalOr { template <class T> bool operator()(C<T> a, C<T> b) const { return !is_zero(a) || !is_zero(b); } };
struct LogicalXor { template <class T> bool operator()(C<T> a, C<T> b) const { return is_zero(a) != is_zero(b); } };
struct LogicalNot { template <class T> bool operator()(C<T> z) const { return is_zero(z); } };
struct IsNan { template <class T> bool operator()(C<T> z) const { return is_nan(z); } };
struct IsInf { template <class T> bool operator()(C<T> z) const { return is_infinite(z); } };
struct IsFinite { template <class T> bool operator()(C<T> z) const { return !is_nan(z) && !is_infinite(z); } };

struct Compose { template <class T> C<T> operator()(T real, T imag) const { return {real, imag}; } };
// clang-format on

struct Entry {
  std::string_view name;
  Loop c64, c128;
};

template <class F, int kArity>
constexpr Entry complex_entry(std::string_view name) {
  return {name, &scalar_loop<C<float>, C<float>, kArity, F>,
          &scalar_loop<C<double>, C<double>, kArity, F>};
}
template <class F>
constexpr Entry real_entry(std::string_view name) {
  return {name, &scalar_loop<C<float>, float, 1, F>, &scalar_loop<C<double>, double, 1, F>};
}
template <class F, int kArity>
constexpr Entry bool_entry(std::string_view name) {
  return {name, &scalar_loop<C<float>, bool, kArity, F>, &scalar_loop<C<double>, bool, kArity, F>};
}

constexpr Entry kLoops[] = {
    complex_entry<Add, 2>("add"),
    complex_entry<Subtract, 2>("subtract"),
    complex_entry<Multiply, 2>("multiply"),
    complex_entry<Divide, 2>("divide"),
    complex_entry<Pow, 2>("pow"),
    complex_entry<Neg, 1>("neg"),
    complex_entry<Conj, 1>("conj"),
    complex_entry<Square, 1>("square"),
    complex_entry<Reciprocal, 1>("reciprocal"),
    complex_entry<Sqrt, 1>("sqrt"),
    complex_entry<Rsqrt, 1>("rsqrt"),
    complex_entry<Exp, 1>("exp"),
    complex_entry<Expm1, 1>("expm1"),
    complex_entry<Log, 1>("log"),
    complex_entry<Log2, 1>("log2"),
    complex_entry<Log10, 1>("log10"),
    complex_entry<Log1p, 1>("log1p"),
    complex_entry<Sin, 1>("sin"),
    complex_entry<Cos, 1>("cos"),
    complex_entry<Tan, 1>("tan"),
    complex_entry<Asin, 1>("asin"),
    complex_entry<Acos, 1>("acos"),
    complex_entry<Atan, 1>("atan"),
    complex_entry<Sinh, 1>("sinh"),
    complex_entry<Cosh, 1>("cosh"),
    complex_entry<Tanh, 1>("tanh"),
    complex_entry<Asinh, 1>("asinh"),
    complex_entry<Acosh, 1>("acosh"),
    complex_entry<Atanh, 1>("atanh"),
    complex_entry<Sigmoid, 1>("sigmoid"),
    complex_entry<Silu, 1>("silu"),
    complex_entry<LogSigmoid, 1>("log_sigmoid"),
    complex_entry<Sign, 1>("sign"),
    complex_entry<Round, 1>("round"),
    complex_entry<RoundDigits, 1>("round_digits"),
    complex_entry<Scale, 1>("scale"),
    real_entry<Real>("real"),
    real_entry<Imag>("imag"),
    real_entry<Abs>("abs"),
    real_entry<Angle>("angle"),
    bool_entry<Equal, 2>("equal"),
    bool_entry<NotEqual, 2>("not_equal"),
    bool_entry<LogicalAnd, 2>("logical_and"),
    bool_entry<LogicalOr, 2>("logical_or"),
    bool_entry<LogicalXor, 2>("logical_xor"),
    bool_entry<LogicalNot, 1>("logical_not"),
    bool_entry<IsNan, 1>("isnan"),
    bool_entry<IsInf, 1>("isinf"),
    bool_entry<IsFinite, 1>("isfinite"),
};

}  // namespace

Loop complex_loop(std::string_view name, DType compute) {
  for (const Entry& entry : kLoops)
    if (name == entry.name) return compute == DType::kC128 ? entry.c128 : entry.c64;
  return nullptr;
}

std::unique_ptr<Kernel> prepare_complex(const KernelRequest& request) {
  const DType part = request.operands[0].dtype, result = request.results[0].dtype;
  const Loop loop = result == DType::kC128 ? &scalar_loop<double, C<double>, 2, Compose>
                                           : &scalar_loop<float, C<float>, 2, Compose>;
  return elementwise(request, loop, {part, part}, result, {}, 1, "complex");
}

std::unique_ptr<Kernel> prepare_complex_part(const KernelRequest& request) {
  const std::string_view name = request.op.name();
  if (name == "complex_angle") return map(request, "angle");
  if (is_complex(request.operands[0].dtype)) return map(request, name);
  if (name != "imag") return prepare_cast(request);
  const Layout& result = request.results[0];
  const auto bytes = static_cast<size_t>(storage_bytes(result.dtype, result.size()));
  return make_kernel([bytes](const RunContext&, void* const*, void* const* results) {
    if (bytes) std::memset(results[0], 0, bytes);
  });
}

// as_real and as_complex: the same bytes in another type.
std::unique_ptr<Kernel> prepare_complex_parts(const KernelRequest& request) {
  const Layout& result = request.results[0];
  const auto bytes = static_cast<size_t>(storage_bytes(result.dtype, result.size()));
  return make_kernel([bytes](const RunContext&, void* const* operands, void* const* results) {
    if (bytes) std::memcpy(results[0], operands[0], bytes);
  });
}

}  // namespace paddle::cpu
