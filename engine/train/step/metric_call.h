#pragma once
// Metrics as configs state them: an expression of the model language that contains calls of
// metrics, such as `accuracy(logits, label, k=5)` or `100 * (1 - accuracy(logits, label))`. The
// arguments of a call are evaluated with the step; the arithmetic around the calls once, on their
// results. Or a map of such calls, `state`, and an expression `value` of their results, where a
// call may also be a sum, minimum or maximum over the data.

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/diagnostics.h"
#include "lang/eval/evaluator.h"
#include "lang/eval/values.h"
#include "lang/syntax/program.h"
#include "metrics/metric.h"

namespace paddle::train {

/// One call of a metric.
struct MetricCall {
  std::string metric;  ///< one of metrics::metric_registry
  lang::Code code;     ///< the call only
  std::string name;    ///< of its result in the arithmetic
  /// How it uses the name `predicted`, which stands for the tokens that `predict:` makes of
  /// outputs.
  enum class Predicted { kNot, kAsInput, kElsewhere } predicted = Predicted::kNot;
};
/// The name of predicted tokens in metrics.
inline constexpr std::string_view kPredicted = "predicted";

/// The result of a call: a number, or a vector of one element for each class.
struct MetricResult {
  std::vector<double> values;
  bool is_vector = false;
};

/// One entry of `metrics:`.
struct MetricDefinition {
  std::string name;  ///< key in metrics.jsonl
  std::string text;  ///< the expression
  config::SourcePosition where;
  std::vector<MetricCall> calls;
  /// The expression with its calls replaced by names of their results; empty for a single call.
  lang::Code arithmetic;
  metrics::Direction stated = metrics::Direction::kUnknown;  ///< `better` of a metric with states

  /// As stated, or that of the metric if the expression is one call; otherwise unknown.
  metrics::Direction direction() const;
  /// The value for the results of `calls`; kConfig if the arithmetic fails.
  double value(std::span<const MetricResult> results) const;
};

/// Reads `metrics:`: a map from names to expressions or to maps with `state` and `value`, or a list
/// of calls, named by their metric.
std::vector<MetricDefinition> read_metrics(const config::Node& node,
                                           config::Diagnostics& diagnostics);

/// The meaning of `predicted` in a call of a metric.
enum class PredictedTokens {
  kNone,      ///< nothing, or a value that the step has given that name
  kComputed,  ///< tokens that the step computes from the scores
  kWritten,   ///< tokens that the model has yet to write one by one: the operand has their place
};

/// A call with its arguments.
struct BoundMetric {
  std::string metric;
  metrics::Options options;
  Tensors operands;  ///< in the order of the signature
  PredictedTokens predicted = PredictedTokens::kNone;
};
/// Runs the call's arguments with `names`; kConfig, with the place, for arguments that the metric
/// does not take.
BoundMetric bind_metric(const MetricCall& call, const lang::NamedValues& names,
                        const lang::EvaluationOptions& options);
/// Properties of operands that the accumulator of a traced call needs: whether scores are
/// probabilities, and whether values belong to single samples, by the symbol or size of the batch
/// axis. kConfig if the metric is not defined for them.
struct MetricBinding {
  metrics::MetricSpec spec;
  /// Of mae and rmse: the field of the data that predictions are compared with; "" if the label is
  /// another value.
  std::string target;
  std::vector<int64_t> columns = {};  ///< of that field; empty: all of them
  std::string labels;                 ///< the field of the data that is the second operand; or ""
  PredictedTokens predicted = PredictedTokens::kNone;
  std::string warning;  ///< why the value may depend on the validation batch size; or ""
};
MetricBinding metric_binding(const BoundMetric& bound, const Dim& batch, int64_t ignored_label);

}  // namespace paddle::train
