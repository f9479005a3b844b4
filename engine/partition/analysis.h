#pragma once
// The first two steps of the partition pass: atoms of the dims of all values, and the axis of the
// mesh over which each atom is split.

#include <unordered_map>

#include "partition/atoms.h"
#include "partition/partition.h"
#include "partition/rules.h"

namespace paddle::partition {

/// An operation with its rule; `rule` is empty if it needs whole operands.
struct AnalyzedOperation {
  const ir::Operation* operation = nullptr;
  std::optional<Rule> rule;
};

class Analysis {
 public:
  Analysis(const ir::Function& function, const PartitionOptions& options);

  const std::vector<AnalyzedOperation>& operations() const { return operations_; }
  /// The atoms of a dim of a value.
  AtomList dim(const ir::Value& value, size_t d) const;
  /// The atoms of all dims, in order.
  AtomList dims(const ir::Value& value) const;
  int64_t size(int atom) const { return atoms_.size(atom); }
  /// The axis of the mesh over which computation is split along the atom; -1 for none.
  int axis(int atom) const;
  /// The axis over which only storage is split: parameters and states are parts between steps, and
  /// whole where they are used. -1 for none.
  int storage_axis(int atom) const;
  /// The axis over which the sequence is split in operations that the axis splits in no other way.
  int sequence_axis(int atom) const { return atom == sequence_ ? sequence_axis_ : -1; }
  /// Where parts are kept between steps: the axis of computation or of storage.
  int placed_axis(int atom) const { return axis(atom) >= 0 ? axis(atom) : storage_axis(atom); }
  /// Any of the three.
  int any_axis(int atom) const {
    return placed_axis(atom) >= 0 ? placed_axis(atom) : sequence_axis(atom);
  }

 private:
  std::optional<Rule> rule_of(const ir::Operation& operation) const;
  void check_rules_used() const;
  void add_value(const ir::Value& value, const Placement* seed);
  void connect(const AnalyzedOperation& analyzed);
  void connect_output(size_t output, size_t input);
  void connect_outputs();
  void assign_batch();
  void assign_settled();
  /// The experts of weights, over the axis `expert`.
  void assign_experts();
  void assign_place_rules();
  void assign_default();
  void assign_storage();
  void assign_sequence();
  void assign(int atom, int axis) { axes_[atom] = axis; }
  /// Atoms that some operation needs whole, or in two places.
  std::set<int> whole_atoms() const;
  /// Whether an operation has the atom and another one, split over the same axis, in two factors.
  bool conflicts(int atom, int axis) const;
  const ir::Value* parameter(const std::string& name) const;

  const ir::Function& function_;
  const PartitionOptions& options_;
  Atoms atoms_;
  std::unordered_map<const ir::Value*, std::vector<AtomList>> dims_;
  std::vector<AnalyzedOperation> operations_;
  std::unordered_map<int, int> axes_, storage_axes_;
  int sequence_ = -1, sequence_axis_ = -1;  ///< the atom of the sequence, if it is split
  std::set<std::string> kept_whole_;        ///< parameters that a place rule keeps whole
};

}  // namespace paddle::partition
