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
    c.check(is_float(c.dtype(i)), name, " must be floating, not ", c.type(i));
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
  if (c.has(master)) {
    c.check(c.dtype(master) == DType::kF32, "master must be float32, not ", c.type(master));
    c.require_equal(element_count(std::span<const Dim>(c.shape(0))),
                    element_count(std::span<const Dim>(c.shape(master))),
                    str("param is ", c.type(0), ", master is ", c.type(master)));
  }
  const auto skip = static_cast<size_t>(c.op().operand_index("skip"));
  if (c.has(skip))
    c.check(c.rank(skip) == 0 && is_bool(c.dtype(skip)), "skip must be a 0-D bool, not ",
            c.type(skip));
  const auto scale = static_cast<size_t>(c.op().operand_index("scale"));
  if (c.has(scale))
    c.check(c.rank(scale) == 0 && is_float(c.dtype(scale)), "scale must be a 0-D float, not ",
            c.type(scale));
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
  c.check(c.dtype(static_cast<size_t>(indices)) == DType::kI64, "indices must be int64");
  c.result(c.dtype(0), c.shape(0));
  add_states(c);
}

void infer_merge_rows(InferContext& c) {
  c.check(c.rank(0) == 1 && c.rank(1) == 2 && c.dtype(0) == DType::kI64,
          "expected int64 indices [n] and rows [n, width]");
  c.require_equal(c.shape(0)[0], c.shape(1)[0], "indices and rows have different lengths");
  c.result(c.dtype(1), c.shape(1));
}

void infer_all_finite(InferContext& c) {
  for (size_t i = 0; i < c.list_size(0); ++i)
    c.check(is_float(c.list_type(0, i).dtype), "expected floating tensors, found ",
            c.list_type(0, i));
  c.result(DType::kBool, Shape());
}

void infer_sum_of_squares(InferContext& c) {
  c.check(is_float(c.dtype(0)), "expected a floating tensor, found ", c.type(0));
  if (c.has(1)) {
    c.check(c.rank(0) == 2 && c.rank(1) == 1 && c.dtype(1) == DType::kI64,
            "expected rows [n, width] and int64 indices [n], found ", c.type(0), " and ",
            c.type(1));
    c.require_equal(c.shape(0)[0], c.shape(1)[0], "rows and indices have different lengths");
  }
  c.result(DType::kF64, Shape());
}

}  // namespace paddle::rules
