// Rules of schema/optimizer.yaml: every result has the type of the operand it replaces.

#include "ops/generated/rules.h"

namespace paddle::rules {

void infer_optimizer_update(InferContext& c) {
  c.require_equal(element_count(std::span<const Dim>(c.shape(0))),
                  element_count(std::span<const Dim>(c.shape(1))),
                  str("param is ", c.type(0), ", grad is ", c.type(1)));
  c.result(c.dtype(0), c.shape(0));
  // The states follow the gradient and give as many results.
  const size_t states = c.op().results().size() - 1;
  for (size_t i = 0; i < states; ++i) c.result(c.dtype(2 + i), c.shape(2 + i));
}

}  // namespace paddle::rules
