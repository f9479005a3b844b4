#include "ops/core/op.h"

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>

namespace paddle {
namespace {

class Registry {
 public:
  Registry() {
    for (const auto& table : generated::op_tables())
      for (const OpDef& def : table) add(def);
    for (const auto& [alias, name] : generated::alias_table()) by_name_[alias] = by_name_.at(name);
  }

  const Op& add(const OpDef& def) {
    if (def.struct_size != sizeof(OpDef))
      fail(ErrorCode::kModel, "operation '", def.name,
           "' was built for another version of the engine");
    if (by_name_.count(def.name))
      fail(ErrorCode::kUsage, "operation '", def.name, "' is registered twice");
    Op& op = ops_.emplace_back();
    op.def = &def;
    op.id = static_cast<int>(ops_.size()) - 1;
    for (const AttrDef& attr : op.attrs())
      op.defaults.push_back(attr.required ? AttrValue() : AttrValue::parse(attr.default_text));
    order_.push_back(&op);
    by_name_[def.name] = &op;
    return op;
  }
  const Op* find(std::string_view name) const {
    const auto it = by_name_.find(name);
    return it == by_name_.end() ? nullptr : it->second;
  }
  std::span<const Op* const> all() const { return order_; }

 private:
  std::deque<Op> ops_;
  std::vector<const Op*> order_;
  std::map<std::string, const Op*, std::less<>> by_name_;
};

Registry& registry() {
  static Registry instance;
  return instance;
}

}  // namespace

int Op::operand_index(std::string_view wanted) const {
  for (size_t i = 0; i < operands().size(); ++i)
    if (operands()[i].name == wanted) return static_cast<int>(i);
  return -1;
}

int Op::attr_index(std::string_view wanted) const {
  for (size_t i = 0; i < attrs().size(); ++i)
    if (attrs()[i].name == wanted) return static_cast<int>(i);
  return -1;
}

bool Layout::is_contiguous() const {
  // Sizes next to one of 0 may be such that their product overflows.
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return true;
  int64_t expected = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    if (shape[i] != 1 && strides[i] != expected) return false;
    expected *= shape[i];
  }
  return true;
}

Layout Layout::contiguous(DType dtype, Dims shape) {
  Layout out;
  out.dtype = dtype;
  out.strides = contiguous_strides(shape);
  out.shape = std::move(shape);
  return out;
}

Layout Layout::of(const Array& array) {
  return {array.dtype, array.shape, array.strides, array.offset, true};
}

const Op* find_op(std::string_view name) { return registry().find(name); }

const Op& get_op(std::string_view name) {
  if (const Op* op = find_op(name)) return *op;
  const auto names = op_names();
  fail(ErrorCode::kUsage, "unknown operation '", name, "'", did_you_mean(name, names));
}

std::span<const Op* const> all_ops() { return registry().all(); }

std::vector<std::string> op_names() {
  std::vector<std::string> names;
  for (const Op* op : all_ops()) names.emplace_back(op->name());
  return names;
}

const Op& op_at(int id) { return *all_ops()[static_cast<size_t>(id)]; }

}  // namespace paddle
