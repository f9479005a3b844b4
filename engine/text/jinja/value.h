#pragma once
// Values of templates, with the meaning of Python's: none, booleans, integers, floats, strings,
// lists, tuples, dicts in insertion order, and objects (functions, namespaces, loops). Lists,
// tuples and dicts never change. Integers beyond 64 bits can be printed and compared, not computed
// with. What takes memory or time by the size of values is charged to a budget.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "text/json_value.h"
#include "text/text_budget.h"

namespace paddle::jinja {

class Value;
struct Undefined {
  std::string name;  ///< of the variable or attribute, for messages
};
struct None {};
/// An integer beyond 64 bits: its decimal digits, after a sign where it is negative.
struct BigInteger {
  std::string digits;
};
struct List;
struct Dict;

/// Arguments of a call.
struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

class Interpreter;

/// Functions, macros, namespaces, loops.
struct Object {
  virtual ~Object() = default;
  virtual std::string type_name() const = 0;
  virtual bool is_callable() const { return false; }
  virtual Value call(Interpreter& interpreter, const Arguments& arguments);
  /// An undefined value if there is none.
  virtual Value attribute(std::string_view name) const;
};

class Value {
 public:
  Value() : content_(Undefined{}) {}
  Value(Undefined u) : content_(std::move(u)) {}
  Value(None n) : content_(n) {}
  Value(bool b) : content_(b) {}
  Value(int64_t n) : content_(n) {}
  Value(double d) : content_(d) {}
  Value(BigInteger n) : content_(std::make_shared<const BigInteger>(std::move(n))) {}
  Value(std::string text) : content_(std::make_shared<const std::string>(std::move(text))) {}
  Value(const char* text) : Value(std::string(text)) {}
  Value(std::shared_ptr<const List> list) : content_(std::move(list)) {}
  Value(std::shared_ptr<const Dict> dict) : content_(std::move(dict)) {}
  Value(std::shared_ptr<Object> object) : content_(std::move(object)) {}
  static Value list(std::vector<Value> items);
  static Value tuple(std::vector<Value> items);
  /// The result of a lazy filter such as `map`: it can only be iterated.
  static Value generator(std::vector<Value> items);

  template <class T>
  bool is() const {
    return std::holds_alternative<T>(content_);
  }
  bool is_undefined() const { return is<Undefined>(); }
  bool is_none() const { return is<None>(); }
  bool is_string() const { return is<std::shared_ptr<const std::string>>(); }
  bool is_list() const { return is<std::shared_ptr<const List>>(); }  ///< or a tuple
  bool is_dict() const { return is<std::shared_ptr<const Dict>>(); }
  bool is_object() const { return is<std::shared_ptr<Object>>(); }
  /// Lists, dicts and objects.
  bool holds_values() const { return is_list() || is_dict() || is_object(); }
  bool is_number() const { return is_integer() || is<double>() || is_big(); }
  bool is_integer() const { return is<int64_t>() || is<bool>(); }  ///< of 64 bits
  bool is_big() const { return is<std::shared_ptr<const BigInteger>>(); }

  const Undefined& undefined() const { return std::get<Undefined>(content_); }
  const std::string& string() const {
    return *std::get<std::shared_ptr<const std::string>>(content_);
  }
  const List& items() const { return *std::get<std::shared_ptr<const List>>(content_); }
  const Dict& dict() const { return *std::get<std::shared_ptr<const Dict>>(content_); }
  const std::shared_ptr<Object>& object() const {
    return std::get<std::shared_ptr<Object>>(content_);
  }
  int64_t integer() const;             ///< of an integer or a boolean
  double number() const;               ///< of a number; that of a big integer is rounded
  const std::string& digits() const {  ///< of a big integer
    return std::get<std::shared_ptr<const BigInteger>>(content_)->digits;
  }

  /// Python's truth value.
  bool truth() const;
  /// "str", "int", "list", …
  std::string type_name() const;
  /// str(value), as `{{ value }}` prints it.
  std::string text(TextBudget& budget) const;
  /// repr(value).
  std::string repr(TextBudget& budget) const;

 private:
  std::variant<Undefined, None, bool, int64_t, double, std::shared_ptr<const std::string>,
               std::shared_ptr<const List>, std::shared_ptr<const Dict>, std::shared_ptr<Object>,
               std::shared_ptr<const BigInteger>>
      content_;
};

/// Minus a big integer.
Value negated(const Value& big);

/// Destroys values in a loop: templates can nest them deeper than destructors can recurse.
void discard(std::vector<Value> values);

struct List {
  List(std::vector<Value> items, bool tuple, bool generator)
      : values(std::move(items)), is_tuple(tuple), is_generator(generator) {}
  List(List&&) = default;
  ~List() { discard(std::move(values)); }
  std::vector<Value> values;
  bool is_tuple;
  bool is_generator;
};

struct Dict {
  Dict() = default;
  Dict(const Dict&) = default;
  Dict(Dict&&) = default;
  ~Dict();
  std::vector<std::pair<Value, Value>> entries;
  const Value* find(const Value& key, TextBudget& budget) const;
  const Value* find(std::string_view key) const;
  void set(Value key, Value value);  ///< while the dict is made
  void set(Value key, Value value, TextBudget& budget);
};

/// kData if the values are nested too deeply.
bool equal(const Value& a, const Value& b, TextBudget& budget);
/// -1, 0 or 1; kData if the types have no order or the values are nested too deeply.
int compare(const Value& a, const Value& b, TextBudget& budget);

/// The order in which a stable sort by `keys` takes them.
std::vector<size_t> stable_order(const std::vector<Value>& keys, bool reverse, TextBudget& budget);

Value from_json(const Json& json);

struct JsonFormat {
  int64_t indent = -1;  ///< -1: one line
  bool ensure_ascii = false, sort_keys = false;
  std::string item_separator, key_separator;  ///< empty: those of Python's json.dumps
};
/// json.dumps(value); kData for values that have no JSON form.
std::string to_json(const Value& value, const JsonFormat& format, TextBudget& budget);

/// Python's repr of a float.
std::string float_text(double value);
/// Characters of a string, each with its bytes.
std::vector<std::string_view> characters(std::string_view text, TextBudget& budget);
int64_t character_count(std::string_view text);

}  // namespace paddle::jinja
