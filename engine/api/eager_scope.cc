#include "api/eager_scope.h"

#include "autograd/autograd.h"
#include "runtime/execute.h"

namespace paddle {
namespace {

Interpreter& thread_executor() {
  thread_local runtime::EagerExecutor executor;
  return executor;
}

Interpreter& thread_tape() {
  thread_local autograd::Tape tape;
  return tape;
}

}  // namespace

EagerScope::EagerScope(uint64_t seed, uint64_t step)
    : executor_(thread_executor()), tape_(thread_tape()), random_(seed, step) {}

}  // namespace paddle
