#pragma once
// Functions that passes of plug-ins are tried on: chains of operations, their gradients, and
// unusual ones.

#include <string>
#include <vector>

#include "tensor/interpreter.h"

namespace paddle::conformance {

/// The function of a module and values for it.
struct Example {
  TensorFn function;
  std::vector<Array> inputs;
};

/// Chains of up to ten operations, which are functions of `seed`: activations, products with
/// numbers one after the other, matrix products with constants, reductions, changes of shape.
std::vector<Example> chains(size_t count, uint64_t seed);
/// The gradients of such chains.
std::vector<Example> chain_gradients(size_t count, uint64_t seed);
/// No operation, unused inputs, results twice, integers, float64, no elements, large constants,
/// names with quotes and line breaks, branches and loops.
std::vector<Example> unusual_functions();

}  // namespace paddle::conformance
