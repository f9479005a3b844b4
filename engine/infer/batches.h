#pragma once
// Inputs of predictions: NPZ arrays, CSV rows, images, text, or the data section of a config,
// brought to batches of the model's inputs. Preprocessing is the run's own.

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "data/data_config.h"
#include "data/loader.h"
#include "data/transforms.h"
#include "formats/npz.h"
#include "program/model.h"
#include "program/model_units.h"

namespace paddle::infer {

/// The run of a model, as far as its inputs are concerned. Reading it from the config takes longer
/// than a small prediction, so callers that open inputs many times keep it.
struct RunInputs {
  std::optional<data::DataConfig> data;  ///< none for models of no run
  program::InputUnits units;

  /// `generated`: as in InputOptions.
  explicit RunInputs(const program::Model& model, const std::vector<std::string>& generated = {});
};

struct InputOptions {
  std::vector<std::string> paths;  ///< files or folders, of one kind
  std::string data;                ///< "CONFIG.yaml[:train|valid|test]", or the part of the run's
  /// Arrays in memory in place of a file, by the model's input names; null: none. They are needed
  /// by open_inputs only.
  const formats::NamedArrays* arrays = nullptr;
  int64_t batch = 64;
  std::vector<std::string> generated = {};  ///< inputs of the model that the caller fills in
  /// Arrays of an ONNX graph hold a sample in each row, so that they are cut into batches.
  /// Otherwise such a graph, which may mix the rows of its batch, gets all of them at once.
  bool rows_are_samples = false;
  std::string text_field = {};  ///< whose text InputBatch::texts has, if the input has it
  /// The field of the labels; "": that of the model.
  std::string label_field = {};
  bool label_is_list = false;  ///< the text of a label is a list of words, such as tags
  bool no_workers = false;     ///< samples are read in `next`, and not by the run's workers
  std::shared_ptr<const RunInputs> run = {};  ///< of the model; null: open_inputs reads it
};

/// A label that is more than a number or a class: a text, tags, boxes, a list of numbers or
/// classes.
struct LabelText {
  std::string text;  ///< for CSV and terminals
  std::string json;
};

/// An image before the transforms, and where they moved its pixels.
struct SourceImage {
  int64_t height = 0, width = 0;
  data::Placement placement;
};

/// A row that `on_bad_sample: skip` or `nan: skip` leaves out.
struct SkippedRow {
  int64_t index = 0;  ///< in the input
  std::string place, reason;
};

struct InputBatch {
  std::vector<Array> inputs;        ///< per model input; empty arrays for generated ones
  std::vector<std::string> places;  ///< per row: where it comes from
  std::vector<int64_t> indices;     ///< per row: its number in the input, from 0
  /// Per row, if the input has labels: the class, or the target in the units of the file. None
  /// where a row has no label.
  std::vector<std::optional<double>> labels;
  /// Per row, where labels are more than that.
  std::vector<std::optional<LabelText>> label_texts;
  std::vector<std::string> texts;  ///< per row: InputOptions::text_field as the file has it
  /// Per row, for images whose way through the transforms is known.
  std::vector<SourceImage> images;
  std::vector<SkippedRow> skipped;  ///< rows before or among these
  int64_t rows = 0;                 ///< 0 for a batch of skipped rows only
};

/// A stream of batches.
class Batches {
 public:
  virtual ~Batches() = default;
  virtual std::optional<InputBatch> next() = 0;
  /// Whether rows may be left out.
  virtual bool may_skip() const { return false; }
  /// Whether rows carry labels.
  virtual bool has_labels() const { return false; }
  /// Warnings about the input: one line each.
  virtual std::vector<std::string> warnings() const { return {}; }
};

/// Whether one batch is all that there will be, as far as names tell: one image, or arrays for an
/// ONNX file, which it takes all at once.
bool is_one_batch(const std::string& model, const InputOptions& options);

/// Names of the arrays that an ONNX file will be given; none for other models, and for other inputs
/// than one NPZ file.
std::set<std::string> provided_arrays(const std::string& model, const InputOptions& options);

/// The data section of the run that the model comes from; empty for other models.
std::optional<data::DataConfig> run_data(const program::Model& model);

std::unique_ptr<Batches> open_inputs(const program::Model& model, const InputOptions& options);

}  // namespace paddle::infer
