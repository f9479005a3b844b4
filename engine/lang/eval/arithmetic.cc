// Operators on numbers (64-bit, overflow is an error), dims (symbolic), text, lists and tensors.
#include <cmath>

#include "lang/eval/operations.h"

namespace paddle::lang {
namespace {

const char* operation_of(std::string_view op) {
  if (op == "+") return "add";
  if (op == "-") return "subtract";
  if (op == "*") return "multiply";
  if (op == "/") return "divide";
  if (op == "//") return "floor_divide";
  if (op == "%") return "remainder";
  if (op == "**") return "pow";
  if (op == "@") return "matmul";
  if (op == "==") return "equal";
  if (op == "!=") return "not_equal";
  if (op == "<") return "less_than";
  if (op == "<=") return "less_equal";
  if (op == ">") return "greater_than";
  return "greater_equal";
}

[[noreturn]] void overflow(std::string_view op, int64_t a, int64_t b) {
  fail(ErrorCode::kConfig, a, " ", op, " ", b, " does not fit in 64 bits");
}

int64_t floor_divide(int64_t a, int64_t b) {
  if (a == INT64_MIN && b == -1) overflow("//", a, b);
  const int64_t q = a / b;
  return q - (a % b != 0 && (a < 0) != (b < 0));
}

int64_t remainder(int64_t a, int64_t b) {
  if (b == -1) return 0;
  const int64_t r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

int64_t power(int64_t base, int64_t exponent) {
  const int64_t first = base, second = exponent;
  int64_t result = 1;
  while (true) {
    if ((exponent & 1) && __builtin_mul_overflow(result, base, &result))
      overflow("**", first, second);
    exponent >>= 1;
    if (exponent == 0) return result;
    if (__builtin_mul_overflow(base, base, &base)) overflow("**", first, second);
  }
}

Value integers(std::string_view op, int64_t a, int64_t b) {
  int64_t out = 0;
  if (op == "+") {
    if (__builtin_add_overflow(a, b, &out)) overflow(op, a, b);
    return out;
  }
  if (op == "-") {
    if (__builtin_sub_overflow(a, b, &out)) overflow(op, a, b);
    return out;
  }
  if (op == "*") {
    if (__builtin_mul_overflow(a, b, &out)) overflow(op, a, b);
    return out;
  }
  if (op == "**") {
    if (b >= 0) return power(a, b);
    if (a == 0) fail(ErrorCode::kConfig, "0 to a negative power");
    return std::pow(static_cast<double>(a), static_cast<double>(b));
  }
  if (b == 0) fail(ErrorCode::kConfig, "division by zero: ", a, " ", op, " 0");
  if (op == "/") return static_cast<double>(a) / static_cast<double>(b);
  return op == "//" ? floor_divide(a, b) : remainder(a, b);
}

Value reals(std::string_view op, double a, double b) {
  if (op == "+") return a + b;
  if (op == "-") return a - b;
  if (op == "*") return a * b;
  if (op == "**") {
    if (a == 0 && b < 0) fail(ErrorCode::kConfig, "0 to a negative power");
    if (a < 0 && b != std::floor(b))
      fail(ErrorCode::kConfig, "a negative number to a fractional power");
    return std::pow(a, b);
  }
  if (b == 0) fail(ErrorCode::kConfig, "division by zero: ", a, " ", op, " 0");
  if (op == "/") return a / b;
  if (op == "//") return std::floor(a / b);
  const double r = std::fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

Dim dim_of(const Value& value) { return value.is_dim() ? *value.get<Dim>() : Dim(value.integer()); }

Value dims(std::string_view op, const Value& left, const Value& right) {
  if (left.is<double>() || right.is<double>()) {
    fail(ErrorCode::kConfig, "the dim '", left.is_dim() ? *left.get<Dim>() : *right.get<Dim>(),
         "' takes integers only, found ", (left.is_dim() ? right : left).describe());
  }
  const Dim a = dim_of(left), b = dim_of(right);
  if (op == "+") return a + b;
  if (op == "-") return a - b;
  if (op == "*") return a * b;
  if (op == "//") return floor_divide(a, b);
  if (op == "%") return modulo(a, b);
  if (op == "/")
    fail(ErrorCode::kConfig, "'/' on the dim '", left.is_dim() ? a : b, "' (use '//')");
  if (op == "**" && right.is_integer() && right.integer() >= 0 && right.integer() <= 8) {
    Dim out(1);
    for (int64_t i = 0; i < right.integer(); ++i) out = out * a;
    return out;
  }
  fail(ErrorCode::kConfig, "'", op, "' of ", left.describe(), " and ", right.describe());
}

Value lists(std::string_view op, const Value& a, const Value& b) {
  const ValueList *left = a.items(), *right = b.items();
  const bool same = a.is<Value::List>() == b.is<Value::List>();
  ValueList out;
  if (op == "+" && left && right && same) {
    if (left->size() + right->size() > kMaxListItems)
      fail(ErrorCode::kConfig, "a list of over a million");
    out = *left;
    out.insert(out.end(), right->begin(), right->end());
  } else if (op == "*" && (left ? b : a).is_integer()) {
    const ValueList& items = left ? *left : *right;
    const int64_t times = std::max<int64_t>(0, (left ? b : a).integer());
    if (!items.empty() && times > static_cast<int64_t>(kMaxListItems / items.size())) {
      fail(ErrorCode::kConfig, "a list of over a million");
    }
    for (int64_t i = 0; i < times; ++i) out.insert(out.end(), items.begin(), items.end());
  } else {
    fail(ErrorCode::kConfig, "'", op, "' of ", a.describe(), " and ", b.describe());
  }
  const bool is_list = left ? a.is<Value::List>() : b.is<Value::List>();
  return is_list ? Value::list(std::move(out)) : Value::tuple(std::move(out));
}

bool contains(const Value& needle, const Value& haystack) {
  if (const ValueList* items = haystack.items()) {
    for (const Value& item : *items) {
      if (!item.is_tensor() && same_value(needle, item)) return true;
    }
    return false;
  }
  if (const auto* map = haystack.get<Value::Map>(); map && needle.is<std::string>()) {
    for (const auto& [key, value] : *map->entries) {
      if (key == *needle.get<std::string>()) return true;
    }
    return false;
  }
  if (haystack.is<std::string>() && needle.is<std::string>()) {
    return haystack.get<std::string>()->find(*needle.get<std::string>()) != std::string::npos;
  }
  fail(ErrorCode::kConfig, "'in' needs a list, found ", haystack.describe());
}

bool ordered(std::string_view op, const Value& a, const Value& b) {
  if (a.is_dim() || b.is_dim()) {
    const Value& real = a.is<double>() ? a : b;
    if (real.is<double>()) {
      fail(ErrorCode::kConfig, "a dim is compared with integers only, found ", real.describe());
    }
    const Dim left = dim_of(a), right = dim_of(b);
    const bool swap = op == ">" || op == "<=";
    const auto less = swap ? right.less(left) : left.less(right);
    if (!less) {
      fail(ErrorCode::kConfig, "whether ", left, " ", op, " ", right,
           " depends on the input (static(…) traces once for each value)");
    }
    return op == "<" || op == ">" ? *less : !*less;
  }
  const auto by = [&](const auto& x, const auto& y) {
    if (op == "<") return x < y;
    if (op == "<=") return x <= y;
    if (op == ">") return x > y;
    return x >= y;
  };
  if (a.is_integer() && b.is_integer()) return by(a.integer(), b.integer());
  if (a.is_number() && b.is_number()) return by(a.number(), b.number());
  if (a.is<std::string>() && b.is<std::string>())
    return by(*a.get<std::string>(), *b.get<std::string>());
  fail(ErrorCode::kConfig, "'", op, "' of ", a.describe(), " and ", b.describe());
}

}  // namespace

Tensor Operations::to_tensor(const Value& value, const SourcePosition& where,
                             std::string_view what) {
  if (value.is_tensor()) return value.tensor();
  if (value.is<bool>()) return Tensor::boolean(value.integer() != 0);
  if (value.is<int64_t>()) return Tensor::number(value.integer());
  if (value.is<double>()) return Tensor::number(value.number());
  if (const auto* dim = value.get<Dim>()) {
    static const Op& dim_value = get_op("dim_value");
    return invoke(dim_value, {{Value(*dim)}, {}, {}}, where).tensor();
  }
  context_.reject(where, str(what, ": expected a tensor or a number, found ", value.describe()));
}

Value Operations::binary(std::string_view op, const Value& a, const Value& b,
                         const SourcePosition& where) {
  if (a.is_tensor() || b.is_tensor()) {
    const std::string what = "'" + std::string(op) + "'";
    return this->op(operation_of(op), {to_tensor(a, where, what), to_tensor(b, where, what)},
                    where);
  }
  return context_.with_location_scope(where, [&]() -> Value {
    if (op == "@")
      fail(ErrorCode::kConfig, "'@' needs tensors, found ", a.describe(), " and ", b.describe());
    if (a.is_scalar() && b.is_scalar()) {
      if (a.is_dim() || b.is_dim()) return dims(op, a, b);
      if (a.is_integer() && b.is_integer()) return integers(op, a.integer(), b.integer());
      return reals(op, a.number(), b.number());
    }
    if (op == "+" && a.is<std::string>() && b.is<std::string>()) {
      const auto &left = *a.get<std::string>(), &right = *b.get<std::string>();
      if (left.size() + right.size() > config::kMaxStringBytes)
        fail(ErrorCode::kConfig, "a text of over 1 MiB");
      return left + right;
    }
    if (a.items() || b.items()) return lists(op, a, b);
    fail(ErrorCode::kConfig, "'", op, "' of ", a.describe(), " and ", b.describe());
  });
}

Value Operations::unary(std::string_view op, const Value& a, const SourcePosition& where) {
  if (a.is_tensor()) {
    if (op == "+") return a;
    return this->op(op == "-" ? "neg" : "logical_not", {a}, where);
  }
  return context_.with_location_scope(where, [&]() -> Value {
    if (op == "not") return !truth(a);
    if (!a.is_scalar()) fail(ErrorCode::kConfig, "'", op, "' of ", a.describe());
    if (op == "+") return a;
    if (a.is_dim()) return Dim(0) - *a.get<Dim>();
    if (a.is<double>()) return -a.number();
    if (a.integer() == INT64_MIN) overflow("-", 0, a.integer());
    return -a.integer();
  });
}

Value Operations::compare(std::string_view op, const Value& a, const Value& b,
                          const SourcePosition& where) {
  if (op == "is" || op == "is not") return Value(a.is_none() == (op == "is"));
  return context_.with_location_scope(where, [&]() -> Value {
    if (op == "in" || op == "not in") {
      if (a.is_tensor() || b.is_tensor()) fail(ErrorCode::kConfig, "'", op, "' on a tensor");
      return contains(a, b) == (op == "in");
    }
    const bool equality = op == "==" || op == "!=";
    if (a.is_tensor() || b.is_tensor()) {
      const Value& other = a.is_tensor() ? b : a;
      if (!other.is_tensor() && !other.is_scalar()) {
        if (equality) return op == "!=";
        fail(ErrorCode::kConfig, "'", op, "' of ", a.describe(), " and ", b.describe());
      }
      return this->op(operation_of(op), {to_tensor(a, where, op), to_tensor(b, where, op)}, where);
    }
    if (equality) return same_value(a, b) == (op == "==");
    return ordered(op, a, b);
  });
}

}  // namespace paddle::lang
