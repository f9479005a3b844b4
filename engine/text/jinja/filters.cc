// The filters.
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

Value list_of(Interpreter& interpreter, std::vector<Value> items) {
  interpreter.charge(items.size() * sizeof(Value));
  return Value::list(std::move(items));
}

Value generator_of(Interpreter& interpreter, std::vector<Value> items) {
  interpreter.charge(items.size() * sizeof(Value));
  return Value::generator(std::move(items));
}

/// item.a.b or item.0
Value path_of(const Value& item, const Value& path) {
  if (path.is_integer()) return item_of(item, path);
  if (!path.is_string()) fail(ErrorCode::kData, "an attribute of type ", path.type_name());
  Value out = item;
  for (const std::string& part : split(path.string(), '.')) {
    const bool number =
        !part.empty() && part.size() < 18 &&
        std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
    out = number ? item_of(out, Value(int64_t{std::stoll(part)})) : item_of(out, Value(part));
  }
  return out;
}

/// For comparisons that ignore case.
Value folded(const Value& v, bool case_sensitive) {
  return !case_sensitive && v.is_string() ? Value(lower(v.string())) : v;
}

std::vector<Value> sorted(const std::vector<Value>& items, const Value& attribute,
                          bool case_sensitive, bool reverse) {
  std::vector<Value> keys, out;
  for (const Value& item : items)
    keys.push_back(
        folded(attribute.is_undefined() || attribute.is_none() ? item : path_of(item, attribute),
               case_sensitive));
  for (const size_t i : stable_order(keys, reverse)) out.push_back(items[i]);
  return out;
}

Value sort_filter(I i, V v, A a) {
  const Parameters p(a, "sort", {"reverse", "case_sensitive", "attribute"});
  return list_of(i, sorted(iterate(v), p[2], p.boolean(1, false), p.boolean(0, false)));
}

Value dictsort(I i, V v, A a) {
  const Parameters p(a, "dictsort", {"case_sensitive", "by", "reverse"});
  if (!v.is_dict()) fail(ErrorCode::kData, "dictsort needs a dict, not ", v.type_name());
  std::vector<Value> pairs;
  for (const auto& [key, value] : v.dict().entries) pairs.push_back(Value::tuple({key, value}));
  const int64_t by = p.text(1, "key") == "value" ? 1 : 0;
  return list_of(i, sorted(pairs, by, p.boolean(0, false), p.boolean(2, false)));
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
    const auto parts = iterate(p[2]);
    if (parts.size() != 2) fail(ErrorCode::kData, "tojson: separators are two strings");
    format.item_separator = parts[0].text();
    format.key_separator = parts[1].text();
  }
  return i.charged(to_json(v, format));
}

Value default_filter(I, V v, A a) {
  const Parameters p(a, "default", {"default_value", "boolean"});
  if (v.is_undefined() || (p.boolean(1, false) && !v.truth())) return p.has(0) ? p[0] : Value("");
  return v;
}

Value join_filter(I i, V v, A a) {
  const Parameters p(a, "join", {"d", "attribute"});
  const std::string by = p.has(0) ? p[0].text() : "";
  std::string out;
  bool first = true;
  for (const Value& item : iterate(v)) {
    if (!first) out += by;
    first = false;
    out += p.has(1) && !p[1].is_none() ? path_of(item, p[1]).text() : item.text();
  }
  return i.charged(std::move(out));
}

Value length(I, V v, A) {
  if (v.is_string()) return character_count(v.string());
  if ((!v.is_list() || v.items().is_generator) && !v.is_dict() && !v.is_undefined())
    fail(ErrorCode::kData, "a ", v.type_name(), " has no length");
  return static_cast<int64_t>(v.is_dict() ? v.dict().entries.size() : iterate(v).size());
}

/// select, reject, selectattr and rejectattr.
template <bool attribute, bool keep>
Value select(I i, V v, A a) {
  Arguments rest = a;
  Value path;
  if (attribute) {
    if (rest.positional.empty()) fail(ErrorCode::kData, "selectattr needs an attribute");
    path = rest.positional[0];
    rest.positional.erase(rest.positional.begin());
  }
  Test test = nullptr;
  if (!rest.positional.empty()) {
    const std::string name = rest.positional[0].text();
    test = find_test(name);
    if (!test) fail(ErrorCode::kData, "there is no test '", name, "'");
    rest.positional.erase(rest.positional.begin());
  }
  std::vector<Value> out;
  for (const Value& item : iterate(v)) {
    const Value tested = attribute ? path_of(item, path) : item;
    if ((test ? test(tested, rest) : tested.truth()) == keep) out.push_back(item);
  }
  return generator_of(i, std::move(out));
}

