// Applies rewrite rules: replaces operations that match a pattern, if no other operation reads the
// values between them and the replacement has the same result type.

#include <algorithm>
#include <cmath>
#include <list>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "compiler/passes/canonicalize/replacement.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/rules/rule.h"
#include "ir/tracer.h"
#include "ops/core/call.h"

namespace paddle::passes {
namespace {

using ir::Operation;
using ir::Value;

/// Bindings of a rule's names for one match.
struct Match {
  std::map<std::string, const Value*> tensors;
  std::map<std::string, AttrValue> values;
  std::vector<Operation*> operations;    ///< the matched ones, root first
  std::map<const Value*, size_t> reads;  ///< uses by these operations
};

std::optional<double> single_number(const Value& v) {
  if (!v.constant || v.constant->size() != 1 || !is_float(v.type.dtype)) return std::nullopt;
  return v.constant->number();
}

/// True if `found` equals `wanted` up to rounding to the type it is stored in. A constant that
/// differs by more is a different function, so its graph must not match.
bool close(double found, double wanted, DType dtype) {
  const double rounding = dtype == DType::kF16    ? 0x1p-11
                          : dtype == DType::kBF16 ? 0x1p-8
                          : dtype == DType::kF64  ? 0x1p-52
                                                  : 0x1p-23;
  return std::abs(found - wanted) <= rounding * std::abs(wanted);
}

/// Axes counted from 0.
std::vector<int64_t> axes_of(const AttrValue& value, size_t rank) {
  std::vector<int64_t> axes = value.as_ints();
  for (int64_t& a : axes)
    if (a < 0) a += static_cast<int64_t>(rank);
  return axes;
}

bool is_integers(const AttrValue& v) {
  if (v.is_int()) return v.as_dim().is_constant();
  return v.is_list() && std::all_of(v.as_list().begin(), v.as_list().end(), is_integers);
}

bool is_number(const AttrValue& v) {
  return v.is_float() || (v.is_int() && v.as_dim().is_constant());
}

bool same_attribute(const AttrDef& def, const AttrValue& wanted, const AttrValue& found,
                    size_t rank) {
  if (wanted == found) return true;
  if (std::string_view(def.name).starts_with("ax") && is_integers(wanted) && is_integers(found))
    return axes_of(wanted, rank) == axes_of(found, rank);
  return is_number(wanted) && is_number(found) &&
         (wanted.as_double() == found.as_double() ||
          close(found.as_double(), wanted.as_double(), DType::kF32));
}

class Matcher {
 public:
  explicit Matcher(Match& match) : match_(match) {}

  bool root(const Term& pattern, Operation& operation) { return call(pattern, operation); }

 private:
  bool term(const Term& pattern, const Value* value) {
    if (!value) return pattern.kind == Term::Kind::kAbsent;
    ++match_.reads[value];
    switch (pattern.kind) {
      case Term::Kind::kAbsent:
        return false;
      case Term::Kind::kTensor:
        return bind(pattern.name, value);
      case Term::Kind::kNumber: {
        const auto number = single_number(*value);
        return number && close(*number, pattern.number, value->type.dtype);
      }
      case Term::Kind::kScalar: {
        const auto number = single_number(*value);
        if (!number) return false;
        const auto [it, first] = match_.values.emplace(pattern.name, *number);
        return first || it->second == AttrValue(*number);
      }
      case Term::Kind::kCall:
        return value->producer && value->index == 0 &&
               (pattern.name.empty() || bind(pattern.name, value)) &&
               call(pattern, *value->producer);
    }
    return false;
  }

  bool bind(const std::string& name, const Value* value) {
    return match_.tensors.emplace(name, value).first->second == value;
  }

