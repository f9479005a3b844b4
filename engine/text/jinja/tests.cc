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

bool is_integer(const Value& v) { return v.is_integer() || v.is_big(); }
int last_bit(const Value& v) {
  return static_cast<int>((v.is_big() ? v.digits().back() - '0' : v.integer()) & 1);
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
  using I = Interpreter&;
  using V = const Value&;
  using A = const Arguments&;
  static const std::map<std::string_view, Test> all = {
      {"defined", [](I, V v, A) { return !v.is_undefined(); }},
      {"undefined", [](I, V v, A) { return v.is_undefined(); }},
      {"none", [](I, V v, A) { return v.is_none(); }},
      {"boolean", [](I, V v, A) { return v.is<bool>(); }},
      {"true", [](I, V v, A) { return v.is<bool>() && v.truth(); }},
      {"false", [](I, V v, A) { return v.is<bool>() && !v.truth(); }},
      {"integer", [](I, V v, A) { return v.is<int64_t>() || v.is_big(); }},
      {"float", [](I, V v, A) { return v.is<double>(); }},
      {"number", [](I, V v, A) { return v.is_number(); }},
      {"string", [](I, V v, A) { return v.is_string(); }},
      {"mapping", [](I, V v, A) { return v.is_dict(); }},
      {"sequence",
       [](I, V v, A) { return v.is_list() || v.is_string() || v.is_dict() || v.is_undefined(); }},
      {"iterable",
       [](I, V v, A) { return v.is_list() || v.is_string() || v.is_dict() || v.is_undefined(); }},
      {"callable", [](I, V v, A) { return v.is_object() && v.object()->is_callable(); }},
      {"escaped", [](I, V, A) { return false; }},
      {"even", [](I, V v, A) { return is_integer(v) && last_bit(v) == 0; }},
      {"odd", [](I, V v, A) { return is_integer(v) && last_bit(v) != 0; }},
      {"divisibleby",
       [](I, V v, A a) {
         const int64_t by = integer_argument(a);
         if (by == 0 || !v.is_integer())
           fail(ErrorCode::kData, "divisibleby needs integers that are not 0");
         return v.integer() % by == 0;
       }},
      {"lower", [](I, V v, A) { return is_whole_case(v, false); }},
      {"upper", [](I, V v, A) { return is_whole_case(v, true); }},
      {"sameas",
       [](I i, V v, A a) {
         return v.type_name() == argument(a).type_name() && equal(v, argument(a), i.budget());
       }},
      {"in", [](I i, V v, A a) { return contains(i, argument(a), v); }},
      {"filter", [](I, V v, A) { return v.is_string() && find_filter(v.string()) != nullptr; }},
      {"test", [](I, V v, A) { return v.is_string() && find_test(v.string()) != nullptr; }},
      {"eq", [](I i, V v, A a) { return equal(v, argument(a), i.budget()); }},
      {"equalto", [](I i, V v, A a) { return equal(v, argument(a), i.budget()); }},
      {"==", [](I i, V v, A a) { return equal(v, argument(a), i.budget()); }},
      {"ne", [](I i, V v, A a) { return !equal(v, argument(a), i.budget()); }},
      {"!=", [](I i, V v, A a) { return !equal(v, argument(a), i.budget()); }},
      {"lt", [](I i, V v, A a) { return compare(v, argument(a), i.budget()) < 0; }},
      {"lessthan", [](I i, V v, A a) { return compare(v, argument(a), i.budget()) < 0; }},
      {"<", [](I i, V v, A a) { return compare(v, argument(a), i.budget()) < 0; }},
      {"le", [](I i, V v, A a) { return compare(v, argument(a), i.budget()) <= 0; }},
      {"<=", [](I i, V v, A a) { return compare(v, argument(a), i.budget()) <= 0; }},
      {"gt", [](I i, V v, A a) { return compare(v, argument(a), i.budget()) > 0; }},
      {"greaterthan", [](I i, V v, A a) { return compare(v, argument(a), i.budget()) > 0; }},
      {">", [](I i, V v, A a) { return compare(v, argument(a), i.budget()) > 0; }},
      {"ge", [](I i, V v, A a) { return compare(v, argument(a), i.budget()) >= 0; }},
      {">=", [](I i, V v, A a) { return compare(v, argument(a), i.budget()) >= 0; }},
  };
  return all;
}

}  // namespace

Test find_test(std::string_view name) {
  const auto it = tests().find(name);
  return it == tests().end() ? nullptr : it->second;
}

}  // namespace paddle::jinja
