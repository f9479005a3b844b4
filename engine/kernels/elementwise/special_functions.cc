#include "kernels/elementwise/special_functions.h"

#include <cmath>
#include <limits>

namespace paddle::cpu {
double log_gamma(double x) {
  int sign;
  return lgamma_r(x, &sign);
}

namespace {

#include "kernels/elementwise/special_functions-inl.h"

/// The functions of the C++ library.
struct StandardLibrary {
  static double abs(double x) { return std::abs(x); }
  static double cbrt(double x) { return std::cbrt(x); }
  static double copysign(double x, double sign) { return std::copysign(x, sign); }
  static double erf(double x) { return std::erf(x); }
  static double erfc(double x) { return std::erfc(x); }
  static double exp(double x) { return std::exp(x); }
  static double floor(double x) { return std::floor(x); }
  static double lgamma(double x) { return log_gamma(x); }
  static double log(double x) { return std::log(x); }
  static double pow(double x, double y) { return std::pow(x, y); }
  static double sin(double x) { return std::sin(x); }
  static double sqrt(double x) { return std::sqrt(x); }
  static double tan(double x) { return std::tan(x); }
  static double tgamma(double x) { return std::tgamma(x); }
  static double infinity() { return std::numeric_limits<double>::infinity(); }
  static double nan() { return std::numeric_limits<double>::quiet_NaN(); }
};
using Functions = SpecialFunctions<StandardLibrary>;

}  // namespace

double digamma(double x) { return Functions::digamma(x); }
double polygamma(int order, double x) { return Functions::polygamma(order, x); }
double erf_inverse(double x) { return Functions::erf_inverse(x); }
double bessel_i0(double x) { return Functions::bessel_i0(x); }
double bessel_i0e(double x) { return Functions::bessel_i0e(x); }
double bessel_i1(double x) { return Functions::bessel_i1(x); }
double bessel_i1e(double x) { return Functions::bessel_i1e(x); }
double gamma_p(double a, double x) { return Functions::incomplete_gamma(a, x, false); }
double gamma_q(double a, double x) { return Functions::incomplete_gamma(a, x, true); }
double gamma_slope(double a, double x) { return Functions::gamma_slope(a, x); }

}  // namespace paddle::cpu
