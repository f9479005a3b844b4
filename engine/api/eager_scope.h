#pragma once
// Where the calls of a program that computes eagerly run: the executor and the tape of the thread.

#include "ops/core/call.h"
#include "tensor/interpreter.h"

namespace paddle {

/// While one lives, calls on this thread compute at once, with a tape above the executor; random
/// ones draw the numbers of (seed, step).
class EagerScope {
 public:
  EagerScope(uint64_t seed, uint64_t step);

 private:
  InterpreterScope executor_, tape_;
  RandomScope random_;
};

}  // namespace paddle
