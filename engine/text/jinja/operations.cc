// Python's operators on template values.
#include <algorithm>
#include <cmath>

#include "text/jinja/interpreter.h"
#include "text/unicode.h"

namespace paddle::jinja {

std::vector<Value> iterate(Interpreter& interpreter, const Value& value) {
  if (value.is_undefined()) return {};
  std::vector<Value> out;
  if (value.is_list()) {
    interpreter.charge_list(value.items().values.size());
    return value.items().values;
  }
  if (value.is_dict()) {
    interpreter.charge_list(value.dict().entries.size());
    for (const auto& [key, item] : value.dict().entries) out.push_back(key);
    return out;
  }
  if (value.is_string()) {
    const auto count = static_cast<size_t>(character_count(value.string()));
    interpreter.charge_list(count);
    interpreter.charge_texts(count, value.string().size());
    out.reserve(count);
    unicode::for_each(value.string(),
                      [&](uint32_t, std::string_view c) { out.emplace_back(std::string(c)); });
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

Value item_of(Interpreter& interpreter, const Value& value, const Value& key) {
  if (value.is_undefined()) fail(ErrorCode::kData, "'", value.undefined().name, "' is undefined");
  if (value.is_dict()) {
    if (const Value* found = value.dict().find(key, interpreter.budget())) return *found;
  } else if (((value.is_list() && !value.items().is_generator) || value.is_string()) &&
             key.is_integer()) {
    const int64_t size = value.is_list() ? static_cast<int64_t>(value.items().values.size())
                                         : character_count(value.string());
    int64_t i = key.integer();
    if (i < 0) i += size;
    if (i >= 0 && i < size) {
      if (value.is_list()) return value.items().values[static_cast<size_t>(i)];
      size_t at = 0;
      for (const std::string& text = value.string(); i > 0; --i)
        at += std::max<size_t>(utf8_character(text, at).length, 1);
      const size_t length = std::max<size_t>(utf8_character(value.string(), at).length, 1);
      return value.string().substr(at, length);
    }
  } else if (value.is_object() && key.is_string()) {
    return value.object()->attribute(key.string());
  }
  if (key.is_string())
    if (Value method = method_of(value, key.string()); !method.is_undefined()) return method;
  return Undefined{value.type_name() + " object has no element " + key.repr(interpreter.budget())};
}

bool contains(Interpreter& interpreter, const Value& container, const Value& item) {
  if (container.is_string()) {
    if (!item.is_string())
      fail(ErrorCode::kData, "'in <string>' needs a string on its left, not ", item.type_name());
    return container.string().find(item.string()) != std::string::npos;
  }
  if (container.is_dict()) return container.dict().find(item, interpreter.budget()) != nullptr;
  const auto is_item = [&](const Value& v) { return equal(v, item, interpreter.budget()); };
  if (container.is_list())
    return std::any_of(container.items().values.begin(), container.items().values.end(), is_item);
  const std::vector<Value> items = iterate(interpreter, container);
  return std::any_of(items.begin(), items.end(), is_item);
}

namespace {

[[noreturn]] void reject_types(std::string_view name, const Value& a, const Value& b) {
  fail(ErrorCode::kData, "operator ", name, " does not take ", a.type_name(), " and ",
       b.type_name());
}

[[noreturn]] void reject_overflow() { fail(ErrorCode::kData, "an integer is too large"); }

/// Python computes with integers of any size; here those beyond 64 bits are only printed.
void check_computable(const Value& a, const Value& b) {
  if ((a.is_big() && !b.is<double>()) || (b.is_big() && !a.is<double>())) reject_overflow();
}

Value repeated(Interpreter& interpreter, const Value& value, int64_t count) {
  count = std::max<int64_t>(count, 0);
  const auto times = static_cast<uint64_t>(count);
  if (value.is_string()) {
    interpreter.charge_texts(1, 0);
    BudgetedText out(interpreter.budget());
    out.repeat(value.string(), times);
    return out.take();
  }
  const size_t size = value.items().values.size();
  interpreter.charge_list(0);
  interpreter.budget().charge(times, size * sizeof(Value));
  std::vector<Value> out;
  for (int64_t i = 0; i < count && size > 0; ++i)
    out.insert(out.end(), value.items().values.begin(), value.items().values.end());
  return value.items().is_tuple ? Value::tuple(std::move(out)) : Value::list(std::move(out));
}

Value integer_arithmetic(const std::string& name, int64_t a, int64_t b) {
  int64_t out = 0;
  if (name == "-") {
    if (__builtin_sub_overflow(a, b, &out)) reject_overflow();
    return out;
  }
  if (name == "*") {
    if (__builtin_mul_overflow(a, b, &out)) reject_overflow();
    return out;
  }
  if (name == "**") {
    if (b < 0) return std::pow(static_cast<double>(a), static_cast<double>(b));
    out = 1;
    for (int64_t i = 0; i < b; ++i) {
      if (__builtin_mul_overflow(out, a, &out)) reject_overflow();
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
    if (__builtin_add_overflow(a.integer(), b.integer(), &out)) reject_overflow();
    return out;
  }
  if (a.is_number() && b.is_number()) {
    check_computable(a, b);
    return a.number() + b.number();
  }
  if (a.is_string() && b.is_string()) {
    interpreter.charge_texts(1, a.string().size() + b.string().size());
    return a.string() + b.string();
  }
  if (a.is_list() && b.is_list() && a.items().is_tuple == b.items().is_tuple) {
    interpreter.charge_list(a.items().values.size() + b.items().values.size());
    std::vector<Value> out = a.items().values;
    out.insert(out.end(), b.items().values.begin(), b.items().values.end());
    return a.items().is_tuple ? Value::tuple(std::move(out)) : Value::list(std::move(out));
  }
  reject_types("+", a, b);
}

Value arithmetic(Interpreter& interpreter, const std::string& name, const Value& a,
                 const Value& b) {
  if (name == "%" && a.is_string()) {
    interpreter.charge_texts(1, 0);
    return percent_format(interpreter, a.string(), b);
  }
  if (name == "*") {
    if ((a.is_string() || a.is_list()) && b.is_integer())
      return repeated(interpreter, a, b.integer());
    if ((b.is_string() || b.is_list()) && a.is_integer())
      return repeated(interpreter, b, a.integer());
  }
  if (!a.is_number() || !b.is_number()) reject_types(name, a, b);
  if (a.is_integer() && b.is_integer()) return integer_arithmetic(name, a.integer(), b.integer());
  check_computable(a, b);
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

namespace {

/// One specification of a format, such as "%-5.2f".
struct FormatSpec {
  std::string flags;
  int64_t width = 0, precision = -1;
  char kind = '\0';
};

/// Reads the specification after the sign at `format[i]`, which moves to its last character.
FormatSpec read_spec(std::string_view format, size_t& i) {
  constexpr int64_t kMax = 100'000;  // the length of a format
  FormatSpec out;
  const auto next = [&] { return ++i < format.size() ? format[i] : '\0'; };
  const auto number = [&](char& c) {
    int64_t value = 0;
    for (; c >= '0' && c <= '9'; c = next()) {
      if (value > kMax) fail(ErrorCode::kData, "a format that is too long");
      value = value * 10 + (c - '0');
    }
    return value;
  };
  char c = next();
  for (; c != '\0' && std::string_view("-+ 0#").find(c) != std::string_view::npos; c = next())
    if (out.flags.find(c) == out.flags.npos) out.flags += c;
  out.width = number(c);
  if (c == '.') {
    c = next();
    out.precision = number(c);
  }
  out.kind = c;
  return out;
}

/// A number as snprintf writes it; `format` ends with the length and the kind.
template <class Number>
std::string formatted(const FormatSpec& spec, const char* kind, Number number) {
  constexpr int64_t kMaxCharacters = 511;
  char buffer[kMaxCharacters + 1];
  int length = -1;
  if (spec.width <= kMaxCharacters && spec.precision <= kMaxCharacters) {
    std::string format = "%" + spec.flags;
    if (spec.width > 0) format += std::to_string(spec.width);
    if (spec.precision >= 0) format += "." + std::to_string(spec.precision);
    length = std::snprintf(buffer, sizeof buffer, (format + kind).c_str(), number);
  }
  if (length < 0 || static_cast<size_t>(length) >= sizeof buffer)
    fail(ErrorCode::kData, "a formatted number of more than ", kMaxCharacters, " characters");
  return {buffer, static_cast<size_t>(length)};
}

std::string format_value(Interpreter& interpreter, const FormatSpec& spec, const Value& value) {
  const std::string_view kind(&spec.kind, 1);
  const bool plain = spec.flags.empty() && spec.width == 0 && spec.precision < 0;
  if (spec.kind == 's' || spec.kind == 'r') {
    if (!plain) fail(ErrorCode::kData, "a width for %s is not supported");
    return spec.kind == 's' ? value.text(interpreter.budget()) : value.repr(interpreter.budget());
  }
  if (std::string_view("dixX").find(spec.kind) != std::string_view::npos && value.is_number()) {
    const bool decimal = spec.kind == 'd' || spec.kind == 'i';
    if (value.is_big() && decimal && plain) return value.digits();
    if (!value.is_integer() && !(std::abs(value.number()) < 0x1p63))
      fail(ErrorCode::kData, "%", kind, " does not format ", value.text(interpreter.budget()));
    const auto number = static_cast<long long>(
        value.is_integer() ? value.integer() : std::llround(std::trunc(value.number())));
    return formatted(spec, decimal ? "lld" : spec.kind == 'x' ? "llx" : "llX", number);
  }
  if (std::string_view("feEgG").find(spec.kind) != std::string_view::npos && value.is_number()) {
    const char name[] = {spec.kind, '\0'};
    return formatted(spec, name, value.number());
  }
  fail(ErrorCode::kData, "%", kind, " does not format ", value.type_name());
}

}  // namespace

std::string percent_format(Interpreter& interpreter, const std::string& format,
                           const Value& values) {
  const std::vector<Value> items = values.is_list() && values.items().is_tuple
                                       ? values.items().values
                                       : std::vector<Value>{values};
  BudgetedText out(interpreter.budget());
  size_t used = 0;
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%') {
      out += format[i];
      continue;
    }
    const FormatSpec spec = read_spec(format, i);
    if (spec.kind == '%') {
      out += '%';
      continue;
    }
    if (used >= items.size()) fail(ErrorCode::kData, "not enough values for the format");
    out += format_value(interpreter, spec, items[used++]);
  }
  if (used < items.size() && !values.is_dict())
    fail(ErrorCode::kData, "too many values for the format");
  return out.take();
}

}  // namespace paddle::jinja
