#pragma once
// The transforms of a run inside of its ONNX file: inputs are then fields as the data has them,
// such as decoded pixels of any size, and not as the model takes them; outputs that are in the
// units of a scaled field come back in those of the data.

#include <map>
#include <string>
#include <vector>

#include "data/data_config.h"
#include "data/transforms.h"
#include "exporter/exportable.h"
#include "program/model_units.h"

namespace paddle::exporter {

class Preprocess {
 public:
  /// Opens the run's validation data (training data if it has none), which says what raw fields
  /// are. kUsage for a model without a run, and for transforms that have no ONNX form.
  Preprocess(const std::string& model, const program::ModelMetadata& metadata);

  /// The opset that its operators need: antialiased resizing came with 18.
  int64_t least_opset() const;
  /// Puts nodes before the inputs of the graph and after its outputs. An input keeps its name and
  /// becomes the raw field; a field of tokens becomes a vector of texts, and its mask is computed;
  /// categories of a vocabulary become texts.
  void insert(formats::onnx::Model& model) const;
  /// Work that is left to the caller of the file: a line each.
  std::vector<std::string> notes(const formats::onnx::Graph& graph) const;
  /// Compares the file on raw samples with the model on preprocessed ones.
  std::vector<CheckResult> check(const ExportJob& job, const std::string& file,
                                 const std::function<void(const std::string&)>& note) const;

 private:
  struct Input {
    std::string name;
    data::Field raw;
    const data::Fitted* fitted = nullptr;  ///< column scaling or a vocabulary
    bool is_category = false;
    bool is_text() const { return fitted && !fitted->token_kind.empty(); }
    bool takes_strings() const { return is_text() || is_category; }
    std::vector<data::TransformOptions> transforms;
  };
  std::vector<Input> inputs_of(const formats::onnx::Graph& graph) const;
  void restore_outputs(formats::onnx::Graph& graph) const;
  onnx::Value strings_of(int64_t sample, const std::string& field) const;

  /// A field of a sample, or the mask of one, as a batch; kUsage if the data has none.
  Array batch_of_one(const data::Sample& sample, const std::string& input, DType dtype) const;

  std::string model_;  ///< its path, for messages
  data::DatasetPtr raw_, scaled_;
  std::vector<data::Fitted> fitted_;
  std::vector<data::TransformOptions> transforms_;
  std::map<std::string, size_t> string_columns_;  ///< by field of tokens or categories: how many
  std::vector<std::string> scalars_;              ///< those of them that have no axis of columns
  std::vector<std::string> hashed_;               ///< fields of categories in buckets
  program::ModelMetadata metadata_;
};

}  // namespace paddle::exporter
