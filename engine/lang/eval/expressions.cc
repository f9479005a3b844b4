// Expressions: everything between names and calls.
#include "lang/eval/distributions.h"
#include "lang/eval/evaluation.h"

namespace paddle::lang {
namespace {

/// Python's `and`/`or` on values that are not tensors give the deciding operand.
bool decides(std::string_view op, const Value& value) { return truth(value) == (op == "or"); }

}  // namespace

Value Evaluation::evaluate(const Expr& expr, Frame& frame) {
  const DepthGuard guard(depth_);
  if (guard.too_deep()) reject(expr.where, "more than 200 levels of nesting");
  switch (expr.kind) {
    case ExprKind::kName:
      return evaluate_name(expr, frame);
    case ExprKind::kInteger:
      return Value(expr.integer);
    case ExprKind::kReal:
      return Value(expr.real);
    case ExprKind::kImaginary:
      return Value(Tensor::number(std::complex<double>(0, expr.real)));
    case ExprKind::kString:
      return Value(expr.text);
    case ExprKind::kBool:
      return Value(expr.integer != 0);
    case ExprKind::kNone:
      return Value();
    case ExprKind::kEllipsis:
    case ExprKind::kSlice:
      reject(expr.where, "this is allowed only inside an index");
    case ExprKind::kList:
    case ExprKind::kTuple: {
      ValueList items;
      items.reserve(expr.children.size());
      for (const ExprPtr& child : expr.children) items.push_back(evaluate(*child, frame));
      return expr.kind == ExprKind::kList ? Value::list(std::move(items))
                                          : Value::tuple(std::move(items));
    }
    case ExprKind::kUnary:
      return operations_.unary(expr.operators[0], evaluate(*expr.children[0], frame), expr.where);
    case ExprKind::kBinary: {
      Value value = evaluate(*expr.children[0], frame);
      for (size_t i = 0; i < expr.operators.size(); ++i) {
        const Value other = evaluate(*expr.children[i + 1], frame);
        value = operations_.binary(expr.operators[i], value, other, expr.operator_places[i]);
      }
      return value;
    }
    case ExprKind::kLogical: {
      const std::string& op = expr.operators[0];
      Value value = evaluate(*expr.children[0], frame);
      for (size_t i = 0; i < expr.operators.size(); ++i) {
        const SourcePosition& where = expr.operator_places[i];
        if (!value.is_tensor() && with_location_scope(where, [&] { return decides(op, value); }))
          return value;
        const Value other = evaluate(*expr.children[i + 1], frame);
        if (value.is_tensor() || other.is_tensor()) {
          const Tensor a = operations_.to_tensor(value, where, op),
                       b = operations_.to_tensor(other, where, op);
          value = operations_.op(op == "and" ? "logical_and" : "logical_or", {a, b}, where);
        } else {
          value = other;
        }
      }
      return value;
    }
    case ExprKind::kCompare: {
      Value left = evaluate(*expr.children[0], frame);
      Value result;
      for (size_t i = 0; i < expr.operators.size(); ++i) {
        const SourcePosition& where = expr.operator_places[i];
        Value right = evaluate(*expr.children[i + 1], frame);
        const Value part = operations_.compare(expr.operators[i], left, right, where);
        if (i == 0) {
          result = part;
        } else if (part.is_tensor() || result.is_tensor()) {
          result = operations_.op("logical_and",
                                  {operations_.to_tensor(result, where, "and"),
                                   operations_.to_tensor(part, where, "and")},
                                  where);
        } else {
          result = Value(truth(result) && truth(part));
        }
        if (!result.is_tensor() && !truth(result)) return result;
        left = std::move(right);
      }
      return result;
    }
    case ExprKind::kConditional: {
      const Value condition = evaluate(*expr.children[1], frame);
      if (condition.is_tensor())
        return statements_.conditional_on_tensor(condition.tensor(), expr, frame);
      const bool first =
          with_location_scope(expr.children[1]->where, [&] { return truth(condition); });
      return evaluate(*expr.children[first ? 0 : 2], frame);
    }
    case ExprKind::kCall:
      return call(expr, frame);
    case ExprKind::kAttribute:
      return evaluate_attribute(expr, frame);
    case ExprKind::kIndex:
      return index(evaluate(*expr.children[0], frame), expr, frame);
  }
  return {};
}

Value Evaluation::evaluate_attribute(const Expr& expr, Frame& frame) {
  const Value base = evaluate(*expr.children[0], frame);
  const std::string& name = expr.text;
  if (const auto* map = base.get<Value::Map>()) {
    std::vector<std::string> keys;
    for (const auto& [key, value] : *map->entries) {
      if (key == name) return value;
      keys.push_back(key);
    }
    reject(expr.where, str("the map has no '", name, "'", did_you_mean(name, keys)));
  }
  if (auto value = distribution_attribute(*this, base, name, expr.where)) return *value;
  if (base.is_tensor()) {
    const Tensor& tensor = base.tensor();
    if (name == "shape") {
      ValueList dims;
      for (const Dim& dim : tensor.shape()) dims.emplace_back(dim);
      return Value::list(std::move(dims));
    }
    if (name == "ndim") return Value(tensor.ndim());
    if (name == "dtype") return Value(text(tensor.dtype()));
    if (find_op(name)) reject(expr.where, str("'", name, "' is a method: write ", name, "(…)"));
    const std::vector<std::string> known = {"shape", "ndim", "dtype"};
    reject(expr.where, str("a tensor has no '", name, "'", did_you_mean(name, known)));
  }
  reject(expr.where, str(base.describe(), " has no '", name, "'"));
}

}  // namespace paddle::lang
