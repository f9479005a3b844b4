// Incomplete gamma functions and their slope.

#include <cmath>
#include <limits>

#include "kernels/elementwise/elementwise.h"
#include "kernels/elementwise/special_functions.h"
#include "ops/generated/special.h"

namespace paddle::cpu {
namespace {

/// x^a exp(-x) / gamma(a)
double density(double a, double x) { return std::exp(a * std::log(x) - x - std::lgamma(a)); }

/// P(a, x) by its series, for x < a + 1.
double lower_series(double a, double x) {
  double term = 1 / a, sum = term;
  for (double n = a + 1; term > sum * 1e-17 && n < a + 100000; ++n) sum += term *= x / n;
  return sum * density(a, x);
}

/// 1 - P(a, x) by its continued fraction (Lentz's method), for x >= a + 1.
double upper_fraction(double a, double x) {
  constexpr double kTiny = 1e-300;
  double b = x + 1 - a, c = 1 / kTiny, d = 1 / b, h = d;
  for (int i = 1; i < 100000; ++i) {
    const double k = -i * (i - a);
    b += 2;
    d = k * d + b;
    d = 1 / (std::abs(d) < kTiny ? kTiny : d);
    c = b + k / c;
    if (std::abs(c) < kTiny) c = kTiny;
    h *= d * c;
    if (std::abs(d * c - 1) < 1e-16) break;
  }
  return h * density(a, x);
}

double incomplete_gamma(double a, double x, bool upper) {
  if (!(a >= 0) || !(x >= 0)) return std::numeric_limits<double>::quiet_NaN();
  if (a == 0 && x == 0) return std::numeric_limits<double>::quiet_NaN();
  if (x == 0) return upper ? 1 : 0;
  if (a == 0 || std::isinf(x)) return std::isinf(a) ? std::nan("") : upper ? 0 : 1;
  if (std::isinf(a)) return upper ? 1 : 0;
  if (x < a + 1) return upper ? 1 - lower_series(a, x) : lower_series(a, x);
  return upper ? upper_fraction(a, x) : 1 - upper_fraction(a, x);
}

/// The slope in a by the approximation of Wilson and Hilferty, for large a: of x as a function of a
/// at the same probability.
double slope_of_large(double a, double x) {
  const double root = std::sqrt(a), w = std::cbrt(x / a);
  const double z = 3 * root * (w - 1 + 1 / (9 * a));
  const double dx = w * w * w + 3 * a * w * w * (1 / (9 * a * a) - z / (6 * a * root));
  return -density(a, x) / x * dx;
}

/// The derivative of P(a, x) in a: of the terms of its series x^(a+n) exp(-x) / gamma(a+n+1).
double lower_slope(double a, double x) {
  if (!(a > 0) || !(x >= 0)) return std::numeric_limits<double>::quiet_NaN();
  if (x == 0 || std::isinf(x) || std::isinf(a)) return 0;
  // So far in the tail the slope is below the smallest number.
  if (x > a + 60 * std::sqrt(a) + 1000) return 0;
  if (a > 1e6) return slope_of_large(a, x);
  const double log_x = std::log(x);
  double log_term = a * log_x - x - std::lgamma(a + 1), psi = digamma(a + 1), sum = 0;
  for (double n = a + 1; n < a + 1e7; ++n) {
    const double term = std::exp(log_term), part = term * (log_x - psi);
    sum += part;
    // Terms fall from x on, faster than any power.
    if (n > x && std::abs(part) <= 1e-18 * std::abs(sum)) break;
    if (n > x && term < 1e-300) break;
    log_term += log_x - std::log(n);
    psi += 1 / n;
  }
  return sum;
}

struct Slope {
  double operator()(double a, double x) const { return lower_slope(a, x); }
};
struct Lower {
  double operator()(double a, double x) const { return incomplete_gamma(a, x, false); }
};
struct Upper {
  double operator()(double a, double x) const { return incomplete_gamma(a, x, true); }
};

}  // namespace

std::unique_ptr<Kernel> prepare_incomplete_gamma(const KernelRequest& request) {
  const std::string_view name = request.op.name();
  const DType type = compute_type(request.operands[0].dtype);
  const bool is_f64 = type == DType::kF64;
  const auto choose = [&](auto function) -> Loop {
    using F = decltype(function);
    return is_f64 ? &scalar_loop<double, double, 2, F> : &scalar_loop<float, float, 2, F>;
  };
  const Loop loop = name == "gammaincc"        ? choose(Upper())
                    : name == "gammainc_slope" ? choose(Slope())
                                               : choose(Lower());
  return elementwise(request, loop, {type, type}, type, {}, 64);
}

}  // namespace paddle::cpu
