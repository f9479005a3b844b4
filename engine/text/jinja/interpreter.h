#pragma once
// Runs a template's syntax tree.

#include <ctime>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "text/jinja/ast.h"
#include "text/jinja/template.h"

namespace paddle::jinja {

/// Holds values that a template can set, and so can hold itself: `{% set ns.x = ns %}`, or a macro
/// and the scope that defines it. Counting references does not free these.
struct Holder {
  virtual ~Holder() = default;
  virtual void clear() = 0;
};

/// Variables of a scope; names that it does not have are looked up in its parents.
struct Frame final : Holder {
  ~Frame() override { clear(); }
  void clear() override;
  std::shared_ptr<Frame> parent;
  std::unordered_map<std::string, Value> variables;
  const Value* find(const std::string& name) const;
};
using FramePointer = std::shared_ptr<Frame>;

class Interpreter {
 public:
  Interpreter(const std::string& name, const RenderLimits& limits, std::optional<std::tm> now)
      : name_(name),
        budget_("rendering", static_cast<uint64_t>(limits.bytes),
                static_cast<uint64_t>(limits.steps)),
        now_(now) {}
  /// Clears the holders that are left.
  ~Interpreter();
  Interpreter(const Interpreter&) = delete;

  std::string render(const TemplateNode& root, const Value& variables);

  void track(std::weak_ptr<Holder> holder);
  TextBudget& budget() { return budget_; }
  /// Counts a new value, before it is made; kData above the limit.
  void charge_list(size_t items) { budget_.charge(items + kOverhead, sizeof(Value)); }
  void charge_texts(size_t texts, size_t bytes) {
    budget_.charge(texts, kOverhead * sizeof(Value));
    budget_.charge(bytes);
  }
  /// A text that is not much longer than `from`, as `make(from)` makes it.
  template <class Make>
  Value text_like(const std::string& from, Make&& make) {
    charge_texts(1, from.size());
    std::string out = make(from);
    if (out.size() > from.size()) budget_.charge(out.size() - from.size());
    return Value(std::move(out));
  }
  Value call(const Value& function, const Arguments& arguments);
  std::string call_macro(const Statement& macro, const FramePointer& scope,
                         const Arguments& arguments, const Value& caller);
  Value call_loop(const Statement& loop, const FramePointer& scope, const Value& items, int depth);
  std::tm now() const;
  /// Counts a step; kData above the limit.
  void step() { budget_.step(); }

 private:
  enum class Flow { kNext, kBreak, kContinue };
  struct Depth;

  FramePointer inner(const FramePointer& parent);
  Flow run(const Body& body, const FramePointer& frame);
  Flow run(const Statement& statement, const FramePointer& frame);
  Flow run_checked(const Statement& statement, const FramePointer& frame);
  void run_for(const Statement& s, const FramePointer& frame, const Value& items, int depth);
  /// The text that `render` writes.
  std::string captured(const std::function<void()>& render);
  void assign(const Expression& target, const Value& value, const FramePointer& frame);
  void print(std::string_view text);

  Value evaluate(const Expression& e, const FramePointer& frame);
  Value binary(const Expression& e, const FramePointer& frame);
  Value comparison(const Expression& e, const FramePointer& frame);
  Value slice(const Expression& e, const FramePointer& frame);
  Arguments evaluate(const CallArguments& arguments, const FramePointer& frame);
  Value evaluate_call(const Expression& e, const FramePointer& frame, const Value* caller);

  const std::string& name_;
  static constexpr size_t kOverhead = 4;  ///< values that the memory of an empty one holds
  TextBudget budget_;
  std::optional<std::tm> now_;
  int depth_ = 0;
  std::string* output_ = nullptr;
  std::vector<std::weak_ptr<Holder>> holders_;
  size_t next_sweep_ = 1024;  // expired holders are erased at this number
};

/// The values that a loop runs over: items of a list, keys of a dict, characters of a string.
std::vector<Value> iterate(Interpreter& interpreter, const Value& value);
/// value.name: a method or an item, an undefined value if there is neither.
Value attribute_of(const Value& value, const std::string& name);
/// value[key]
Value item_of(Interpreter& interpreter, const Value& value, const Value& key);
Value add(Interpreter& interpreter, const Value& a, const Value& b);
Value arithmetic(Interpreter& interpreter, const std::string& name, const Value& a, const Value& b);
bool contains(Interpreter& interpreter, const Value& container, const Value& item);
/// format % values, for strings.
std::string percent_format(Interpreter& interpreter, const std::string& format,
                           const Value& values);

// In filters.cc, tests.cc, methods.cc and globals.cc. Null if there is no such name.
using Filter = Value (*)(Interpreter&, const Value& input, const Arguments&);
Filter find_filter(std::string_view name);
Filter find_text_filter(std::string_view name);  ///< those of text_filters.cc
/// Says that a filter is not there, or that one of Jinja's is not supported.
std::string missing_filter(const std::string& name);
using Test = bool (*)(Interpreter&, const Value& input, const Arguments&);
Test find_test(std::string_view name);
/// A bound method of a string, list or dict; undefined if there is none.
Value method_of(const Value& object, const std::string& name);
FramePointer global_frame();

/// Binds arguments to parameter names.
class Parameters {
 public:
  /// kData for too many or unknown arguments.
  Parameters(const Arguments& arguments, std::string_view function,
             std::initializer_list<const char*> names);
  bool has(size_t i) const { return !values_[i].is_undefined(); }
  const Value& operator[](size_t i) const { return values_[i]; }
  int64_t integer(size_t i, int64_t fallback) const;
  bool boolean(size_t i, bool fallback) const;
  std::string text(size_t i, std::string_view fallback) const;

 private:
  std::string function_;
  std::vector<Value> values_;
  std::vector<const char*> names_;
};

/// A function of C++.
struct Function final : Object {
  using Body = std::function<Value(Interpreter&, const Arguments&)>;
  Function(std::string name, Body body) : name(std::move(name)), body(std::move(body)) {}
  std::string type_name() const override { return "function"; }
  bool is_callable() const override { return true; }
  Value call(Interpreter& interpreter, const Arguments& arguments) override {
    return body(interpreter, arguments);
  }
  std::string name;
  Body body;
};
Value make_function(std::string name, Function::Body body);

/// namespace(): the only object whose attributes a template can set.
struct Namespace final : Object, Holder {
  ~Namespace() override { clear(); }
  void clear() override;
  std::string type_name() const override { return "Namespace"; }
  Value attribute(std::string_view name) const override;
  std::unordered_map<std::string, Value> values;
};

}  // namespace paddle::jinja
