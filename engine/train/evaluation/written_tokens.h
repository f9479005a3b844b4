#pragma once
// The tokens that a model writes one by one, for metrics that compare them with the data: what
// paddle-infer gives for `predict:` of kind sequence.

#include <vector>

#include "infer/beam_search.h"
#include "program/predict_config.h"
#include "train/session/session.h"

namespace paddle::train {

class WrittenTokens {
 public:
  /// `max_length`: tokens of a sequence. The session must outlive this object.
  WrittenTokens(Session& session, const program::SequencePrediction& options, int64_t max_length);

  /// For the rows of a batch (arrays in the order of the fields), whatever its targets are: int64
  /// [rows, length], -1 after the end of a sequence.
  Array write(const std::vector<Array>& batch, RowRange rows);

 private:
  /// A batch with these tokens as target, and arrays of zeros where a field is as long as it.
  const std::vector<Array>& with_target(const std::vector<Array>& batch);

  Session& session_;
  infer::SearchOptions search_;
  std::vector<Array> inputs_, scores_;
};

}  // namespace paddle::train
