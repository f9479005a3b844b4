#pragma once
// A scope in which nothing is recorded: operations give types alone, and parameters, names and
// states that are met are forgotten at its end. Not for use outside the room.

#include "model/dry_run.h"
#include "model/evaluation.h"

namespace paddle::model {

class DryScope {
 public:
  explicit DryScope(Evaluation& evaluation);
  ~DryScope();
  DryScope(const DryScope&) = delete;
  DryScope& operator=(const DryScope&) = delete;

 private:
  Evaluation& evaluation_;
  DryInterpreter interpreter_;
  InterpreterScope scope_;
  std::map<std::string, Evaluation::StateSlot> states_;
  size_t parameters_, claims_, used_;
};

}  // namespace paddle::model
