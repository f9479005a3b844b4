#include "program/output_units.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string_view>

namespace paddle::program {
namespace {

using OpNames = std::set<std::string_view>;

constexpr int64_t kMaxColumns = 4096;

/// The size of the last axis; 0 where it is not known, 1 for a single number.
int64_t last_size(const ir::Value& value) {
  const Shape& shape = value.type.shape;
  return shape.empty() ? 1 : shape.back().constant().value_or(0);
}

/// The columns of a field [batch, …, columns]: one for [batch].
int64_t columns_of(const ir::Value& field) {
  return field.type.shape.size() < 2 ? 1 : last_size(field);
}

const AttrValue* attribute(const ir::Operation& operation, std::string_view name) {
  const int at = operation.op->attr_index(name);
  if (at < 0 || operation.attrs[static_cast<size_t>(at)].is_none()) return nullptr;
  return &operation.attrs[static_cast<size_t>(at)];
}

/// The places of the last axis that a slice takes: all, these, or unknown ones.
struct Taken {
  bool all = false;
  std::vector<int64_t> places = {};
};

Taken taken_by(const ir::Operation& slice) {
  const AttrValue *axes = attribute(slice, "axes"), *starts = attribute(slice, "starts"),
                  *ends = attribute(slice, "ends"), *strides = attribute(slice, "strides");
  if (!axes || !starts || !ends) return {};
  const ir::Value& x = *slice.operands[0];
  const auto rank = static_cast<int64_t>(x.type.shape.size());
  const std::vector<int64_t> numbers = axes->as_ints();
  const Shape first = starts->as_dims(), last = ends->as_dims();
  for (size_t i = 0; i < numbers.size(); ++i) {
    if ((numbers[i] + rank) % rank != rank - 1) continue;
    const int64_t size = last_size(x);
    const auto from = first[i].constant(), to = last[i].constant();
    const int64_t step = strides ? strides->as_ints()[i] : 1;
    if (!from || !to || step < 1 || size < 1 || size > kMaxColumns) return {};
    const auto clamped = [&](int64_t at) {
      return std::clamp<int64_t>(at < 0 ? at + size : at, 0, size);
    };
    Taken out;
    for (int64_t at = clamped(*from); at < clamped(*to); at += step) out.places.push_back(at);
    out.all = static_cast<int64_t>(out.places.size()) == size && step == 1;
    return out;
  }
  return {.all = true};
}

struct Unit {
  size_t field = 0;
  UnitKind kind = UnitKind::kValue;
  int64_t column = -1;
  bool operator==(const Unit&) const = default;
};

/// Units of values, spread from those that are compared over the operations of a function.
class UnitAnalysis {
 public:
  UnitAnalysis(const ir::Function& function, const std::vector<Comparison>& comparisons) {
    for (const Comparison& each : comparisons) {
      const ColumnView label = column_view(each.label);
      size_t field = 0;
      while (field < fields_.size() && fields_[field] != each.field) ++field;
      if (field == fields_.size()) {
        fields_.push_back(each.field);
        columns_.push_back(columns_of(*label.base));
      }
      seed(label.base, kAll, {field, UnitKind::kValue, -1});
      seed_compared(each.with, field, label.columns);
    }
    // A unit that a later operation gives to an earlier value is spread in the next round.
    for (int round = 0; round < 3; ++round)
      ir::for_each_operation(function.body,
                             [&](const ir::Operation& operation) { visit(operation); });
  }

  std::vector<OutputUnit> units(const std::string& name, const ir::Value* value) const {
    std::vector<OutputUnit> out;
    const auto add = [&](const Unit& unit, int64_t at) {
      out.push_back({name, fields_[unit.field], unit.kind, at, unit.column});
    };
    if (const auto whole = unit_of(value)) {
      add(*whole, -1);
      return out;
    }
    const ColumnView view = column_view(value);
    std::vector<int64_t> places = view.columns;
    if (places.empty() && last_size(*view.base) == last_size(*value) &&
        last_size(*value) <= kMaxColumns) {
      places.resize(static_cast<size_t>(last_size(*value)));
      std::iota(places.begin(), places.end(), 0);
    }
    for (size_t i = 0; i < places.size(); ++i)
      if (const auto unit = known(view.base, places[i])) add(*unit, static_cast<int64_t>(i));
    return out;
  }

 private:
  static constexpr int64_t kAll = -1;

  std::optional<Unit> known(const ir::Value* value, int64_t place) const {
    const auto it = known_.find({value, place});
    return it == known_.end() ? std::nullopt : std::optional(it->second);
  }

