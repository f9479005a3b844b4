#pragma once
// The analysis of a profile: what each operation of a step cost, where it comes from in the model,
// the memory over the step, and how long the loop waited for data. Every report (tables, files,
// page, comparison) is a view of it.

#include <string>
#include <vector>

#include "profile/peaks.h"
#include "runtime/profile.h"

namespace paddle::profile {

/// A measured step: nanoseconds of the steady clock before the batch was asked for, with the batch,
/// and after the step.
struct Step {
  int64_t begin = 0, loaded = 0, end = 0;
  int64_t samples = 0;
};

/// Seconds of a nanosecond.
inline constexpr double kNano = 1e-9;

/// A named interval of a thread, such as a step.
struct TimelineSpan {
  std::string name;
  int thread = 0;
  int64_t begin = 0, end = 0;  ///< nanoseconds of the steady clock
};

/// Exchanges of one kind that a rank made with others in the measured steps.
struct Communication {
  int rank = 0;
  std::string operation;         ///< "all_reduce", …
  int64_t calls = 0, bytes = 0;  ///< bytes that the rank sent
  double seconds = 0;            ///< with waiting for the other ranks
};

/// The measured steps of a rank by what it did, in seconds.
struct RankShare {
  int rank = 0;
  double wall = 0;       ///< of the steps, with waiting for data
  double data = 0;       ///< waiting for data
  double computing = 0;  ///< operations without exchanges
  double waiting = 0;    ///< in exchanges, until the last of their ranks has come
  double exchanging = 0;
  double hidden = 0;  ///< exchanges overlapped with computation, not part of `wall`

  double other() const { return wall - data - computing - waiting - exchanging; }
};

/// The measured steps and their conditions; the input of `analyze`.
struct Measurement {
  std::string subject;  ///< name of the run or model
  bool training = false;
  int64_t warm_up = 0;  ///< steps before the measured ones
  int threads = 1;
  int loader_workers = 0;
  std::string dtype;  ///< "": the one that most of the arithmetic is in
  std::vector<Step> steps;
  std::vector<TimelineSpan> spans;
  std::vector<Communication> communication;  ///< of all ranks; the rest is of rank 0
  int ranks = 1;
  std::vector<RankShare> shares;  ///< of all ranks, if there are several
  Peaks peaks;
  uint64_t resident = 0;       ///< bytes of this process in memory, at most
  double bfloat16_gflops = 0;  ///< of a large bfloat16 matrix product; 0: not measured
};

/// One instruction of a plan, summed over the measured steps.
struct OperationCost {
  std::string function, operation, implementation, shapes;
  std::string phase;  ///< "forward", "backward" or "update"
  std::string layer, place;
  int64_t calls = 0;
  double seconds = 0;
  double flops = 0, bytes = 0;  ///< of all calls
  int plan = -1, position = 0;
  std::string device = "cpu";
};

struct LiveBuffer {
  std::string label, layer, phase;
  uint64_t bytes = 0;
};

/// Bytes of the plan's arena in use while an instruction runs.
struct MemoryPoint {
  int position = 0;
  double seconds = 0;  ///< from the start of the step
  uint64_t bytes = 0;
  std::string operation, layer, phase;
};

/// Memory of a kind, such as "parameters" or "values kept for the backward pass".
struct MemoryKind {
  std::string kind;
  uint64_t at_the_peak = 0, most = 0;  ///< bytes
};

/// A device over the measured steps. Operations that another device has no kernel for run on the
/// host, and are counted there.
struct DeviceUse {
  std::string device;
  int64_t calls = 0;
  double seconds = 0;  ///< of operations, with their copies
  double copying = 0;  ///< of copies between it and the host
  double flops = 0;
  uint64_t memory = 0;  ///< of the most costly plan: its arena, inputs and constants
};

struct Memory {
  std::string function, device;
  uint64_t arena = 0, scratch = 0, inputs = 0, constants = 0;
  std::vector<MemoryPoint> timeline;
  size_t peak = 0;                      ///< index in `timeline`
  std::vector<LiveBuffer> at_the_peak;  ///< by falling size
  std::vector<MemoryKind> kinds;        ///< by falling size at the peak
};

struct Suggestion {
  double gain = 0;  ///< predicted share of the step's time that it saves
  std::string title, reason;
};

struct Analysis {
  Measurement measured;
  double wall = 0;      ///< seconds of the measured steps, without waiting for data
  double waiting = 0;   ///< seconds that they waited for data
  double overhead = 0;  ///< share of `wall` that reading the clock took
  int64_t samples = 0;
  int64_t batches = 0;                    ///< that the loader made meanwhile
  double batch_seconds = 0;               ///< to make one of them on one thread
  bool complete = true;                   ///< false if events were dropped
  std::vector<OperationCost> operations;  ///< by falling time
  Memory memory;
  std::vector<DeviceUse> devices;       ///< by falling time
  std::vector<Suggestion> suggestions;  ///< by falling gain

  double operation_seconds() const;
  /// Median time of a step in seconds, without waiting for data.
  double median_step() const;
  double steps() const { return static_cast<double>(measured.steps.size()); }
};

Analysis analyze(Measurement measured, const runtime::Profile& profile);

/// Changes that could make the step faster, with predictions from the measured peaks; `analyze`
/// calls it.
std::vector<Suggestion> suggest(const Analysis& analysis);

/// Sums over operations that share a key.
struct Cost {
  int64_t calls = 0;
  double seconds = 0, flops = 0, bytes = 0;
  void add(const OperationCost& operation);
};
/// The nearer of the two peaks, as a share. Operands in cache can exceed the peak of memory.
double share_of_peak(const Cost& cost, const Peaks& peaks);
/// The time that the peaks allow for this work, in seconds.
double roofline_seconds(double flops, double bytes, const Peaks& peaks);

}  // namespace paddle::profile
