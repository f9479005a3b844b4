#pragma once
// The two sources of batches of open_inputs: arrays that are the model's inputs, and datasets.

#include <functional>

#include "infer/batches.h"

namespace paddle::infer {

std::vector<std::string> input_names(const program::Model& model);
/// Whether the caller of open_inputs fills in this input of the model itself.
bool is_generated(const InputOptions& options, const std::string& input);
/// "'x' float32[batch, 2]", for messages.
std::string expected_inputs(const program::Model& model);
/// The field with the true answer of a sample; "" if the model has none or several.
std::string label_field(const program::Model& model, const InputOptions& options);

/// Arrays by name, of a file or in memory.
struct ArraySource {
  std::string origin;  ///< the file, for messages
  std::function<std::optional<Array>(const std::string& name)> find;
  /// "; it has 'a', 'b'", for a message that it lacks an array.
  std::function<std::string(const std::string& wanted)> what_it_has;
};

/// Arrays by the model's input names, as they are. The source is read here only.
std::unique_ptr<Batches> array_batches(const program::Model& model, const ArraySource& source,
                                       const InputOptions& options,
                                       std::vector<std::string> warnings);
/// Batches of a dataset, which must have the model's inputs among its fields after the loader's
/// transforms. `source` is where labels are looked for if it is a CSV file.
std::unique_ptr<Batches> dataset_batches(const program::Model& model, const InputOptions& options,
                                         data::DatasetPtr dataset,
                                         const data::LoaderOptions& loader,
                                         const data::DatasetOptions& source);

}  // namespace paddle::infer
