#pragma once
// Arrays in memory, brought to what a model takes as the samples of a dataset are.

#include <string>
#include <utility>
#include <vector>

#include "data/fitted.h"
#include "data/transforms.h"

namespace paddle::data {

/// `arrays`: [rows, …] by field. Scales the fields that `scales` names and applies the transforms;
/// one array per field comes back. kData for columns that do not fit the statistics, kConfig for
/// transforms that do not suit the arrays.
std::vector<Array> prepared_arrays(std::vector<std::pair<std::string, Array>> arrays,
                                   const std::vector<Fitted>& scales,
                                   const std::vector<TransformOptions>& transforms);

}  // namespace paddle::data
