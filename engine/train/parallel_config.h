#pragma once
// The section `parallel:` of a training config: the mesh of ranks and the placement of parameters.

#include <string>
#include <vector>

#include "config/schema.h"
#include "partition/partition.h"

namespace paddle::train {

struct ParallelConfig {
  int64_t data = 1, tensor = 1;
  int64_t sharding = 0;  ///< what ranks of the axis `data` store in parts: see SessionOptions
  std::vector<partition::PlaceRule> place;
  SourceLocation where;

  int64_t ranks() const { return data * tensor; }
  partition::Mesh mesh() const;
};

config::Schema parallel_schema();
ParallelConfig read_parallel(const config::Section& section, const SourceLocation& where,
                             config::Diagnostics& diagnostics);
/// kConfig unless the mesh has one place for each rank of the run.
void check_rank_count(const ParallelConfig& parallel, int ranks);

}  // namespace paddle::train
