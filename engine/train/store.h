#pragma once
// The values that live from step to step: parameters, model states and the optimizer's states.

#include <map>
#include <string>

#include "tensor/tensor.h"

namespace paddle::train {

struct Parameter {
  Array value;
  std::string initializer;  ///< as the model language writes it
};

/// Names are logical paths. States of the model carry their path; the optimizer's are
/// "optimizer/<parameter>/<slot>", accumulated gradients "gradient/<parameter>".
struct Store {
  uint64_t seed = 0;
  std::map<std::string, Parameter> parameters;
  std::map<std::string, Array> states;

  int64_t parameter_count() const;  ///< elements of all parameters
};

inline bool is_model_state(const std::string& name) {
  return !name.starts_with("optimizer/") && !name.starts_with("gradient/");
}

}  // namespace paddle::train
