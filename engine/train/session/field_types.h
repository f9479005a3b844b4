#pragma once
// The types that a step sees the fields of the data in.

#include <vector>

#include "train/session/session_context.h"

namespace paddle::train {

/// Symbolic types of the fields from the models' inputs and the samples' shapes (-1: varies).
/// kConfig if the data does not have what a model takes.
std::vector<FieldType> field_types(const std::vector<program::NamedModel>& models,
                                   const std::vector<FieldType>& samples, bool use_float64);

}  // namespace paddle::train
