#pragma once
// Values that control flow on tensors carries: the common form of a value in two cases, and values
// as flat lists of tensors. Not for use outside the room.

#include <map>
#include <string>

#include "lang/eval/evaluation.h"

namespace paddle::lang {

/// Copies lists and cells, so that what happens to the copy is not seen by the original. One list
/// that has two names keeps both.
class Copier {
 public:
  Value copy(const Value& value, int depth = 0) {
    if (value.is_tensor())
      return value.tensor().defined() ? value.with_tensor(value.tensor().fresh_cell()) : value;
    const ValueList* items = value.items();
    if (!items || depth > kMaxNesting) return value;
    const auto known = copies_.find(items);
    if (known != copies_.end()) return known->second;
    ValueList out;
    for (const Value& item : *items) out.push_back(copy(item, depth + 1));
    Value copied =
        value.is<Value::List>() ? Value::list(std::move(out)) : Value::tuple(std::move(out));
    copies_.emplace(items, copied);
    return copied;
  }

  Frame copy(const Frame& frame) {
    Frame out = frame;
    for (auto& [name, value] : out.locals) value = copy(value);
    return out;
  }

 private:
  std::map<const ValueList*, Value> copies_;
};

/// The type of a tensor that is one of two; dims that differ are unknown.
TensorType merged_type(const TensorType& a, const TensorType& b);
/// The common form of a value in two cases: tensors where they may differ, constants elsewhere.
/// kConfig if they are of different kinds; `what` and `name` begin the message.
Value join_values(const std::string& name, const Value& a, const Value& b, std::string_view what);
/// The form with all numbers as tensors: what a loop may change.
Value with_tensor_leaves(const Value& value);
/// Whether two forms have the same dtypes in the same places.
bool same_types(const Value& a, const Value& b);
/// Appends the tensors of `value` in the places where `form` has tensors, in the form's types.
void flatten(Evaluation& evaluation, const Value& form, const Value& value,
             const SourcePosition& where, Tensors& out);
/// Tensors of zeros in the places where `form` has tensors, for a value that is not there.
void flatten_zeros(Evaluation& evaluation, const Value& form, const SourcePosition& where,
                   Tensors& out);
/// The value of a form, its tensors taken from a flat list.
Value restore(const Value& form, const Tensors& flat, size_t& next);

}  // namespace paddle::lang
