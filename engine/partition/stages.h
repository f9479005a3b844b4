#pragma once
// The cut of a step into the stages of a pipeline. The forward pass is cut where parameters are
// first used; the backward pass follows from it, since a gradient can be computed where the values
// that it reads are. What depends only on parameters or on the batch, such as masks and casts of
// weights, is computed in each stage that reads it.

#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ir/module.h"
#include "partition/schedule.h"

namespace paddle::partition {

/// The stage in which each parameter, and each state that the forward pass reads, is first used.
using LeafStages = std::map<std::string, int>;

/// Cuts the forward pass of a training function, whose first result is the loss, into stages of
/// about the same cost, with few bytes between them. Dims must be constants. kConfig if it has
/// fewer places to cut.
LeafStages assign_leaves(const ir::Function& function, int stages);

/// The operations that a value depends on.
std::unordered_set<const ir::Operation*> ancestors(const ir::Value* value);

/// A value that one stage sends to another.
struct Transfer {
  int value = 0;  ///< of StageCut::values
  int from = 0, to = 0;
  JobKind after = JobKind::kForward;   ///< of the sender
  JobKind before = JobKind::kForward;  ///< of the receiver
};

/// How the jobs of a rank exchange values with other ranks: by comm.send and comm.recv, whose tags
/// are those of transfers. A tag is used once for each micro-batch, in the order of micro-batches.
struct StageMessages {
  std::vector<int64_t> ranks = {};  ///< by stage
  int64_t here = 0;                 ///< this rank
  int64_t first_tag = 0;            ///< the i-th transfer has the tag `first_tag + i`
  std::set<int> kept = {};          ///< values that are passed from job to job of this rank
};

/// The function of one kind of job in one stage. Ports of the whole function keep their names;
/// values from and for other jobs are ports "value.N".
struct StageFunction {
  /// An input or output of the whole function, or a value between jobs.
  struct Source {
    int port = -1;
    int value = -1;
  };
  std::unique_ptr<ir::Function> function;  ///< null if there is nothing to do
  std::vector<Source> inputs, outputs;
};

class StageCut {
 public:
  /// `training`: the first result is the loss, and what it does not depend on belongs to the
  /// backward pass, except for new values of states that the forward pass reads. Otherwise all of
  /// the function is forward. The function must outlive the cut.
  /// `dropped`: values of the forward pass that later jobs of the same stage compute again.
  StageCut(const ir::Function& function, const LeafStages& leaves, int stages, bool training,
           bool split_backward, std::unordered_set<const ir::Value*> dropped = {});

  /// Values between jobs, in the order of the program.
  const std::vector<const ir::Value*>& values() const { return values_; }
  const std::vector<Transfer>& transfers() const { return transfers_; }
  /// With `messages`, values from and for other ranks are messages instead of ports.
  StageFunction function(JobKind kind, int stage, const StageMessages* messages = nullptr) const;
  /// The values that jobs of the rank `messages.here` read and get from other jobs of this rank,
  /// which keep those that they receive.
  std::set<int> kept_values(const StageMessages& messages) const;
  /// The stage that computes a value; -1 where each stage that reads it does.
  int stage_of(const ir::Value* value) const {
    const Place* const place = place_of(value);
    return place ? place->stage : -1;
  }
  /// The stage that computes an output of the function.
  int stage_of_output(size_t output) const;
  /// The stages that read a parameter or state.
  const std::map<std::string, std::set<int>>& readers() const { return readers_; }

 private:
  struct Place {
    int stage = 0;
    JobKind kind = JobKind::kForward;
    bool operator==(const Place&) const = default;
  };
  /// Dependencies of a value that each stage can compute by itself.
  struct Free {
    bool batch = false;
    int leaf_stage = -1;  ///< the last one of the leaves that it depends on
    std::set<std::string> leaves = {};
  };
  void place_operations(const LeafStages& leaves, bool training);
  void split_weights();
  void find_values();
  /// Whether a job recomputes a value instead of keeping it.
  bool is_recomputed(const ir::Value* value, const Place& reader) const;
  /// Keeps the inputs of a value that a job recomputes.
  void keep_recompute_inputs(const ir::Value* value, const Place& reader,
                             std::unordered_set<const ir::Value*>& seen);
  const Place* place_of(const ir::Value* value) const;
  Place output_place(size_t output) const;
  /// The number of the transfer that brings a value to a job from another rank; -1: none does.
  int received(int value, const Place& reader, const StageMessages* messages) const;
  int value_number(const ir::Value* value);

  const ir::Function& function_;
  int stages_;
  std::unordered_map<const ir::Operation*, Place> places_;  ///< of those that are not free
  std::unordered_set<const ir::Value*> dropped_;
  std::unordered_set<const ir::Operation*> state_copies_;
  std::vector<const ir::Value*> values_;
  std::unordered_map<const ir::Value*, int> numbers_;
  std::vector<Transfer> transfers_;
  std::map<std::string, std::set<int>> readers_;
};

}  // namespace paddle::partition
