// Incomplete gamma functions.

#include <cmath>
#include <limits>

#include "kernels/elementwise/elementwise.h"
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

struct Lower {
  double operator()(double a, double x) const { return incomplete_gamma(a, x, false); }
};
struct Upper {
  double operator()(double a, double x) const { return incomplete_gamma(a, x, true); }
};

}  // namespace

std::unique_ptr<Kernel> prepare_incomplete_gamma(const KernelRequest& request) {
  const bool upper = request.op.name() == "gammaincc";
  const DType type = compute_type(request.operands[0].dtype);
  const Loop loop =
      type == DType::kF64
          ? (upper ? &scalar_loop<double, double, 2, Upper>
                   : &scalar_loop<double, double, 2, Lower>)
          : (upper ? &scalar_loop<float, float, 2, Upper> : &scalar_loop<float, float, 2, Lower>);
  return elementwise(request, loop, {type, type}, type, {}, 64);
}

}  // namespace paddle::cpu
