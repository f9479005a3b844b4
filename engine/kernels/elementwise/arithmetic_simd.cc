// Vector loops of arithmetic, rounding and selection.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/arithmetic_simd.cc"
#include "hwy/foreach_target.h"

#include "kernels/elementwise/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace paddle::cpu::HWY_NAMESPACE {
namespace {

using P = const double*;

/// `b` where `a` is NaN, otherwise `a`.
template <class V>
V unless_nan(V a, V b) {
  return hn::IfThenElse(hn::Eq(a, a), a, b);
}

// clang-format off
struct Add { template <class V> V operator()(V a, V b, P) const { return hn::Add(a, b); } };
struct Subtract { template <class V> V operator()(V a, V b, P) const { return hn::Sub(a, b); } };
struct Multiply { template <class V> V operator()(V a, V b, P) const { return hn::Mul(a, b); } };
struct Divide { template <class V> V operator()(V a, V b, P) const { return hn::Div(a, b); } };
// NaN if either operand is NaN.
struct Maximum { template <class V> V operator()(V a, V b, P) const {
  return hn::IfThenElse(hn::Eq(a, a), hn::IfThenElse(hn::Gt(a, b), a, b), a); } };
struct Minimum { template <class V> V operator()(V a, V b, P) const {
  return hn::IfThenElse(hn::Eq(a, a), hn::IfThenElse(hn::Lt(a, b), a, b), a); } };
// NaN only if both operands are NaN.
struct Fmax { template <class V> V operator()(V a, V b, P) const {
  return unless_nan(hn::IfThenElse(hn::Gt(b, a), b, a), b); } };
struct Fmin { template <class V> V operator()(V a, V b, P) const {
  return unless_nan(hn::IfThenElse(hn::Lt(b, a), b, a), b); } };
struct Neg { template <class V> V operator()(V x, P) const { return hn::Neg(x); } };
struct Abs { template <class V> V operator()(V x, P) const { return hn::Abs(x); } };
struct Square { template <class V> V operator()(V x, P) const { return hn::Mul(x, x); } };
struct Sqrt { template <class V> V operator()(V x, P) const { return hn::Sqrt(x); } };
struct Rsqrt { template <class V> V operator()(V x, P) const { return hn::Div(constant(x, 1), hn::Sqrt(x)); } };
struct Reciprocal { template <class V> V operator()(V x, P) const { return hn::Div(constant(x, 1), x); } };
struct Floor { template <class V> V operator()(V x, P) const { return hn::Floor(x); } };
struct Ceil { template <class V> V operator()(V x, P) const { return hn::Ceil(x); } };
struct Round { template <class V> V operator()(V x, P) const { return hn::Round(x); } };
struct Trunc { template <class V> V operator()(V x, P) const { return hn::Trunc(x); } };
struct Frac { template <class V> V operator()(V x, P) const { return hn::Sub(x, hn::Trunc(x)); } };
struct Sign { template <class V> V operator()(V x, P) const {
  const V zero = constant(x, 0);
  return hn::IfThenElse(hn::Gt(x, zero), constant(x, 1),
                        hn::IfThenElse(hn::Lt(x, zero), constant(x, -1), hn::Add(x, zero))); } };
struct Copysign { template <class V> V operator()(V a, V b, P) const { return hn::CopySign(a, b); } };
// params: scale, bias, 0 if the bias is added before scaling
struct Scale { template <class V> V operator()(V x, P p) const {
  const V scale = constant(x, p[0]), bias = constant(x, p[1]);
  return p[2] == 0 ? hn::Mul(hn::Add(x, bias), scale) : hn::Add(hn::Mul(x, scale), bias); } };
// params: lower, upper
struct Clip { template <class V> V operator()(V x, P p) const {
  const V lower = constant(x, p[0]), upper = constant(x, p[1]);
  const V low = hn::IfThenElse(hn::Lt(x, lower), lower, x);
  return hn::IfThenElse(hn::Gt(low, upper), upper, low); } };
struct Lerp { template <class V> V operator()(V x, V y, V weight, P) const {
  return hn::Add(x, hn::Mul(weight, hn::Sub(y, x))); } };
// x + y * z, rounded twice, like the separate operations.
struct MultiplyAdd { template <class V> V operator()(V x, V y, V z, P) const {
  return hn::Add(x, hn::Mul(y, z)); } };
// clang-format on

constexpr LoopEntry kLoops[] = {
    vector_loop<Add, 2>("add"),
    vector_loop<Subtract, 2>("subtract"),
    vector_loop<Multiply, 2>("multiply"),
    vector_loop<Divide, 2>("divide"),
    vector_loop<Maximum, 2>("maximum"),
    vector_loop<Minimum, 2>("minimum"),
    vector_loop<Fmax, 2>("fmax"),
    vector_loop<Fmin, 2>("fmin"),
    vector_loop<Neg, 1>("neg"),
    vector_loop<Abs, 1>("abs"),
    vector_loop<Square, 1>("square"),
    vector_loop<Sqrt, 1>("sqrt"),
    vector_loop<Rsqrt, 1>("rsqrt"),
    vector_loop<Reciprocal, 1>("reciprocal"),
    vector_loop<Floor, 1>("floor"),
    vector_loop<Ceil, 1>("ceil"),
    vector_loop<Round, 1>("round"),
    vector_loop<Trunc, 1>("trunc"),
    vector_loop<Frac, 1>("frac"),
    vector_loop<Sign, 1>("sign"),
    vector_loop<Copysign, 2>("copysign"),
    vector_loop<Scale, 1>("scale"),
    vector_loop<Clip, 1>("clip"),
    vector_loop<Lerp, 3>("lerp"),
    vector_loop<MultiplyAdd, 3>("multiply_add"),
};

std::span<const LoopEntry> table() { return kLoops; }

}  // namespace
std::span<const LoopEntry> arithmetic_table() { return table(); }
}  // namespace paddle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace paddle::cpu {
HWY_EXPORT(arithmetic_table);
std::span<const LoopEntry> arithmetic_loops() { return HWY_DYNAMIC_DISPATCH(arithmetic_table)(); }
}  // namespace paddle::cpu
#endif
