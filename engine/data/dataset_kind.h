#pragma once
// The kinds of dataset by the names that configs use (`kind: csv`). Each is one object: its keys
// with documentation, defaults and ranges, and what reads its files. The schema of a dataset and
// the reference follow from it. A kind of records with columns states `open`, and gets fields,
// scaling and vocabularies from RecordDataset; a kind of its own makes an OwnSource.
// docs/design/new_dataset_kind.md shows how to add one.

#include <functional>
#include <string>
#include <vector>

#include "base/registry.h"
#include "config/schema.h"
#include "data/options.h"
#include "data/sources/record_source.h"

namespace paddle::data {

struct DatasetKind {
  std::string name = {};
  /// Keys besides those of all kinds (`range`, `split`, …). Called for each schema, as those of a
  /// mixture depend on all other kinds.
  std::function<config::Schema()> keys = {};
  /// The options that the values of the keys state, which are checked and complete.
  std::function<DatasetSource(const config::Section&)> read = {};
  /// Of records: opens one file. kData for a file that is damaged.
  std::function<RecordSourcePtr(const CsvFileOptions& options, const std::string& path)> open = {};
  /// Of records: the endings of such files, lower case, by which another file than the config's is
  /// recognized: ".csv".
  std::vector<std::string> endings = {};
  /// The keys with files and folders, whose relative paths begin at the config's folder.
  std::vector<std::string> path_keys = {"path"};
  /// Whether range and split apply to it; else it has no keys for them.
  bool has_parts = true;
  /// Whether it can be a source of a mixture.
  bool is_source = true;
  /// Whether samples come in one order, which nothing can shuffle.
  bool is_stream = false;
};

/// All kinds; more may be added while the program runs.
Registry<DatasetKind>& dataset_kinds();

/// The kind of records with this name; kConfig if there is none.
Registry<DatasetKind>::Handle record_kind(const std::string& name);
/// The kind of records of a file by its ending: `like` where that fits too, or nothing else does.
std::string record_kind_of(const std::string& path, const std::string& like);

/// A key `fields`, which says how columns become the fields of a sample.
config::Spec fields_key();
/// The path and the fields of records in files of this kind, for `read`.
CsvFileOptions read_records(const config::Section& section, const std::string& kind);
/// A kind of records in files that its keys `path`, described by `doc`, and `fields` name.
DatasetKind make_record_kind(
    std::string name, std::string doc, std::vector<std::string> endings,
    std::function<RecordSourcePtr(const CsvFileOptions& options, const std::string& path)> open);

}  // namespace paddle::data
