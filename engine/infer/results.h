#pragma once
// What comes out: all outputs as NPZ, or a row per sample as CSV or JSON lines, with class names
// and probabilities where the model is a classifier.

#include <memory>
#include <string>
#include <vector>

#include "infer/batches.h"
#include "infer/predictor.h"

namespace paddle::infer {

/// The most likely class of a row of logits.
struct Decision {
  int64_t index = 0;
  std::string name;
  double probability = 0;
};
/// Decisions for the rows of [rows, classes]; empty if that is not what the first output is.
std::vector<Decision> decide(const Predictor& model, const Array& logits);

class ResultWriter {
 public:
  virtual ~ResultWriter() = default;
  virtual void add(const InputBatch& batch, const std::vector<Array>& outputs) = 0;
  virtual void close() = 0;
};

/// By the file's ending: .npz, .csv or .jsonl. "" gives lines by `line`.
std::unique_ptr<ResultWriter> open_results(const Predictor& model, const std::string& path,
                                           const std::function<void(const std::string&)>& line);

}  // namespace paddle::infer
