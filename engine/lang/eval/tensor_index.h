#pragma once
// Indexing of tensors by NumPy's rules. Not for use outside the room.

#include "lang/eval/evaluation.h"

namespace paddle::lang {

/// `base[…]` where `expr` is the index expression: a view for numbers, slices, `...` and none, a
/// copy where a tensor or list selects.
Value read_index(Evaluation& evaluation, const Tensor& base, const Expr& expr, Frame& frame);
/// `base[…] = value`, seen through every view of the same memory.
void write_index(Evaluation& evaluation, const Tensor& base, const Expr& target, const Value& value,
                 Frame& frame);

}  // namespace paddle::lang
