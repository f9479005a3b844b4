#pragma once
// Opens the data of a config: loaders for training and validation over the datasets it names.

#include <memory>

#include "config/document.h"
#include "data/data_config.h"

namespace paddle::data {

/// Calls `part` and adds the location of `node` to errors of the config that have none. What a call
/// rejects there (a size that overflows) came from the config, too.
template <class F>
auto with_location(const config::Node* node, F&& part) {
  try {
    return part();
  } catch (const Error& e) {
    const bool mine = e.code() == ErrorCode::kConfig || e.code() == ErrorCode::kUsage;
    if (!mine || !node || !e.location().text().empty()) throw;
    Error with_place(ErrorCode::kConfig, e.message(), node->location());
    for (const std::string& line : e.notes()) with_place.note(line);
    throw with_place;
  }
}

struct OpenData {
  DatasetPtr train, valid, test;  ///< `valid` is null if the config has none
  std::unique_ptr<Loader> train_loader, valid_loader, test_loader;
  /// Files that are not read, and validation samples that are trained on, too.
  std::vector<std::string> warnings;
};

/// Validation uses what the training data taught (scaling, vocabularies, classes), and must have
/// the same fields. `document` is the resolved config, for the places of errors.
OpenData open_data(const config::Node& document, const DataConfig& config);

}  // namespace paddle::data
