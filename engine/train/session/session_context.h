#pragma once
// The step, the fields of its data, the store of its parameters and the options of the run, which
// all classes of a session share.

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "compiler/pipeline.h"
#include "partition/partition.h"
#include "partition/schedule.h"
#include "program/parameter_store.h"
#include "ps/client.h"
#include "train/step/step.h"
#include "train/tables/table_opening.h"

namespace paddle::runtime {
struct Profile;
}

namespace paddle::train {

/// A field of the data as the step sees it.
struct FieldType {
  std::string name;
  TensorType type;  ///< the batch's dim first
};

struct SessionOptions {
  bool eager = false;
  bool use_float64 = false;  ///< float64 throughout
  compiler::CompileOptions compile;
  uint64_t seed = 0;
  int64_t accumulate = 1;
  size_t max_plans = 8;
  /// Steps run on one thread while other programs use the cores so much that this is faster; sums
  /// may be rounded otherwise.
  bool adapt_threads = false;
  bool check_memory = false;
  std::shared_ptr<runtime::Profile> profile;  ///< times the compiled step's instructions when set
  /// Shapes of the fields of a first batch, for a model that asks for the values of dims.
  std::vector<Dims> shapes;
  /// Called with (function, pass) before the first ("trace") and after each pass.
  compiler::Observer observe;
  /// With more than one rank, functions are traced for constant dims and partitioned: each rank
  /// runs its part, and the session's interface stays that of the whole batch and whole parameters.
  partition::Mesh mesh;
  std::vector<partition::PlaceRule> place;
  std::vector<partition::OperationRule> rules;
  /// Of the axis `pipeline` of the mesh; the number of micro-batches is `accumulate`.
  partition::Schedule schedule = partition::Schedule::kOneForwardOneBackward;
  int chunks = 1;  ///< stages of a rank
  /// Values of the forward pass that are computed again; with `recompute_budget`, as few of them as
  /// let a training step stay below that number of bytes.
  std::optional<passes::RecomputeOptions> recompute;
  uint64_t recompute_budget = 0;
  bool sequence = false;  ///< the axis `tensor` splits the sequence where it splits nothing else
  int sharding = 0;       ///< stage: 1 optimizer states, 2 sums of gradients too, 3 parameters too
  int64_t bucket_bytes = 4 << 20;  ///< of gradients that ranks sum together
  bool sums_each = false;          ///< gradients in each micro-batch, not only in the update
  /// Whether full buckets are summed in a thread of their own; nothing: where that leaves time.
  std::optional<bool> overlap;
  comm::CollectiveForm collective_form = comm::CollectiveForm::kTree;
  /// Of tables; without a rule they are trained by that of the step.
  TableOpening tables;
  /// To the servers that have the rows of tables, where the ranks do not.
  std::function<std::unique_ptr<ps::Client>()> connect_servers;
  std::shared_ptr<comm::Communicator> communicator;  ///< null: one rank
  /// For collective operations; null: one rank.
  comm::Collectives* collectives() const {
    return communicator ? &communicator->collectives() : nullptr;
  }
};

/// Scalars that are the same for all micro-batches of a step.
struct StepScalars {
  int64_t step = 1;                        ///< counts from 1
  std::span<const double> learning_rates;  ///< of each optimizer; empty in an evaluation
};

struct SessionContext {
  std::shared_ptr<const Step> step;
  std::vector<FieldType> fields;
  program::ParameterStore& store;
  SessionOptions options;

  int rank() const { return options.communicator ? options.communicator->rank() : 0; }
  bool is_root() const { return rank() == 0; }
  bool has_ranks() const { return options.mesh.size() > 1; }
  DType rate_type() const { return options.use_float64 ? DType::kF64 : DType::kF32; }
  /// Which parameters and states a step does not change.
  std::function<bool(const std::string&)> frozen() const;
  /// Makes `to` this array in the dtype of a field, contiguous.
  void put_field(Array& to, const Array& array, size_t field) const;
  /// Chooses the random numbers of a micro-batch: each one draws its own.
  uint64_t random_counter(const StepScalars& numbers, size_t micro_batch) const;
  /// Bytes of the optimizer states of parameters, of which ranks of `data` may have parts.
  uint64_t optimizer_bytes(const std::function<bool(const std::string&)>& is_here) const;

  /// kConfig: the patterns of recomputation match no layer.
  [[noreturn]] void reject_recompute() const;

  bool is_pipelined() const { return pipeline_ranks() > 1; }
  int pipeline_ranks() const { return options.mesh.axis_size_of("pipeline"); }
  int stages() const { return pipeline_ranks() * options.chunks; }
  int pipeline_position() const;       ///< of this rank on the axis `pipeline`
  int pipeline_rank(int stage) const;  ///< the rank of this rank's pipeline with a stage
};

/// Bytes of a contiguous array in memory of the host.
inline std::span<const std::byte> bytes_of(const Array& array) {
  return {static_cast<const std::byte*>(array.raw()),
          static_cast<size_t>(storage_bytes(array.dtype, array.size()))};
}
inline std::span<std::byte> writable_bytes_of(Array& array) {
  return {static_cast<std::byte*>(array.raw()),
          static_cast<size_t>(storage_bytes(array.dtype, array.size()))};
}

}  // namespace paddle::train
