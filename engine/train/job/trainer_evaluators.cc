// Evaluators of a run: metrics of its data, and sequences that are written for them.

#include <algorithm>

#include "train/job/trainer_impl.h"

namespace paddle::train {

Evaluator Trainer::Impl::make_evaluator(const data::Loader& loader) const {
  const std::vector<data::Fitted> fitted = loader_->dataset().fitted();
  std::vector<data::TargetScale> scales;
  for (const MetricBinding& binding : metric_bindings_) {
    // Pictures and other arrays are compared as the model sees them.
    const auto& fields = loader_->fields();
    const auto field = std::find_if(fields.begin(), fields.end(), [&](const data::Field& f) {
      return f.name == binding.target && (f.shape.size() <= 1 || data::find_fitted(fitted, f.name));
    });
    data::TargetScale scale(field == fields.end() ? "" : binding.target, fitted,
                            config_.data.valid_loader.transforms);
    scales.push_back(binding.columns.empty() ? scale : scale.of_columns(binding.columns));
  }
  Evaluator out(step_->definition().metrics, metric_bindings_, std::move(scales));
  out.read_texts(loader.dataset(), metric_bindings_);
  return out;
}

void Trainer::Impl::open_written_tokens() {
  if (std::none_of(metric_bindings_.begin(), metric_bindings_.end(),
                   [](const MetricBinding& binding) {
                     return binding.predicted == PredictedTokens::kWritten;
                   }))
    return;
  const auto& sequence =
      std::get<program::SequencePrediction>(step_->definition().prediction.value());
  for (const auto& [name, parameter] : store_.parameters)
    if (!session_->shards().placement_of(name).empty() ||
        config_.parallel.mesh().axis_size_of("pipeline") > 1)
      fail(ErrorCode::kConfig,
           "metrics: 'predicted' of a sequence needs whole parameters on each rank, and these are "
           "split; use only parallel.data, or paddle eval after the run");
  int64_t longest = sequence.max_length;
  const std::vector<data::Fitted> fitted = loader_->dataset().fitted();
  if (const data::Fitted* field = data::find_fitted(fitted, sequence.target); field && longest == 0)
    longest = field->max_length;
  if (longest == 0)
    fail(ErrorCode::kConfig, "predict.max_length: '", sequence.target,
         "' has no max_length of its own; give one");
  written_tokens_.emplace(*session_, sequence, longest);
}

EvaluationResult Trainer::Impl::evaluate_batch(const data::Batch& batch) {
  EvaluationResult out = session_->evaluate(batch.arrays);
  if (!written_tokens_) return out;
  RowRange written;
  Array tokens;
  for (size_t i = 0; i < metric_bindings_.size(); ++i) {
    const RowRange rows = out.metric_rows[i];
    if (metric_bindings_[i].predicted != PredictedTokens::kWritten || rows.count() == 0) continue;
    if (rows.begin != written.begin || rows.end != written.end)
      tokens = written_tokens_->write(batch.arrays, rows);
    written = rows;
    out.metric_operands[i][0] = tokens;
  }
  return out;
}

}  // namespace paddle::train
