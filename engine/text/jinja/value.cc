#include "text/jinja/value.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <unordered_map>

#include "base/error.h"
#include "text/unicode.h"

namespace paddle::jinja {

namespace {

constexpr int kMaxValueDepth = 200;

[[noreturn]] void too_deep() { fail(ErrorCode::kData, "values are nested too deeply"); }

}  // namespace

Value Object::call(Interpreter&, const Arguments&) {
  fail(ErrorCode::kData, "'", type_name(), "' object is not callable");
}
Value Object::attribute(std::string_view name) const { return Undefined{std::string(name)}; }

Value Value::list(std::vector<Value> items) {
  return std::make_shared<const List>(std::move(items), false, false);
}
Value Value::tuple(std::vector<Value> items) {
  return std::make_shared<const List>(std::move(items), true, false);
}

Value Value::generator(std::vector<Value> items) {
  return std::make_shared<const List>(std::move(items), false, true);
}

int64_t Value::integer() const {
  if (is<bool>()) return std::get<bool>(content_) ? 1 : 0;
  return std::get<int64_t>(content_);
}
double Value::number() const {
  if (is<double>()) return std::get<double>(content_);
  if (is_big()) return std::strtod(digits().c_str(), nullptr);
  return static_cast<double>(integer());
}

bool Value::truth() const {
  if (is_undefined() || is_none()) return false;
  if (is_number()) return number() != 0;
  if (is_string()) return !string().empty();
  if (is_list()) return items().is_generator || !items().values.empty();
  if (is_dict()) return !dict().entries.empty();
  return true;
}

std::string Value::type_name() const {
  constexpr const char* kNames[] = {"Undefined", "NoneType", "bool", "int", "float", "str"};
  if (content_.index() < std::size(kNames)) return kNames[content_.index()];
  if (is_list()) return items().is_generator ? "generator" : items().is_tuple ? "tuple" : "list";
  if (is_big()) return "int";
  return is_dict() ? "dict" : object()->type_name();
}

std::string float_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[40];
  const double size = std::abs(value);
  const bool scientific = value != 0 && (size < 1e-4 || size >= 1e16);
  const auto end =
      std::to_chars(buffer, buffer + sizeof buffer, value,
                    scientific ? std::chars_format::scientific : std::chars_format::fixed);
  std::string out(buffer, end.ptr);
  if (!scientific && out.find('.') == out.npos) out += ".0";
  return out;
}

namespace {

void append_repr(BudgetedText& out, std::string_view text) {
  const bool single = text.find('\'') == text.npos || text.find('"') != text.npos;
  const char quote = single ? '\'' : '"';
  out += quote;
  unicode::for_each(text, [&](uint32_t code, std::string_view c) {
    if (code == '\n')
      out += "\\n";
    else if (code == '\r')
      out += "\\r";
    else if (code == '\t')
      out += "\\t";
    else if (code == '\\' || code == static_cast<uint32_t>(quote))
      (out += '\\') += c;
    else if (code < 32 || code == 127 || (code < 256 && unicode::is_other(code)) || code == 0xa0)
      out += fmt::format("\\x{:02x}", code);
    else if (unicode::is_other(code) || (unicode::is_white_space(code) && code != ' '))
      out += code < 0x10000 ? fmt::format("\\u{:04x}", code) : fmt::format("\\U{:08x}", code);
    else
      out += c;
  });
  out += quote;
}

void append_repr(BudgetedText& out, const Value& v, int depth) {
  if (depth > kMaxValueDepth) too_deep();
  out.budget().step();
  if (v.is_undefined()) {
    out += "Undefined";
  } else if (v.is_none()) {
    out += "None";
  } else if (v.is<bool>()) {
    out += v.integer() ? "True" : "False";
  } else if (v.is<int64_t>()) {
    out += std::to_string(v.integer());
  } else if (v.is_big()) {
    out += v.digits();
  } else if (v.is<double>()) {
    out += float_text(v.number());
  } else if (v.is_string()) {
    append_repr(out, v.string());
  } else if (v.is_list() && v.items().is_generator) {
    out += "<generator object>";
  } else if (v.is_list()) {
    const List& list = v.items();
    out += list.is_tuple ? '(' : '[';
    for (size_t i = 0; i < list.values.size(); ++i) {
      if (i) out += ", ";
      append_repr(out, list.values[i], depth + 1);
    }
    if (list.is_tuple && list.values.size() == 1) out += ',';
    out += list.is_tuple ? ')' : ']';
  } else if (v.is_dict()) {
    out += '{';
    bool first = true;
    for (const auto& [key, value] : v.dict().entries) {
      if (!first) out += ", ";
      first = false;
      append_repr(out, key, depth + 1);
      out += ": ";
      append_repr(out, value, depth + 1);
    }
    out += '}';
  } else {
    ((out += '<') += v.type_name()) += '>';
  }
}

}  // namespace

