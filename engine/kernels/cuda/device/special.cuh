// Special functions of elementwise operations, in double for float too, as on the CPU. The
// functions are those of kernels/elementwise/special_functions-inl.h, which stands before.

struct SpecialLibrary {
  PADDLE_DEVICE static double abs(double x) { return ::fabs(x); }
  PADDLE_DEVICE static double cbrt(double x) { return ::cbrt(x); }
  PADDLE_DEVICE static double copysign(double x, double sign) { return ::copysign(x, sign); }
  PADDLE_DEVICE static double erf(double x) { return ::erf(x); }
  PADDLE_DEVICE static double erfc(double x) { return ::erfc(x); }
  PADDLE_DEVICE static double exp(double x) { return ::exp(x); }
  PADDLE_DEVICE static double floor(double x) { return ::floor(x); }
  PADDLE_DEVICE static double lgamma(double x) { return ::lgamma(x); }
  PADDLE_DEVICE static double log(double x) { return ::log(x); }
  PADDLE_DEVICE static double pow(double x, double y) { return ::pow(x, y); }
  PADDLE_DEVICE static double sin(double x) { return fn::sin(x); }
  PADDLE_DEVICE static double sqrt(double x) { return ::sqrt(x); }
  PADDLE_DEVICE static double tan(double x) { return fn::tan(x); }
  PADDLE_DEVICE static double tgamma(double x) { return ::tgamma(x); }
  PADDLE_DEVICE static double infinity() { return as_double(0x7ff0000000000000ull); }
  PADDLE_DEVICE static double nan() { return as_double(0x7ff8000000000000ull); }
};

namespace fn {

typedef SpecialFunctions<SpecialLibrary> Special;

template <class T>
PADDLE_DEVICE T lgamma(T x) {
  return (T)::lgamma((double)x);
}
template <class T>
PADDLE_DEVICE T digamma(T x) {
  return (T)Special::digamma((double)x);
}
template <class T>
PADDLE_DEVICE T trigamma(T x) {
  return (T)Special::polygamma(1, (double)x);
}
template <class T>
PADDLE_DEVICE T polygamma(T x, double order) {
  return (T)Special::polygamma((int)order, (double)x);
}
template <class T>
PADDLE_DEVICE T erfinv(T x) {
  return (T)Special::erf_inverse((double)x);
}
template <class T>
PADDLE_DEVICE T i0(T x) {
  return (T)Special::bessel_i0((double)x);
}
template <class T>
PADDLE_DEVICE T i0e(T x) {
  return (T)Special::bessel_i0e((double)x);
}
template <class T>
PADDLE_DEVICE T i1(T x) {
  return (T)Special::bessel_i1((double)x);
}
template <class T>
PADDLE_DEVICE T i1e(T x) {
  return (T)Special::bessel_i1e((double)x);
}
template <class T>
PADDLE_DEVICE T gammainc(T a, T x) {
  return (T)Special::incomplete_gamma((double)a, (double)x, false);
}
template <class T>
PADDLE_DEVICE T gammaincc(T a, T x) {
  return (T)Special::incomplete_gamma((double)a, (double)x, true);
}
template <class T>
PADDLE_DEVICE T gammainc_slope(T a, T x) {
  return (T)Special::gamma_slope((double)a, (double)x);
}

}  // namespace fn
