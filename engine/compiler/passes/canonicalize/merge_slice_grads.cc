// The gradient of a tensor that is read slice by slice is a sum of zero-padded slice gradients
// (strided_slice_scatter into zeros). If the slices cover the tensor, concatenates them instead.

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "compiler/passes/passes.h"
#include "ops/core/call.h"
#include "ops/generated/shape.h"

namespace paddle::passes {
namespace {

using ir::Operation;
using ir::Value;

/// A tensor that is zero except for `value` at [start, end) of an axis.
struct PaddedSlice {
  Value* value;
  int64_t axis, start, end;
};

bool is_zero(const Value* v) {
  static const Op& full = get_op("full");
  if (v->constant) {
    for (int64_t i = 0; i < v->constant->size(); ++i)
      if (v->constant->number(i) != 0) return false;
    return true;
  }
  if (!v->producer || v->producer->op != &full) return false;
  const AttrValue& fill = v->producer->attrs[static_cast<size_t>(full.attr_index("fill_value"))];
  const bool known = fill.is_float() || (fill.is_int() && fill.as_dim().is_constant());
  return known && fill.as_double() == 0;
}

std::optional<PaddedSlice> as_padded_slice(const Value* v) {
  static const Op& scatter = get_op("strided_slice_scatter");
  if (!v->producer || v->producer->op != &scatter) return std::nullopt;
  const Operation& o = *v->producer;
  const StridedSliceScatterAttrs attrs(o.attrs);
  if (attrs.axes.size() != 1 || attrs.strides[0] != 1 || !attrs.starts[0].is_constant() ||
      !attrs.ends[0].is_constant() || !is_zero(o.operands[0]))
    return std::nullopt;
  const auto rank = static_cast<int64_t>(v->type.shape.size());
  const PaddedSlice slice{o.operands[1], attrs.axes[0] < 0 ? attrs.axes[0] + rank : attrs.axes[0],
                          attrs.starts[0].value(), attrs.ends[0].value()};
  TensorType type = v->type;
  type.shape[static_cast<size_t>(slice.axis)] = slice.end - slice.start;
  if (slice.start < 0 || slice.end < slice.start || !same_type(slice.value->type, type))
    return std::nullopt;
  return slice;
}

class SliceGradMerger {
 public:
  explicit SliceGradMerger(const ir::Function& function) : uses_(ir::count_uses(function)) {}

  void run(ir::Region& region) {
    for (const auto& o : region.operations) {
      for (const auto& nested : o->regions) run(*nested);
      if (o->op == &add_) merge(*o);
    }
  }

 private:
  /// Collects the padded slices that `v` is the sum of; false if it has other terms.
  bool collect(const Value* v, std::vector<PaddedSlice>& slices) const {
    const auto uses = uses_.find(v);
    if (uses == uses_.end() || uses->second != 1) return false;
    if (const auto slice = as_padded_slice(v)) {
      slices.push_back(*slice);
      return true;
    }
    return v->producer && v->producer->op == &add_ && collect_operands(*v->producer, slices);
  }
  bool collect_operands(const Operation& sum, std::vector<PaddedSlice>& slices) const {
    return collect(sum.operands[0], slices) && collect(sum.operands[1], slices);
  }

  /// Turns the sum into a concat; the scatter operations become dead code.
  void merge(Operation& sum) const {
    std::vector<PaddedSlice> slices;
    const TensorType& type = sum.results[0]->type;
    if (!collect_operands(sum, slices)) return;
    std::sort(slices.begin(), slices.end(),
              [](const PaddedSlice& a, const PaddedSlice& b) { return a.start < b.start; });
    const int64_t axis = slices[0].axis;
    int64_t end = 0;
    for (const PaddedSlice& p : slices) {
      if (p.axis != axis || p.start != end) return;
      end = p.end;
    }
    const Dim& size = type.shape[static_cast<size_t>(axis)];
    if (!size.is_constant() || size.value() != end) return;
    static const Op& concat = get_op("concat");
    sum.op = &concat;
    sum.operands.clear();
    for (const PaddedSlice& p : slices) sum.operands.push_back(p.value);
    sum.attrs = default_attrs(concat);
    sum.attrs.list_sizes = {static_cast<int32_t>(slices.size())};
    sum.attrs[static_cast<size_t>(concat.attr_index("axis"))] = axis;
  }

  const Op& add_ = get_op("add");
  std::unordered_map<const Value*, int> uses_;
};

}  // namespace

void merge_slice_grads(ir::Function& function) { SliceGradMerger(function).run(function.body); }

}  // namespace paddle::passes
