#pragma once
// A scope in which nothing is recorded: operations give types alone, and parameters, names and
// states that are met are forgotten at its end. Not for use outside the room.

#include "lang/eval/evaluation.h"
#include "lang/eval/shape_interpreter.h"

namespace paddle::lang {

class ShapeScope {
 public:
  explicit ShapeScope(Evaluation& evaluation);
  ~ShapeScope();
  ShapeScope(const ShapeScope&) = delete;
  ShapeScope& operator=(const ShapeScope&) = delete;

 private:
  Evaluation& evaluation_;
  ShapeInterpreter interpreter_;
  InterpreterScope scope_;
  std::map<std::string, Evaluation::StateSlot> states_;
  size_t parameters_, claims_, used_;
};

}  // namespace paddle::lang
