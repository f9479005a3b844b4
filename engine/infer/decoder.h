#pragma once
// Outputs of a model as what its user asked for, by the section `predict:` of the run: tags, texts,
// boxes, masks.

#include <memory>
#include <string>
#include <vector>

#include "infer/batches.h"
#include "program/model.h"
#include "program/predict_config.h"

namespace paddle::infer {

/// The prediction for a row.
struct Decoded {
  std::string json;                             ///< an object: the keys of a JSON line
  std::vector<std::vector<std::string>> cells;  ///< the lines of a CSV file, a cell per column
  std::string text;                             ///< for a terminal
};

class Decoder {
 public:
  virtual ~Decoder() = default;
  /// Runs the model on a batch that has rows; one result per row.
  virtual std::vector<Decoded> decode(program::Model& model, const InputBatch& batch) = 0;
  /// Columns of CSV.
  virtual std::vector<std::string> columns() const = 0;
  /// The input whose text is shown next to the prediction; "" for none.
  virtual std::string text_field() const { return {}; }
  /// The field of the data with the true answer, and whether its text is a list of words.
  virtual std::string label_field() const = 0;
  virtual bool label_is_list() const { return false; }
  /// Whether it writes a picture per row, and the folder to write them to; kUsage where it writes
  /// none.
  virtual void write_pictures(const std::string& folder);
};

/// For a model of a run with a section `predict:`, changed by `overrides` ("predict.beams=4"); null
/// for other models. kUsage for overrides that do not fit, kModel where the model lacks what the
/// section names.
std::unique_ptr<Decoder> make_decoder(const program::Model& model,
                                      const std::vector<std::string>& overrides);
/// Inputs that the decoder fills in.
std::vector<std::string> generated_inputs(const program::Model& model);

}  // namespace paddle::infer
