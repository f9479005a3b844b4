#include "kernels/elementwise/special_functions.h"

#include <cmath>
#include <limits>

namespace paddle::cpu {
namespace {

#include "kernels/elementwise/special_functions-inl.h"

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// The functions of the C++ library.
struct StandardLibrary {
  static double abs(double x) { return std::abs(x); }
  static double copysign(double x, double sign) { return std::copysign(x, sign); }
  static double erf(double x) { return std::erf(x); }
  static double erfc(double x) { return std::erfc(x); }
  static double exp(double x) { return std::exp(x); }
  static double floor(double x) { return std::floor(x); }
  static double log(double x) { return std::log(x); }
  static double pow(double x, double y) { return std::pow(x, y); }
  static double sin(double x) { return std::sin(x); }
  static double sqrt(double x) { return std::sqrt(x); }
  static double tan(double x) { return std::tan(x); }
  static double tgamma(double x) { return std::tgamma(x); }
  static double infinity() { return kInfinity; }
  static double nan() { return kNaN; }
};
using Functions = SpecialFunctions<StandardLibrary>;

}  // namespace

double log_gamma(double x) {
  int sign;
  return lgamma_r(x, &sign);
}
double digamma(double x) { return Functions::digamma(x); }
double polygamma(int order, double x) { return Functions::polygamma(order, x); }
double erf_inverse(double x) { return Functions::erf_inverse(x); }
double bessel_i0(double x) { return Functions::bessel_i0(x); }
double bessel_i0e(double x) { return Functions::bessel_i0e(x); }
double bessel_i1(double x) { return Functions::bessel_i1(x); }
double bessel_i1e(double x) { return Functions::bessel_i1e(x); }

double gamma_p(double a, double x) {
  if (!(a >= 0) || !(x >= 0)) return kNaN;
  if (x == 0) return 0;
  if (a == 0 || x == kInfinity) return 1;
  if (x >= a + 1) return 1 - gamma_q(a, x);
  double term = 1 / a, sum = term;  // series
  for (double n = a + 1; term > sum * 1e-17 && n < a + 100000; n += 1) {
    term *= x / n;
    sum += term;
  }
  return sum * std::exp(a * std::log(x) - x - log_gamma(a));
}

double gamma_q(double a, double x) {
  if (!(a >= 0) || !(x >= 0)) return kNaN;
  if (x == 0) return 1;
  if (a == 0 || x == kInfinity) return 0;
  if (x < a + 1) return 1 - gamma_p(a, x);
  // Lentz's continued fraction.
  constexpr double kTiny = 1e-300;
  double b = x + 1 - a, c = 1 / kTiny, d = 1 / b, h = d;
  for (int i = 1; i < 100000; ++i) {
    const double an = -i * (i - a);
    b += 2;
    d = an * d + b;
    if (std::abs(d) < kTiny) d = kTiny;
    c = b + an / c;
    if (std::abs(c) < kTiny) c = kTiny;
    d = 1 / d;
    const double factor = d * c;
    h *= factor;
    if (std::abs(factor - 1) < 1e-16) break;
  }
  return h * std::exp(a * std::log(x) - x - log_gamma(a));
}

}  // namespace paddle::cpu
