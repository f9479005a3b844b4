#pragma once
// Pipelines as lists of jobs: for each rank of the axis `pipeline`, the forward and backward passes
// of its stages on micro-batches, in the order in which it runs them. Lists are checked before a
// run starts, and can be replayed with given times.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace paddle::partition {

enum class JobKind : uint8_t {
  kForward,
  kBackward,  ///< all of it, or, where weights have jobs of their own, what other stages wait for
  kWeights,   ///< the gradients that no other stage waits for
};

struct Job {
  JobKind kind = JobKind::kForward;
  int stage = 0, micro_batch = 0;
  bool operator==(const Job&) const = default;
  std::string text() const;  ///< "forward of micro-batch 2 in stage 1"
};

enum class Schedule : uint8_t {
  kForwardThenBackward,
  kOneForwardOneBackward,
  kInterleaved,  ///< several stages a rank: stage s is on rank s % ranks
  kZeroBubble,   ///< with jobs for weights, which fill waits
};
/// The names in a config: "f_then_b", "1f1b", "interleaved", "zero_bubble".
std::vector<std::string> schedule_names();
Schedule parse_schedule(const std::string& name);
std::string name_of(Schedule schedule);

struct PipelineShape {
  Schedule schedule = Schedule::kOneForwardOneBackward;
  int ranks = 1;
  int chunks = 1;  ///< stages a rank; 1 unless interleaved
  int micro_batches = 1;
  int stages() const { return ranks * chunks; }
  int rank_of(int stage) const { return stage % ranks; }
};

using JobLists = std::vector<std::vector<Job>>;  ///< by rank

/// The jobs of each rank.
JobLists make_job_lists(const PipelineShape& shape);
/// A fault of the lists in one line: a job that is missing, duplicated or before what it
/// needs, ranks that wait for each other, or a stage that takes micro-batches out of order.
std::optional<std::string> find_fault(const JobLists& lists, const PipelineShape& shape);

/// Times of jobs, in any unit.
struct JobTimes {
  double forward = 1;
  double backward = 2;  ///< of both parts, where they are one job
  double weights = 1;   ///< of the second part, where it has jobs of its own
  double transfer = 0;  ///< of a message between ranks
};
struct Replay {
  double end = 0;                ///< when the last job has ended
  std::vector<double> busy;      ///< time in which a rank computes
  std::vector<int> most_active;  ///< the most micro-batches whose activations a rank has at a time
  /// Idle time over computing time, of the mean rank.
  double bubble() const;
};
/// Runs the lists, which have no fault, on a clock.
Replay replay(const JobLists& lists, const PipelineShape& shape, const JobTimes& times);

}  // namespace paddle::partition
