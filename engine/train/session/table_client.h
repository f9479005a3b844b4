#pragma once
// The tables of a session: rows for the keys of a batch go into a function before it runs, and
// their gradients to the tables after it.

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "program/parameter_binding.h"
#include "train/session/compiled_function.h"
#include "train/session/session_context.h"
#include "train/tables/tables.h"

namespace paddle::train {

class TableClient {
 public:
  explicit TableClient(const SessionContext& context);

  Tables& tables() { return tables_; }
  const Tables& tables() const { return tables_; }
  bool empty() const { return tables_.empty(); }

  /// Lets models read tables in a function of the step.
  void connect(program::ParameterBinding& ports, const StepInputs& inputs, StepFunction kind);
  /// Notes the lookups of a function while it is traced.
  static void note_lookups(CompiledFunction& c, const program::ParameterBinding& ports);
  /// Finds the inputs and outputs of a traced function for its lookups, and for the norms of the
  /// gradients of `tables`, and sets the roles of these inputs.
  static void find_ports(CompiledFunction& c, const std::vector<std::string>& tables);
  /// The output of a training function with the gradient for a lookup.
  static std::string gradient_port(const std::string& table, const std::string& field) {
    return "gradient:" + table + ":" + field;
  }
  static std::string squares_port(const std::string& table) { return "squares:" + table; }
  static std::string scale_port(const std::string& table) { return "scale:" + table; }

  /// Starts the reads of a function's run, or of a step for all its micro-batches.
  void begin(StepFunction kind);
  /// Adds the keys of a micro-batch of the step.
  void add(const CompiledFunction& c, const std::vector<Array>& batch);
  /// Reads the rows of all keys of the step.
  void fetch() { tables_.fetch(true); }
  /// Announces the next step, whose keys then travel with the gradients of this one. All ranks
  /// announce the same steps.
  void announce(const std::vector<TableUse>& uses) { tables_.announce(uses); }
  /// The keys of a function's lookups in a batch.
  std::vector<TableUse> uses(const CompiledFunction& c, const std::vector<Array>& batch) const;
  /// Reads the rows for a function that does not train.
  void read(const CompiledFunction& c, const std::vector<Array>& batch);
  /// Fills the inputs of a function with the rows of the batch's keys; those of micro-batches are
  /// taken in order.
  void fill(CompiledFunction& c, const std::vector<Array>& batch);

  /// Takes the gradients for the lookups of a training function that has run.
  void take_gradients(const CompiledFunction& c, const std::vector<Array>& outputs);
  /// The same of a function that has run eagerly, whose lookups began at `first_use`.
  void take_gradients(const StepOutputs& outputs, const program::ParameterBinding& ports,
                      size_t first_use);
  size_t next_use() const { return next_use_; }
  /// The sums of squares of accumulated gradients, by table, of the last `sum_squares`.
  const std::map<std::string, double>& squares() const { return squares_; }
  void sum_squares() { squares_ = tables_.sums_of_squares(); }
  /// Updates the tables. `scales`: factors of gradients that an update of parameters has computed.
  void update(const StepScalars& numbers, const std::map<std::string, double>& scales = {});

 private:
  /// The place of a field of the data; kConfig if there is none of that name.
  size_t field_index(const std::string& name) const;
  /// Whether the gradients that this rank computes for a lookup count: its own rows, or all of them
  /// on one of the ranks.
  bool counts_here(const CompiledFunction& c, const LookupPorts& lookup) const;

  const SessionContext& context_;
  Tables tables_;
  size_t next_use_ = 0;  ///< in a training step: the first one of the next micro-batch
  std::map<std::string, double> squares_;
};

}  // namespace paddle::train
