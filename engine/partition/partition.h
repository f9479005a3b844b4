#pragma once
// The partition pass: from a logical function over whole tensors to the local function of one rank
// of a mesh, with the same ports, in which values are parts and collectives combine them.
//
//   1. Analysis: the rules of the operations connect the dims of all values (atoms.h, rules.h).
//   2. Assignment: the batch is split over the axis `data`; weights over the axis `tensor`, as
//      patterns say or where all operations on the way can work on parts.
//   3. Localization: each operation gets the parts that it can work on; where an operand is placed
//      otherwise, it is gathered or sliced, and partial results are reduced.
//
// The function may have been differentiated and contain optimizer updates: gradients, norms and
// means are those of the logical program by construction. All dims must be constants; values of a
// size known only at run time are whole.

#include <functional>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "ir/module.h"
#include "partition/layout.h"
#include "partition/rules.h"

namespace paddle::partition {

/// A rule of a config for the placement of parameters.
struct PlaceRule {
  std::vector<std::string> match;        ///< patterns of parameter names
  std::map<int64_t, std::string> shard;  ///< dim to axis; none: whole on each rank
  SourceLocation where = {};
};

/// A rule of a config for an operation, in place of its own.
struct OperationRule {
  std::string operation;
  RuleFn rule;
  SourceLocation where = {};
};

struct PartitionOptions {
  Mesh mesh;
  int rank = 0;
  std::set<std::string> batch_inputs;  ///< inputs whose first dim is the batch
  /// Outputs, by number, of which each rank keeps the rows of its part of the batch: those of a
  /// group either all or, if one of them has no such rows, none. Other outputs are whole.
  std::vector<std::vector<size_t>> row_outputs;
  /// Outputs, by number, that are split as inputs of the same shape are, whatever computes them: a
  /// gradient may be a constant, which no operation connects to the batch.
  std::vector<std::pair<size_t, size_t>> outputs_like_inputs;
  std::vector<PlaceRule> place;  ///< the first match decides
  std::vector<OperationRule> rules;
  /// Splits what parameters and states store over the axis `data`, besides other splits.
  bool shards_storage = false;
  /// Splits the sequence over the axis `tensor` where that splits nothing else: what lies between
  /// the products of a layer, such as normalization and dropout, is not computed whole on each
  /// rank.
  bool splits_sequence = false;
  /// The bytes of gradients that travel together. A full bucket begins to travel while the backward
  /// pass continues.
  int64_t bucket_bytes = int64_t{4} << 20;
  /// Whether a parameter or state may be split over an axis; null: each may.
  std::function<bool(const ir::Port& port, int axis)> may_split;
  /// Placements of parameters and states that an earlier function has settled; others are added.
  Placements placements;
};

/// A value that was made whole for an operation that cannot work on parts of it.
struct Gathered {
  std::string operation, location;
  bool has_rule = false;
  std::string type;
  int64_t bytes = 0;
};

/// Where the local function has a value of the logical one.
struct LocalPart {
  const ir::Value* logical = nullptr;
  const ir::Value* local = nullptr;
  Placement placement;
};

struct Partitioned {
  std::unique_ptr<ir::Function> function;
  Placements placements;           ///< of all parameters and states of the function's inputs
  std::vector<Placement> inputs;   ///< of each input
  std::vector<Placement> outputs;  ///< of each output
  std::vector<Gathered> gathered;
  std::vector<LocalPart> parts;  ///< of the results of all operations, in order
};

/// kConfig if a place rule cannot be followed.
Partitioned partition(const ir::Function& function, const PartitionOptions& options);

}  // namespace paddle::partition
