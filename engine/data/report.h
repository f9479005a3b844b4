#pragma once
// The output of `--check-data` for a dataset: resolved paths, counts, classes and three samples.

#include <string>
#include <utility>
#include <vector>

#include "data/dataset.h"

namespace paddle::data {

struct DataReport {
  std::vector<std::string> paths;
  int64_t samples = 0;
  std::vector<Field> fields;
  std::vector<std::pair<std::string, std::string>> facts;
  /// Three samples (first, middle, last): where each comes from, and a line for each field.
  std::vector<std::pair<std::string, std::vector<std::string>>> examples;
  std::vector<std::string> bad;  ///< of those samples: file, place and reason
  std::string text() const;
};

/// Samples of one dataset that another one has, too.
struct Duplicates {
  int64_t count = 0, size = 0;  ///< of the first dataset
  /// The first few: places in the first and in the second dataset.
  std::vector<std::pair<std::string, std::string>> examples;
  std::string text(const std::string& part, const std::string& other) const;
};
/// Samples of `part` whose contents equal those of a sample of `other`: the fields that a model
/// takes
/// (`inputs`), or where none is named all fields but single numbers (all if there are no others).
/// Categories are compared by the texts in the files. Reads all samples; bad ones are passed over.
Duplicates find_duplicates(const Dataset& part, const Dataset& other,
                           const std::vector<std::string>& inputs = {});

/// Reads three samples; a bad one is reported in its lines, not thrown.
DataReport check_data(const Dataset& dataset);

}  // namespace paddle::data
