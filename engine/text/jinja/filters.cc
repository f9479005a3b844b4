// The filters.
#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "text/jinja/interpreter.h"
#include "text/jinja/strings.h"
#include "text/unicode.h"

namespace paddle::jinja {

namespace {

using I = Interpreter&;
using V = const Value&;
using A = const Arguments&;

/// Whether an argument is given that says which attribute of the items is meant.
bool names_path(const Value& argument) { return !argument.is_undefined() && !argument.is_none(); }

/// item.a.b or item.0
Value path_of(I i, const Value& item, const Value& path) {
  if (path.is_integer()) return item_of(i, item, path);
  if (!path.is_string()) fail(ErrorCode::kData, "an attribute of type ", path.type_name());
  Value out = item;
  for (const std::string& part : split(path.string(), '.')) {
    const bool number =
        !part.empty() && part.size() < 18 &&
        std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
    out = item_of(i, out, number ? Value(int64_t{std::stoll(part)}) : Value(part));
  }
  return out;
}

/// For comparisons that ignore case.
Value folded(const Value& v, bool case_sensitive) {
  return !case_sensitive && v.is_string() ? Value(lower(v.string())) : v;
}

/// The key by which `sort` and its like compare an item: itself or an attribute, without case.
Value key_of(I i, const Value& item, const Value& path, bool case_sensitive) {
  return folded(names_path(path) ? path_of(i, item, path) : item, case_sensitive);
}

/// The items in the order of their keys.
std::vector<Value> in_order(I i, const std::vector<Value>& items, const std::vector<Value>& keys,
                            bool reverse) {
  i.charge_list(2 * items.size());
  std::vector<Value> out;
  for (const size_t k : stable_order(keys, reverse, i.budget())) out.push_back(items[k]);
  return out;
}

Value sort_filter(I i, V v, A a) {
  const Parameters p(a, "sort", {"reverse", "case_sensitive", "attribute"});
  const bool case_sensitive = p.boolean(1, false);
  const std::vector<Value> items = iterate(i, v);
  std::vector<Value> keys, paths;
  if (p[2].is_string())  // several attributes have commas in between
    for (const std::string& path : split(p[2].string(), ',')) paths.emplace_back(path);
  i.charge_list(items.size() * std::max<size_t>(paths.size(), 1));
  for (const Value& item : items) {
    std::vector<Value> parts;
    for (const Value& path : paths) parts.push_back(key_of(i, item, path, case_sensitive));
    keys.push_back(paths.empty() ? key_of(i, item, p[2], case_sensitive)
                                 : Value::list(std::move(parts)));
  }
  return Value::list(in_order(i, items, keys, p.boolean(0, false)));
}

Value dictsort(I i, V v, A a) {
  const Parameters p(a, "dictsort", {"case_sensitive", "by", "reverse"});
  if (!v.is_dict()) fail(ErrorCode::kData, "dictsort needs a dict, not ", v.type_name());
  const bool by_value = p.text(1, "key") == "value";
  i.charge_list(4 * v.dict().entries.size());
  std::vector<Value> pairs, keys;
  for (const auto& [key, value] : v.dict().entries) {
    pairs.push_back(Value::tuple({key, value}));
    keys.push_back(folded(by_value ? value : key, p.boolean(0, false)));
  }
  return Value::list(in_order(i, pairs, keys, p.boolean(2, false)));
}

Value tojson(I i, V v, A a) {
  const Parameters p(a, "tojson", {"ensure_ascii", "indent", "separators", "sort_keys"});
  // Jinja's own form passes the indentation first; both are common.
  JsonFormat format;
  const bool first_is_indent = p.has(0) && p[0].is<int64_t>();
  format.ensure_ascii = !first_is_indent && p.boolean(0, false);
  format.indent = first_is_indent ? p.integer(0, -1) : p.integer(1, -1);
  if (format.indent > 64) fail(ErrorCode::kData, "tojson: an indentation of ", format.indent);
  format.sort_keys = p.boolean(3, false);
  if (p.has(2) && !p[2].is_none()) {
    const auto parts = iterate(i, p[2]);
    if (parts.size() != 2) fail(ErrorCode::kData, "tojson: separators are two strings");
    format.item_separator = parts[0].text(i.budget());
    format.key_separator = parts[1].text(i.budget());
  }
  i.charge_texts(1, 0);
  return to_json(v, format, i.budget());
}

Value default_filter(I, V v, A a) {
  const Parameters p(a, "default", {"default_value", "boolean"});
  if (v.is_undefined() || (p.boolean(1, false) && !v.truth())) return p.has(0) ? p[0] : Value("");
  return v;
}

Value join_filter(I i, V v, A a) {
  const Parameters p(a, "join", {"d", "attribute"});
  const std::string by = p.has(0) ? p[0].text(i.budget()) : "";
  i.charge_texts(1, 0);
  BudgetedText out(i.budget());
  bool first = true;
  for (const Value& item : iterate(i, v)) {
    if (!first) out += by;
    first = false;
    out += (names_path(p[1]) ? path_of(i, item, p[1]) : item).text(i.budget());
  }
  return out.take();
}

Value length(I, V v, A) {
  if (v.is_string()) return character_count(v.string());
  if (v.is_undefined()) return int64_t{0};
  if ((!v.is_list() || v.items().is_generator) && !v.is_dict())
    fail(ErrorCode::kData, "a ", v.type_name(), " has no length");
  return static_cast<int64_t>(v.is_dict() ? v.dict().entries.size() : v.items().values.size());
}

/// select, reject, selectattr and rejectattr.
template <bool attribute, bool keep>
Value select(I i, V v, A a) {
  if (!v.truth()) return Value::generator({});  // in Jinja none has no items here
  Arguments rest = a;
  Value path;
  if (attribute) {
    if (rest.positional.empty()) fail(ErrorCode::kData, "selectattr needs an attribute");
    path = rest.positional[0];
    rest.positional.erase(rest.positional.begin());
  }
  Test test = nullptr;
  if (!rest.positional.empty()) {
    const std::string name = rest.positional[0].text(i.budget());
    test = find_test(name);
    if (!test) fail(ErrorCode::kData, "there is no test '", name, "'");
    rest.positional.erase(rest.positional.begin());
  }
  std::vector<Value> out;
  for (const Value& item : iterate(i, v)) {
    i.step();
    const Value tested = attribute ? path_of(i, item, path) : item;
    if ((test ? test(i, tested, rest) : tested.truth()) == keep) out.push_back(item);
  }
  return Value::generator(std::move(out));
}

Value map_filter(I i, V v, A a) {
  if (!v.truth()) return Value::generator({});  // as `select`
  std::vector<Value> out;
  if (a.positional.empty()) {
    const Parameters p(a, "map", {"attribute", "default"});
    for (const Value& item : iterate(i, v)) {
      Value value = path_of(i, item, p[0]);
      out.push_back(value.is_undefined() && p.has(1) ? p[1] : value);
    }
    return Value::generator(std::move(out));
  }
  const std::string name = a.positional[0].text(i.budget());
  const Filter filter = find_filter(name);
  if (!filter) fail(ErrorCode::kData, missing_filter(name));
  Arguments rest = a;
  rest.positional.erase(rest.positional.begin());
  for (const Value& item : iterate(i, v)) {
    i.step();
    out.push_back(filter(i, item, rest));
  }
  return Value::generator(std::move(out));
}

/// The integer that a text has; undefined if it has none.
Value parsed_integer(std::string text, int base) {
  std::erase(text, '_');
  if (text.starts_with('+')) text.erase(0, 1);
  const auto end = text.data() + text.size();
  int64_t out = 0;
  const auto parsed = std::from_chars(text.data(), end, out, base);
  if (text.empty() || parsed.ptr != end) return {};
  if (parsed.ec == std::errc()) return out;
  const bool negative = text[0] == '-';
  const size_t zeros = text.find_first_not_of('0', negative ? 1 : 0);
  if (base != 10 || parsed.ec != std::errc::result_out_of_range) return {};
  return BigInteger{(negative ? "-" : "") + text.substr(zeros)};
}

Value int_filter(I, V v, A a) {
  const Parameters p(a, "int", {"default", "base"});
  const Value fallback = p.has(0) ? p[0] : Value(int64_t{0});
  if (v.is_integer()) return v.integer();
  if (v.is_big()) return v;
  if (v.is<double>())
    return std::abs(v.number()) < 9e18 ? Value(static_cast<int64_t>(v.number())) : fallback;
  if (!v.is_string()) return fallback;
  const std::string text = strip(v.string(), "", true, true);
  const auto base = static_cast<int>(std::clamp<int64_t>(p.integer(1, 10), 2, 36));
  if (const Value whole = parsed_integer(text, base); !whole.is_undefined()) return whole;
  const auto end = text.data() + text.size();
  double number = 0;
  if (const auto r = std::from_chars(text.data(), end, number);
      r.ptr == end && !text.empty() && std::abs(number) < 9e18)
    return static_cast<int64_t>(number);
  return fallback;
}

Value float_filter(I, V v, A a) {
  const Parameters p(a, "float", {"default"});
  if (v.is_number()) return v.number();
  if (v.is_string()) {
    const std::string text = strip(v.string(), "", true, true);
    double number = 0;
    const auto end = text.data() + text.size();
    if (const auto r = std::from_chars(text.data(), end, number); r.ptr == end && !text.empty())
      return number;
  }
  return p.has(0) ? p[0] : Value(0.0);
}

Value round_filter(I, V v, A a) {
  const Parameters p(a, "round", {"precision", "method"});
  if (!v.is_number()) fail(ErrorCode::kData, "round needs a number, not ", v.type_name());
  const double scale = std::pow(10.0, static_cast<double>(p.integer(0, 0)));
  const std::string method = p.text(1, "common");
  const double x = v.number() * scale;
  return (method == "ceil"    ? std::ceil(x)
          : method == "floor" ? std::floor(x)
                              : std::nearbyint(x)) /
         scale;
}

Value sum_filter(I i, V v, A a) {
  const Parameters p(a, "sum", {"attribute", "start"});
  Value out = p.has(1) ? p[1] : Value(int64_t{0});
  for (const Value& item : iterate(i, v)) {
    i.step();
    out = add(i, out, names_path(p[0]) ? path_of(i, item, p[0]) : item);
  }
  return out;
}

template <int direction>
Value extreme(I i, V v, A a) {
  const Parameters p(a, direction < 0 ? "min" : "max", {"case_sensitive", "attribute"});
  Value best;
  bool any = false;
  const auto key = [&](const Value& item) { return key_of(i, item, p[1], p.boolean(0, false)); };
  for (const Value& item : iterate(i, v)) {
    if (!any || compare(key(item), key(best), i.budget()) == direction) best = item;
    any = true;
  }
  return any ? best : Value(Undefined{"the extreme of an empty list"});
}

Value unique(I i, V v, A a) {
  const Parameters p(a, "unique", {"case_sensitive", "attribute"});
  std::vector<Value> keys, out;
  for (const Value& item : iterate(i, v)) {
    const Value key = key_of(i, item, p[1], p.boolean(0, false));
    i.step();
    const auto same = [&](const Value& other) { return equal(other, key, i.budget()); };
    if (std::any_of(keys.begin(), keys.end(), same)) continue;
    keys.push_back(key);
    out.push_back(item);
  }
  return Value::generator(std::move(out));
}

Value groupby(I i, V v, A a) {
  const Parameters p(a, "groupby", {"attribute", "default", "case_sensitive"});
  const bool case_sensitive = p.boolean(2, false);
  const std::vector<Value> items = iterate(i, v);
  const auto key_of_item = [&](const Value& item) {
    const Value key = path_of(i, item, p[0]);
    return key.is_undefined() && names_path(p[1]) ? p[1] : key;
  };
  std::vector<Value> keys;
  i.charge_list(4 * items.size());  // keys and groups
  for (const Value& item : items) keys.push_back(folded(key_of_item(item), case_sensitive));
  std::vector<std::pair<Value, std::vector<Value>>> groups;
  for (const Value& item : in_order(i, items, keys, false)) {
    const Value key = key_of_item(item);
    if (groups.empty() || !equal(folded(groups.back().first, case_sensitive),
                                 folded(key, case_sensitive), i.budget()))
      groups.emplace_back(key, std::vector<Value>());
    groups.back().second.push_back(item);
  }
  std::vector<Value> out;
  for (auto& [key, members] : groups)
    out.push_back(Value::tuple({key, Value::list(std::move(members))}));
  return Value::list(std::move(out));
}

Value batch(I i, V v, A a) {
  const Parameters p(a, "batch", {"linecount", "fill_with"});
  const int64_t count = p.integer(0, 0);
  if (count < 1) fail(ErrorCode::kData, "batch needs a positive count");
  std::vector<Value> out, row;
  const auto items = iterate(i, v);
  for (size_t k = 0; k < items.size(); ++k) {
    if (row.empty()) i.charge_list(0);
    row.push_back(items[k]);
    if (static_cast<int64_t>(row.size()) < count && k + 1 < items.size()) continue;
    if (names_path(p[1])) {
      i.budget().charge(static_cast<uint64_t>(count), sizeof(Value));
      row.resize(static_cast<size_t>(count), p[1]);
    }
    out.push_back(Value::list(std::move(row)));
    row.clear();
  }
  return Value::generator(std::move(out));
}

Value reverse(I i, V v, A) {
  if (v.is_string())
    return i.text_like(v.string(), [&](const std::string& text) {
      const auto letters = characters(text, i.budget());
      std::string out;
      for (size_t k = letters.size(); k-- > 0;) out += letters[k];
      return out;
    });
  auto items = iterate(i, v);
  std::reverse(items.begin(), items.end());
  return Value::generator(std::move(items));
}

template <bool last>
Value end_item(I i, V v, A) {
  const auto items = iterate(i, v);
  if (items.empty()) return Undefined{"an item of an empty list"};
  return last ? items.back() : items.front();
}

Value indent(I i, V v, A a) {
  const Parameters p(a, "indent", {"width", "first", "blank"});
  const std::string by =
      p.has(0) && p[0].is_string()
          ? p[0].string()
          : std::string(static_cast<size_t>(std::clamp<int64_t>(p.integer(0, 4), 0, 1000)), ' ');
  i.charge_texts(1, 0);
  return indent_text(v.text(i.budget()), by, p.boolean(1, false), p.boolean(2, false), i.budget());
}

Value escape(I i, V v, A) {
  i.charge_texts(1, 0);
  BudgetedText out(i.budget());
  for (const char c : v.text(i.budget())) {
    constexpr std::string_view kSpecial = "&<>\"'";
    constexpr const char* kNames[] = {"&amp;", "&lt;", "&gt;", "&#34;", "&#39;"};
    const size_t at = kSpecial.find(c);
    if (at == kSpecial.npos)
      out += c;
    else
      out += kNames[at];
  }
  return out.take();
}

Value truncate(I i, V v, A a) {
  const Parameters p(a, "truncate", {"length", "killwords", "end", "leeway"});
  if (!v.is_string()) fail(ErrorCode::kData, "truncate needs a string, not ", v.type_name());
  const auto letters = characters(v.string(), i.budget());
  const int64_t length = p.integer(0, 255);
  const std::string end = p.text(2, "...");
  if (static_cast<int64_t>(letters.size()) <= length + p.integer(3, 5)) return v;
  i.charge_texts(1, v.string().size() + end.size());
  std::string out;
  for (int64_t k = 0; k < length - character_count(end); ++k)
    out += letters[static_cast<size_t>(k)];
  if (!p.boolean(1, false)) out = out.substr(0, out.rfind(' '));
  return out + end;
}

Value items_filter(I i, V v, A) {
  if (v.is_undefined()) return Value::generator({});
  if (!v.is_dict()) fail(ErrorCode::kData, "items needs a dict, not ", v.type_name());
  return Value::generator(iterate(i, i.call(method_of(v, "items"), {})));
}

Value urlencode(I i, V v, A) {
  i.charge_texts(1, 0);
  BudgetedText out(i.budget());
  for (const char c : v.text(i.budget())) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                       std::string_view("_.-~/").find(c) != std::string_view::npos;
    if (plain)
      out += c;
    else
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out.take();
}

Value as_string(I i, V v, A) {
  if (v.is_string()) return v;
  i.charge_texts(1, 0);
  return v.text(i.budget());
}

const std::map<std::string_view, Filter>& filters() {
  static const std::map<std::string_view, Filter> all = {
      {"abs",
       [](I i, V v, A) {
         if (!v.is_number()) fail(ErrorCode::kData, "abs needs a number, not ", v.type_name());
         if (v.is_big()) return v.digits()[0] == '-' ? negated(v) : v;
         if (!v.is_integer()) return Value(std::abs(v.number()));
         return v.integer() < 0 ? arithmetic(i, "-", int64_t{0}, v) : Value(v.integer());
       }},
      {"attr",
       [](I, V v, A a) { return attribute_of(v, Parameters(a, "attr", {"name"}).text(0, "")); }},
      {"batch", batch},
      {"capitalize", [](I i, V v, A) { return i.text_like(v.text(i.budget()), capitalize); }},
      {"center",
       [](I i, V v, A a) {
         i.charge_texts(1, 0);
         const int64_t width = Parameters(a, "center", {"width"}).integer(0, 80);
         return Value(pad_text(v.text(i.budget()), width, " ", 0, i.budget()));
       }},
      {"count", length},
      {"d", default_filter},
      {"default", default_filter},
      {"dictsort", dictsort},
      {"e", escape},
      {"escape", escape},
      {"first", end_item<false>},
      {"float", float_filter},
      {"forceescape", escape},
      {"format",
       [](I i, V v, A a) {
         i.charge_texts(1, 0);
         return Value(percent_format(i, v.text(i.budget()), Value::tuple(a.positional)));
       }},
      {"groupby", groupby},
      {"indent", indent},
      {"int", int_filter},
      {"items", items_filter},
      {"join", join_filter},
      {"last", end_item<true>},
      {"length", length},
      {"list", [](I i, V v, A) { return Value::list(iterate(i, v)); }},
      {"lower", [](I i, V v, A) { return i.text_like(v.text(i.budget()), lower); }},
      {"map", map_filter},
      {"max", extreme<1>},
      {"min", extreme<-1>},
      {"reject", select<false, false>},
      {"rejectattr", select<true, false>},
      {"replace",
       [](I i, V v, A a) {
         const Parameters p(a, "replace", {"old", "new", "count"});
         i.charge_texts(1, 0);
         return Value(replace_text(v.text(i.budget()), p[0].text(i.budget()), p[1].text(i.budget()),
                                   p.integer(2, -1), i.budget()));
       }},
      {"reverse", reverse},
      {"round", round_filter},
      {"safe", as_string},
      {"select", select<false, true>},
      {"selectattr", select<true, true>},
      {"sort", sort_filter},
      {"string", as_string},
      {"sum", sum_filter},
      {"title", [](I i, V v, A) { return i.text_like(v.text(i.budget()), title); }},
      {"tojson", tojson},
      {"trim",
       [](I i, V v, A a) {
         const Parameters p(a, "trim", {"chars"});
         return i.text_like(v.text(i.budget()), [&](const std::string& text) {
           return strip(text, p[0].is_none() ? "" : p.text(0, ""), true, true);
         });
       }},
      {"truncate", truncate},
      {"unique", unique},
      {"upper", [](I i, V v, A) { return i.text_like(v.text(i.budget()), upper); }},
      {"urlencode", urlencode},
      {"wordcount",
       [](I i, V v, A) {
         const auto words = split_text(v.text(i.budget()), "", -1, i.budget());
         return Value(static_cast<int64_t>(words.size()));
       }},
  };
  return all;
}

}  // namespace

Filter find_filter(std::string_view name) {
  const auto it = filters().find(name);
  return it == filters().end() ? find_text_filter(name) : it->second;
}

std::string missing_filter(const std::string& name) {
  for (const char* known : {"pprint", "random", "urlize"})
    if (name == known) return "Jinja's filter '" + name + "' is not supported";
  return "there is no filter '" + name + "'";
}

}  // namespace paddle::jinja
