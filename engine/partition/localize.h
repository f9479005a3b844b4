#pragma once
// The third step of the partition pass: traces the local function of one rank.

#include "ir/tracer.h"
#include "partition/analysis.h"

namespace paddle::partition {

/// Which of the atoms of a value are split, in the order of `Analysis::dims`.
using SplitAtoms = std::vector<bool>;

/// A value of the logical function on this rank.
struct LocalValue {
  Tensor tensor;
  SplitAtoms split;
};

/// A factor of an operation that is split over an axis: which of its atoms.
struct ActiveFactor {
  int axis = 0;
  int factor = 0;
  size_t position = 0;  ///< of the atom in the factor
  int atom = 0;
};

class Localizer {
 public:
  Localizer(const ir::Function& function, const PartitionOptions& options);
  Partitioned run();

  // For the operations that need more than local operands (special_operations.cc).
  const ir::Operation& operation() const { return *current_->operation; }
  /// Operands of the current operation in the parts that its rule asks for.
  const Tensors& operands() const { return operands_; }
  /// The split factor, or null, of a dim of the current operation's operand or result.
  const ActiveFactor* active(size_t operand, size_t d) const;
  const ActiveFactor* active_in_result(size_t result, size_t d) const;
  /// The range of the rank in the units of a factor's atom.
  std::pair<int64_t, int64_t> range(const ActiveFactor& factor) const;
  Tensor all_reduce(const Tensor& x, int axis, Combine combine = Combine::kSum) const;
  /// Over all axes along which a factor is split that result `r` lacks.
  Tensor combine(const Tensor& x, size_t r) const;
  /// The current operation on local operands, without combining partial results.
  Tensors call_local(const Tensors& operands) const;

 private:
  LocalValue& local(const ir::Value& value);
  Tensor placed(const ir::Value& value, const SplitAtoms& wanted);
  Tensor gather(const ir::Value& value, const Tensor& x, const SplitAtoms& split,
                size_t atom) const;
  Tensor slice(const ir::Value& value, const Tensor& x, const SplitAtoms& split, size_t atom) const;
  /// Sizes of [all before, the atom, all after] within the dim that contains the atom, and the dim.
  struct Place {
    size_t dim = 0;
    int64_t outer = 1, units = 1, rest = 1;
  };
  Place place(const ir::Value& value, const SplitAtoms& split, size_t atom) const;
  int64_t local_size(int atom, bool split) const;
  Dims local_shape(const ir::Value& value, const SplitAtoms& split) const;
  SplitAtoms whole(const ir::Value& value) const;
  SplitAtoms full_placement(const ir::Value& value) const;
  /// The split of an input for its new version.
  SplitAtoms like_input(const ir::Value& value, const ir::Value& input);

  void localize(const AnalyzedOperation& analyzed);
  void choose_factors();
  void choose_sequence(const std::vector<int>& order,
                       const std::vector<std::optional<AtomList>>& atoms,
                       const std::vector<bool>& usable, std::set<int>& used);
  bool works_on_stored_parts(const ir::Operation& operation, int atom);
  SplitAtoms wanted(const ir::Value& value, const std::vector<int>& factors) const;
  void localize_reshape();
  void localize_any_parts();
  void localize_whole(const ir::Operation& operation, bool has_rule);
  void note_gathers(const ir::Operation& operation, bool has_rule);
  std::vector<int64_t> window() const;
  Attrs local_attrs(const std::vector<Dims>& results) const;

  const ir::Function& logical_;
  const PartitionOptions& options_;
  Analysis analysis_;
  std::unique_ptr<ir::Function> function_;
  ir::Tracer tracer_;
  std::unordered_map<const ir::Value*, LocalValue> values_;
  /// Placements of values that other operations have needed.
  std::map<std::pair<const ir::Value*, SplitAtoms>, Tensor> cache_;
  const AnalyzedOperation* current_ = nullptr;
  std::vector<ActiveFactor> active_;
  Tensors operands_;
  std::vector<Gathered> gathered_;
};

/// Localizes an operation that needs more than a call on local operands; false if it does not.
/// `results` are then combined and complete.
bool localize_specially(Localizer& localizer, Tensors& results);

}  // namespace paddle::partition
