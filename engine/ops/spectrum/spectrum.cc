// Rules of spectrum.yaml.

#include "ops/generated/linalg.h"
#include "ops/generated/spectrum_rules.h"

namespace paddle::rules {

// With gradients, which need the vectors, calls are recorded as this.
Tensors decompose_svdvals(CallContext& c) { return {ops::singular_values(c.operand(0))}; }

}  // namespace paddle::rules