Value map_filter(I i, V v, A a) {
  std::vector<Value> out;
  if (a.positional.empty()) {
    const Parameters p(a, "map", {"attribute", "default"});
    for (const Value& item : iterate(v)) {
      Value value = path_of(item, p[0]);
      out.push_back(value.is_undefined() && p.has(1) ? p[1] : value);
    }
    return generator_of(i, std::move(out));
  }
  const Filter filter = find_filter(a.positional[0].text());
  if (!filter) fail(ErrorCode::kData, missing_filter(a.positional[0].text()));
  Arguments rest = a;
  rest.positional.erase(rest.positional.begin());
  for (const Value& item : iterate(v)) {
    i.step();
    out.push_back(filter(i, item, rest));
  }
  return generator_of(i, std::move(out));
}

Value int_filter(I, V v, A a) {
  const Parameters p(a, "int", {"default", "base"});
  const Value fallback = p.has(0) ? p[0] : Value(int64_t{0});
  if (v.is_integer()) return v.integer();
  if (v.is<double>())
    return std::abs(v.number()) < 9e18 ? Value(static_cast<int64_t>(v.number())) : fallback;
  if (!v.is_string()) return fallback;
  std::string text = strip(v.string(), "", true, true);
  std::erase(text, '_');
  if (text.starts_with('+')) text.erase(0, 1);
  int64_t out = 0;
  const auto end = text.data() + text.size();
  const auto base = static_cast<int>(std::clamp<int64_t>(p.integer(1, 10), 2, 36));
  if (const auto r = std::from_chars(text.data(), end, out, base);
      r.ptr == end && r.ec == std::errc() && !text.empty())
    return out;
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
  for (const Value& item : iterate(v))
    out = add(i, out, p.has(0) && !p[0].is_none() ? path_of(item, p[0]) : item);
  return out;
}

template <int direction>
Value extreme(I, V v, A a) {
  const Parameters p(a, direction < 0 ? "min" : "max", {"case_sensitive", "attribute"});
  Value best;
  bool any = false;
  const auto key = [&](const Value& item) {
    return folded(p.has(1) && !p[1].is_none() ? path_of(item, p[1]) : item, p.boolean(0, false));
  };
  for (const Value& item : iterate(v)) {
    if (!any || compare(key(item), key(best)) == direction) best = item;
    any = true;
  }
  return any ? best : Value(Undefined{"the extreme of an empty list"});
}

Value unique(I i, V v, A a) {
  const Parameters p(a, "unique", {"case_sensitive", "attribute"});
  std::vector<Value> keys, out;
  for (const Value& item : iterate(v)) {
    const Value key =
        folded(p.has(1) && !p[1].is_none() ? path_of(item, p[1]) : item, p.boolean(0, false));
    i.step();
    if (std::any_of(keys.begin(), keys.end(), [&](const Value& k) { return equal(k, key); }))
      continue;
    keys.push_back(key);
    out.push_back(item);
  }
  return generator_of(i, std::move(out));
}

Value groupby(I i, V v, A a) {
  const Parameters p(a, "groupby", {"attribute", "default", "case_sensitive"});
  std::vector<std::pair<Value, std::vector<Value>>> groups;
  for (const Value& item : sorted(iterate(v), p[0], p.boolean(2, false), false)) {
    const Value key = path_of(item, p[0]);
    if (groups.empty() ||
        !equal(folded(groups.back().first, p.boolean(2, false)), folded(key, p.boolean(2, false))))
      groups.emplace_back(key, std::vector<Value>());
    groups.back().second.push_back(item);
  }
  std::vector<Value> out;
  for (auto& [key, items] : groups)
    out.push_back(Value::tuple({key, Value::list(std::move(items))}));
  return list_of(i, std::move(out));
}

Value batch(I i, V v, A a) {
  const Parameters p(a, "batch", {"linecount", "fill_with"});
  const int64_t count = p.integer(0, 0);
  if (count < 1) fail(ErrorCode::kData, "batch needs a positive count");
  std::vector<Value> out, row;
  const auto items = iterate(v);
  for (size_t k = 0; k < items.size(); ++k) {
    row.push_back(items[k]);
    if (static_cast<int64_t>(row.size()) < count && k + 1 < items.size()) continue;
    i.charge(static_cast<size_t>(p.has(1) ? count : 0) * sizeof(Value));
    if (p.has(1) && !p[1].is_none()) row.resize(static_cast<size_t>(count), p[1]);
    out.push_back(Value::list(std::move(row)));
    row.clear();
  }
  return generator_of(i, std::move(out));
}

Value reverse(I i, V v, A) {
  if (v.is_string()) {
    auto letters = characters(v.string());
    std::string out;
    for (size_t k = letters.size(); k-- > 0;) out += letters[k];
    return i.charged(std::move(out));
  }
  auto items = iterate(v);
  std::reverse(items.begin(), items.end());
  return generator_of(i, std::move(items));
}

template <bool last>
Value end_item(I, V v, A) {
  const auto items = iterate(v);
  if (items.empty()) return Undefined{"an item of an empty list"};
  return last ? items.back() : items.front();
}

