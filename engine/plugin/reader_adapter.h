#pragma once
// A reader of a plug-in (paddle/plugin/data.h) as a kind of dataset.

#include <string>
#include <vector>

#include "data/dataset_kind.h"
#include "paddle/plugin/data.h"

namespace paddle::plugin {

/// A key of a reader in the config.
struct ReaderKey {
  std::string name;
  std::string type;  ///< path, text, integer, real or boolean
  config::Spec spec;
};
/// The keys that a reader declares; kConfig with its place in `file` for what is none.
std::vector<ReaderKey> read_reader_keys(const char* yaml, const std::string& file);

struct ReaderContext {
  std::string plugin;       ///< "acme 1.0.0"
  std::string name;         ///< "acme.rows"
  paddle_reader functions;  ///< what the engine knows of the plug-in's struct
  std::vector<ReaderKey> keys;
};

/// A field of a line of `describe`; kData for another form.
data::Field parse_field(const std::string& line);

/// The kind of dataset; the context must outlive it.
data::DatasetKind dataset_kind_of(const ReaderContext& context);

}  // namespace paddle::plugin
