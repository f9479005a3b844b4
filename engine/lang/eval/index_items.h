#pragma once
// The index of a tensor, `x[1, ..., a:b, mask]`, as a list of entries, one for each place. Not for
// use outside the room.

#include "lang/eval/evaluation.h"

namespace paddle::lang {

/// One entry of a tensor's index.
struct IndexItem {
  enum class Kind { kNumber, kSlice, kNew, kTensor } kind;
  Dim at;                   ///< kNumber
  Value start, stop, step;  ///< kSlice
  Tensor tensor;            ///< kTensor
};

Dim to_dim(const Value& value);
/// A list of (lists of) numbers as a tensor of int64, or bool if all are.
Tensor index_tensor(const Value& value);
/// How many axes of the tensor an entry stands for.
int64_t consumed_axes(const IndexItem& item);
/// The entries of an index over a tensor, `...` and what is left out filled up with whole slices.
std::vector<IndexItem> index_items(Evaluation& ev, const Tensor& base, const Expr& expr,
                                   Frame& frame);

}  // namespace paddle::lang
