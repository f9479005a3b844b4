#pragma once
// Keys that several optimizers have.

#include "config/schema.h"

namespace paddle::optim {

/// A factor in [0, 1).
inline config::Spec decay_key(const char* fallback, const char* doc) {
  return config::Spec::real().at_least(0).below(1).fallback(fallback).doc(doc);
}
inline config::Spec momentum_key(const char* fallback) {
  return decay_key(fallback, "momentum: the fraction of the last update that the next one keeps");
}
inline config::Spec nesterov_key(const char* fallback) {
  return config::Spec::boolean().fallback(fallback).doc("Nesterov momentum");
}
inline config::Spec epsilon_key(const char* fallback) {
  return config::Spec::real().above(0).fallback(fallback).doc("added to the denominator");
}
/// beta1, beta2 and epsilon, as Adam has them.
inline config::Schema adam_keys(const char* epsilon) {
  config::Schema s;
  s.add("beta1", decay_key("0.9", "decay of the mean of gradients"))
      .add("beta2", decay_key("0.999", "decay of the mean of squared gradients"))
      .add("epsilon", epsilon_key(epsilon));
  return s;
}

/// The values of adam_keys.
struct AdamKeys {
  double beta1, beta2, epsilon;
  explicit AdamKeys(const config::Section& s)
      : beta1(s.real("beta1")), beta2(s.real("beta2")), epsilon(s.real("epsilon")) {}
};

}  // namespace paddle::optim
