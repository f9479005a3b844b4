#include "train/evaluation/written_tokens.h"

#include <algorithm>

namespace paddle::train {

WrittenTokens::WrittenTokens(Session& session, const program::SequencePrediction& options,
                             int64_t max_length)
    : session_(session) {
  const auto& fields = session.fields();
  const auto target = std::find_if(fields.begin(), fields.end(), [&](const FieldType& field) {
    return field.name == options.target;
  });
  ensure(target != fields.end(), "predict.target is not a field");
  if (target->type.shape.size() != 2)
    fail(ErrorCode::kConfig, "predict.target: expected tokens [batch, length], '", options.target,
         "' is ", target->type);
  search_.target = static_cast<size_t>(target - fields.begin());
  search_.beams = options.beams;
  search_.max_length = max_length;
}

const std::vector<Array>& WrittenTokens::with_target(const std::vector<Array>& batch) {
  inputs_ = batch;
  const auto& fields = session_.fields();
  const Dim& length = fields[search_.target].type.shape[1];
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (i == search_.target || !length.is_symbol()) continue;
    Dims shape = inputs_[i].shape;
    for (size_t d = 1; d < shape.size(); ++d)
      if (fields[i].type.shape[d].equals(length) == true) shape[d] = batch[search_.target].shape[1];
    // The mask of the target, and other targets: a prediction does not read them.
    if (shape != inputs_[i].shape) inputs_[i] = Array::zeros(inputs_[i].dtype, shape);
  }
  return inputs_;
}

Array WrittenTokens::write(const std::vector<Array>& batch, RowRange rows) {
  const auto run = [&](const std::vector<Array>& inputs) -> const std::vector<Array>& {
    scores_ = {session_.predict(with_target(inputs))};
    return scores_;
  };
  const std::vector<infer::SearchResult> found =
      infer::beam_search(run, rows_of(batch, rows.begin, rows.end), search_);
  size_t longest = 1;
  for (const infer::SearchResult& each : found) longest = std::max(longest, each.tokens.size());
  Array out = Array::empty(DType::kI64,
                           {static_cast<int64_t>(found.size()), static_cast<int64_t>(longest)});
  auto* to = out.data<int64_t>();
  for (const infer::SearchResult& each : found) {
    std::fill(std::copy(each.tokens.begin(), each.tokens.end(), to), to + longest, -1);
    to += longest;
  }
  return out;
}

}  // namespace paddle::train
