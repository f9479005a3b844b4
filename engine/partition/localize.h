#pragma once
// The third step of the partition pass: traces the local function of one rank.

#include <functional>
#include <unordered_set>

#include "ir/tracer.h"
#include "partition/analysis.h"

namespace paddle::partition {

/// Which of the atoms of a value are split, in the order of `Analysis::dims`.
using SplitAtoms = std::vector<bool>;

/// How the rows of this rank's tokens are sorted by expert, and exchanged (experts.cc).
struct Route {
  Tensor order, own_counts;  ///< of the own tokens
  Tensor counts;             ///< of the rows that products work on
  int64_t own_rows = 0, rows = 0;
  // Where rows travel: the ranks among which experts are split, or none.
  std::vector<int64_t> ranks = {};
  Tensor sent = {}, received = {};  ///< rows, by rank
  Tensor arrived = {};              ///< order of the arriving rows by expert
};

/// A value of the logical function on this rank.
struct LocalValue {
  Tensor tensor;
  SplitAtoms split;
  bool is_postponed = false;  ///< a sum that is in a bucket, and has no tensor yet
  /// Of rows that are sorted by expert, their order and counts (experts.cc): the tensor is this
  /// rank's and no part of the logical one.
  std::shared_ptr<const Route> route = nullptr;
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
  /// The same, and where a reduced axis stores an atom of the result in parts, this rank's part
  /// only, which `split` then says.
  Tensor combine(const Tensor& x, size_t r, SplitAtoms& split) const;
  /// The current operation on local operands, without combining partial results.
  Tensors call_local(const Tensors& operands) const;
  /// The last step of a sum, when it is complete.
  using Finish = std::function<Tensor(const Tensor& sum)>;
  /// Puts the partial sum of result `r` into a bucket, if it can wait; the result then has no
  /// tensor until the sum is complete.
  bool postpone(size_t r, const Tensor& partial, Finish finish = {});

 private:
  LocalValue& local(const ir::Value& value);
  Tensor placed(const ir::Value& value, const SplitAtoms& wanted);
  Tensor gather(const ir::Value& value, const Tensor& x, const SplitAtoms& split,
                size_t atom) const;
  Tensor slice(const ir::Value& value, const Tensor& x, const SplitAtoms& split, size_t atom) const;
  /// The sum over the axis of the atom, in parts along the atom.
  Tensor reduce_scatter(const ir::Value& value, const Tensor& x, const SplitAtoms& split,
                        size_t atom) const;
  /// The atom of a result along which the sum over an axis is stored in parts; nullopt if it is
  /// not, or is so small that parts are not worth an exchange of their own.
  std::optional<size_t> stored_atom(const ir::Value& value, const SplitAtoms& split,
                                    int axis) const;
  std::vector<int64_t> part_sizes(int atom, int64_t rest) const;

  // Sums over ranks that no operation has read yet travel together (buckets.cc).
  struct Postponed {
    const ir::Value* value = nullptr;
    Tensor partial;
    Finish finish;
  };
  struct Bucket {
    std::vector<int> axes;  ///< over which it is summed, one after the other
    DType dtype = DType::kF32;
    int64_t bytes = 0;  ///< of whole values, which are the same on all ranks
    std::vector<Postponed> sums;
    Tensors begun = {};  ///< results of comm.start_all_reduce, once it has begun
  };
  /// Starts to reduce a full bucket.
  void start(Bucket bucket);
  /// Completes the sums of a bucket.
  void flush(Bucket bucket);
  void flush_bucket_of(const ir::Value& value);
  /// Finds the operations that no further sum over ranks depends on: those of the update.
  void find_deferrable();
  /// Whether an operation reads sums that are not complete, and can be deferred with them.
  bool is_deferrable(const ir::Operation& operation) const;
  /// Localizes the deferred operations.
  void localize_deferred();
  /// Sizes of [all before, the atom, all after] within the dim that contains the atom, and the dim.
  struct Place {
    size_t dim = 0;
    int64_t outer = 1, units = 1, rest = 1;
  };
  Place place(const ir::Value& value, const SplitAtoms& split, size_t atom) const;
  int64_t local_size(int atom, bool split) const;
  Dims local_shape(const ir::Value& value, const SplitAtoms& split) const;
  SplitAtoms whole(const ir::Value& value) const;
  /// Where the elements of a value with these atoms split are.
  Placement placement(const ir::Value& value, const SplitAtoms& split) const;
  SplitAtoms full_placement(const ir::Value& value) const;
  /// The atoms that a placement, which an earlier function has settled, splits.
  SplitAtoms settled_atoms(const ir::Value& value, const Placement& placement) const;
  /// The split of an input for its new version.
  SplitAtoms like_input(const ir::Value& value, const ir::Value& input);
  /// Of each output, whether the rank keeps its rows of the batch only.
  std::vector<bool> outputs_by_rows() const;
  /// Whether the outermost atom of the first dim is the batch, split over the axis `data`.
  bool begins_with_batch(const ir::Value& value) const;

  // Mixtures of experts (experts.cc).
  SplitAtoms by_tokens(const ir::Value& value) const;
  int64_t token_rows(const ir::Value& value, int rank) const;
  void route_tokens(const ir::Operation& operation);
  bool localize_experts(const ir::Operation& operation);
  Tensor whole_routed(const ir::Value& value);
  bool localize_on_routed_rows(const AnalyzedOperation& analyzed);

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
  std::vector<Bucket> buckets_;
  std::unordered_set<const ir::Operation*> deferrable_;
  std::vector<const AnalyzedOperation*> deferred_;
  std::unordered_set<const ir::Value*> deferred_results_;  ///< their results
};

/// Localizes an operation that needs more than a call on local operands; false if it does not.
/// `results` are then combined and complete.
bool localize_specially(Localizer& localizer, Tensors& results);

}  // namespace paddle::partition
