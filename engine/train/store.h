#pragma once
// The values that live from step to step: parameters, model states and the optimizer's states.

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "tensor/tensor.h"

namespace paddle::train {

struct Parameter {
  Array value;
  std::string initializer;  ///< as the model language writes it
};

/// Names are logical paths. States of the model carry their path; the optimizer's are
/// "optimizer/<parameter>/<slot>", accumulated gradients "gradient/<parameter>" and how often each
/// row of a table was read "touched_rows/<parameter>", the loss scale and its counters
/// "amp/<name>". Parameters may be kept in 16 bits beside a master in float32, the state
/// "master/<parameter>": what is saved and loaded is then the master, and the parameter is its
/// rounded copy.
struct Store {
  uint64_t seed = 0;
  std::map<std::string, Parameter> parameters;
  std::map<std::string, Array> states;
  /// Where set, what parameters and states of the model begin with in place of their initialisers,
  /// if it has them: weights of a file need no random numbers first.
  std::function<std::optional<Array>(const std::string& name, const Dims& shape, DType dtype)>
      given;
  /// False for a dry run: random initial values and large ones are left zero, which takes no
  /// memory.
  bool draws = true;
  bool initializes(int64_t elements) const;

  int64_t parameter_count() const;  ///< elements of all parameters
  /// From now on the parameter is kept in `low`, beside a master.
  void lower(const std::string& parameter, DType low);
  /// The master of a parameter, null if it is kept in full.
  const Array* master(const std::string& parameter) const;
  Array* master(const std::string& parameter);
  /// Makes the parameter the copy of its master again.
  void round(const std::string& parameter);
  /// The same values with all parameters in full; arrays are shared.
  Store full() const;
};

inline bool is_master(const std::string& name) { return name.starts_with("master/"); }
/// What micro-batches add up: zero between updates, and no part of checkpoints.
inline bool is_accumulated(const std::string& name) {
  return name.starts_with("gradient/") || name.starts_with("touched_rows/");
}
inline bool is_model_state(const std::string& name) {
  return !name.starts_with("optimizer/") && !name.starts_with("amp/") && !is_accumulated(name) &&
         !is_master(name);
}

}  // namespace paddle::train
