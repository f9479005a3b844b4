#pragma once
// Where the values of a store are: whole on each rank, split over axes of the mesh, or on the ranks
// of some stages of a pipeline.

#include <map>
#include <optional>
#include <set>
#include <string>

#include "partition/layout.h"
#include "program/tensor_part.h"
#include "train/session/session_context.h"

namespace paddle::train {

/// The stages of a pipeline that own and that read parameters and states, by name.
struct StageOwners {
  std::map<std::string, int> owners;
  std::map<std::string, std::set<int>> readers;
};

class ShardedStore {
 public:
  explicit ShardedStore(const SessionContext& context) : context_(context) {}

  /// Where a parameter or state is split; empty: all ranks have the whole.
  partition::Placement placement_of(const std::string& name) const;
  const partition::Placements& placements() const { return placements_; }
  /// Adds the placements of a partitioned function; those known before stay.
  void add_placements(partition::Placements placements);
  /// From now on values belong to stages of a pipeline.
  void set_owners(StageOwners owners) { stages_ = std::move(owners); }
  bool has_owners() const { return stages_.has_value(); }

  /// The array of the store that an input takes, or this rank's part of it.
  Array* find(const ir::Port& port, const partition::Placement& placement);
  /// Takes this rank's parts of the store's values again.
  void update_parts();
  /// The same, and frees the whole arrays and those of other stages.
  void take_parts();

  /// Bytes of the parameters and states that this rank keeps between steps.
  int64_t stored_bytes() const;
  /// The values of the store, of which this rank may only have parts, as whole arrays on rank 0, in
  /// memory of the host. All ranks must call it; on the others the result is not complete.
  program::ParameterStore whole_store() const;
  /// The part of a parameter or state that this rank writes into a checkpoint of all ranks: each
  /// element is written by one rank that has it.
  std::optional<program::TensorPart> written_part(const std::string& name) const;
  /// An array that ranks have parts of, on rank 0; the others get nothing. `mine` is not read where
  /// this rank sends nothing. `owner`: see pipeline_owner.
  Array gather_array(const Array& mine, DType dtype, const Dims& shape,
                     const partition::Placement& placement, int owner) const;

  /// The parameter, or the running statistic, that a state belongs to: "encoder.weight" of
  /// "optimizer/encoder.weight/moment"; "" for none.
  std::string parameter_of(const std::string& state) const;
  /// The position on the axis `pipeline` of the rank that owns a parameter or state; 0 for what all
  /// have.
  int pipeline_owner(const std::string& name) const;
  bool is_owned(const std::string& name) const;  ///< by one stage
  bool is_held(const std::string& name) const;   ///< by this rank
  /// Positions on the pipeline axis of the ranks that read a parameter or state in their stages.
  std::set<int> reading_positions(const std::string& name) const;

 private:
  Array& in_store(const ir::Port& port);
  /// Gathers a parameter or state that rank 0 lacks there.
  void gather_whole(const std::string& name, program::ParameterStore& out) const;
  /// Whether a rank is the one that gives a part to others: of ranks with the same part, the first
  /// one along each other axis.
  bool sends_part(int rank, const partition::Placement& placement, int owner) const;

  const SessionContext& context_;
  partition::Placements placements_;
  std::map<std::string, Array> parts_;  ///< of split parameters and states, on this rank
  std::optional<StageOwners> stages_;
};

}  // namespace paddle::train
