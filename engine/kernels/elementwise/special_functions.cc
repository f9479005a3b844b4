#include "kernels/elementwise/special_functions.h"

#include <cmath>
#include <initializer_list>
#include <limits>

namespace paddle::cpu {
namespace {

constexpr double kPi = 3.14159265358979323846;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// Σ (x/2)^(2k) / (k! (k+order)!), the power series of I_order over (x/2)^order.
double bessel_series(double x, int order) {
  const double quarter = x * x / 4;
  double term = 1, sum = 1;
  for (int k = 1; k < 500; ++k) {
    term *= quarter / (static_cast<double>(k) * (k + order));
    sum += term;
    if (term < sum * 1e-17) break;
  }
  return sum;
}

/// sqrt(2πx) exp(-x) I_order(x) by Hankel's asymptotic series (Abramowitz and Stegun 9.7.1).
double bessel_asymptotic(double x, int order) {
  const double mu = 4.0 * order * order;
  double term = 1, sum = 1;
  for (int k = 1; k < 60; ++k) {
    const double odd = 2.0 * k - 1;
    const double next = -term * (mu - odd * odd) / (k * 8 * x);
    if (std::abs(next) > std::abs(term)) break;
    term = next;
    sum += term;
    if (std::abs(term) < std::abs(sum) * 1e-17) break;
  }
  return sum;
}

constexpr double kBesselSwitch = 30;

}  // namespace

double log_gamma(double x) {
  int sign;
  return lgamma_r(x, &sign);
}

double digamma(double x) {
  if (x == 0) return std::copysign(kInfinity, -x);
  if (x < 0 && x == std::floor(x)) return kNaN;
  double result = 0;
  if (x < 0) {  // reflection
    result = -kPi / std::tan(kPi * (x - std::floor(x)));
    x = 1 - x;
  }
  for (; x < 10; x += 1) result -= 1 / x;
  const double inverse = 1 / (x * x);
  // Bernoulli numbers over 2k.
  const double tail =
      inverse *
      (1.0 / 12 -
       inverse *
           (1.0 / 120 -
            inverse * (1.0 / 252 -
                       inverse * (1.0 / 240 - inverse * (1.0 / 132 - inverse * (691.0 / 32760 -
                                                                                inverse / 12))))));
  return result + std::log(x) - 0.5 / x - tail;
}

double polygamma(int order, double x) {
  if (order == 0) return digamma(x);
  if (x <= 0 && x == std::floor(x)) return kInfinity;
  if (x < 0) {
    if (order != 1) return kNaN;
    const double sine = std::sin(kPi * x);  // reflection of trigamma
    return kPi * kPi / (sine * sine) - polygamma(1, 1 - x);
  }
  // (-1)^(n+1) n! ζ(n+1, x), the Hurwitz zeta by Euler and Maclaurin from x + 15 on.
  const double s = static_cast<double>(order) + 1;
  double zeta = 0;
  for (int k = 0; k < 15; ++k, x += 1) zeta += std::pow(x, -s);
  zeta += std::pow(x, 1 - s) / (s - 1) + 0.5 * std::pow(x, -s);
  static constexpr double kBernoulli[] = {1.0 / 6,  -1.0 / 30,     1.0 / 42, -1.0 / 30,
                                          5.0 / 66, -691.0 / 2730, 7.0 / 6};
  double rising = s, factorial = 2, power = std::pow(x, -s - 1);
  for (int k = 1; k <= 7; ++k) {
    zeta += kBernoulli[k - 1] / factorial * rising * power;
    rising *= (s + 2 * k - 1) * (s + 2 * k);
    factorial *= (2 * k + 1) * (2 * k + 2);
    power /= x * x;
  }
  const double value = std::tgamma(s) * zeta;
  return order % 2 == 1 ? value : -value;
}

double erf_inverse(double x) {
  if (!(x >= -1 && x <= 1)) return kNaN;
  if (std::abs(x) == 1) return std::copysign(kInfinity, x);
  // Giles, "Approximating the erfinv function" (2010), refined by Newton steps on erfc where x is
  // near 1 to avoid cancellation.
  double w = -std::log((1 - x) * (1 + x)), p;
  if (w < 5) {
    w -= 2.5;
    p = 2.81022636e-08;
    for (const double c : {3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
                           -0.00125372503, -0.00417768164, 0.246640727, 1.50140941})
      p = c + p * w;
  } else {
    w = std::sqrt(w) - 3;
    p = -0.000200214257;
    for (const double c : {0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773,
                           -0.0076224613, 0.00943887047, 1.00167406, 2.83297682})
      p = c + p * w;
  }
  double y = p * std::abs(x);
  const double magnitude = std::abs(x);
  for (int i = 0; i < 2; ++i) {
    const double error = magnitude < 0.5 ? std::erf(y) - magnitude : (1 - magnitude) - std::erfc(y);
    const double slope = 2 / std::sqrt(kPi) * std::exp(-y * y);
    const double step = error / slope;
    y -= step / (1 + y * step);
  }
  return std::copysign(y, x);
}

double bessel_i0e(double x) {
  x = std::abs(x);
  if (x < kBesselSwitch) return std::exp(-x) * bessel_series(x, 0);
  return bessel_asymptotic(x, 0) / std::sqrt(2 * kPi * x);
}
double bessel_i0(double x) {
  x = std::abs(x);
  if (x < kBesselSwitch) return bessel_series(x, 0);
  return std::exp(x) * bessel_i0e(x);
}
double bessel_i1e(double x) {
  const double a = std::abs(x);
  const double value = a < kBesselSwitch ? std::exp(-a) * a / 2 * bessel_series(a, 1)
                                         : bessel_asymptotic(a, 1) / std::sqrt(2 * kPi * a);
  return std::copysign(value, x);
}
double bessel_i1(double x) {
  const double a = std::abs(x);
  if (a < kBesselSwitch) return x / 2 * bessel_series(a, 1);
  return std::copysign(std::exp(a) * bessel_i1e(a), x);
}

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
