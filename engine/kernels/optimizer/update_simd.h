#pragma once
// Arithmetic of optimizer updates on contiguous spans, in f32 and f64. Results may be the operands
// they replace.

#include <cstdint>

namespace paddle::cpu {

/// Arrays of an update: `state` holds old values, `out` and `new_state` receive the new ones.
template <class T>
struct UpdateSpan {
  const T* param;
  const T* grad;
  const T* state[3];
  T* out;
  T* new_state[3];
  int64_t n;
};

/// Combined scalars of a step (see optimizer.cc and update_rows.cc).
template <class T>
struct UpdateScalars {
  T lr, decay, a, b, epsilon;  ///< a and b: momentum, betas or rho
  T shrink;                    ///< factor on the parameter before the update (decoupled decay)
  bool flag;                   ///< Nesterov, or centered
  T scale, bound;  ///< gradients are multiplied by `scale` and clipped to [-bound, bound]
};

template <class T>
UpdateScalars<T> convert_scalars(const UpdateScalars<double>& s) {
  const auto to = [](double number) { return static_cast<T>(number); };
  return {to(s.lr),     to(s.decay), to(s.a),     to(s.b),    to(s.epsilon),
          to(s.shrink), s.flag,      to(s.scale), to(s.bound)};
}

template <class T>
struct UpdateLoops {
  using Fn = void (*)(const UpdateSpan<T>&, const UpdateScalars<T>&);
  Fn sgd, momentum, adam, adagrad, rmsprop;
  bool (*all_finite)(const T* values, int64_t n);        ///< no value is infinite or NaN
  double (*sum_of_squares)(const T* values, int64_t n);  ///< of all values
};
template <class T>
const UpdateLoops<T>& update_loops();
template <>
const UpdateLoops<float>& update_loops<float>();
template <>
const UpdateLoops<double>& update_loops<double>();

}  // namespace paddle::cpu