std::string Value::repr(TextBudget& budget) const {
  BudgetedText out(budget);
  append_repr(out, *this, 0);
  return out.take();
}

std::string Value::text(TextBudget& budget) const {
  if (is_undefined()) return "";
  return is_string() ? string() : repr(budget);
}

Value negated(const Value& big) {
  const std::string& digits = big.digits();
  if (digits[0] == '-') return BigInteger{digits.substr(1)};
  if (digits == "9223372036854775808") return INT64_MIN;
  return BigInteger{"-" + digits};
}

void discard(std::vector<Value> values) {
  if (std::none_of(values.begin(), values.end(), [](const Value& v) { return v.holds_values(); }))
    return;
  // Destructors that the loop below runs only add to `pending`.
  static thread_local std::vector<std::vector<Value>>* pending = nullptr;
  if (pending) {
    pending->push_back(std::move(values));
    return;
  }
  std::vector<std::vector<Value>> queue;
  queue.push_back(std::move(values));
  pending = &queue;
  while (!queue.empty()) {
    std::vector<Value> next = std::move(queue.back());
    queue.pop_back();
    next.clear();
  }
  pending = nullptr;
}

Dict::~Dict() {
  std::vector<Value> values;
  for (auto& [key, value] : entries) {
    if (key.holds_values()) values.push_back(std::move(key));
    if (value.holds_values()) values.push_back(std::move(value));
  }
  discard(std::move(values));
}

namespace {

bool equal_at(const Value& a, const Value& b, TextBudget& budget, int depth);

const Value* find_at(const Dict& dict, const Value& key, TextBudget& budget, int depth) {
  if (key.is_string()) return dict.find(std::string_view(key.string()));
  for (const auto& [k, v] : dict.entries)
    if (equal_at(k, key, budget, depth)) return &v;
  return nullptr;
}

/// The order of numbers, exact for big integers; 2 if one is NaN.
int number_order(const Value& a, const Value& b) {
  const auto order = [](const auto& x, const auto& y) { return x < y ? -1 : y < x ? 1 : 0; };
  if (a.is_integer() && b.is_integer()) return order(a.integer(), b.integer());
  if (!a.is_big() && !b.is_big()) {
    const double x = a.number(), y = b.number();
    return x != x || y != y ? 2 : order(x, y);
  }
  if (!a.is_big()) {
    const int reversed = number_order(b, a);
    return reversed == 2 ? 2 : -reversed;
  }
  const bool negative = a.digits()[0] == '-';
  std::string other;
  if (b.is_big()) {
    other = b.digits();
  } else if (const double y = b.number(); y != y) {
    return 2;
  } else if (std::abs(y) < 0x1p63 || std::isinf(y)) {
    return std::isinf(y) ? (y < 0 ? 1 : -1) : negative ? -1 : 1;
  } else {
    other = fmt::format("{:.0f}", y);  // floats of this size are integers
  }
  if ((other[0] == '-') != negative) return negative ? -1 : 1;
  const int size = order(a.digits().size(), other.size());
  return (size != 0 ? size : order(a.digits(), other)) * (negative ? -1 : 1);
}

bool equal_at(const Value& a, const Value& b, TextBudget& budget, int depth) {
  if (depth > kMaxValueDepth) too_deep();
  budget.step();
  if (a.is_number() && b.is_number()) return number_order(a, b) == 0;
  if (a.is_string() && b.is_string()) return a.string() == b.string();
  if (a.is_list() && b.is_list()) {
    const auto &x = a.items().values, &y = b.items().values;
    return a.items().is_tuple == b.items().is_tuple &&
           std::equal(x.begin(), x.end(), y.begin(), y.end(), [&](const Value& v, const Value& w) {
             return equal_at(v, w, budget, depth + 1);
           });
  }
  if (a.is_dict() && b.is_dict()) {
    if (a.dict().entries.size() != b.dict().entries.size()) return false;
    return std::all_of(a.dict().entries.begin(), a.dict().entries.end(), [&](const auto& entry) {
      const Value* other = find_at(b.dict(), entry.first, budget, depth + 1);
      return other && equal_at(entry.second, *other, budget, depth + 1);
    });
  }
  if (a.is_object() && b.is_object()) return a.object() == b.object();
  return (a.is_none() && b.is_none()) || (a.is_undefined() && b.is_undefined());
}

int compare_at(const Value& a, const Value& b, TextBudget& budget, int depth) {
  if (depth > kMaxValueDepth) too_deep();
  budget.step();
  const auto order = [](const auto& x, const auto& y) { return x < y ? -1 : y < x ? 1 : 0; };
  if (a.is_number() && b.is_number()) {
    const int found = number_order(a, b);
    return found == 2 ? 0 : found;
  }
  if (a.is_string() && b.is_string()) return order(a.string(), b.string());
  if (a.is_list() && b.is_list()) {
    const auto &x = a.items().values, &y = b.items().values;
    for (size_t i = 0; i < std::min(x.size(), y.size()); ++i)
      if (!equal_at(x[i], y[i], budget, 0)) return compare_at(x[i], y[i], budget, depth + 1);
    return order(x.size(), y.size());
  }
  fail(ErrorCode::kData, "'", a.type_name(), "' and '", b.type_name(), "' have no order");
}

}  // namespace