  /// The one unit of all numbers of a value.
  std::optional<Unit> unit_of(const ir::Value* value) const {
    if (!value) return std::nullopt;
    if (const auto unit = known(value, kAll)) return unit;
    const ColumnView view = column_view(value);
    if (view.columns.empty()) return view.base == value ? std::nullopt : known(view.base, kAll);
    if (const auto whole = unit_of(view.base)) return taken(*whole, *view.base, view.columns);
    const auto first = known(view.base, view.columns[0]);
    for (const int64_t place : view.columns)
      if (known(view.base, place) != first) return std::nullopt;
    return first;
  }

  /// The unit of some columns of a value in one unit.
  std::optional<Unit> taken(Unit unit, const ir::Value& from,
                            const std::vector<int64_t>& places) const {
    const int64_t columns = columns_[unit.field];
    if (columns == 1 || unit.column >= 0) return unit;
    if (last_size(from) != columns || places.size() != 1) return std::nullopt;
    unit.column = places[0];
    return unit;
  }

  void seed_compared(const ir::Value* value, size_t field, const std::vector<int64_t>& columns) {
    const ColumnView view = column_view(value);
    const int64_t only = columns.size() == 1 ? columns[0] : -1;
    if (view.columns.empty()) {
      if (columns.size() < 2) return seed(view.base, kAll, {field, UnitKind::kValue, only});
      if (last_size(*view.base) != static_cast<int64_t>(columns.size())) return;
      for (size_t i = 0; i < columns.size(); ++i)
        seed(view.base, static_cast<int64_t>(i), {field, UnitKind::kValue, columns[i]});
      return;
    }
    const int64_t count = columns.empty() ? columns_[field] : static_cast<int64_t>(columns.size());
    for (size_t i = 0; i < view.columns.size(); ++i) {
      int64_t column = only;
      if (only < 0 && count > 1) {
        if (static_cast<int64_t>(view.columns.size()) != count) return;
        column = columns.empty() ? static_cast<int64_t>(i) : columns[i];
      }
      seed(view.base, view.columns[i], {field, UnitKind::kValue, column});
    }
  }

  void seed(const ir::Value* value, int64_t place, const Unit& unit) {
    known_.try_emplace({value, place}, unit);
  }

  /// A value that another one says to be a spread: of it, too, what it is computed from.
  void seed_spread(const ir::Value* value, Unit unit) {
    const ColumnView view = column_view(value);
    if (is_constant(view.base)) return;
    if (!view.columns.empty()) {
      for (const int64_t place : view.columns) seed(view.base, place, unit);
      return;
    }
    if (known(view.base, kAll) || !view.base->producer) return;
    seed(view.base, kAll, unit);
    const ir::Operation& operation = *view.base->producer;
    const std::string_view op = operation.op->name();
    const ir::Value* x = operation.operands.empty() ? nullptr : operation.operands[0];
    const ir::Value* y = operation.operands.size() < 2 ? nullptr : operation.operands[1];
    const auto with = [&](UnitKind kind) { return Unit{unit.field, kind, unit.column}; };
    const bool is_variance = unit.kind == UnitKind::kVariance;
    if (unit.kind != UnitKind::kDifference && !is_variance) {
      // The logarithm of a variance is twice that of a deviation.
      const auto factor = constant_factor(operation);
      if (unit.kind == UnitKind::kLogDifference && factor && factor->second == 0.5)
        seed_spread(factor->first, with(UnitKind::kLogVariance));
      if (unit.kind == UnitKind::kLogVariance && factor && factor->second == 2)
        seed_spread(factor->first, with(UnitKind::kLogDifference));
      if (op == "clip") seed_spread(x, unit);
    } else if (op == "square" || (op == "multiply" && x == y)) {
      if (is_variance) seed_spread(x, with(UnitKind::kDifference));
    } else if (op == "pow" && y && y->constant && y->constant->size() == 1) {
      if (is_variance && y->constant->number(0) == 2) seed_spread(x, with(UnitKind::kDifference));
    } else if (op == "sqrt") {
      if (!is_variance) seed_spread(x, with(UnitKind::kVariance));
    } else if (op == "exp") {
      seed_spread(x, with(is_variance ? UnitKind::kLogVariance : UnitKind::kLogDifference));
    } else if (op == "add" || op == "maximum" || op == "minimum" || op == "multiply") {
      // A detached part only bounds a value whose gradient passes as if it were not bounded.
      if (is_constant(y) || is_detached(y)) seed_spread(x, unit);
      if (is_constant(x) || is_detached(x)) seed_spread(y, unit);
    } else if (op == "clip" || op == "scale") {
      seed_spread(x, unit);
    }
  }

