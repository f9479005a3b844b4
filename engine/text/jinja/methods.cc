// Methods of strings, lists and dicts. Those that would change a list or dict are rejected, as in
// jinja2's sandbox.
#include <algorithm>
#include <map>

#include "text/jinja/interpreter.h"
#include "text/jinja/strings.h"
#include "text/unicode.h"

namespace paddle::jinja {

namespace {

using Method = Value (*)(Interpreter&, const Value& self, const Arguments&);
using I = Interpreter&;
using V = const Value&;
using A = const Arguments&;

/// The parts were charged as they were made.
Value texts(std::vector<std::string> parts) {
  std::vector<Value> out;
  out.reserve(parts.size());
  for (std::string& part : parts) out.emplace_back(std::move(part));
  return Value::list(std::move(out));
}

template <bool left, bool right>
Value strip_method(I i, V self, A a) {
  const Parameters p(a, "strip()", {"chars"});
  const bool all = !p.has(0) || p[0].is_none();
  return i.text_like(self.string(), [&](const std::string& text) {
    return strip(text, all ? std::string() : p.text(0, ""), left, right);
  });
}

template <bool end>
Value affix_test(I, V self, A a) {
  const Parameters p(a, end ? "endswith()" : "startswith()", {"affix"});
  const std::vector<Value> affixes =
      p[0].is_list() ? p[0].items().values : std::vector<Value>{p[0]};
  return std::any_of(affixes.begin(), affixes.end(), [&](const Value& affix) {
    if (!affix.is_string())
      fail(ErrorCode::kData, "startswith() and endswith() need a string, not ", affix.type_name());
    return end ? self.string().ends_with(affix.string())
               : self.string().starts_with(affix.string());
  });
}

template <bool backwards>
Value find_method(I, V self, A a) {
  const Parameters p(a, "find()", {"sub"});
  const std::string what = p.text(0, "");
  const size_t at = backwards ? self.string().rfind(what) : self.string().find(what);
  if (at == std::string::npos) return int64_t{-1};
  return character_count(std::string_view(self.string()).substr(0, at));
}

template <bool (*predicate)(uint32_t)>
Value all_characters(I, V self, A) {
  bool all = !self.string().empty();
  unicode::for_each(self.string(),
                    [&](uint32_t code, std::string_view) { all &= predicate(code); });
  return all;
}
bool is_alphanumeric(uint32_t c) { return unicode::is_letter(c) || unicode::is_number(c); }

Value join_method(I i, V self, A a) {
  const Parameters p(a, "join()", {"iterable"});
  i.charge_texts(1, 0);
  BudgetedText out(i.budget());
  bool first = true;
  for (const Value& item : iterate(i, p[0])) {
    if (!item.is_string()) fail(ErrorCode::kData, "join() needs strings, found ", item.type_name());
    if (!first) out += self.string();
    first = false;
    out += item.string();
  }
  return out.take();
}

template <bool last>
Value partition(I i, V self, A a) {
  const std::string by = Parameters(a, "partition()", {"sep"}).text(0, "");
  if (by.empty()) fail(ErrorCode::kData, "partition() needs a separator");
  const std::string& text = self.string();
  const size_t at = last ? text.rfind(by) : text.find(by);
  i.charge_texts(3, text.size());
  if (at == text.npos) return last ? Value::tuple({"", "", text}) : Value::tuple({text, "", ""});
  return Value::tuple({text.substr(0, at), by, text.substr(at + by.size())});
}

template <int side>
Value pad_method(I i, V self, A a) {
  const Parameters p(a, "ljust()", {"width", "fillchar"});
  i.charge_texts(1, 0);
  return pad_text(self.string(), p.integer(0, 0), p.text(1, " "), side, i.budget());
}

const std::map<std::string_view, Method>& string_methods() {
  static const std::map<std::string_view, Method> all = {
      {"upper", [](I i, V s, A) { return i.text_like(s.string(), upper); }},
      {"lower", [](I i, V s, A) { return i.text_like(s.string(), lower); }},
      {"title", [](I i, V s, A) { return i.text_like(s.string(), title); }},
      {"capitalize", [](I i, V s, A) { return i.text_like(s.string(), capitalize); }},
      {"strip", strip_method<true, true>},
      {"lstrip", strip_method<true, false>},
      {"rstrip", strip_method<false, true>},
      {"startswith", affix_test<false>},
      {"endswith", affix_test<true>},
      {"find", find_method<false>},
      {"rfind", find_method<true>},
      {"index",
       [](I i, V s, A a) {
         Value at = find_method<false>(i, s, a);
         if (at.integer() < 0) fail(ErrorCode::kData, "index(): substring not found");
         return at;
       }},
      {"count",
       [](I, V s, A a) {
         const std::string what = Parameters(a, "count()", {"sub"}).text(0, "");
         if (what.empty()) return Value(character_count(s.string()) + 1);
         int64_t count = 0;
         const std::string& text = s.string();
         for (size_t at = text.find(what); at != text.npos; at = text.find(what, at + what.size()))
           ++count;
         return Value(count);
       }},
      {"split",
       [](I i, V s, A a) {
         const Parameters p(a, "split()", {"sep", "maxsplit"});
         if (p.has(0) && p[0].is_string() && p[0].string().empty())
           fail(ErrorCode::kData, "split(): empty separator");
         return texts(split_text(s.string(), p[0].is_none() ? "" : p.text(0, ""), p.integer(1, -1),
                                 i.budget()));
       }},
      {"rsplit",
       [](I i, V s, A a) {
         const Parameters p(a, "rsplit()", {"sep", "maxsplit"});
         return texts(split_right(s.string(), p[0].is_none() ? "" : p.text(0, ""), p.integer(1, -1),
                                  i.budget()));
       }},
      {"splitlines",
       [](I i, V s, A a) {
         const bool keeps = Parameters(a, "splitlines()", {"keepends"}).boolean(0, false);
         return texts(split_lines(s.string(), keeps, i.budget()));
       }},
      {"replace",
       [](I i, V s, A a) {
         const Parameters p(a, "replace()", {"old", "new", "count"});
         i.charge_texts(1, 0);
         return Value(
             replace_text(s.string(), p.text(0, ""), p.text(1, ""), p.integer(2, -1), i.budget()));
       }},
      {"removeprefix",
       [](I i, V s, A a) {
         const std::string affix = Parameters(a, "removeprefix()", {"prefix"}).text(0, "");
         return i.text_like(s.string(), [&](const std::string& text) {
           return text.substr(text.starts_with(affix) ? affix.size() : 0);
         });
       }},
      {"removesuffix",
       [](I i, V s, A a) {
         const std::string affix = Parameters(a, "removesuffix()", {"suffix"}).text(0, "");
         return i.text_like(s.string(), [&](const std::string& text) {
           return text.substr(0, text.size() - (text.ends_with(affix) ? affix.size() : 0));
         });
       }},
      {"join", join_method},
      {"format",
       [](I i, V s, A a) {
         i.charge_texts(1, 0);
         return Value(brace_format(s.string(), a, i.budget()));
       }},
      {"isdigit", all_characters<unicode::is_number>},
      {"isnumeric", all_characters<unicode::is_number>},
      {"isdecimal", all_characters<unicode::is_number>},
      {"isalpha", all_characters<unicode::is_letter>},
      {"isalnum", all_characters<is_alphanumeric>},
      {"isspace", all_characters<unicode::is_white_space>},
      {"isupper", [](I i, V s, A) { return Value(find_test("upper")(i, s, {})); }},
      {"islower", [](I i, V s, A) { return Value(find_test("lower")(i, s, {})); }},
      {"partition", partition<false>},
      {"rpartition", partition<true>},
      {"ljust", pad_method<-1>},
      {"center", pad_method<0>},
      {"rjust", pad_method<1>},
      {"zfill",
       [](I i, V s, A a) {
         const bool sign = s.string().starts_with('-') || s.string().starts_with('+');
         const int64_t width = Parameters(a, "zfill()", {"width"}).integer(0, 0);
         i.charge_texts(1, 0);
         return Value(s.string().substr(0, sign) +
                      pad_text(s.string().substr(sign), width - sign, "0", 1, i.budget()));
       }},
  };
  return all;
}

const std::map<std::string_view, Method>& list_methods() {
  static const std::map<std::string_view, Method> all = {
      {"index",
       [](I i, V s, A a) {
         const Parameters p(a, "index()", {"value"});
         const auto& items = s.items().values;
         const auto it = std::find_if(items.begin(), items.end(),
                                      [&](const Value& v) { return equal(v, p[0], i.budget()); });
         if (it == items.end()) fail(ErrorCode::kData, "index(): the value is not in the list");
         return Value(static_cast<int64_t>(it - items.begin()));
       }},
      {"count",
       [](I i, V s, A a) {
         const Parameters p(a, "count()", {"value"});
         const auto& items = s.items().values;
         return Value(
             static_cast<int64_t>(std::count_if(items.begin(), items.end(), [&](const Value& v) {
               return equal(v, p[0], i.budget());
             })));
       }},
  };
  return all;
}

const std::map<std::string_view, Method>& dict_methods() {
  static const std::map<std::string_view, Method> all = {
      {"get",
       [](I i, V s, A a) {
         const Parameters p(a, "get()", {"key", "default"});
         const Value* found = s.dict().find(p[0], i.budget());
         return found ? *found : a.positional.size() + a.named.size() > 1 ? p[1] : Value(None{});
       }},
      {"keys", [](I i, V s, A) { return Value::list(iterate(i, s)); }},
      {"values",
       [](I i, V s, A) {
         i.charge_list(s.dict().entries.size());
         std::vector<Value> out;
         for (const auto& [key, value] : s.dict().entries) out.push_back(value);
         return Value::list(std::move(out));
       }},
      {"items",
       [](I i, V s, A) {
         i.charge_list(7 * s.dict().entries.size());
         std::vector<Value> out;
         for (const auto& [key, value] : s.dict().entries)
           out.push_back(Value::tuple({key, value}));
         return Value::list(std::move(out));
       }},
      {"copy", [](I, V s, A) { return s; }},
  };
  return all;
}

}  // namespace

Value method_of(const Value& object, const std::string& name) {
  static const std::map<std::string_view, Method> none;
  const auto& methods = object.is_string() ? string_methods()
                        : object.is_list() ? list_methods()
                        : object.is_dict() ? dict_methods()
                                           : none;
  if (const auto it = methods.find(name); it != methods.end())
    return make_function(
        name, [object, method = it->second](Interpreter& interpreter, const Arguments& a) {
          return method(interpreter, object, a);
        });
  constexpr std::string_view kListChanges[] = {"append", "extend",  "insert", "pop",
                                               "remove", "reverse", "sort",   "clear"};
  constexpr std::string_view kDictChanges[] = {"pop", "popitem", "setdefault", "update", "clear"};
  const bool changes =
      (object.is_list() && !object.items().is_tuple &&
       std::find(std::begin(kListChanges), std::end(kListChanges), name) !=
           std::end(kListChanges)) ||
      (object.is_dict() &&
       std::find(std::begin(kDictChanges), std::end(kDictChanges), name) != std::end(kDictChanges));
  if (changes)
    return make_function(
        name, [name, type = object.type_name()](Interpreter&, const Arguments&) -> Value {
          fail(ErrorCode::kData, "'", name, "' of a ", type,
               " is not allowed: templates do not change values");
        });
  return Undefined{name};
}

}  // namespace paddle::jinja