const Value* Dict::find(const Value& key, TextBudget& budget) const {
  return find_at(*this, key, budget, 0);
}
const Value* Dict::find(std::string_view key) const {
  for (const auto& [k, v] : entries)
    if (k.is_string() && k.string() == key) return &v;
  return nullptr;
}
void Dict::set(Value key, Value value) {
  TextBudget budget("making a dict", 0, 20'000'000);
  set(std::move(key), std::move(value), budget);
}
void Dict::set(Value key, Value value, TextBudget& budget) {
  if (const Value* const known = find(key, budget))
    *const_cast<Value*>(known) = std::move(value);
  else
    entries.emplace_back(std::move(key), std::move(value));
}

bool equal(const Value& a, const Value& b, TextBudget& budget) { return equal_at(a, b, budget, 0); }
int compare(const Value& a, const Value& b, TextBudget& budget) {
  return compare_at(a, b, budget, 0);
}

std::vector<size_t> stable_order(const std::vector<Value>& keys, bool reverse, TextBudget& budget) {
  std::vector<size_t> order(keys.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return compare(keys[a], keys[b], budget) * (reverse ? -1 : 1) < 0;
  });
  return order;
}

Value from_json(const Json& json) {
  switch (json.kind) {
    case Json::Kind::kNull:
      return None{};
    case Json::Kind::kBoolean:
      return json.boolean;
    case Json::Kind::kInteger:
      return json.integer;
    case Json::Kind::kNumber:
      return json.text.empty() ? Value(json.number) : Value(BigInteger{json.text});
    case Json::Kind::kString:
      return json.text;
    case Json::Kind::kArray: {
      std::vector<Value> items;
      for (const Json& item : json.items) items.push_back(from_json(item));
      return Value::list(std::move(items));
    }
    case Json::Kind::kObject: {
      Dict dict;
      std::unordered_map<std::string_view, size_t> places;
      for (const auto& [key, value] : json.entries)
        if (const auto [place, is_new] = places.try_emplace(key, dict.entries.size()); is_new)
          dict.entries.emplace_back(key, from_json(value));
        else
          dict.entries[place->second].second = from_json(value);
      return std::make_shared<const Dict>(std::move(dict));
    }
  }
  return {};
}

