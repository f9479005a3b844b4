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

/// Reads three samples; a bad one is reported in its lines, not thrown.
DataReport check_data(const Dataset& dataset);

}  // namespace paddle::data
