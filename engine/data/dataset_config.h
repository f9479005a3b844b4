#pragma once
// One dataset of a config (`data.train`, a source of a mixture): its schema, and its options.

#include <string>

#include "config/schema.h"
#include "data/options.h"

namespace paddle::data {

config::Spec dataset_spec();
DatasetOptions read_dataset(const config::Section& section);

/// An absolute path from one in a config. `data://` names the folder of test data: where
/// PADDLE_TEST_DATA points, or `shared/data` beside the project.
std::string resolved_path(const config::Node& node);
/// The path that a key names; "" without one.
std::string path_of(const config::Section& section, const char* key);
/// The files of a `path`, which may be a list.
void read_paths(const config::Section& section, CsvFileOptions& out);

// Kinds with a file of their own (composed_config.cc).
void add_series_keys(config::Schema& schema);
void add_chat_keys(config::Schema& schema);
void add_mixture_keys(config::Schema& schema, config::Spec source);
SeriesOptions read_series(const config::Section& section);
ChatOptions read_chat(const config::Section& section);
MixtureOptions read_mixture(const config::Section& section);

}  // namespace paddle::data