  static bool is_constant(const ir::Value* value) {
    if (!value) return false;
    return value->constant || (value->producer && value->producer->operands.empty());
  }

  static bool is_detached(const ir::Value* value) {
    return value && value->producer && value->producer->op->name() == "detach";
  }

  /// x and c of an operation c * x.
  static std::optional<std::pair<const ir::Value*, double>> constant_factor(
      const ir::Operation& operation) {
    const std::string_view op = operation.op->name();
    if (op == "neg") return std::pair(operation.operands[0], -1.0);
    if (op == "scale") {
      const AttrValue *factor = attribute(operation, "scale"), *bias = attribute(operation, "bias");
      if (!factor || (bias && bias->as_double() != 0)) return std::nullopt;
      return std::pair(operation.operands[0], factor->as_double());
    }
    if (op != "multiply" && op != "divide") return std::nullopt;
    for (const size_t c : {size_t{1}, size_t{0}}) {
      const ir::Value* value = operation.operands[c];
      if (!value || !value->constant || value->constant->size() != 1) continue;
      if (c == 0 && op == "divide") continue;
      const double number = value->constant->number(0);
      return std::pair(operation.operands[1 - c], op == "divide" ? 1 / number : number);
    }
    return std::nullopt;
  }

  void visit(const ir::Operation& operation) {
    if (operation.operands.empty() || operation.results.empty() || !operation.operands[0]) return;
    const ir::Value* result = operation.results[0];
    const ir::Value* x = operation.operands[0];
    const ir::Value* y = operation.operands.size() < 2 ? nullptr : operation.operands[1];
    const std::optional<Unit> first = unit_of(x), second = unit_of(y);
    if (first) tell_spread(operation, *first, y);
    if (second && operation.op->name() == "multiply") tell_spread(operation, *second, x);
    if (known(result, kAll)) return;
    if (const auto unit = result_of(operation, x, first, second)) seed(result, kAll, *unit);
  }

  /// The divisor of a distance is a distance: the standard deviation of a likelihood.
  void tell_spread(const ir::Operation& operation, const Unit& unit, const ir::Value* by) {
    const bool is_variance = unit.kind == UnitKind::kVariance;
    if (!by || is_constant(by) || (!is_variance && unit.kind != UnitKind::kDifference)) return;
    const std::string_view op = operation.op->name();
    if (op == "divide") return seed_spread(by, unit);
    if (op != "multiply") return;
    // exp(-x) in place of a division.
    const ir::Value* base = column_view(by).base;
    if (!base->producer || base->producer->op->name() != "exp") return;
    const ir::Value* exponent = column_view(base->producer->operands[0]).base;
    if (!exponent->producer) return;
    const auto factor = constant_factor(*exponent->producer);
    if (!factor || factor->second >= 0) return;
    const double power = (is_variance ? 2 : 1) / -factor->second;
    if (power != 1 && power != 2) return;
    const UnitKind kind = power == 1 ? UnitKind::kLogDifference : UnitKind::kLogVariance;
    seed_spread(factor->first, {unit.field, kind, unit.column});
  }

