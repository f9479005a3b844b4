#pragma once
// Splits that look at the samples: every class in its share, groups as a whole, by time, and folds
// of cross-validation.

#include <vector>

#include "data/options.h"

namespace paddle::data {

/// Whether the options ask for one of these.
bool splits_by_samples(const DatasetOptions& options);
/// The samples of `options.part`, in ascending order. kConfig for options that contradict each
/// other or a column that is not there.
std::vector<int64_t> split_by_samples(const Dataset& dataset, const DatasetOptions& options);
/// Names the rule of the split, for `--check-data`: "every class of 'label' in its share".
std::string describe_split(const DatasetOptions& options);

/// Where the part of these shares begins and ends, as shares of the whole. kConfig if the shares
/// are wrong or there is no such part.
std::pair<double, double> bounds_of_part(const DatasetOptions& options);

}  // namespace paddle::data
