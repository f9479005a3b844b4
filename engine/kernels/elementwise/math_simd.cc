// Vector loops of the transcendental functions.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/math_simd.cc"
#include "hwy/foreach_target.h"

#include "kernels/elementwise/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace paddle::cpu::HWY_NAMESPACE {
namespace {

using P = const double*;
// clang-format off
struct Exp { template <class V> V operator()(V x, P) const { return v_exp(x); } };
struct Expm1 { template <class V> V operator()(V x, P) const { return v_expm1(x); } };
struct Exp2 { template <class V> V operator()(V x, P) const { return v_exp2(x); } };
struct Log { template <class V> V operator()(V x, P) const { return v_log(x); } };
struct Log2 { template <class V> V operator()(V x, P) const { return v_log2(x); } };
struct Log10 { template <class V> V operator()(V x, P) const { return v_log10(x); } };
struct Log1p { template <class V> V operator()(V x, P) const { return v_log1p(x); } };
struct Sin { template <class V> V operator()(V x, P) const { return v_sin(x); } };
struct Cos { template <class V> V operator()(V x, P) const { return v_cos(x); } };
struct Tan { template <class V> V operator()(V x, P) const { return v_tan(x); } };
struct Asin { template <class V> V operator()(V x, P) const { return v_asin(x); } };
struct Acos { template <class V> V operator()(V x, P) const { return v_acos(x); } };
struct Atan { template <class V> V operator()(V x, P) const { return v_atan(x); } };
struct Sinh { template <class V> V operator()(V x, P) const { return v_sinh(x); } };
struct Cosh { template <class V> V operator()(V x, P) const { return v_cosh(x); } };
struct Tanh { template <class V> V operator()(V x, P) const { return v_tanh(x); } };
struct Asinh { template <class V> V operator()(V x, P) const { return v_asinh(x); } };
struct Acosh { template <class V> V operator()(V x, P) const { return v_acosh(x); } };
struct Atanh { template <class V> V operator()(V x, P) const { return v_atanh(x); } };
struct Erf { template <class V> V operator()(V x, P) const { return v_erf(x); } };
struct Erfc { template <class V> V operator()(V x, P) const { return v_erfc(x); } };
struct Cbrt { template <class V> V operator()(V x, P) const { return v_cbrt(x); } };
struct Pow { template <class V> V operator()(V x, V y, P) const { return v_pow(x, y); } };
struct Atan2 { template <class V> V operator()(V y, V x, P) const { return v_atan2(y, x); } };
struct Hypot { template <class V> V operator()(V x, V y, P) const { return v_hypot(x, y); } };
// clang-format on

constexpr LoopEntry kLoops[] = {
    vector_loop<Exp, 1>("exp"),     vector_loop<Expm1, 1>("expm1"), vector_loop<Exp2, 1>("exp2"),
    vector_loop<Log, 1>("log"),     vector_loop<Log2, 1>("log2"),   vector_loop<Log10, 1>("log10"),
    vector_loop<Log1p, 1>("log1p"), vector_loop<Sin, 1>("sin"),     vector_loop<Cos, 1>("cos"),
    vector_loop<Tan, 1>("tan"),     vector_loop<Asin, 1>("asin"),   vector_loop<Acos, 1>("acos"),
    vector_loop<Atan, 1>("atan"),   vector_loop<Sinh, 1>("sinh"),   vector_loop<Cosh, 1>("cosh"),
    vector_loop<Tanh, 1>("tanh"),   vector_loop<Asinh, 1>("asinh"), vector_loop<Acosh, 1>("acosh"),
    vector_loop<Atanh, 1>("atanh"), vector_loop<Erf, 1>("erf"),     vector_loop<Erfc, 1>("erfc"),
    vector_loop<Cbrt, 1>("cbrt"),   vector_loop<Pow, 2>("pow"),     vector_loop<Atan2, 2>("atan2"),
    vector_loop<Hypot, 2>("hypot"),
};

std::span<const LoopEntry> table() { return kLoops; }

}  // namespace
std::span<const LoopEntry> math_table() { return table(); }
int vector_size() { return static_cast<int>(sizeof(Vec<float>)); }
}  // namespace paddle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace paddle::cpu {
HWY_EXPORT(math_table);
HWY_EXPORT(vector_size);
int vector_bytes() { return HWY_DYNAMIC_DISPATCH(vector_size)(); }
std::span<const LoopEntry> math_loops() { return HWY_DYNAMIC_DISPATCH(math_table)(); }
}  // namespace paddle::cpu
#endif
