#pragma once
// A scope in which nothing is recorded: operations give types only, and parameters, names and
// states that are met are forgotten at its end. Not for use outside the room.

#include "lang/eval/evaluation.h"
#include "lang/eval/shape_interpreter.h"

namespace paddle::lang {

class ShapeScope {
 public:
  explicit ShapeScope(Evaluation& evaluation)
      : scope_(interpreter_), rollback_(evaluation.variables()), abstract_(evaluation.abstract()) {}
  ShapeScope(const ShapeScope&) = delete;
  ShapeScope& operator=(const ShapeScope&) = delete;

 private:
  ShapeInterpreter interpreter_;
  InterpreterScope scope_;
  Variables::Rollback rollback_;
  TraceContext::Depth abstract_;
};

}  // namespace paddle::lang
