#include "ops/core/run_time_attrs.h"

#include <algorithm>

#include "base/error.h"
#include "ops/core/operators.h"
#include "ops/generated/creation.h"
#include "ops/generated/indexing.h"
#include "ops/generated/math.h"
#include "ops/generated/reduce.h"
#include "ops/generated/shape.h"

namespace paddle {
namespace {

constexpr int64_t kMaxDims = 64;

/// The axis of a call, and the sizes of its operands split at it.
class SplitAxes {
 public:
  SplitAxes(const Op& op, const Tensor& axis, int64_t rank)
      : where_(str(op.name(), ": axis: ")),
        rank_(rank),
        numbers_(numbers_below(rank)),
        axis_(position_of(axis, rank, where_)) {}

  /// x as [outer, size, inner], or, for one axis, as [size].
  Tensor fold(const Tensor& x) const {
    const Tensor sizes = ops::shape(x);
    const Tensor size = ops::index_select(sizes, axis_, 0);
    if (rank_ == 1) return ops::reshape(x, dims_of(size, where_));
    const auto product_where = [&](const Tensor& condition) {
      return ops::reshape(ops::prod(ops::where(condition, sizes, Tensor::number(int64_t{1}))),
                          Shape{1});
    };
    return ops::reshape(x,
                        dims_of(ops::concat({product_where(ops::less_than(numbers_, axis_)), size,
                                             product_where(ops::greater_than(numbers_, axis_))},
                                            0),
                                where_));
  }

  /// A result of the call on `folded`, which is `x` folded, with the axes of x.
  Tensor unfold(const Tensor& result, const Tensor& folded, const Tensor& x) const {
    if (rank_ == 1) {
      if (result.ndim() > 1) reject();
      return result.ndim() == 1 && result.dim(0).same(folded.dim(0))
                 ? ops::reshape(result, x.shape())
                 : result;
    }
    if (result.ndim() < 2 || result.ndim() > 3 || !result.dim(0).same(folded.dim(0)) ||
        !result.dim(-1).same(folded.dim(2)))
      reject();
    if (result.ndim() == 2) return ops::reshape(result, shape_without(x, axis_, where_));
    if (result.dim(1).same(folded.dim(1))) return ops::reshape(result, x.shape());
    const Tensor changed = ops::where(ops::equal(numbers_, axis_),
                                      dim_value(result.dim(1), DType::kI64), ops::shape(x));
    return ops::reshape(result, dims_of(changed, where_));
  }

 private:
  [[noreturn]] void reject() const { fail(ErrorCode::kUsage, where_, kUnknownValue); }

  std::string where_;
  int64_t rank_;
  Tensor numbers_, axis_;
};

}  // namespace

bool takes_sizes(const AttrDef& def) {
  return def.type == AttrType::kDim || def.type == AttrType::kDims ||
         (def.type == AttrType::kAny && def.or_tensor);
}

Shape dims_of(const Tensor& values, std::string_view where) {
  const Dim count = element_count(std::span<const Dim>(values.shape()));
  if (!is_integer(values.dtype()) || values.ndim() > 1 || !count.is_constant() ||
      count.value() > kMaxDims)
    fail(ErrorCode::kUsage, where, "expected an integer or a list of integers, found ",
         values.type());
  Shape dims;
  if (values.is_concrete()) {
    const Array known = values.array().on_host();
    for (int64_t i = 0; i < known.size(); ++i) dims.emplace_back(known.integer(i));
    return dims;
  }
  const Tensor sized =
      ops::run_time_sizes(ops::reshape(ops::cast(values, DType::kI64), Shape{count}));
  for (int64_t i = 0; i < count.value(); ++i) dims.push_back(sized.dim(i));
  return dims;
}

bool are_numbers(const Tensors& tensors) {
  return !tensors.empty() && std::all_of(tensors.begin(), tensors.end(), [](const Tensor& t) {
    return t.defined() && t.ndim() == 0;
  });
}

Tensor stack_numbers(const Tensors& numbers) { return ops::stack(numbers, 0); }

Tensor numbers_below(int64_t count) {
  return ops::arange(AttrValue(int64_t{0}), AttrValue(count), AttrValue(int64_t{1}), DType::kI64);
}

Tensor position_of(const Tensor& axis, int64_t count, std::string_view where) {
  const auto one = element_count(std::span<const Dim>(axis.shape())).equals(Dim(1));
  if (!is_integer(axis.dtype()) || !one.value_or(false))
    fail(ErrorCode::kUsage, where, "expected one integer, found ", axis.type());
  // Negative indices count from the end, and others are errors.
  const Tensor given = ops::reshape(ops::cast(axis, DType::kI64), Shape{1});
  return ops::index_select(numbers_below(count), given, 0);
}

Shape shape_without(const Tensor& x, const Tensor& position, std::string_view where) {
  const Tensor kept = numbers_below(x.ndim() - 1);
  const Tensor others = kept + ops::cast(ops::greater_equal(kept, position), DType::kI64);
  return dims_of(ops::index_select(ops::shape(x), others, 0), where);
}

Tensors call(BoundCall bound) {
  const Op& op = *bound.op;
  Tensors operands = std::move(bound.operands);
  if (!bound.axis.defined()) return call(op, std::move(operands), std::move(bound.attrs));
  if (operands.empty() || !operands[0].defined() || operands[0].ndim() == 0)
    fail(ErrorCode::kUsage, op.name(), ": axis: expected an operand with axes");
  const Tensor x = operands[0];
  const int64_t rank = x.ndim();
  const SplitAxes axes(op, bound.axis, rank);
  const Tensor folded = axes.fold(x);
  operands[0] = folded;
  for (size_t i = 1; i < operands.size(); ++i)
    if (rank > 1 && operands[i].defined() && operands[i].ndim() == rank)
      operands[i] = same_shape(operands[i].shape(), x.shape())
                        ? ops::reshape(operands[i], folded.shape())
                        : axes.fold(operands[i]);
  const AttrValue at(int64_t{rank == 1 ? 0 : 1});
  const auto index = static_cast<size_t>(op.attr_index("axis"));
  const bool several = op.attrs()[index].type == AttrType::kInts;
  bound.attrs[index] = several ? AttrValue(AttrValue::List{at}) : at;
  Tensors results = call(op, std::move(operands), std::move(bound.attrs));
  for (Tensor& result : results)
    if (result.defined()) result = axes.unfold(result, folded, x);
  return results;
}

}  // namespace paddle
