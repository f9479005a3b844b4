#pragma once
// One dataset of a config (`data.train`, a source of a mixture): its schema, and its options.

#include <string>
#include <utility>
#include <vector>

#include "config/schema.h"
#include "data/options.h"

namespace paddle::data {

config::Spec dataset_spec();
/// Of a source of a mixture, which is not a mixture.
config::Spec source_spec();
DatasetOptions read_dataset(const config::Section& section);

/// An absolute path from one in a config. `data://` names the folder of test data: where
/// PADDLE_TEST_DATA points, or `shared/data` next to the project.
std::string resolved_path(const config::Node& node);
/// The path that a key names; "" without one.
std::string path_of(const config::Section& section, const char* key);
/// The files of a `path`, which may be a list.
void read_paths(const config::Section& section, std::string& path,
                std::vector<std::string>& more_paths);
/// The keys delimiter, quote and decimal of a CSV file.
void add_csv_format_keys(config::Schema& schema);
void read_csv_format(const config::Section& section, CsvFileOptions& options);
/// A required `path` that may be a list.
config::Spec paths_spec(const char* doc);

/// One of the `fields` of records.
CsvField read_field(const config::Section& section);
/// The entries of a map of texts; `paths`: their values are paths.
std::vector<std::pair<std::string, std::string>> text_map(const config::Section& section,
                                                          const char* key, bool paths);

}  // namespace paddle::data
