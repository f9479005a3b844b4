#pragma once
// The section `parallel:` of a training config: the mesh of ranks and the placement of parameters.

#include <optional>
#include <string>
#include <vector>

#include "base/kind_options.h"
#include "comm/algorithm.h"
#include "compiler/passes/schedule/recompute.h"
#include "config/schema.h"
#include "partition/partition.h"
#include "partition/schedule.h"

namespace paddle::train {

struct ParallelConfig {
  int64_t data = 1, tensor = 1, pipeline = 1;
  int64_t expert = 1;  ///< ranks of `data` among which experts are split
  partition::Schedule schedule = partition::Schedule::kOneForwardOneBackward;
  int64_t chunks = 1;         ///< stages of a rank of `pipeline`
  int64_t micro_batches = 0;  ///< parts of a batch that go through one after the other; 0: as
                              ///< train.accumulate says
  bool sequence = false;      ///< whether tensor splits the sequence between the products of layers
  int64_t sharding = 0;       ///< what ranks of the axis `data` store in parts: see SessionOptions
  std::vector<partition::PlaceRule> place;
  std::vector<partition::OperationRule> rules;
  /// Layers that are computed again instead of kept, and the memory of a step with a budget.
  std::optional<passes::RecomputeOptions> recompute;
  uint64_t recompute_budget = 0;
  int64_t bucket_bytes = 4 << 20;  ///< of gradients that ranks sum together
  bool sums_each = false;          ///< gradients in each micro-batch, not only in the update
  std::optional<bool> overlap;     ///< see SessionOptions
  comm::CollectiveForm collectives = comm::CollectiveForm::kTree;
  KindChoice transport;  ///< that ranks exchange messages by (transport_kinds); "": the standard
  SourceLocation where;

  int64_t ranks() const { return data * tensor * pipeline; }
  partition::Mesh mesh() const;
};

config::Schema parallel_schema();
/// Registers the section (config/sections.h).
void register_section();
ParallelConfig read_parallel(const config::Section& section, const SourceLocation& where,
                             config::Diagnostics& diagnostics);
/// The micro-batches of a step: those of `parallel`, or train.accumulate.
int64_t micro_batches(const ParallelConfig& parallel, int64_t accumulate, int64_t batch,
                      const SourceLocation& where, config::Diagnostics& diagnostics);
/// kConfig unless the mesh has one place for each rank of the run.
void check_rank_count(const ParallelConfig& parallel, int ranks);

}  // namespace paddle::train
