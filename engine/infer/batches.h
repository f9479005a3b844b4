#pragma once
// What is to be predicted: NPZ arrays, CSV rows, images, text, or the data section of a config,
// brought to batches of the model's inputs. Preprocessing is the run's own.

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "data/loader.h"
#include "infer/predictor.h"

namespace paddle::infer {

struct InputOptions {
  std::vector<std::string> paths;  ///< files or folders, of one kind
  std::string data;                ///< "CONFIG.yaml[:train|valid]", or "train"/"valid" of the run
  int64_t batch = 64;
};

struct InputBatch {
  std::vector<Array> inputs;        ///< per model input
  std::vector<std::string> places;  ///< per row: where it comes from
  std::optional<Array> labels;      ///< if the data has the model's label field
  int64_t rows = 0;
};

/// A stream of batches.
class Batches {
 public:
  virtual ~Batches() = default;
  virtual std::optional<InputBatch> next() = 0;
};

/// Whether one batch is all that there will be, as far as names tell: one image, or arrays for an
/// ONNX file, which it takes all at once.
bool is_one_batch(const std::string& model, const InputOptions& options);

/// Names of the arrays that an ONNX file will be given; none for other models, and for other inputs
/// than one NPZ file.
std::set<std::string> given_arrays(const std::string& model, const InputOptions& options);

std::unique_ptr<Batches> open_inputs(const Predictor& model, const InputOptions& options);

}  // namespace paddle::infer
