#pragma once
// Optimizers that are written with ordinary operations instead of an update operation of their own:
// Lion, Adafactor, Muon and schedule-free AdamW. Optimizer calls them.

#include <string>
#include <vector>

#include "optim/optimizer.h"

namespace paddle::optim {

/// The states of a parameter of this shape.
std::vector<StateSlot> composed_slots(const OptimizerOptions& options, const std::string& name,
                                      const Dims& shape);
/// As Optimizer::update; `inputs.lr` is the rate of this parameter.
Tensors composed_update(const OptimizerOptions& options, const std::string& name, double decay,
                        const Tensor& parameter, const Tensor& gradient, const Tensors& states,
                        const UpdateInputs& inputs);

}  // namespace paddle::optim
