#pragma once
// A reader of a plug-in (paddle/plugin/data.h) as a kind of dataset.

#include <string>
#include <vector>

#include "base/kind_options.h"
#include "data/dataset_kind.h"
#include "paddle/plugin/data.h"

namespace paddle::plugin {

struct ReaderContext {
  std::string plugin;       ///< "acme 1.0.0"
  std::string name;         ///< "acme.rows"
  paddle_reader functions;  ///< what the engine knows of the plug-in's struct
  std::vector<KindKey> keys;
};

/// Whether its samples come one after another.
bool is_stream(const ReaderContext& context);

/// A field of a line of `describe`; kData for another form.
data::Field parse_field(const std::string& line);

/// The kind of dataset; the context must outlive it.
data::DatasetKind dataset_kind_of(const ReaderContext& context);

}  // namespace paddle::plugin
