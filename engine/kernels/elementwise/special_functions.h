#pragma once
// Special functions in f64 that neither the C++ library nor libmvec has.

namespace paddle::cpu {

double log_gamma(double x);             ///< log |Γ(x)|, thread-safe
double digamma(double x);               ///< Γ'(x) / Γ(x)
double polygamma(int order, double x);  ///< derivative of that order of digamma; x > 0 if order > 0
double erf_inverse(double x);           ///< on [-1, 1]
double bessel_i0(double x);             ///< modified Bessel functions of the first kind
double bessel_i0e(double x);            ///< exp(-|x|) I0(x)
double bessel_i1(double x);
double bessel_i1e(double x);
/// Regularized incomplete gamma functions for a > 0, x >= 0.
double gamma_p(double a, double x);
double gamma_q(double a, double x);
double gamma_slope(double a, double x);  ///< the derivative of gamma_p in a

}  // namespace paddle::cpu
