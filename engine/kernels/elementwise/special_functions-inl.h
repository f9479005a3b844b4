// Special functions in double. Included inside of a namespace; kernels of GPUs contain this text,
// with a PADDLE_SPECIAL_INLINE of theirs. `Library` has the functions of the mathematics library
// and infinity and NaN as members.

#ifndef PADDLE_SPECIAL_INLINE
#define PADDLE_SPECIAL_INLINE inline
#endif

template <class Library>
struct SpecialFunctions {
  using L = Library;
  static constexpr double kPi = 3.14159265358979323846;
  static constexpr double kBesselSwitch = 30;

  /// Σ (x/2)^(2k) / (k! (k+order)!), the power series of I_order over (x/2)^order.
  PADDLE_SPECIAL_INLINE static double bessel_series(double x, int order) {
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
  PADDLE_SPECIAL_INLINE static double bessel_asymptotic(double x, int order) {
    const double mu = 4.0 * order * order;
    double term = 1, sum = 1;
    for (int k = 1; k < 60; ++k) {
      const double odd = 2.0 * k - 1;
      const double next = -term * (mu - odd * odd) / (k * 8 * x);
      if (L::abs(next) > L::abs(term)) break;
      term = next;
      sum += term;
      if (L::abs(term) < L::abs(sum) * 1e-17) break;
    }
    return sum;
  }

  PADDLE_SPECIAL_INLINE static double digamma(double x) {
    if (x == 0) return L::copysign(L::infinity(), -x);
    if (x < 0 && x == L::floor(x)) return L::nan();
    double result = 0;
    if (x < 0) {  // reflection
      result = -kPi / L::tan(kPi * (x - L::floor(x)));
      x = 1 - x;
    }
    for (; x < 10; x += 1) result -= 1 / x;
    const double inverse = 1 / (x * x);
    // Bernoulli numbers over 2k.
    const double tail =
        inverse *
        (1.0 / 12 -
         inverse * (1.0 / 120 -
                    inverse * (1.0 / 252 -
                               inverse * (1.0 / 240 -
                                          inverse * (1.0 / 132 -
                                                     inverse * (691.0 / 32760 - inverse / 12))))));
    return result + L::log(x) - 0.5 / x - tail;
  }

  /// Of order > 0 and x that is not an integer below 1.
  PADDLE_SPECIAL_INLINE static double polygamma_series(int order, double x) {
    // (-1)^(n+1) n! ζ(n+1, x), the Hurwitz zeta by Euler and Maclaurin from x + 15 on.
    const double s = static_cast<double>(order) + 1;
    double zeta = 0;
    for (int k = 0; k < 15; ++k, x += 1) zeta += L::pow(x, -s);
    zeta += L::pow(x, 1 - s) / (s - 1) + 0.5 * L::pow(x, -s);
    constexpr double kBernoulli[] = {1.0 / 6,  -1.0 / 30,     1.0 / 42, -1.0 / 30,
                                     5.0 / 66, -691.0 / 2730, 7.0 / 6};
    double rising = s, factorial = 2, power = L::pow(x, -s - 1);
    for (int k = 1; k <= 7; ++k) {
      zeta += kBernoulli[k - 1] / factorial * rising * power;
      rising *= (s + 2 * k - 1) * (s + 2 * k);
      factorial *= (2 * k + 1) * (2 * k + 2);
      power /= x * x;
    }
    const double value = L::tgamma(s) * zeta;
    return order % 2 == 1 ? value : -value;
  }

  PADDLE_SPECIAL_INLINE static double polygamma(int order, double x) {
    if (order == 0) return digamma(x);
    if (x <= 0 && x == L::floor(x)) return L::infinity();
    if (x < 0) {
      if (order != 1) return L::nan();
      const double sine = L::sin(kPi * x);  // reflection of trigamma
      return kPi * kPi / (sine * sine) - polygamma_series(1, 1 - x);
    }
    return polygamma_series(order, x);
  }

  PADDLE_SPECIAL_INLINE static double erf_inverse(double x) {
    if (!(x >= -1 && x <= 1)) return L::nan();
    if (L::abs(x) == 1) return L::copysign(L::infinity(), x);
    // Giles, "Approximating the erfinv function" (2010), refined by Newton steps on erfc where x is
    // near 1 to avoid cancellation.
    constexpr double kNear[] = {3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
                                -0.00125372503, -0.00417768164, 0.246640727,     1.50140941};
    constexpr double kFar[] = {0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773,
                               -0.0076224613,  0.00943887047, 1.00167406,     2.83297682};
    double w = -L::log((1 - x) * (1 + x)), p;
    if (w < 5) {
      w -= 2.5;
      p = 2.81022636e-08;
      for (const double c : kNear) p = c + p * w;
    } else {
      w = L::sqrt(w) - 3;
      p = -0.000200214257;
      for (const double c : kFar) p = c + p * w;
    }
    double y = p * L::abs(x);
    const double magnitude = L::abs(x);
    for (int i = 0; i < 2; ++i) {
      const double error = magnitude < 0.5 ? L::erf(y) - magnitude : (1 - magnitude) - L::erfc(y);
      const double slope = 2 / L::sqrt(kPi) * L::exp(-y * y);
      const double step = error / slope;
      y -= step / (1 + y * step);
    }
    return L::copysign(y, x);
  }

  PADDLE_SPECIAL_INLINE static double bessel_i0e(double x) {
    x = L::abs(x);
    if (x < kBesselSwitch) return L::exp(-x) * bessel_series(x, 0);
    return bessel_asymptotic(x, 0) / L::sqrt(2 * kPi * x);
  }
  PADDLE_SPECIAL_INLINE static double bessel_i0(double x) {
    x = L::abs(x);
    if (x < kBesselSwitch) return bessel_series(x, 0);
    return L::exp(x) * bessel_i0e(x);
  }
  PADDLE_SPECIAL_INLINE static double bessel_i1e(double x) {
    const double a = L::abs(x);
    const double value = a < kBesselSwitch ? L::exp(-a) * a / 2 * bessel_series(a, 1)
                                           : bessel_asymptotic(a, 1) / L::sqrt(2 * kPi * a);
    return L::copysign(value, x);
  }
  PADDLE_SPECIAL_INLINE static double bessel_i1(double x) {
    const double a = L::abs(x);
    if (a < kBesselSwitch) return x / 2 * bessel_series(a, 1);
    return L::copysign(L::exp(a) * bessel_i1e(a), x);
  }

  /// x^a exp(-x) / Γ(a)
  PADDLE_SPECIAL_INLINE static double gamma_density(double a, double x) {
    return L::exp(a * L::log(x) - x - L::lgamma(a));
  }
  /// P(a, x) by its series, for x < a + 1.
  PADDLE_SPECIAL_INLINE static double gamma_series(double a, double x) {
    double term = 1 / a, sum = term;
    for (double n = a + 1; term > sum * 1e-17 && n < a + 100000; n += 1) {
      term *= x / n;
      sum += term;
    }
    return sum * gamma_density(a, x);
  }
  /// 1 - P(a, x) by its continued fraction (Lentz's method), for x >= a + 1.
  PADDLE_SPECIAL_INLINE static double gamma_fraction(double a, double x) {
    constexpr double kTiny = 1e-300;
    double b = x + 1 - a, c = 1 / kTiny, d = 1 / b, h = d;
    for (int i = 1; i < 100000; ++i) {
      const double k = -i * (i - a);
      b += 2;
      d = k * d + b;
      d = 1 / (L::abs(d) < kTiny ? kTiny : d);
      c = b + k / c;
      if (L::abs(c) < kTiny) c = kTiny;
      h *= d * c;
      if (L::abs(d * c - 1) < 1e-16) break;
    }
    return h * gamma_density(a, x);
  }
  /// The regularized incomplete gamma function P(a, x), or 1 - P(a, x) with `upper`.
  PADDLE_SPECIAL_INLINE static double incomplete_gamma(double a, double x, bool upper) {
    const double infinity = L::infinity();
    if (!(a >= 0) || !(x >= 0) || (a == 0 && x == 0)) return L::nan();
    if (x == 0) return upper ? 1 : 0;
    if (a == 0 || x == infinity) return a == infinity ? L::nan() : upper ? 0 : 1;
    if (a == infinity) return upper ? 1 : 0;
    if (x < a + 1) return upper ? 1 - gamma_series(a, x) : gamma_series(a, x);
    return upper ? gamma_fraction(a, x) : 1 - gamma_fraction(a, x);
  }

  /// The slope of P(a, x) in a by the approximation of Wilson and Hilferty, for large a: of x as a
  /// function of a at the same probability.
  PADDLE_SPECIAL_INLINE static double gamma_slope_of_large(double a, double x) {
    const double root = L::sqrt(a), w = L::cbrt(x / a);
    const double z = 3 * root * (w - 1 + 1 / (9 * a));
    const double dx = w * w * w + 3 * a * w * w * (1 / (9 * a * a) - z / (6 * a * root));
    return -gamma_density(a, x) / x * dx;
  }
  /// The derivative of P(a, x) in a: of the terms of its series x^(a+n) exp(-x) / Γ(a+n+1).
  PADDLE_SPECIAL_INLINE static double gamma_slope(double a, double x) {
    if (!(a > 0) || !(x >= 0)) return L::nan();
    if (x == 0 || x == L::infinity() || a == L::infinity()) return 0;
    // So far in the tail the slope is below the smallest number.
    if (x > a + 60 * L::sqrt(a) + 1000) return 0;
    if (a > 1e6) return gamma_slope_of_large(a, x);
    const double log_x = L::log(x);
    double log_term = a * log_x - x - L::lgamma(a + 1), psi = digamma(a + 1), sum = 0;
    for (double n = a + 1; n < a + 1e7; n += 1) {
      const double term = L::exp(log_term), change = term * (log_x - psi);
      sum += change;
      // Terms fall from x on, faster than any power.
      if (n > x && (L::abs(change) <= 1e-18 * L::abs(sum) || term < 1e-300)) break;
      log_term += log_x - L::log(n);
      psi += 1 / n;
    }
    return sum;
  }
};
