#include "lang/eval/values.h"

#include "ops/distribution/distribution.h"

namespace paddle::lang {

Value::Value(const Dim& dim) {
  if (const auto constant = dim.constant()) {
    data_ = *constant;
  } else {
    data_ = dim;
  }
}

namespace {

/// Frees a list and what it holds one after the other, so that lists inside lists inside lists
/// need no stack.
void free_list(const ValueList* list) {
  thread_local std::vector<const ValueList*> pending;
  thread_local bool active = false;
  pending.push_back(list);
  if (active) return;
  active = true;
  while (!pending.empty()) {
    const ValueList* next = pending.back();
    pending.pop_back();
    delete next;
  }
  active = false;
}

}  // namespace

Value Value::list(ValueList items) {
  Value out;
  out.data_ = List{std::shared_ptr<ValueList>(new ValueList(std::move(items)), free_list)};
  return out;
}

Value Value::tuple(ValueList items) {
  Value out;
  out.data_ = Tuple{std::shared_ptr<const ValueList>(new ValueList(std::move(items)), free_list)};
  return out;
}

Value Value::map(NamedValues entries) {
  Value out;
  out.data_ = Map{std::make_shared<const NamedValues>(std::move(entries))};
  return out;
}

Value Value::of_state(Tensor value, std::string path) {
  Value out(std::move(value));
  out.state_ = std::make_shared<const std::string>(std::move(path));
  return out;
}

Value Value::drawn(Tensor value, DrawnFrom from) {
  Value out(std::move(value));
  out.drawn_from_ = std::make_shared<const DrawnFrom>(std::move(from));
  return out;
}

const Initializer* Value::initializer() const {
  const auto* held = get<std::shared_ptr<const Initializer>>();
  return held ? held->get() : nullptr;
}

const ValueList* Value::items() const {
  if (const auto* list = get<List>()) return list->items.get();
  if (const auto* tuple = get<Tuple>()) return tuple->items.get();
  return nullptr;
}

ValueList* Value::mutable_items() const {
  const auto* list = get<List>();
  return list ? list->items.get() : nullptr;
}

std::string Value::describe() const {
  if (is_none()) return "none";
  if (is<bool>()) return integer() ? "true" : "false";
  if (is<int64_t>()) return str("the number ", integer());
  if (is<double>()) return str("the number ", number());
  if (const auto* text = get<std::string>()) {
    return text->size() > 60 ? "a text of " + std::to_string(text->size()) + " bytes"
                             : "the text '" + *text + "'";
  }
  if (is_tensor()) return str("a tensor ", tensor().type());
  if (const auto* dim = get<Dim>()) return str("the dim '", *dim, "'");
  if (is<List>()) return str("a list of ", items()->size());
  if (is<Tuple>()) return str("a tuple of ", items()->size());
  if (is<Map>()) return "a map";
  if (const auto* callable = get<Callable>()) {
    return str(callable->block ? "the block '"
               : callable->op  ? "the operation '"
                               : "the function '",
               callable->name, "'");
  }
  if (const auto* held = get<DistributionPtr>())
    return str("the distribution '", (*held)->name(), "'");
  if (const auto* held = get<TransformPtr>()) return str("the transform '", (*held)->name(), "'");
  return "the initializer " + initializer()->text();
}

bool holds_tensor(const Value& value, int depth) {
  if (value.is_tensor()) return true;
  const ValueList* items = value.items();
  if (!items || depth > 8) return false;
  for (const Value& item : *items) {
    if (holds_tensor(item, depth + 1)) return true;
  }
  return false;
}

namespace {

bool same_value(const Value& a, const Value& b, int depth, WalkBudget& budget) {
  budget.take();
  if (depth > kMaxNesting) fail(ErrorCode::kConfig, "lists of more than 200 levels are compared");
  if (a.is_tensor() || b.is_tensor()) {
    fail(ErrorCode::kConfig, "a tensor inside a list or tuple cannot be compared");
  }
  if (a.is_dim() || b.is_dim()) {
    if (!(a.is_dim() || a.is_integer()) || !(b.is_dim() || b.is_integer())) return false;
    const Dim left = a.is_dim() ? *a.get<Dim>() : Dim(a.integer());
    const Dim right = b.is_dim() ? *b.get<Dim>() : Dim(b.integer());
    const auto equal = left.equals(right);
    if (!equal) {
      fail(ErrorCode::kConfig, "whether ", left, " == ", right,
           " depends on the input (static(…) traces once for each value)");
    }
    return *equal;
  }
  if (a.is_number() && b.is_number()) {
    if (a.is_integer() && b.is_integer()) return a.integer() == b.integer();
    return a.number() == b.number();
  }
  const ValueList *left = a.items(), *right = b.items();
  if (left && right && a.is<Value::List>() == b.is<Value::List>()) {
    if (left == right) return true;
    if (left->size() != right->size()) return false;
    for (size_t i = 0; i < left->size(); ++i) {
      if (!same_value((*left)[i], (*right)[i], depth + 1, budget)) return false;
    }
    return true;
  }
  if (a.is_none() && b.is_none()) return true;
  if (a.is<std::string>() && b.is<std::string>()) {
    return *a.get<std::string>() == *b.get<std::string>();
  }
  if (a.is<Callable>() && b.is<Callable>()) return *a.get<Callable>() == *b.get<Callable>();
  return false;
}

}  // namespace

bool same_value(const Value& a, const Value& b) {
  WalkBudget budget;
  return same_value(a, b, 0, budget);
}

bool truth(const Value& value) {
  if (value.is_none()) return false;
  if (value.is_integer()) return value.integer() != 0;
  if (value.is<double>()) return value.number() != 0;
  if (const auto* text = value.get<std::string>()) return !text->empty();
  if (const auto* dim = value.get<Dim>()) {
    const auto zero = dim->equals(Dim(0));
    if (!zero) {
      fail(ErrorCode::kConfig, "whether the dim '", *dim,
           "' is 0 depends on the input (static(…) traces once for each value)");
    }
    return !*zero;
  }
  if (const ValueList* items = value.items()) return !items->empty();
  if (value.is_tensor()) fail(ErrorCode::kInternal, "truth of a tensor");
  return true;
}

}  // namespace paddle::lang