  bool call(const Term& pattern, Operation& operation) {
    if (operation.op != pattern.op || !operation.regions.empty() ||
        operation.operands.size() != pattern.operands.size() ||
        operation.attrs.list_sizes != pattern.list_sizes || !attributes(pattern, operation))
      return false;
    const auto& found = match_.operations;
    if (std::find(found.begin(), found.end(), &operation) == found.end())
      match_.operations.push_back(&operation);
    const bool either = operation.op->has(kCommutative) && pattern.operands.size() == 2;
    if (!either) return operands(pattern, operation, false);
    const Match before = match_;
    if (operands(pattern, operation, false)) return true;
    match_ = before;
    return operands(pattern, operation, true);
  }

  bool operands(const Term& pattern, const Operation& operation, bool swapped) {
    for (size_t i = 0; i < pattern.operands.size(); ++i)
      if (!term(pattern.operands[i], operation.operands[swapped ? 1 - i : i])) return false;
    return true;
  }

  /// Attributes that a pattern does not mention must have their defaults.
  bool attributes(const Term& pattern, const Operation& operation) {
    const size_t rank = operation.operands.empty() || !operation.operands[0]
                            ? 0
                            : operation.operands[0]->type.shape.size();
    std::set<int> named;
    for (const RuleAttr& attr : pattern.attrs) {
      named.insert(attr.index);
      const AttrValue& found = operation.attrs[static_cast<size_t>(attr.index)];
      if (attr.kind == RuleAttr::Kind::kName) {
        const auto [it, first] = match_.values.emplace(attr.name, found);
        if (!first && !(it->second == found)) return false;
      } else if (!same_attribute(operation.op->attrs()[static_cast<size_t>(attr.index)], attr.value,
                                 found, rank)) {
        return false;
      }
    }
    for (size_t i = 0; i < operation.attrs.values.size(); ++i)
      if (!named.count(static_cast<int>(i)) && !(operation.attrs[i] == operation.op->defaults[i]))
        return false;
    return true;
  }

  Match& match_;
};

/// Product or quotient of two numbers, or of each element of a list and a number. Integers stay
/// integers.
AttrValue combined(const AttrValue& a, const AttrValue& b, bool quotient) {
  if (a.is_list()) {
    AttrValue::List all;
    for (const AttrValue& v : a.as_list()) all.push_back(combined(v, b, quotient));
    return all;
  }
  if (!a.is_int() || !b.is_int()) {
    const double x = a.as_double(), y = b.as_double();
    return quotient ? x / y : x * y;
  }
  if (!quotient) return AttrValue(a.as_dim() * b.as_dim());
  const int64_t x = a.as_int(), y = b.as_int();
  if (y == 0 || x % y != 0) fail(ErrorCode::kConfig, x, " / ", y, " is not an integer");
  return x / y;
}

AttrValue computed(const RuleAttr& attr, const Match& match) {
  const auto part = [&](size_t i) { return computed(attr.parts[i], match); };
  switch (attr.kind) {
    case RuleAttr::Kind::kValue:
      return attr.value;
    case RuleAttr::Kind::kName:
      return match.values.at(attr.name);
    case RuleAttr::Kind::kProduct:
      return combined(part(0), part(1), false);
    case RuleAttr::Kind::kQuotient:
      return combined(part(0), part(1), true);
    case RuleAttr::Kind::kShape: {
      AttrValue::List dims;
      for (const Dim& d : match.tensors.at(attr.name)->type.shape) dims.emplace_back(d);
      return dims;
    }
    case RuleAttr::Kind::kLast: {
      const Shape& shape = match.tensors.at(attr.name)->type.shape;
      if (shape.empty()) fail(ErrorCode::kUsage, "last(x): x is a 0-D tensor");
      return AttrValue::List{shape.back()};
    }
    case RuleAttr::Kind::kChain: {
      const auto first = part(0).as_ints(), second = part(1).as_ints();
      std::vector<int64_t> both;
      for (const int64_t axis : axes_of(second, first.size()))
        both.push_back(first.at(static_cast<size_t>(axis)));
      return both;
    }
  }
  return {};
}

bool holds(const RuleCondition& condition, const Match& match) {
  if (condition.kind == RuleCondition::Kind::kEqual) {
    try {
      return computed(condition.sides[0], match) == computed(condition.sides[1], match);
    } catch (const Error&) {
      return false;  // an expression is undefined for this match
    }
  }
  const Value& v = *match.tensors.at(condition.name);
  if (condition.kind == RuleCondition::Kind::kConstant) return v.constant.has_value();
  return v.type.ranked && static_cast<int64_t>(v.type.shape.size()) == condition.rank;
}

/// Builds the replacement under the current interpreter.
Tensor built(const Term& term, const Match& match, const ir::Tracer& tracer) {
  if (term.kind == Term::Kind::kAbsent) return {};
  if (term.kind == Term::Kind::kTensor)
    return tracer.tensor_of(const_cast<Value*>(match.tensors.at(term.name)));
  Tensors operands;
  for (const Term& operand : term.operands) operands.push_back(built(operand, match, tracer));
  Attrs attrs = default_attrs(*term.op);
  attrs.list_sizes = term.list_sizes;
  for (const RuleAttr& attr : term.attrs)
    attrs[static_cast<size_t>(attr.index)] =
        convert_attr(term.op->attrs()[static_cast<size_t>(attr.index)], computed(attr, match),
                     std::string(term.op->name()));
  return call_single(*term.op, std::move(operands), std::move(attrs));
}

class RuleApplier {
 public:
  RuleApplier(ir::Function& function, const std::vector<Rule>& rules, const RulesOfRoot& more)
      : function_(function), rules_(rules), more_(more), uses_(ir::count_uses(function)) {
    for (auto it = operations().begin(); it != operations().end(); ++it) positions_[it->get()] = it;
    left_ = 64 + 16 * function.operation_count();
  }

