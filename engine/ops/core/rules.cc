#include "ops/core/rules.h"

#include "ops/generated/complex.h"
#include "ops/generated/creation.h"

#include <algorithm>
#include <atomic>

namespace paddle {

OperandMap::OperandMap(const Op& op, const Attrs& attrs) {
  flat_count_ = op.operands().size();
  if (std::ranges::none_of(op.operands(),
                           [](const OperandDef& o) { return o.kind == OperandKind::kList; }))
    return;
  size_t at = 0, list = 0;
  for (const OperandDef& operand : op.operands()) {
    starts_.push_back(at);
    at += operand.kind == OperandKind::kList ? static_cast<size_t>(attrs.list_sizes[list++]) : 1;
  }
  starts_.push_back(at);
  flat_count_ = at;
}

// --- inference ---

InferContext::InferContext(const Op& op, const Attrs& attrs, const Tensors& operands)
    : op_(op), attrs_(attrs), operands_(operands), map_(op, attrs) {}

bool InferContext::has(size_t declared) const {
  return map_.begin(declared) < map_.end(declared) && operands_[map_.begin(declared)].defined();
}

const TensorType& InferContext::type(size_t declared) const { return list_type(declared, 0); }

size_t InferContext::list_size(size_t declared) const {
  return map_.end(declared) - map_.begin(declared);
}

const TensorType& InferContext::list_type(size_t declared, size_t i) const {
  const size_t at = map_.begin(declared) + i;
  if (at >= map_.end(declared)) reject("'", op_.operands()[declared].name, "' is empty");
  return operands_[at].type();
}

Dim InferContext::require_equal(const Dim& a, const Dim& b, const std::string& what) {
  const auto decided = a.equals(b);
  if (decided && !*decided) reject(what, " (", a, " against ", b, ")");
  if (!decided) constraints_.push_back({a, b, str(op_.name(), ": ", what)});
  return a.is_constant() ? a : b.is_constant() ? b : a;
}

int64_t InferContext::axis(int64_t axis, int64_t rank) const {
  const int64_t span = std::max<int64_t>(rank, 1);  // axis 0 or -1 of a 0-D tensor is accepted
  if (axis < -span || axis >= span)
    reject("axis ", axis, " is out of range for a tensor of ", rank, " dimensions");
  return axis < 0 ? axis + span : axis;
}

std::vector<int64_t> InferContext::axes(const std::vector<int64_t>& wanted, int64_t rank) const {
  std::vector<int64_t> out;
  if (wanted.empty()) {
    for (int64_t i = 0; i < rank; ++i) out.push_back(i);
    return out;
  }
  for (const int64_t a : wanted) out.push_back(axis(a, rank));
  std::sort(out.begin(), out.end());
  for (size_t i = 1; i < out.size(); ++i)
    if (out[i] == out[i - 1]) reject("axis ", out[i], " is given twice");
  if (rank == 0) out.clear();
  return out;
}

Shape InferContext::broadcast(const Shape& a, const Shape& b) {
  const Shape& longer = a.size() >= b.size() ? a : b;
  const Shape& shorter = a.size() >= b.size() ? b : a;
  Shape out = longer;
  const size_t lead = longer.size() - shorter.size();
  for (size_t i = 0; i < shorter.size(); ++i) {
    const Dim &x = longer[lead + i], &y = shorter[i];
    if (x.same(y) || (y.is_constant() && y.value() == 1)) continue;
    if (x.is_constant() && x.value() == 1) {
      out[lead + i] = y;
      continue;
    }
    out[lead + i] =
        require_equal(x, y, str("shapes ", text(a), " and ", text(b), " do not broadcast"));
  }
  return out;
}

Dim InferContext::run_time_dim() {
  static std::atomic<int64_t> counter{0};
  return Dim::symbol("$" + std::to_string(counter++));
}

void InferContext::require_integer(size_t declared) const {
  if (!is_integer(dtype(declared)))
    reject("'", op_.operands()[declared].name, "' must be of an integer type, not ",
           text(dtype(declared)));
}

// --- gradients ---

const Tensor& VjpContext::plain_operand(size_t declared) const {
  static const Tensor kAbsent;
  return map_.begin(declared) < map_.end(declared) ? operands_[map_.begin(declared)] : kAbsent;
}

const Tensor& VjpContext::conjugated(const Tensor& t, size_t position) const {
  // The gradient of a linear operation reads no values.
  if (!t.defined() || !is_complex(t.dtype()) || op_.has(kLinear)) return t;
  Tensor& conjugate = conjugates_[position];
  if (!conjugate.defined()) conjugate = ops::conj(t);
  return conjugate;
}

const Tensor& VjpContext::operand(size_t declared) const {
  const Tensor& t = plain_operand(declared);
  return op_.operands()[declared].shape_only ? t : conjugated(t, map_.begin(declared));
}

const Tensor& VjpContext::result(size_t i) const {
  return conjugated(results_[i], operands_.size() + i);
}

Tensors VjpContext::list(size_t declared) const {
  Tensors out;
  for (size_t i = map_.begin(declared); i < map_.end(declared); ++i)
    out.push_back(conjugated(operands_[i], i));
  return out;
}

Tensor VjpContext::cotangent_or_zeros(size_t i) const {
  if (cotangents_[i].defined()) return cotangents_[i];
  return ops::full(results_[i].shape(), AttrValue(0), results_[i].dtype());
}

bool VjpContext::needs(size_t declared) const {
  for (size_t i = map_.begin(declared); i < map_.end(declared); ++i)
    if (needed_[i]) return true;
  return false;
}

const Tensor& CallContext::operand(size_t declared) const {
  static const Tensor kAbsent;
  return map_.begin(declared) < map_.end(declared) ? operands_[map_.begin(declared)] : kAbsent;
}

Tensors CallContext::list(size_t declared) const {
  return Tensors(operands_.begin() + static_cast<ptrdiff_t>(map_.begin(declared)),
                 operands_.begin() + static_cast<ptrdiff_t>(map_.end(declared)));
}

}  // namespace paddle
