// Vector loops of activation functions. Formulas and parameter names are those of the operations of
// the same name.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/activation_simd.cc"
#include "hwy/foreach_target.h"

#include "kernels/elementwise/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace paddle::cpu::HWY_NAMESPACE {
namespace {

using P = const double*;

/// max(x, 0), propagating NaN.
template <class V>
V relu_of(V x) {
  const V zero = constant(x, 0);
  return hn::IfThenElse(hn::Lt(x, zero), zero, x);
}
/// x clamped to [lower, upper], propagating NaN.
template <class V>
V clamp_to(V x, double lower, double upper) {
  const V low = constant(x, lower), high = constant(x, upper);
  x = hn::IfThenElse(hn::Lt(x, low), low, x);
  return hn::IfThenElse(hn::Gt(x, high), high, x);
}

// clang-format off
struct Relu { template <class V> V operator()(V x, P) const { return relu_of(x); } };
struct Relu6 { template <class V> V operator()(V x, P) const { return clamp_to(x, 0, 6); } };
struct Sigmoid { template <class V> V operator()(V x, P) const { return v_sigmoid(x); } };
struct LogSigmoid { template <class V> V operator()(V x, P) const { return hn::Neg(v_softplus(hn::Neg(x))); } };
struct Silu { template <class V> V operator()(V x, P) const {
  return hn::Div(x, hn::Add(constant(x, 1), v_exp(hn::Neg(x)))); } };
struct Gelu { template <class V> V operator()(V x, P) const {
  const V cdf = hn::Mul(constant(x, 0.5), hn::Add(constant(x, 1), v_erf(hn::Mul(x, constant(x, 0.70710678118654752440)))));
  return hn::Mul(x, cdf); } };
struct GeluTanh { template <class V> V operator()(V x, P) const {
  const V cube = hn::Mul(hn::Mul(x, x), x);
  const V inner = hn::Mul(constant(x, 0.79788456080286535588), hn::Add(x, hn::Mul(constant(x, 0.044715), cube)));
  return hn::Mul(hn::Mul(constant(x, 0.5), x), hn::Add(constant(x, 1), v_tanh(inner))); } };
// params: beta, threshold
struct Softplus { template <class V> V operator()(V x, P p) const {
  const V scaled = hn::Mul(x, constant(x, p[0]));
  return hn::IfThenElse(hn::Gt(scaled, constant(x, p[1])), x, hn::Div(v_softplus(scaled), constant(x, p[0]))); } };
struct Mish { template <class V> V operator()(V x, P) const { return hn::Mul(x, v_tanh(v_softplus(x))); } };
// params: alpha
struct Elu { template <class V> V operator()(V x, P p) const {
  return hn::IfThenElse(hn::Gt(x, constant(x, 0)), x, hn::Mul(constant(x, p[0]), v_expm1(x))); } };
struct Celu { template <class V> V operator()(V x, P p) const {
  const V alpha = constant(x, p[0]);
  return hn::IfThenElse(hn::Gt(x, constant(x, 0)), x, hn::Mul(alpha, v_expm1(hn::Div(x, alpha)))); } };
// params: scale, alpha
struct Selu { template <class V> V operator()(V x, P p) const {
  return hn::Mul(constant(x, p[0]), hn::IfThenElse(hn::Gt(x, constant(x, 0)), x, hn::Mul(constant(x, p[1]), v_expm1(x)))); } };
// params: negative_slope
struct LeakyRelu { template <class V> V operator()(V x, P p) const {
  return hn::IfThenElse(hn::Lt(x, constant(x, 0)), hn::Mul(x, constant(x, p[0])), x); } };
// params: min, max
struct Hardtanh { template <class V> V operator()(V x, P p) const { return clamp_to(x, p[0], p[1]); } };
// params: slope, offset
struct Hardsigmoid { template <class V> V operator()(V x, P p) const {
  return clamp_to(hn::Add(hn::Mul(x, constant(x, p[0])), constant(x, p[1])), 0, 1); } };
struct Hardswish { template <class V> V operator()(V x, P) const {
  const V y = hn::Div(hn::Mul(x, clamp_to(hn::Add(x, constant(x, 3)), 0, 6)), constant(x, 6));
  // 6 x would overflow for the largest values, whose result is x.
  return hn::IfThenElse(hn::Gt(x, constant(x, 5e37)), x, y); } };
// params: threshold
struct Hardshrink { template <class V> V operator()(V x, P p) const {
  return hn::IfThenElse(hn::Le(hn::Abs(x), constant(x, p[0])), constant(x, 0), x); } };
struct Softshrink { template <class V> V operator()(V x, P p) const {
  const V t = constant(x, p[0]);
  const V kept = hn::IfThenElse(hn::Gt(x, t), hn::Sub(x, t), hn::Add(x, t));
  return hn::IfThenElse(hn::Le(hn::Abs(x), t), constant(x, 0), kept); } };
// params: threshold, value
struct ThresholdedRelu { template <class V> V operator()(V x, P p) const {
  return hn::IfThenElse(hn::Gt(x, constant(x, p[0])), x, constant(x, p[1])); } };
struct Tanhshrink { template <class V> V operator()(V x, P) const { return hn::Sub(x, v_tanh(x)); } };
struct Softsign { template <class V> V operator()(V x, P) const { return hn::Div(x, hn::Add(constant(x, 1), hn::Abs(x))); } };
// params: scale_a, scale_b
struct Stanh { template <class V> V operator()(V x, P p) const {
  return hn::Mul(constant(x, p[1]), v_tanh(hn::Mul(constant(x, p[0]), x))); } };
struct Logaddexp { template <class V> V operator()(V a, V b, P) const {
  const V high = hn::IfThenElse(hn::Gt(a, b), a, b);
  const V gap = hn::Neg(hn::Abs(hn::Sub(a, b)));
  // inf - inf is undefined.
  return hn::IfThenElse(hn::Eq(a, b), hn::Add(high, constant(a, 0.69314718055994530942)), hn::Add(high, v_log1p(v_exp(gap)))); } };
// clang-format on

constexpr LoopEntry kLoops[] = {
    vector_loop<Relu, 1>("relu"),
    vector_loop<Relu6, 1>("relu6"),
    vector_loop<Sigmoid, 1>("sigmoid"),
    vector_loop<LogSigmoid, 1>("log_sigmoid"),
    vector_loop<Silu, 1>("silu"),
    vector_loop<Gelu, 1>("gelu"),
    vector_loop<GeluTanh, 1>("gelu_tanh"),
    vector_loop<Softplus, 1>("softplus"),
    vector_loop<Mish, 1>("mish"),
    vector_loop<Elu, 1>("elu"),
    vector_loop<Celu, 1>("celu"),
    vector_loop<Selu, 1>("selu"),
    vector_loop<LeakyRelu, 1>("leaky_relu"),
    vector_loop<Hardtanh, 1>("hardtanh"),
    vector_loop<Hardsigmoid, 1>("hardsigmoid"),
    vector_loop<Hardswish, 1>("hardswish"),
    vector_loop<Hardshrink, 1>("hardshrink"),
    vector_loop<Softshrink, 1>("softshrink"),
    vector_loop<ThresholdedRelu, 1>("thresholded_relu"),
    vector_loop<Tanhshrink, 1>("tanhshrink"),
    vector_loop<Softsign, 1>("softsign"),
    vector_loop<Stanh, 1>("stanh"),
    vector_loop<Logaddexp, 2>("logaddexp"),
};

std::span<const LoopEntry> table() { return kLoops; }

}  // namespace
std::span<const LoopEntry> activation_table() { return table(); }
}  // namespace paddle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace paddle::cpu {
HWY_EXPORT(activation_table);
std::span<const LoopEntry> activation_loops() { return HWY_DYNAMIC_DISPATCH(activation_table)(); }
}  // namespace paddle::cpu
#endif
