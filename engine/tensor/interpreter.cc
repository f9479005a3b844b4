#include "tensor/interpreter.h"

namespace paddle {
namespace {
thread_local Interpreter* current = nullptr;
}

Interpreter& current_interpreter() {
  ensure(current != nullptr, "no interpreter is installed on this thread");
  return *current;
}

bool has_interpreter() { return current != nullptr; }

InterpreterScope::InterpreterScope(Interpreter& interpreter) : previous_(current) {
  interpreter.next_ = current;
  current = &interpreter;
}

InterpreterScope::~InterpreterScope() { current = previous_; }

BelowScope::BelowScope(Interpreter& below) : previous_(current) { current = &below; }

BelowScope::~BelowScope() { current = previous_; }

}  // namespace paddle