namespace {

void append_json_string(BudgetedText& out, std::string_view text, bool ascii) {
  out += '"';
  const auto escape = [&](uint32_t unit) { out += fmt::format("\\u{:04x}", unit); };
  unicode::for_each(text, [&](uint32_t code, std::string_view c) {
    constexpr std::string_view kNamed = "\"\\\n\r\t\f\b", kLetters = "\"\\nrtfb";
    if (const size_t at = code < 128 ? kNamed.find(static_cast<char>(code)) : kNamed.npos;
        at != kNamed.npos)
      (out += '\\') += kLetters[at];
    else if (code < 32)
      escape(code);
    else if (ascii && code >= 0x10000) {
      escape(0xd800 + ((code - 0x10000) >> 10));
      escape(0xdc00 + ((code - 0x10000) & 0x3ff));
    } else if (ascii && code > 126)
      escape(code);
    else
      out += c;
  });
  out += '"';
}

std::string json_key(const Value& key, TextBudget& budget) {
  if (key.is_string()) return key.string();
  if (key.is_none()) return "null";
  if (key.is<bool>()) return key.integer() ? "true" : "false";
  if (key.is_number()) return key.text(budget);
  fail(ErrorCode::kData, "keys of JSON objects cannot be of type ", key.type_name());
}

class JsonWriter {
 public:
  JsonWriter(const JsonFormat& format, TextBudget& budget) : format_(format), out_(budget) {
    if (format_.item_separator.empty()) format_.item_separator = format.indent >= 0 ? "," : ", ";
    if (format_.key_separator.empty()) format_.key_separator = ": ";
  }
  std::string take() { return out_.take(); }

  void write(const Value& v, int depth) {
    if (depth > kMaxValueDepth) too_deep();
    out_.budget().step();
    if (v.is_none()) {
      out_ += "null";
    } else if (v.is<bool>()) {
      out_ += v.integer() ? "true" : "false";
    } else if (v.is<double>()) {
      write_float(v.number());
    } else if (v.is_number()) {
      out_ += v.text(out_.budget());
    } else if (v.is_string()) {
      append_json_string(out_, v.string(), format_.ensure_ascii);
    } else if (v.is_list() && !v.items().is_generator) {
      write_list(v.items().values, depth);
    } else if (v.is_dict()) {
      write_dict(v.dict().entries, depth);
    } else {
      fail(ErrorCode::kData, "a value of type ", v.type_name(), " has no JSON form");
    }
  }

 private:
  void write_float(double d) {
    if (std::isnan(d))
      out_ += "NaN";
    else if (std::isinf(d))
      out_ += d < 0 ? "-Infinity" : "Infinity";
    else
      out_ += float_text(d);
  }
  void begin_line(int level) {
    if (format_.indent < 0) return;
    out_ += '\n';
    out_.repeat(" ", static_cast<uint64_t>(format_.indent) * static_cast<uint64_t>(level));
  }
  void write_list(const std::vector<Value>& items, int depth) {
    out_ += '[';
    for (size_t i = 0; i < items.size(); ++i) {
      if (i) out_ += format_.item_separator;
      begin_line(depth + 1);
      write(items[i], depth + 1);
    }
    if (!items.empty()) begin_line(depth);
    out_ += ']';
  }
  void write_dict(const std::vector<std::pair<Value, Value>>& entries, int depth) {
    std::vector<size_t> order(entries.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    if (format_.sort_keys) {
      std::vector<Value> keys;
      for (const auto& [key, value] : entries) keys.push_back(key);
      order = stable_order(keys, false, out_.budget());
    }
    out_ += '{';
    for (size_t i = 0; i < order.size(); ++i) {
      const auto& [key, value] = entries[order[i]];
      if (i) out_ += format_.item_separator;
      begin_line(depth + 1);
      append_json_string(out_, json_key(key, out_.budget()), format_.ensure_ascii);
      out_ += format_.key_separator;
      write(value, depth + 1);
    }
    if (!entries.empty()) begin_line(depth);
    out_ += '}';
  }

  JsonFormat format_;
  BudgetedText out_;
};

}  // namespace

std::string to_json(const Value& value, const JsonFormat& format, TextBudget& budget) {
  JsonWriter writer(format, budget);
  writer.write(value, 0);
  return writer.take();
}

std::vector<std::string_view> characters(std::string_view text, TextBudget& budget) {
  const auto count = static_cast<uint64_t>(character_count(text));
  budget.charge(count, sizeof(std::string_view));
  std::vector<std::string_view> out;
  out.reserve(count);
  unicode::for_each(text, [&](uint32_t, std::string_view c) { out.push_back(c); });
  return out;
}

int64_t character_count(std::string_view text) {
  return std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; });
}

}  // namespace paddle::jinja
