#pragma once
// A limit of the turns of loops, for runs on inputs that nobody chose: random ones may make a
// `while` endless.

#include <cstdint>

namespace paddle::runtime {

/// The most turns of a loop without a limit of its own in this process; 0: any number.
int64_t most_loop_turns();

/// Sets it for a scope.
class LoopLimit {
 public:
  explicit LoopLimit(int64_t turns);
  ~LoopLimit();
  LoopLimit(const LoopLimit&) = delete;
  LoopLimit& operator=(const LoopLimit&) = delete;

 private:
  int64_t before_;
};

}  // namespace paddle::runtime
