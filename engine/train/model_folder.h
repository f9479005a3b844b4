#pragma once
// The folder `model/` at the end of a run: the module of prediction, the weights, and what inputs
// and outputs mean (preprocessing with the training rows' statistics, vocabularies, class names),
// all that paddle-infer needs.

#include <string>

#include "data/dataset.h"
#include "train/config.h"
#include "train/field_use.h"
#include "train/parameter_store.h"

namespace paddle::train {

/// What inputs and outputs mean: config, vocabularies, names. `fields` are those of a batch,
/// `dataset` is the training data behind it, `use` names the field of class numbers.
void write_metadata(const std::string& folder, const RunConfig& config,
                    const std::vector<data::Field>& fields, const data::Dataset& dataset,
                    const FieldUse& use);
/// The module of prediction and the weights, those that are kept in 16 bits as their masters.
void write_model(const std::string& folder, const RunConfig& config, const ParameterStore& store);

}  // namespace paddle::train
