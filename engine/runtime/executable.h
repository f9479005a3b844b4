#pragma once
// An executable function: a small cache of plans, one per binding of the dims, over one arena.

#include <list>
#include <memory>

#include "runtime/plan.h"

namespace paddle::runtime {

struct ExecutableOptions {
  size_t max_plans = 8;  ///< least recently used plans are dropped beyond this
  PlanOptions plan;
};

class Executable {
 public:
  explicit Executable(std::shared_ptr<const ir::Function> function, ExecutableOptions options = {});

  /// Runs on one contiguous array per input. Parameters and states that the function updates are
  /// overwritten in place. Outputs are valid until the next run.
  const std::vector<Array>& run(const std::vector<Array>& inputs);
  /// The plan for inputs of these shapes, created if needed; throws as `Plan` does.
  Plan& prepare(const std::vector<Array>& inputs) { return *entry(inputs).plan; }
  /// The plan for inputs of these layouts, created if needed.
  Plan& plan(const std::vector<Layout>& inputs);
  const ir::Function& function() const { return *function_; }
  int64_t plans_made() const { return plans_made_; }
  size_t planned_bytes() const { return planned_bytes_; }

 private:
  struct Entry {
    std::vector<Dims> shapes;
    std::unique_ptr<Plan> plan;
    std::vector<Array> outputs;
  };
  Entry& entry(const std::vector<Array>& inputs);
  Entry& make_entry(std::vector<Dims> shapes, const std::vector<Layout>& layouts);

  std::shared_ptr<const ir::Function> function_;
  ExecutableOptions options_;
  std::list<Entry> plans_;  ///< most recently used first
  std::shared_ptr<Storage> arena_;
  std::vector<void*> pointers_;
  int64_t plans_made_ = 0;
  size_t planned_bytes_ = 0;
};

}  // namespace paddle::runtime