  void run() {
    for (auto it = operations().begin(); it != operations().end();) {
      // A replacement can be the root of the next match.
      const auto next = std::next(it);
      const auto replaced = rewrite(it);
      it = replaced ? *replaced : next;
      left_ -= replaced.has_value();
      if (left_ < 0)
        fail(ErrorCode::kConfig, "the rewrite rules do not terminate; the last one applied was '",
             last_, "'");
    }
  }

 private:
  using Operations = std::list<std::unique_ptr<Operation>>;
  using Iterator = Operations::iterator;
  Operations& operations() { return function_.body.operations; }

  void count(const Operation& operation, int by) {
    ir::for_each_read(operation, [&](const Value* v) { uses_[v] += by; });
  }

  const std::vector<const Rule*>& rules_of(const Op& root) {
    const auto [it, first] = by_root_.try_emplace(&root);
    if (!first) return it->second;
    for (const Rule& rule : rules_)
      if (rule.pattern.op == &root) it->second.push_back(&rule);
    if (more_)
      for (const Rule* rule : more_(root)) it->second.push_back(rule);
    return it->second;
  }

  /// The position to continue from if a rule applied.
  std::optional<Iterator> rewrite(Iterator at) {
    if (!(*at)->op) return std::nullopt;
    for (const Rule* rule : rules_of(*(*at)->op)) {
      Match match;
      if (!Matcher(match).root(rule->pattern, **at) || !is_self_contained(match)) continue;
      if (!std::all_of(rule->conditions.begin(), rule->conditions.end(),
                       [&](const RuleCondition& c) { return holds(c, match); }))
        continue;
      if (auto begin = replace(*rule, match, at)) {
        last_ = rule->name;
        return begin;
      }
    }
    return std::nullopt;
  }

  /// True if only the match reads its inner values and all of it is in the body of the function.
  bool is_self_contained(const Match& match) const {
    for (size_t i = 0; i < match.operations.size(); ++i) {
      const Operation& o = *match.operations[i];
      if (!positions_.count(&o) || has_effect(o)) return false;
      for (size_t k = i == 0 ? 1 : 0; k < o.results.size(); ++k) {
        const auto used = uses_.find(o.results[k]);
        const auto read = match.reads.find(o.results[k]);
        if ((used == uses_.end() ? 0 : used->second) !=
            (read == match.reads.end() ? 0 : static_cast<int>(read->second)))
          return false;
      }
    }
    return true;
  }

