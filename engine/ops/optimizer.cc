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

void infer_optimizer_update_rows(InferContext& c) {
  const int indices = c.op().operand_index("indices");
  c.check(c.rank(0) == 2 && c.rank(1) == 2, "param and rows must be matrices, not ", c.type(0),
          " and ", c.type(1));
  c.require_equal(c.shape(0)[1], c.shape(1)[1], "param and rows have different widths");
  c.require_equal(c.shape(1)[0], c.shape(static_cast<size_t>(indices))[0],
                  "rows and indices have different lengths");
  c.check(c.dtype(static_cast<size_t>(indices)) == DType::kI64, "indices must be int64");
  c.result(c.dtype(0), c.shape(0));
  const size_t states = c.op().results().size() - 1;
  for (size_t i = 0; i < states; ++i) c.result(c.dtype(2 + i), c.shape(2 + i));
}

void infer_merge_rows(InferContext& c) {
  c.check(c.rank(0) == 1 && c.rank(1) == 2 && c.dtype(0) == DType::kI64,
          "expected int64 indices [n] and rows [n, width]");
  c.require_equal(c.shape(0)[0], c.shape(1)[0], "indices and rows have different lengths");
  c.result(c.dtype(1), c.shape(1));
}

}  // namespace paddle::rules
