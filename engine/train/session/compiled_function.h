#pragma once
// A function of the step that a session has traced and compiled.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/module.h"
#include "partition/partition.h"
#include "partition/schedule.h"
#include "partition/stages.h"
#include "runtime/executable.h"
#include "train/step/step.h"

namespace paddle::train {

/// The functions that a step is traced into.
enum class StepFunction {
  kTrain,       ///< a whole step
  kAccumulate,  ///< gradients of a micro-batch, added up
  kApply,       ///< an update from accumulated gradients
  kEvaluate,
  kDivisor,     ///< what the loss of a batch is divided by
  kAlignment,   ///< lengths of labels and of outputs that the loss aligns
  kForward,     ///< the loss in training
  kStatistics,  ///< means and variances of the batch in the norms
  kPredict,     ///< scores for `predict:`
  kGradients    ///< gradients of the loss for outputs of the model
};

/// Whether a function trains: tables then make rows for new keys.
inline bool trains(StepFunction kind) {
  return kind == StepFunction::kTrain || kind == StepFunction::kAccumulate;
}
/// Whether a function computes something from the batch only.
inline bool is_of_data(StepFunction kind) {
  return kind == StepFunction::kDivisor || kind == StepFunction::kAlignment;
}

/// Rows of a batch, [begin, end).
struct RowRange {
  int64_t begin = 0, end = 0;
  int64_t count() const { return end - begin; }
};

/// Rows [begin, end) of a batch's arrays, sharing their memory.
inline std::vector<Array> rows_of(const std::vector<Array>& batch, int64_t begin, int64_t end) {
  std::vector<Array> out = batch;
  for (Array& a : out) {
    a.offset += begin * a.strides[0];
    a.shape[0] = end - begin;
  }
  return out;
}

/// A job of a pipeline: a part of a function.
struct StageJob {
  partition::StageFunction part;
  std::unique_ptr<runtime::Executable> executable;
  std::vector<Array> inputs;
};
using StageJobs = std::map<std::pair<partition::JobKind, int>, StageJob>;

/// A lookup in a table as inputs of a function; `numbers`: -1 if it has none.
struct LookupPorts {
  std::string table, field, mask;
  int rows = -1, numbers = -1, keys = -1;  ///< inputs; `keys` is that of the field
  int64_t width = 0;
  DType dtype = DType::kF32;
};

/// The gradient for a lookup, by its number, as an output of a function.
struct GradientPort {
  size_t lookup = 0;
  int output = -1;
};

/// The sum of squares of a table's gradient as an input of an update, and the factor on the
/// gradient as an output; -1: there is none.
struct NormPorts {
  std::string table;
  int squares = -1, scale = -1;
};

/// Where the value of an input comes from.
enum class PortRole {
  kNone,  ///< known by the port's kind: a parameter, a state, random numbers
  kField,
  kLearningRate,
  kStep,
  kWeight,  ///< of a micro-batch in its batch
  kTable    ///< rows, numbers or sums of squares of a table
};

/// A traced function with where each of its inputs comes from.
struct CompiledFunction {
  StepFunction kind = StepFunction::kTrain;
  std::shared_ptr<ir::Function> function;
  std::shared_ptr<ir::Function> logical;  ///< what `function` is this rank's part of, or null
  std::unique_ptr<runtime::Executable> executable;
  std::vector<Array> inputs;        ///< filled before each run
  std::vector<int> field;           ///< per input: number of the field, or -1
  std::vector<Array*> stored;       ///< per input: the store's array, or null
  std::vector<int> learning_rates;  ///< inputs, in the order of the optimizers
  int step = -1, weight = -1, random = -1;
  std::vector<PortRole> roles;              ///< per input
  std::vector<LookupPorts> lookups;         ///< in tables
  std::vector<GradientPort> gradients;      ///< of tables, in training
  std::vector<NormPorts> norms;             ///< of tables, in an update from accumulated gradients
  std::vector<size_t> metric_sizes;         ///< operands per metric
  std::vector<RowRange> metric_rows;        ///< per metric, of a partitioned function
  std::map<std::string, int64_t> fixed;     ///< dims that the trace is valid for
  std::vector<UpdateCondition> conditions;  ///< steps that the trace is valid for
  std::vector<std::string> statistics;      ///< per output, the state of a running statistic
  size_t phase = 0;                         ///< the update that it accumulates for or applies
  std::vector<Dims> shapes;  ///< of the batch that a partitioned function is valid for
  std::vector<partition::Placement> placement;         ///< per input of a partitioned function
  std::vector<partition::Placement> output_placement;  ///< per output
  std::vector<partition::LocalPart> parts;             ///< of a partitioned function
  std::unique_ptr<partition::StageCut> cut;
  StageJobs jobs;  ///< of this rank's stages; `function` then has no executable of its own

  /// The shape of an input with rows of a table, for a batch of these shapes; nothing for another
  /// input.
  std::optional<Dims> table_shape(int input, const std::vector<Dims>& batch) const;
};

}  // namespace paddle::train
