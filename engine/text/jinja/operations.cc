// Python's operators on template values.
#include <algorithm>
#include <cmath>

#include "text/jinja/interpreter.h"

namespace paddle::jinja {

std::vector<Value> iterate(const Value& value) {
  if (value.is_undefined()) return {};
  if (value.is_list()) return value.items().values;
  std::vector<Value> out;
  if (value.is_dict()) {
    for (const auto& [key, item] : value.dict().entries) out.push_back(key);
    return out;
  }
  if (value.is_string()) {
    for (const std::string_view c : characters(value.string())) out.emplace_back(std::string(c));
    return out;
  }
  fail(ErrorCode::kData, "'", value.type_name(), "' object is not iterable");
}

Value attribute_of(const Value& value, const std::string& name) {
  if (value.is_undefined()) fail(ErrorCode::kData, "'", value.undefined().name, "' is undefined");
  if (value.is_object()) return value.object()->attribute(name);
  if (Value method = method_of(value, name); !method.is_undefined()) return method;
  if (value.is_dict())
    if (const Value* found = value.dict().find(std::string_view(name))) return *found;
  return Undefined{value.type_name() + " object has no attribute " + name};
}

Value item_of(const Value& value, const Value& key) {
  if (value.is_undefined()) fail(ErrorCode::kData, "'", value.undefined().name, "' is undefined");
  if (value.is_dict()) {
    if (const Value* found = value.dict().find(key)) return *found;
  } else if (((value.is_list() && !value.items().is_generator) || value.is_string()) &&
             key.is_integer()) {
    const int64_t size = value.is_list() ? static_cast<int64_t>(value.items().values.size())
                                         : character_count(value.string());
    int64_t i = key.integer();
    if (i < 0) i += size;
    if (i >= 0 && i < size) {
      if (value.is_list()) return value.items().values[static_cast<size_t>(i)];
      return std::string(characters(value.string())[static_cast<size_t>(i)]);
    }
  } else if (value.is_object() && key.is_string()) {
    return value.object()->attribute(key.string());
  }
  if (key.is_string())
    if (Value method = method_of(value, key.string()); !method.is_undefined()) return method;
  return Undefined{value.type_name() + " object has no element " + key.repr()};
}

bool contains(const Value& container, const Value& item) {
  if (container.is_string()) {
    if (!item.is_string())
      fail(ErrorCode::kData, "'in <string>' needs a string on its left, not ", item.type_name());
    return container.string().find(item.string()) != std::string::npos;
  }
  if (container.is_dict()) return container.dict().find(item) != nullptr;
  const std::vector<Value> items = iterate(container);
  return std::any_of(items.begin(), items.end(), [&](const Value& v) { return equal(v, item); });
}

namespace {

[[noreturn]] void refuse_types(std::string_view name, const Value& a, const Value& b) {
  fail(ErrorCode::kData, "operator ", name, " does not take ", a.type_name(), " and ",
       b.type_name());
}

[[noreturn]] void refuse_overflow() { fail(ErrorCode::kData, "an integer is too large"); }

Value repeated(Interpreter& interpreter, const Value& value, int64_t count) {
  count = std::max<int64_t>(count, 0);
  const size_t size =
      value.is_string() ? value.string().size() : value.items().values.size() * sizeof(Value);
  size_t bytes = 0;
  if (__builtin_mul_overflow(size, static_cast<size_t>(count), &bytes)) bytes = SIZE_MAX;
  interpreter.charge(bytes);
  if (value.is_string()) {
    std::string out;
    for (int64_t i = 0; i < count && size > 0; ++i) out += value.string();
    return out;
  }
  std::vector<Value> out;
  for (int64_t i = 0; i < count && size > 0; ++i)
    out.insert(out.end(), value.items().values.begin(), value.items().values.end());
  return value.items().is_tuple ? Value::tuple(std::move(out)) : Value::list(std::move(out));
}

Value integer_arithmetic(const std::string& name, int64_t a, int64_t b) {
  int64_t out = 0;
  if (name == "-") {
    if (__builtin_sub_overflow(a, b, &out)) refuse_overflow();
    return out;
  }
  if (name == "*") {
    if (__builtin_mul_overflow(a, b, &out)) refuse_overflow();
    return out;
  }
  if (name == "**") {
    if (b < 0) return std::pow(static_cast<double>(a), static_cast<double>(b));
    out = 1;
    for (int64_t i = 0; i < b; ++i) {
      if (__builtin_mul_overflow(out, a, &out)) refuse_overflow();
      if (out == 0 || (out == 1 && a == 1)) return out;
      if (a == -1) return int64_t{b % 2 == 0 ? 1 : -1};
    }
    return out;
  }
  if (b == 0) fail(ErrorCode::kData, "division by zero");
  if (name == "/") return static_cast<double>(a) / static_cast<double>(b);
  if (b == -1) return name == "%" ? Value(int64_t{0}) : integer_arithmetic("-", 0, a);
  // Python rounds towards minus infinity.
  const int64_t quotient = a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
  return name == "//" ? quotient : a - quotient * b;
}

}  // namespace

Value add(Interpreter& interpreter, const Value& a, const Value& b) {
  if (a.is_integer() && b.is_integer()) {
    int64_t out = 0;
    if (__builtin_add_overflow(a.integer(), b.integer(), &out)) refuse_overflow();
    return out;
  }
  if (a.is_number() && b.is_number()) return a.number() + b.number();
  if (a.is_string() && b.is_string()) return interpreter.charged(a.string() + b.string());
  if (a.is_list() && b.is_list() && a.items().is_tuple == b.items().is_tuple) {
    std::vector<Value> out = a.items().values;
    out.insert(out.end(), b.items().values.begin(), b.items().values.end());
    interpreter.charge(out.size() * sizeof(Value));
    return a.items().is_tuple ? Value::tuple(std::move(out)) : Value::list(std::move(out));
  }
  refuse_types("+", a, b);
}

Value arithmetic(Interpreter& interpreter, const std::string& name, const Value& a,
                 const Value& b) {
  if (name == "%" && a.is_string()) return interpreter.charged(percent_format(a.string(), b));
  if (name == "*") {
    if ((a.is_string() || a.is_list()) && b.is_integer())
      return repeated(interpreter, a, b.integer());
    if ((b.is_string() || b.is_list()) && a.is_integer())
      return repeated(interpreter, b, a.integer());
  }
  if (!a.is_number() || !b.is_number()) refuse_types(name, a, b);
  if (a.is_integer() && b.is_integer()) return integer_arithmetic(name, a.integer(), b.integer());
  const double x = a.number(), y = b.number();
  if (name == "-") return x - y;
  if (name == "*") return x * y;
  if (name == "**") return std::pow(x, y);
  if (y == 0) fail(ErrorCode::kData, "division by zero");
  if (name == "/") return x / y;
  if (name == "//") return std::floor(x / y);
  const double rest = std::fmod(x, y);
  return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
}

std::string percent_format(const std::string& format, const Value& values) {
  const std::vector<Value> items = values.is_list() && values.items().is_tuple
                                       ? values.items().values
                                       : std::vector<Value>{values};
  std::string out;
  size_t used = 0;
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%') {
      out += format[i];
      continue;
    }
    std::string flags = "%";
    for (++i; i < format.size() &&
              std::string_view("-+ 0#.123456789").find(format[i]) != std::string_view::npos;
         ++i)
      flags += format[i];
    const char kind = i < format.size() ? format[i] : '\0';
    if (kind == '%') {
      out += '%';
      continue;
    }
    if (flags.size() > 12) fail(ErrorCode::kData, "a format that is too long");
    if (used >= items.size()) fail(ErrorCode::kData, "not enough values for the format");
    const Value& value = items[used++];
    char buffer[512];
    int length = 0;
    if (kind == 's' || kind == 'r') {
      const std::string text = kind == 's' ? value.text() : value.repr();
      if (flags == "%") {
        out += text;
        continue;
      }
      fail(ErrorCode::kData, "a width for %s is not supported");
    } else if ((kind == 'd' || kind == 'i' || kind == 'x' || kind == 'X') && value.is_number()) {
      if (!value.is_integer() && !(std::abs(value.number()) < 0x1p63))
        fail(ErrorCode::kData, "%", std::string(1, kind), " does not format ", value.text());
      flags += "ll";
      flags += kind == 'i' ? 'd' : kind;
      length = std::snprintf(
          buffer, sizeof buffer, flags.c_str(),
          static_cast<long long>(value.is_integer() ? value.integer()
                                                    : std::llround(std::trunc(value.number()))));
    } else if (std::string_view("feEgG").find(kind) != std::string_view::npos &&
               value.is_number()) {
      flags += kind;
      length = std::snprintf(buffer, sizeof buffer, flags.c_str(), value.number());
    } else {
      fail(ErrorCode::kData, "%", std::string(1, kind), " does not format ", value.type_name());
    }
    if (length < 0 || static_cast<size_t>(length) >= sizeof buffer)
      fail(ErrorCode::kData, "a formatted number of more than ", sizeof buffer - 1, " characters");
    out.append(buffer, static_cast<size_t>(length));
  }
  if (used < items.size() && !values.is_dict())
    fail(ErrorCode::kData, "too many values for the format");
  return out;
}

}  // namespace paddle::jinja