Value indent(I i, V v, A a) {
  const Parameters p(a, "indent", {"width", "first", "blank"});
  const std::string by =
      p.has(0) && p[0].is_string()
          ? p[0].string()
          : std::string(static_cast<size_t>(std::clamp<int64_t>(p.integer(0, 4), 0, 1000)), ' ');
  i.charge(v.text().size() * (by.size() + 1));
  return indent_text(v.text(), by, p.boolean(1, false), p.boolean(2, false));
}

Value escape(I i, V v, A) {
  std::string out;
  for (const char c : v.text()) {
    constexpr std::string_view kSpecial = "&<>\"'";
    constexpr const char* kNames[] = {"&amp;", "&lt;", "&gt;", "&#34;", "&#39;"};
    const size_t at = kSpecial.find(c);
    if (at == kSpecial.npos)
      out += c;
    else
      out += kNames[at];
  }
  return i.charged(std::move(out));
}

Value truncate(I i, V v, A a) {
  const Parameters p(a, "truncate", {"length", "killwords", "end", "leeway"});
  const auto letters = characters(v.string());
  const int64_t length = p.integer(0, 255);
  const std::string end = p.text(2, "...");
  if (static_cast<int64_t>(letters.size()) <= length + p.integer(3, 5)) return v;
  std::string out;
  for (int64_t k = 0; k < length - character_count(end); ++k)
    out += letters[static_cast<size_t>(k)];
  if (!p.boolean(1, false)) out = out.substr(0, out.rfind(' '));
  return i.charged(out + end);
}

Value items_filter(I i, V v, A) {
  if (v.is_undefined()) return Value::generator({});
  if (!v.is_dict()) fail(ErrorCode::kData, "items needs a dict, not ", v.type_name());
  return Value::generator(iterate(i.call(method_of(v, "items"), {})));
}

Value urlencode(I i, V v, A) {
  std::string out;
  for (const char c : v.text()) {
    char buffer[4];
    const bool plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                       std::string_view("_.-~/").find(c) != std::string_view::npos;
    if (plain)
      out += c;
    else
      out.append(buffer, static_cast<size_t>(std::snprintf(buffer, sizeof buffer, "%%%02X",
                                                           static_cast<unsigned char>(c))));
  }
  return i.charged(std::move(out));
}

const std::map<std::string_view, Filter>& filters() {
  static const std::map<std::string_view, Filter> all = {
      {"abs",
       [](I i, V v, A) {
         if (!v.is_number()) fail(ErrorCode::kData, "abs needs a number, not ", v.type_name());
         if (!v.is_integer()) return Value(std::abs(v.number()));
         return v.integer() < 0 ? arithmetic(i, "-", int64_t{0}, v) : Value(v.integer());
       }},
      {"attr",
       [](I, V v, A a) { return attribute_of(v, Parameters(a, "attr", {"name"}).text(0, "")); }},
      {"batch", batch},
      {"capitalize", [](I i, V v, A) { return i.charged(capitalize(v.text())); }},
      {"center",
       [](I i, V v, A a) {
         return i.charged(
             pad_text(v.text(), Parameters(a, "center", {"width"}).integer(0, 80), " ", 0));
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
         return i.charged(percent_format(v.text(), Value::tuple(a.positional)));
       }},
      {"groupby", groupby},
      {"indent", indent},
      {"int", int_filter},
      {"items", items_filter},
      {"join", join_filter},
      {"last", end_item<true>},
      {"length", length},
      {"list", [](I i, V v, A) { return list_of(i, iterate(v)); }},
      {"lower", [](I i, V v, A) { return i.charged(lower(v.text())); }},
      {"map", map_filter},
      {"max", extreme<1>},
      {"min", extreme<-1>},
      {"reject", select<false, false>},
      {"rejectattr", select<true, false>},
      {"replace",
       [](I i, V v, A a) {
         const Parameters p(a, "replace", {"old", "new", "count"});
         const std::string with = p[1].text();
         i.charge(v.text().size() * (with.size() + 1));
         return Value(replace_text(v.text(), p[0].text(), with, p.integer(2, -1)));
       }},
      {"reverse", reverse},
      {"round", round_filter},
      {"safe", [](I, V v, A) { return Value(v.text()); }},
      {"select", select<false, true>},
      {"selectattr", select<true, true>},
      {"sort", sort_filter},
      {"string", [](I i, V v, A) { return v.is_string() ? v : i.charged(v.text()); }},
      {"sum", sum_filter},
      {"title", [](I i, V v, A) { return i.charged(title(v.text())); }},
      {"tojson", tojson},
      {"trim",
       [](I i, V v, A a) {
         const Parameters p(a, "trim", {"chars"});
         return i.charged(strip(v.text(), p[0].is_none() ? "" : p.text(0, ""), true, true));
       }},
      {"truncate", truncate},
      {"unique", unique},
      {"upper", [](I i, V v, A) { return i.charged(upper(v.text())); }},
      {"urlencode", urlencode},
      {"wordcount",
       [](I, V v, A) { return Value(static_cast<int64_t>(split_text(v.text(), "", -1).size())); }},
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
