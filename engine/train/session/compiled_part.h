#pragma once
// A part of the step that a session has traced and compiled.

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "partition/stages.h"
#include "train/session/session.h"

namespace paddle::train {

/// A job of a pipeline: a part of a function.
struct Session::StageJob {
  partition::StageFunction part;
  std::unique_ptr<runtime::Executable> executable;
  std::vector<Array> inputs;
};

/// A lookup in a table as inputs of a function; `numbers`: -1 if it has none.
struct Session::LookupPorts {
  std::string table, field;
  int rows = -1, numbers = -1, keys = -1;  ///< inputs; `keys` is that of the field
  int64_t width = 0;
  DType dtype = DType::kF32;
};

/// The gradient for a lookup, by its number, as an output of a function.
struct Session::GradientPort {
  size_t lookup = 0;
  int output = -1;
};
/// The sum of squares of a table's gradient as an input of an update, and the factor on the
/// gradient as an output; -1: there is none.
struct Session::NormPorts {
  std::string table;
  int squares = -1, scale = -1;
};

/// A traced function with where each of its inputs comes from.
struct Session::Compiled {
  std::shared_ptr<ir::Function> function;
  std::shared_ptr<ir::Function> logical;  ///< what `function` is this rank's part of, or null
  std::unique_ptr<runtime::Executable> executable;
  std::vector<Array> inputs;        ///< filled before each run
  std::vector<int> field;           ///< per input: number of the field, or -1
  std::vector<Array*> stored;       ///< per input: the store's array, or null
  std::vector<int> learning_rates;  ///< inputs, in the order of the optimizers
  int step = -1, weight = -1, random = -1;
  Part part = Part::kTrain;
  std::vector<LookupPorts> lookups;     ///< in tables
  std::vector<GradientPort> gradients;  ///< of tables, in training
  std::vector<NormPorts> norms;         ///< of tables, in an update from accumulated gradients
  bool is_of_table(int input) const {
    return std::any_of(lookups.begin(), lookups.end(),
                       [input](const LookupPorts& each) {
                         return each.rows == input || each.numbers == input;
                       }) ||
           std::any_of(norms.begin(), norms.end(),
                       [input](const NormPorts& each) { return each.squares == input; });
  }
  bool trains_tables() const { return part == Part::kTrain || part == Part::kAccumulate; }
  /// The shape of such an input for a batch of these shapes; nothing for another input.
  std::optional<Dims> table_shape(int input, const std::vector<Dims>& shapes) const;
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
};

/// The pipeline of a session: where parameters are, for all functions.
struct Session::Pipeline {
  partition::LeafStages leaves;
  std::map<std::string, int> owners;             ///< stage of each parameter and state
  std::map<std::string, std::set<int>> readers;  ///< stages that read a parameter or state
  std::map<int, partition::JobLists> lists;      ///< by micro-batches
  std::vector<std::string> lines;                ///< for the summary
};

}  // namespace paddle::train
