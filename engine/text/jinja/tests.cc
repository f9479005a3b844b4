// The tests of `is`.
#include <algorithm>
#include <map>

#include "text/jinja/interpreter.h"
#include "text/unicode.h"

namespace paddle::jinja {

namespace {

int64_t integer_argument(const Arguments& a) {
  if (a.positional.size() != 1 || !a.positional[0].is_integer())
    fail(ErrorCode::kData, "the test needs an integer");
  return a.positional[0].integer();
}
const Value& argument(const Arguments& a) {
  if (a.positional.size() != 1) fail(ErrorCode::kData, "the test needs one value");
  return a.positional[0];
}

bool is_whole_case(const Value& v, bool upper) {
  if (!v.is_string()) return false;
  bool any = false, other = false;
  for (const char c : v.string()) {
    any |= upper ? c >= 'A' && c <= 'Z' : c >= 'a' && c <= 'z';
    other |= upper ? c >= 'a' && c <= 'z' : c >= 'A' && c <= 'Z';
  }
  return any && !other;
}

const std::map<std::string_view, Test>& tests() {
  using V = const Value&;
  using A = const Arguments&;
  static const std::map<std::string_view, Test> all = {
      {"defined", [](V v, A) { return !v.is_undefined(); }},
      {"undefined", [](V v, A) { return v.is_undefined(); }},
      {"none", [](V v, A) { return v.is_none(); }},
      {"boolean", [](V v, A) { return v.is<bool>(); }},
      {"true", [](V v, A) { return v.is<bool>() && v.truth(); }},
      {"false", [](V v, A) { return v.is<bool>() && !v.truth(); }},
      {"integer", [](V v, A) { return v.is<int64_t>(); }},
      {"float", [](V v, A) { return v.is<double>(); }},
      {"number", [](V v, A) { return v.is_number(); }},
      {"string", [](V v, A) { return v.is_string(); }},
      {"mapping", [](V v, A) { return v.is_dict(); }},
      {"sequence",
       [](V v, A) { return v.is_list() || v.is_string() || v.is_dict() || v.is_undefined(); }},
      {"iterable",
       [](V v, A) { return v.is_list() || v.is_string() || v.is_dict() || v.is_undefined(); }},
      {"callable", [](V v, A) { return v.is_object() && v.object()->is_callable(); }},
      {"escaped", [](V, A) { return false; }},
      {"even", [](V v, A) { return v.is_integer() && v.integer() % 2 == 0; }},
      {"odd", [](V v, A) { return v.is_integer() && v.integer() % 2 != 0; }},
      {"divisibleby",
       [](V v, A a) {
         const int64_t by = integer_argument(a);
         if (by == 0 || !v.is_integer())
           fail(ErrorCode::kData, "divisibleby needs integers that are not 0");
         return v.integer() % by == 0;
       }},
      {"lower", [](V v, A) { return is_whole_case(v, false); }},
      {"upper", [](V v, A) { return is_whole_case(v, true); }},
      {"sameas",
       [](V v, A a) { return v.type_name() == argument(a).type_name() && equal(v, argument(a)); }},
      {"in", [](V v, A a) { return contains(argument(a), v); }},
      {"filter", [](V v, A) { return v.is_string() && find_filter(v.string()) != nullptr; }},
      {"test", [](V v, A) { return v.is_string() && find_test(v.string()) != nullptr; }},
      {"eq", [](V v, A a) { return equal(v, argument(a)); }},
      {"equalto", [](V v, A a) { return equal(v, argument(a)); }},
      {"==", [](V v, A a) { return equal(v, argument(a)); }},
      {"ne", [](V v, A a) { return !equal(v, argument(a)); }},
      {"!=", [](V v, A a) { return !equal(v, argument(a)); }},
      {"lt", [](V v, A a) { return compare(v, argument(a)) < 0; }},
      {"lessthan", [](V v, A a) { return compare(v, argument(a)) < 0; }},
      {"<", [](V v, A a) { return compare(v, argument(a)) < 0; }},
      {"le", [](V v, A a) { return compare(v, argument(a)) <= 0; }},
      {"<=", [](V v, A a) { return compare(v, argument(a)) <= 0; }},
      {"gt", [](V v, A a) { return compare(v, argument(a)) > 0; }},
      {"greaterthan", [](V v, A a) { return compare(v, argument(a)) > 0; }},
      {">", [](V v, A a) { return compare(v, argument(a)) > 0; }},
      {"ge", [](V v, A a) { return compare(v, argument(a)) >= 0; }},
      {">=", [](V v, A a) { return compare(v, argument(a)) >= 0; }},
  };
  return all;
}

}  // namespace

Test find_test(std::string_view name) {
  const auto it = tests().find(name);
  return it == tests().end() ? nullptr : it->second;
}

}  // namespace paddle::jinja
