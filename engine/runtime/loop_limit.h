#pragma once
// A limit of loop iterations, for runs on random inputs, which may make a `while` endless.

#include <cstdint>

namespace paddle::runtime {

/// The maximum number of iterations of a loop without a limit of its own in this process; 0: none.
int64_t max_loop_iterations();

/// Sets it for a scope.
class LoopLimit {
 public:
  explicit LoopLimit(int64_t iterations);
  ~LoopLimit();
  LoopLimit(const LoopLimit&) = delete;
  LoopLimit& operator=(const LoopLimit&) = delete;

 private:
  int64_t before_;
};

}  // namespace paddle::runtime
