#include "onnx/graph/constant_folding.h"

#include <algorithm>
#include <cstdint>
#include <set>

#include "base/limits.h"
#include "ops/core/call.h"

namespace paddle::onnx {
namespace {

constexpr int64_t kMaxFoldedBytes = int64_t{1} << 28;       // per result
constexpr int64_t kMaxTotalFoldedBytes = int64_t{1} << 32;  // in total
constexpr int64_t kAlwaysFoldedBytes = int64_t{1} << 20;    // views and small results do not count

/// Storage-only dtypes can be cast and reshaped, but have no arithmetic.
void check_types(const OpCall& call) {
  static const std::set<std::string_view> kAnyType = {"cast",    "view_dtype", "reshape",
                                                      "squeeze", "unsqueeze",  "flatten"};
  if (kAnyType.count(call.op.name())) return;
  const auto check = [&](DType dtype) {
    if (!info(dtype).has_kernels && !is_complex(dtype))  // of complex ones inference decides
      fail(ErrorCode::kModel, call.op.name(), " is not defined for ", text(dtype),
           ", which is only stored and cast");
  };
  for (const Tensor& t : call.operands)
    if (t) check(t.dtype());
  for (const TensorType& t : call.results) check(t.dtype);
}

/// True if the attribute contains no symbol.
bool is_constant_attribute(const AttrValue& value) {
  if (value.is_int()) return value.as_dim().is_constant();
  if (!value.is_list()) return true;
  const auto& list = value.as_list();
  return std::all_of(list.begin(), list.end(), is_constant_attribute);
}

/// For example, a cast of a constant to its own dtype: weights must not be copied for it.
bool is_identity(const OpCall& call) {
  return call.op.has(kSameElements) && call.operands[0] && call.operands[0].is_concrete() &&
         same_type(call.operands[0].type(), call.results[0]);
}

}  // namespace

int64_t checked_bytes(const OpCall& call) {
  check_types(call);
  int64_t bytes = 0;
  for (const TensorType& t : call.results) {
    if (call.op.has(kRunTimeShape) || !is_constant(t.shape)) continue;
    const int64_t count = element_count(std::span<const int64_t>(concrete(t.shape)));
    // Views count as well: a consumer may need them contiguous.
    if (count > limits().memory / 2 / item_size(t.dtype))
      fail(ErrorCode::kModel, call.op.name(), " would return ", t,
           ", more than half the memory of ", human_bytes(static_cast<uint64_t>(limits().memory)));
    bytes += storage_bytes(t.dtype, count);
  }
  return bytes;
}

bool ConstantFolder::should_fold(const OpCall& call) {
  const int64_t bytes = checked_bytes(call);
  if (call.op.has(kRandom) || call.op.has(kEffect) || call.op.has(kKeepPacked)) return false;
  for (const Tensor& t : call.operands)
    if (t && !t.is_concrete()) return false;
  for (const TensorType& t : call.results)
    if (!call.op.has(kRunTimeShape) && !is_constant(t.shape)) return false;
  for (const AttrValue& v : call.attrs.values)
    if (!is_constant_attribute(v)) return false;
  if (call.op.def->view || bytes <= kAlwaysFoldedBytes) return true;
  folded_bytes_ += bytes;
  return bytes <= kMaxFoldedBytes && folded_bytes_ <= kMaxTotalFoldedBytes;
}

Tensors ConstantFolder::apply(const OpCall& call) {
  if (is_identity(call)) return {call.operands[0]};
  if (should_fold(call)) return eager_.apply(call);
  const ScopedInterpreter below(next());
  return next().apply(call);
}

}  // namespace paddle::onnx
