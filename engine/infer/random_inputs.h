#pragma once
// Inputs for timing a model without data: random arrays of its declared shapes.

#include <map>
#include <string>
#include <vector>

#include "program/model.h"

namespace paddle::infer {

/// Sizes of symbolic dims: those of `given` (`name=value`), and `batch` for first dims that are not
/// named. kUsage for a dim that no input has and for what is not a size.
std::map<std::string, int64_t> dim_sizes(const program::Model& model, int64_t batch,
                                         const std::vector<std::string>& given);

/// Normal random numbers in floating inputs, zeros in others. kUsage if the size of a dim is not in
/// `sizes`.
std::vector<Array> random_inputs(const program::Model& model,
                                 const std::map<std::string, int64_t>& sizes);

}  // namespace paddle::infer
