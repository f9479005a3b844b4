#pragma once
// The shape of the transformer that a run's config trains: from its repeated blocks of parameters,
// its attention operations, and the samples of its data.

#include <vector>

#include "tune/parallel/transformer.h"

namespace paddle::tune {

/// kConfig if the model has no repeated blocks with attention.
Transformer transformer_of_run(const std::string& config,
                               const std::vector<std::string>& overrides);

}  // namespace paddle::tune
