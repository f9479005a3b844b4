#pragma once
// An executable function: a small cache of plans, one per binding of the dims, over one arena.

#include <memory>

#include "base/recent_list.h"
#include "runtime/output_copies.h"
#include "runtime/plan.h"
#include "runtime/thread_choice.h"

namespace paddle::runtime {

struct ExecutableOptions {
  size_t max_plans = 8;  ///< least recently used plans are dropped beyond this
  PlanOptions plan;
  /// Runs on one thread while other programs use the cores so much that this is faster. Results are
  /// the same but for sums that a library divides by threads in a kernel without kSumsByThread.
  bool adapt_threads = false;
};

class Executable {
 public:
  explicit Executable(std::shared_ptr<const ir::Function> function, ExecutableOptions options = {});

  /// Another executable of the same function, with plans and memory of its own.
  std::unique_ptr<Executable> clone() const {
    return std::make_unique<Executable>(function_, options_);
  }
  /// Runs on one contiguous array per input: parameters and states on the plan's device, values
  /// anywhere; those on the plan's device are read in place. Parameters and states that the
  /// function updates are overwritten in place. Outputs are on the host and valid until the next
  /// run.
  const std::vector<Array>& run(const std::vector<Array>& inputs);
  /// The same with outputs on the plan's device, each in memory of its own that later runs leave
  /// alone while the caller holds it. On devices with streams the run is only queued, as by
  /// `start`.
  std::vector<Array> run_on_device(const std::vector<Array>& inputs);
  /// The same, but for waiting: on a device with streams the run and copies of its outputs are only
  /// queued. Parameters, states and other inputs may be used for the next call at once. Errors of
  /// kernels are reported by the next `synchronize` of the device.
  std::shared_ptr<OutputCopies> start(const std::vector<Array>& inputs);
  /// The plan for inputs of these shapes, created if needed; throws as `Plan` does.
  Plan& prepare(const std::vector<Array>& inputs) { return *entry(inputs).plan; }
  /// The plan for inputs of these layouts, created if needed.
  Plan& plan(const std::vector<Layout>& inputs);
  /// Keeps an arena of `bytes`, all of it in memory, if they fit. Runs that need a larger one get
  /// it, and after some runs that do not, it is reduced again. Invalidates outputs.
  void reserve_arena(size_t bytes);
  size_t arena_bytes() const { return arena_ ? arena_->bytes() : 0; }
  const ir::Function& function() const { return *function_; }
  int64_t plans_made() const { return plans_made_; }
  size_t planned_bytes() const { return planned_bytes_; }

 private:
  struct Entry {
    std::vector<Dims> shapes;
    std::unique_ptr<Plan> plan;
    std::unique_ptr<Plan> single;  ///< for one thread; made when it is first needed
    ThreadChoice threads;
    const Plan* ran = nullptr;  ///< the one that `outputs` are of
    std::vector<Array> outputs;
  };
  bool adapts_threads() const;
  Plan& chosen_plan(Entry& entry, const std::vector<Array>& inputs);
  void allocate_arena(size_t bytes);
  void move_to_arena(Plan& plan);
  void* address_of(size_t input, const Array& array);
  /// Memory on the device for a copy of an output; that of an earlier run if no caller holds it.
  Array kept_like(const Array& output);
  /// Runs or, on devices with streams, queues the plan that fits.
  Entry& launch(const std::vector<Array>& inputs);
  Entry& entry(const std::vector<Array>& inputs);
  Entry& make_entry(std::vector<Dims> shapes, const std::vector<Layout>& layouts);

  std::shared_ptr<const ir::Function> function_;
  ExecutableOptions options_;
  RecentList<Entry> plans_;
  std::shared_ptr<Storage> arena_;
  size_t reserved_ = 0;          ///< of the arena; 0: it only grows
  int64_t runs_in_reserve_ = 0;  ///< since a run needed more
  std::vector<void*> pointers_;
  std::vector<uint8_t> on_device_;     ///< by input: a value on the plan's device
  std::vector<Array> from_elsewhere_;  ///< values that were on another device, on the host
  std::vector<Array> kept_;            ///< outputs of `run_on_device`
  std::vector<std::shared_ptr<OutputCopies>> copies_;  ///< those without other owners are reused
  int64_t plans_made_ = 0;
  size_t planned_bytes_ = 0;
};

}  // namespace paddle::runtime
