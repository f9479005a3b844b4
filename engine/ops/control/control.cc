// Rules of control.yaml. Result types come from the regions, so the interpreters never ask.

#include "ops/generated/control_rules.h"

namespace paddle::rules {

void infer_control_flow(InferContext& c) {
  c.reject("control flow is made by an interpreter, not called as an operation");
}

}  // namespace paddle::rules