  std::optional<Unit> result_of(const ir::Operation& operation, const ir::Value* x,
                                const std::optional<Unit>& first,
                                const std::optional<Unit>& second) const {
    static const OpNames kKeeping = {"cast",         "assign",    "detach",  "copy",      "reshape",
                                     "squeeze",      "unsqueeze", "flatten", "transpose", "expand",
                                     "broadcast_to", "flip",      "roll",    "clip",      "relu",
                                     "tile",         "sort",      "median",  "quantile",  "topk"};
    static const OpNames kAveraging = {"mean", "max", "min", "median", "quantile", "sort", "topk"};
    static const OpNames kTaking = {"strided_slice", "index_select", "gather", "take_along_axis",
                                    "gather_nd"};
    static const OpNames kEqual = {"maximum", "minimum"};
    const std::string_view op = operation.op->name();
    const auto with = [](Unit unit, UnitKind kind) {
      unit.kind = kind;
      return std::optional(unit);
    };
    const auto is = [](const std::optional<Unit>& unit, UnitKind kind) {
      return unit && unit->kind == kind;
    };
    using K = UnitKind;
    if (op == "where" && operation.operands.size() == 3) {
      const auto other = unit_of(operation.operands[2]);
      return second == other ? second : std::nullopt;
    }
    if (op == "concat" || op == "stack") {
      for (const ir::Value* each : operation.operands)
        if (each && unit_of(each) != first) return std::nullopt;
      return is_single(first) ? first : std::nullopt;
    }
    if (op == "exp") {
      if (is(first, K::kLogDifference)) return with(*first, K::kDifference);
      return is(first, K::kLogVariance) ? with(*first, K::kVariance) : std::nullopt;
    }
    if (!first) {
      // difference + value
      if (op == "multiply" && second && is_constant(x) && is_spread(second)) return second;
      return std::nullopt;
    }
    if (kKeeping.contains(op) || (kAveraging.contains(op) && is_single(first))) return first;
    if (kTaking.contains(op)) return is_single(first) ? first : std::nullopt;
    const bool one_field =
        second && first->field == second->field && first->column == second->column;
    if (kEqual.contains(op)) {
      const bool bounded = operation.operands.size() == 2 && is_constant(operation.operands[1]);
      return second == first || bounded ? first : std::nullopt;
    }
    if (op == "subtract" && one_field) {
      if (is(first, K::kValue) && is(second, K::kValue)) return with(*first, K::kDifference);
      if (is(second, K::kDifference) && !is(first, K::kVariance)) return first;
    }
    if (op == "add" && one_field) {
      if (is(second, K::kDifference) && (is(first, K::kValue) || is(first, K::kDifference)))
        return first;
      if (is(first, K::kDifference) && is(second, K::kValue)) return second;
    }
    if (is_spread(first) && (op == "multiply" || op == "divide") &&
        is_constant(operation.operands[1]))
      return first;
    if (op == "multiply" && one_field && is(first, K::kDifference) && is(second, K::kDifference))
      return with(*first, K::kVariance);
    if (is(first, K::kDifference)) {
      if (op == "abs" || op == "neg" || op == "scale") return first;
      if (op == "square") return with(*first, K::kVariance);
      if (op == "log") return with(*first, K::kLogDifference);
    }
    if (is(first, K::kVariance)) {
      if (op == "scale") return first;
      if (op == "sqrt") return with(*first, K::kDifference);
      if (op == "log") return with(*first, K::kLogVariance);
    }
    return std::nullopt;
  }

  /// Whether all numbers are of one column.
  bool is_single(const std::optional<Unit>& unit) const {
    return unit && (unit->column >= 0 || columns_[unit->field] == 1);
  }
  static bool is_spread(const std::optional<Unit>& unit) {
    return unit && (unit->kind == UnitKind::kDifference || unit->kind == UnitKind::kVariance);
  }

  std::vector<std::string> fields_;
  std::vector<int64_t> columns_;  ///< of each field
  std::map<std::pair<const ir::Value*, int64_t>, Unit> known_;
};

}  // namespace

const char* name_of(UnitKind kind) {
  switch (kind) {
    case UnitKind::kValue:
      return "value";
    case UnitKind::kDifference:
      return "difference";
    case UnitKind::kVariance:
      return "variance";
    case UnitKind::kLogDifference:
      return "log_difference";
    case UnitKind::kLogVariance:
      return "log_variance";
  }
  return "";
}

ColumnView column_view(const ir::Value* value) {
  static const OpNames kSame = {"cast", "copy", "assign", "detach"};
  static const OpNames kOtherShape = {"reshape", "squeeze",   "unsqueeze",   "flatten",
                                      "expand",  "transpose", "broadcast_to"};
  ColumnView out{value};
  while (out.base && out.base->producer && !out.base->producer->operands.empty() &&
         out.base->producer->operands[0]) {
    const ir::Operation& operation = *out.base->producer;
    const std::string_view op = operation.op->name();
    const ir::Value* x = operation.operands[0];
    if (kOtherShape.contains(op)) {
      const bool keeps_last =
          op != "transpose" && last_size(*x) > 0 && last_size(*x) == last_size(*out.base);
      if (!out.columns.empty() && !keeps_last) break;
    } else if (op == "strided_slice") {
      const Taken taken = taken_by(operation);
      if (!taken.all && taken.places.empty()) break;
      if (!taken.all && out.columns.empty())
        out.columns = taken.places;
      else if (!taken.all)
        for (int64_t& column : out.columns) column = taken.places.at(static_cast<size_t>(column));
    } else if (!kSame.contains(op)) {
      break;
    }
    out.base = x;
  }
  return out;
}

std::vector<OutputUnit> output_units(
    const ir::Function& function, const std::vector<Comparison>& comparisons,
    const std::vector<std::pair<std::string, const ir::Value*>>& outputs) {
  const UnitAnalysis analysis(function, comparisons);
  std::vector<OutputUnit> out;
  for (const auto& [name, value] : outputs)
    if (value)
      for (OutputUnit& each : analysis.units(name, value)) out.push_back(std::move(each));
  return out;
}

}  // namespace paddle::program
