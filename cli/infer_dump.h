#pragma once
// Values inside of a model: written to an NPZ file, or counted.

#include <string>
#include <vector>

#include "infer_predict.h"

namespace paddle::cli {

/// `--dump`: predicts, and writes the outputs of the model and the values of its layers that match
/// the patterns to the NPZ file of --output. The status of an interrupt, or 0.
int dump_values(program::Model& model, const std::string& path, const program::LoadOptions& load,
                const std::vector<std::string>& patterns, const PredictOptions& options);

/// `--check-numerics`: predicts one batch and prints counts of NaN, infinities and zeros and the
/// largest magnitude of every value inside of the model. The status of an interrupt, or 0.
int check_numerics(program::Model& model, const std::string& path, const program::LoadOptions& load,
                   const PredictOptions& options);

}  // namespace paddle::cli