  std::optional<Iterator> replace(const Rule& rule, const Match& match, Iterator at) {
    if (rule.replacement.kind == Term::Kind::kTensor)
      return replace_by_operand(*match.tensors.at(rule.replacement.name), match, at);
    Operations& all = operations();
    Value* const result = (*at)->results[0];
    const Iterator last = all.empty() ? all.end() : std::prev(all.end());
    Value* made = nullptr;
    try {
      ir::Tracer tracer(function_);
      const InterpreterScope scope(tracer);
      made = tracer.value_of(built(rule.replacement, match, tracer));
    } catch (const Error& e) {
      if (e.code() == ErrorCode::kInternal) throw;
      made = nullptr;  // shape inference rejects the replacement for these types
    }
    const Iterator first = std::next(last);
    const bool fits =
        made && same_type(made->type, result->type) && made->producer && first != all.end();
    if (!fits) {
      all.erase(first, all.end());
      return std::nullopt;
    }
    Iterator begin = first;
    for (Iterator it = first; it != all.end();) {
      const Iterator moved = it++;
      positions_[moved->get()] = moved;
      count(**moved, 1);
      all.splice(at, all, moved);
    }
    // The new operation produces the old result value, so consumers need no change.
    Operation& producer = *made->producer;
    producer.results[made->index] = result;
    result->producer = &producer;
    result->index = made->index;
    erase(match);
    return begin;
  }

  /// For a rule such as `negative(negative(x)) -> x`.
  std::optional<Iterator> replace_by_operand(const Value& operand, const Match& match,
                                             Iterator at) {
    Value& result = *(*at)->results[0];
    if (!same_type(operand.type, result.type)) return std::nullopt;
    Replacement map;
    passes::replace(map, result, const_cast<Value&>(operand));
    const Iterator begin = std::next(at);
    for (Iterator it = begin; it != operations().end(); ++it) replace_reads(**it, map);
    replace_results(function_.body, map);
    uses_[&operand] += std::exchange(uses_[&result], 0);
    erase(match);
    return begin;
  }

  static void replace_reads(Operation& operation, const Replacement& map) {
    replace_operands(operation, map);
    for (const auto& region : operation.regions) {
      for (const auto& inner : region->operations) replace_reads(*inner, map);
      replace_results(*region, map);
    }
  }

  /// Erases the root and what only it read. Inner values that the replacement reads stay.
  void erase(const Match& match) {
    std::vector<Operation*> left = match.operations;
    const auto erase = [&](Operation* o) {
      count(*o, -1);
      const auto old = positions_.find(o);
      operations().erase(old->second);
      positions_.erase(old);
    };
    erase(left[0]);
    left.erase(left.begin());
    const auto is_unused = [&](const Operation* o) {
      return std::all_of(o->results.begin(), o->results.end(),
                         [&](const Value* v) { return uses_[v] == 0; });
    };
    for (auto at = left.begin();
         (at = std::find_if(left.begin(), left.end(), is_unused)) != left.end(); left.erase(at))
      erase(*at);
  }

  ir::Function& function_;
  const std::vector<Rule>& rules_;
  const RulesOfRoot& more_;
  std::unordered_map<const Op*, std::vector<const Rule*>> by_root_;  ///< of both
  std::unordered_map<const Operation*, Iterator> positions_;
  std::unordered_map<const Value*, int> uses_;
  int64_t left_ = 0;  ///< remaining budget of rewrites
  std::string last_;  ///< the last rule applied
};

}  // namespace

void apply_rules(ir::Function& function, const std::vector<Rule>& rules, const RulesOfRoot& more) {
  RuleApplier(function, rules, more).run();
}

}  // namespace paddle::passes
