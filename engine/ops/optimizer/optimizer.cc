// Rules of optimizer.yaml: every result has the type of the operand it replaces.

#include "ops/generated/optimizer_rules.h"

namespace paddle::rules {
namespace {

/// States and the master weight follow the gradient, and each one present has a result. Scalars of
/// the update come after them.
void add_states(InferContext& c) {
  const auto master = static_cast<size_t>(c.op().operand_index("master"));
  const Dim size = element_count(std::span<const Dim>(c.shape(0)));
  for (size_t i = 2; i < master; ++i) {
    const std::string_view name = c.op().operands()[i].name;
    c.require_equal(element_count(std::span<const Dim>(c.shape(i))), size,
                    str("param is ", c.type(0), ", ", name, " is ", c.type(i)));
  }
  for (size_t i = 2; i <= master; ++i)
    if (c.has(i)) c.result(c.dtype(i), c.shape(i));
  for (const char* name : {"lr", "step"}) {
    const int at = c.op().operand_index(name);
    if (at < 0) continue;
    const auto i = static_cast<size_t>(at);
    c.require_equal(element_count(std::span<const Dim>(c.shape(i))), 1,
                    str(name, " must be one number, not ", c.type(i)));
  }
  if (c.has(master))
    c.require_equal(element_count(std::span<const Dim>(c.shape(0))),
                    element_count(std::span<const Dim>(c.shape(master))),
                    str("param is ", c.type(0), ", master is ", c.type(master)));
  for (const char* name : {"skip", "scale"}) {
    const auto i = static_cast<size_t>(c.op().operand_index(name));
    if (c.has(i)) c.check(c.rank(i) == 0, name, " must be 0-D, not ", c.type(i));
  }
}

}  // namespace

void infer_optimizer_update(InferContext& c) {
  c.require_equal(element_count(std::span<const Dim>(c.shape(0))),
                  element_count(std::span<const Dim>(c.shape(1))),
                  str("param is ", c.type(0), ", grad is ", c.type(1)));
  c.result(c.dtype(0), c.shape(0));
  add_states(c);
}

void infer_optimizer_update_rows(InferContext& c) {
  const int indices = c.op().operand_index("indices");
  c.check(c.rank(0) == 2 && c.rank(1) == 2, "param and rows must be matrices, not ", c.type(0),
          " and ", c.type(1));
  c.check(c.rank(static_cast<size_t>(indices)) == 1, "indices must have one dimension, not ",
          c.type(static_cast<size_t>(indices)));
  c.require_equal(c.shape(0)[1], c.shape(1)[1], "param and rows have different widths");
  c.require_equal(c.shape(1)[0], c.shape(static_cast<size_t>(indices))[0],
                  "rows and indices have different lengths");
  c.result(c.dtype(0), c.shape(0));
  add_states(c);
}

void infer_merge_rows(InferContext& c) {
  c.check(c.rank(0) == 1 && c.rank(1) == 2, "expected indices [n] and rows [n, width], found ",
          c.type(0), " and ", c.type(1));
  c.require_equal(c.shape(0)[0], c.shape(1)[0], "indices and rows have different lengths");
  c.result(c.dtype(1), c.shape(1));
}

void infer_all_finite(InferContext& c) { c.result(DType::kBool, Shape()); }

void infer_sum_of_squares(InferContext& c) {
  if (c.has(1)) {
    c.check(c.rank(0) == 2 && c.rank(1) == 1, "expected rows [n, width] and indices [n], found ",
            c.type(0), " and ", c.type(1));
    c.require_equal(c.shape(0)[0], c.shape(1)[0], "rows and indices have different lengths");
  }
  c.result(DType::kF64, Shape());
}

}  // namespace paddle::rules
