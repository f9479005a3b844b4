#pragma once
// Writers of predictions: all outputs as NPZ, or a row per sample as CSV or JSON lines, with class
// names and probabilities where the model is a classifier.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "infer/batches.h"
#include "program/model.h"

namespace paddle::infer {

/// The most likely class of a row of class scores.
struct Decision {
  int64_t index = 0;
  std::string name;
  double probability = 0;
};
/// Decisions for the rows of [rows, classes]; empty if that is not what the first output is.
std::vector<Decision> decide(const program::Model& model, const Array& scores);

/// Columns that not every input has.
struct ShownColumns {
  bool labels = false;   ///< `label`: the class or the target of the input
  bool skipped = false;  ///< `skipped`: why a row was left out (CSV; JSONL has it where it applies)
};

/// Arrays of batches, one after the other along their first axis; 0-D ones become a vector. nullopt
/// if their other sizes differ.
std::optional<Array> joined_batches(const std::vector<Array>& batches);

/// Outputs of all batches, joined along the first axis. Rows that were skipped are NaN there (0 for
/// integers), and a last array `skipped` lists their numbers.
class JoinedOutputs {
 public:
  /// `outputs` is empty for a batch of skipped rows only.
  void add(const InputBatch& batch, const std::vector<Array>& outputs);
  /// kData if the sizes of a row differ from batch to batch.
  formats::NamedArrays arrays(const std::vector<std::string>& names) const;

 private:
  Array with_skipped(const Array& rows) const;

  std::vector<std::vector<Array>> parts_;
  std::vector<int64_t> skipped_;
};

class ResultWriter {
 public:
  virtual ~ResultWriter() = default;
  /// `outputs` is empty for a batch of skipped rows only.
  virtual void add(const InputBatch& batch, const std::vector<Array>& outputs) = 0;
  virtual void close() = 0;
};

/// By the file's ending: .npz, .csv or .jsonl. "" reports lines by `line`.
std::unique_ptr<ResultWriter> open_results(const program::Model& model, const std::string& path,
                                           ShownColumns shown,
                                           const std::function<void(const std::string&)>& line);
/// A JSON object for each row, as in a .jsonl file, to `line`.
std::unique_ptr<ResultWriter> json_results(const program::Model& model, ShownColumns shown,
                                           const std::function<void(const std::string&)>& line);

}  // namespace paddle::infer
