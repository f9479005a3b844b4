// The gradient of a tensor that is cut into parts is a sum of tensors that are each zero but for
// one part. Where the parts are all of it, they are joined instead.

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "compiler/passes/passes.h"
#include "ops/call.h"
#include "ops/generated/attrs.h"

namespace paddle::passes {
namespace {

using ir::Operation;
using ir::Value;

/// A tensor that is zero but for `value`, which stands at [start, end) of an axis.
struct Part {
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

std::optional<Part> as_part(const Value* v) {
  static const Op& scatter = get_op("strided_slice_scatter");
  if (!v->producer || v->producer->op != &scatter) return std::nullopt;
  const Operation& o = *v->producer;
  const StridedSliceScatterAttrs attrs(o.attrs);
  if (attrs.axes.size() != 1 || attrs.strides[0] != 1 || !attrs.starts[0].is_constant() ||
      !attrs.ends[0].is_constant() || !is_zero(o.operands[0]))
    return std::nullopt;
  const auto rank = static_cast<int64_t>(v->type.shape.size());
  const Part part{o.operands[1], attrs.axes[0] < 0 ? attrs.axes[0] + rank : attrs.axes[0],
                  attrs.starts[0].value(), attrs.ends[0].value()};
  TensorType type = v->type;
  type.shape[static_cast<size_t>(part.axis)] = part.end - part.start;
  if (part.start < 0 || part.end < part.start || !same_type(part.value->type, type))
    return std::nullopt;
  return part;
}

class SliceJoiner {
 public:
  explicit SliceJoiner(const ir::Function& function) : uses_(ir::count_uses(function)) {}

  void run(ir::Region& region) {
    for (const auto& o : region.operations) {
      for (const auto& nested : o->regions) run(*nested);
      if (o->op == &add_) join(*o);
    }
  }

 private:
  /// The parts that are added up in `v`; false if it is made of anything else.
  bool collect(const Value* v, std::vector<Part>& parts) const {
    const auto uses = uses_.find(v);
    if (uses == uses_.end() || uses->second != 1) return false;
    if (const auto part = as_part(v)) {
      parts.push_back(*part);
      return true;
    }
    return v->producer && v->producer->op == &add_ && collect_operands(*v->producer, parts);
  }
  bool collect_operands(const Operation& sum, std::vector<Part>& parts) const {
    return collect(sum.operands[0], parts) && collect(sum.operands[1], parts);
  }

  /// What is no longer read is dead code.
  void join(Operation& sum) const {
    std::vector<Part> parts;
    const TensorType& type = sum.results[0]->type;
    if (!collect_operands(sum, parts)) return;
    std::sort(parts.begin(), parts.end(),
              [](const Part& a, const Part& b) { return a.start < b.start; });
    const int64_t axis = parts[0].axis;
    int64_t end = 0;
    for (const Part& p : parts) {
      if (p.axis != axis || p.start != end) return;
      end = p.end;
    }
    const Dim& size = type.shape[static_cast<size_t>(axis)];
    if (!size.is_constant() || size.value() != end) return;
    static const Op& concat = get_op("concat");
    sum.op = &concat;
    sum.operands.clear();
    for (const Part& p : parts) sum.operands.push_back(p.value);
    sum.attrs = default_attrs(concat);
    sum.attrs.list_sizes = {static_cast<int32_t>(parts.size())};
    sum.attrs[static_cast<size_t>(concat.attr_index("axis"))] = axis;
  }

  const Op& add_ = get_op("add");
  std::unordered_map<const Value*, int> uses_;
};

}  // namespace

void join_slices(ir::Function& function) { SliceJoiner(function).run(function.body); }

}  // namespace paddle::passes
