#pragma once
// Properties of a step that a run needs before its first update: ranges of labels, operands of
// metrics, normalization by the batch, and the form of the loss.

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "program/field_use.h"
#include "train/session/batch_sizes.h"
#include "train/session/step_compiler.h"
#include "train/step/loss_form.h"

namespace paddle::train {

class StepAnalysis {
 public:
  StepAnalysis(const SessionContext& context, StepCompiler& compiler)
      : context_(context), compiler_(compiler) {}

  /// Which integers of the fields the model and the loss take.
  program::FieldUse field_use();
  /// Properties of operands that the accumulators of the metrics need. `ignored_label`:
  /// labels that the loss does not count. kConfig, with the place, if a metric is not defined.
  std::vector<MetricBinding> bind_metrics(int64_t ignored_label);
  /// The calls of training that normalize by statistics of the batch.
  std::vector<NormCall> norm_calls();
  /// Running statistics that training steps compute from their batches.
  struct RunningStatistics {
    std::set<std::string> states;     ///< means and variances
    std::vector<std::string> others;  ///< places of norms in branches and loops: "model.yaml:6:5"
  };
  RunningStatistics running_statistics();
  /// The only number of samples that the model takes, if it states one.
  std::optional<int64_t> stated_batch() const;
  /// A dim for a batch of `samples`: where it depends on what varies from batch to batch,
  /// nothing.
  std::optional<int64_t> size_of(const Dim& dim, int64_t samples,
                                 const std::vector<data::Field>& fields) const;
  /// How the loss is made of terms of its samples. The divisor, if it has one, is what
  /// Session::divisor computes; the pointer to it is null.
  LossForm loss_form();
  /// Whether the loss aligns labels with steps of an output (CTC), by lengths that are computed
  /// from the data only.
  bool aligns_labels();

 private:
  const SessionContext& context_;
  StepCompiler& compiler_;
};

}  // namespace paddle::train
