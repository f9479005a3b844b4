#pragma once
// Tensors whose values are known only at run time as attributes: sizes become dims, and an
// operation along such an axis runs on operands that are reshaped to three axes.

#include <string_view>

#include "ops/core/call.h"

namespace paddle {

/// The error for a tensor as an attribute that must be known.
inline constexpr const char* kUnknownValue =
    "a tensor is given whose value is not known while tracing";

/// Whether an attribute takes sizes, so that it may be a tensor whose value is not known.
bool takes_sizes(const AttrDef& def);

/// The elements of an integer tensor of at most one axis as dims: numbers where its value is known,
/// else dims that are bound when the tensor has been computed, which fails with kData for negative
/// values. Throws kUsage, with `where` in front, for other tensors.
Shape dims_of(const Tensor& values, std::string_view where);

/// Whether all are 0-D.
bool are_numbers(const Tensors& tensors);
/// Such tensors as one of one axis.
Tensor stack_numbers(const Tensors& numbers);

/// 0, 1, ... below `count`, as int64[count].
Tensor numbers_below(int64_t count);

/// A position among `count`, counted from the front, as int64[1] of an integer tensor of one
/// element, which may count from the end. Throws kUsage, with `where` in front, for other tensors;
/// kData at run time for positions that are out of range.
Tensor position_of(const Tensor& axis, int64_t count, std::string_view where);

/// The shape of x without the axis at a position of `position_of`.
Shape shape_without(const Tensor& x, const Tensor& position, std::string_view where);

/// A call whose attribute `axis` may be known only at run time.
struct BoundCall : Bound {
  Tensor axis;  ///< one integer; undefined if the attribute has the value
};

/// As `bind_arguments`, for calls that are traced: tensors whose values are not known may be given
/// for `axis`, too.
BoundCall bind_call(const Op& op, std::vector<Argument> positional,
                    std::vector<std::pair<std::string, Argument>> named);

/// Calls the operation; all results, hidden ones included. An operation along an axis of run time
/// is called on operands that are reshaped to [outer, size, inner], along axis 1, and must treat
/// the other axes as a batch. Throws kUsage if its results show that it does not; kData at run time
/// if the axis is out of range.
Tensors call(BoundCall bound);

}  // namespace paddle
