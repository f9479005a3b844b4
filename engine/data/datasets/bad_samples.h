#pragma once
// The effect of the policies for bad samples on the datasets of a config: which faults of a sample
// are kept, and which records are left out when the data is opened.

#include <string>
#include <vector>

#include "data/data_config.h"

namespace paddle::data {

/// Makes datasets keep samples with these faults: boxes outside of their image are left out, mask
/// values that are not listed become -100 (no class), and an empty cell is a category of its own.
/// Categories for which `missing` is stated are unchanged. False if the data has no such fields.
bool keep_bad_samples(DatasetOptions& options);
/// Makes datasets leave out the records that a sample is made of and that cannot be used.
void skip_bad_records(DatasetOptions& options);

/// Makes empty cells of categorical fields bad samples, where the field is not one of the models'
/// inputs and `missing` says nothing else: a target that is missing is not a class.
void require_targets(DataConfig& config, const std::vector<std::string>& inputs);

}  // namespace paddle::data
