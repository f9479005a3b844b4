#include "text/jinja/interpreter.h"

#include <algorithm>
#include <utility>

namespace paddle::jinja {

namespace {

constexpr int kMaxDepth = 2500;  // of nested evaluation, macros included
constexpr size_t kMaxOutput = size_t{64} << 20;

[[noreturn]] void reject_undefined(const Undefined& u) {
  fail(ErrorCode::kData, "'", u.name, "' is undefined");
}

/// The `loop` of a for statement.
struct Loop final : Object, Holder, std::enable_shared_from_this<Loop> {
  ~Loop() override { clear(); }
  void clear() override {
    scope = nullptr;
    if (last) discard({*std::exchange(last, std::nullopt)});
  }
  std::string type_name() const override { return "LoopContext"; }
  bool is_callable() const override { return true; }
  Value attribute(std::string_view name) const override {
    const auto i = static_cast<int64_t>(index);
    const auto n = static_cast<int64_t>(items->size());
    if (name == "index") return i + 1;
    if (name == "index0") return i;
    if (name == "revindex") return n - i;
    if (name == "revindex0") return n - i - 1;
    if (name == "first") return i == 0;
    if (name == "last") return i + 1 == n;
    if (name == "length") return n;
    if (name == "depth") return int64_t{depth} + 1;
    if (name == "depth0") return int64_t{depth};
    if (name == "previtem" && i > 0 && i <= n) return (*items)[index - 1];
    if (name == "nextitem" && i + 1 < n) return (*items)[index + 1];
    if (name == "cycle")
      return make_function("cycle", [i](Interpreter&, const Arguments& a) {
        if (a.positional.empty()) fail(ErrorCode::kData, "cycle() needs values");
        return a.positional[static_cast<size_t>(i) % a.positional.size()];
      });
    if (name == "changed")
      return make_function(
          "changed", [loop = shared_from_this()](Interpreter& interpreter, const Arguments& a) {
            Value now = Value::list(a.positional);
            const bool changed = !loop->last || !equal(*loop->last, now, interpreter.budget());
            loop->last = now;
            return Value(changed);
          });
    return Undefined{std::string(name)};
  }
  Value call(Interpreter& interpreter, const Arguments& arguments) override {
    if (!statement->recursive) fail(ErrorCode::kData, "the loop is not recursive");
    if (arguments.positional.size() != 1) fail(ErrorCode::kData, "loop() takes one value");
    return interpreter.call_loop(*statement, scope, arguments.positional[0], depth + 1);
  }
  const Statement* statement = nullptr;
  FramePointer scope;
  const std::vector<Value>* items = nullptr;
  size_t index = 0;
  int depth = 0;
  mutable std::optional<Value> last;  ///< of changed()
};

struct Macro final : Object {
  Macro(const Statement& s, FramePointer f) : statement(s), scope(std::move(f)) {}
  std::string type_name() const override { return "Macro"; }
  bool is_callable() const override { return true; }
  Value attribute(std::string_view name) const override {
    return name == "name" ? Value(statement.text) : Value(Undefined{std::string(name)});
  }
  Value call(Interpreter& interpreter, const Arguments& arguments) override {
    return interpreter.call_macro(statement, scope, arguments, Undefined{"caller"});
  }
  const Statement& statement;
  FramePointer scope;
};

}  // namespace

const Value* Frame::find(const std::string& name) const {
  for (const Frame* frame = this; frame; frame = frame->parent.get())
    if (const auto it = frame->variables.find(name); it != frame->variables.end())
      return &it->second;
  return nullptr;
}

void Frame::clear() {
  std::vector<Value> values;
  for (auto& [name, value] : variables)
    if (value.holds_values()) values.push_back(std::move(value));
  variables.clear();
  parent = nullptr;
  discard(std::move(values));
}

Interpreter::~Interpreter() {
  std::vector<std::shared_ptr<Holder>> left;  // all of them, so that clearing one frees no other
  for (const auto& holder : holders_)
    if (auto live = holder.lock()) left.push_back(std::move(live));
  for (const auto& holder : left) holder->clear();
}

void Interpreter::track(std::weak_ptr<Holder> holder) {
  if (holders_.size() >= next_sweep_) {
    std::erase_if(holders_, [](const auto& h) { return h.expired(); });
    next_sweep_ = std::max<size_t>(1024, 2 * holders_.size());
  }
  holders_.push_back(std::move(holder));
}

FramePointer Interpreter::inner(const FramePointer& parent) {
  auto frame = std::make_shared<Frame>();
  frame->parent = parent;
  track(frame);
  return frame;
}

struct Interpreter::Depth {
  explicit Depth(Interpreter& i) : interpreter(i) {
    if (++interpreter.depth_ > kMaxDepth)
      fail(ErrorCode::kData, "macros and expressions are nested too deeply");
  }
  ~Depth() { --interpreter.depth_; }
  Interpreter& interpreter;
};

std::tm Interpreter::now() const {
  if (now_) return *now_;
  const std::time_t seconds = std::time(nullptr);
  std::tm local{};
  localtime_r(&seconds, &local);
  return local;
}

std::string Interpreter::render(const TemplateNode& root, const Value& variables) {
  std::string out;
  output_ = &out;
  const FramePointer context = inner(global_frame());
  if (variables.is_dict())
    for (const auto& [name, value] : variables.dict().entries)
      context->variables[name.text(budget_)] = value;
  run(root.body, inner(context));
  return out;
}

void Interpreter::print(std::string_view text) {
  if (text.size() > kMaxOutput - output_->size())
    fail(ErrorCode::kData, "the output is longer than ", human_bytes(kMaxOutput));
  budget_.charge(text.size());
  *output_ += text;
}

Interpreter::Flow Interpreter::run(const Body& body, const FramePointer& frame) {
  for (const auto& statement : body)
    if (const Flow flow = run(*statement, frame); flow != Flow::kNext) return flow;
  return Flow::kNext;
}

Interpreter::Flow Interpreter::run(const Statement& statement, const FramePointer& frame) {
  step();
  const Depth depth(*this);
  try {
    return run_checked(statement, frame);
  } catch (const Error& e) {
    if (!e.location().file.empty()) throw;
    throw Error(e.code(), e.message(), {name_, statement.line, 0});
  }
}

std::string Interpreter::captured(const std::function<void()>& render) {
  std::string out;
  std::string* const before = std::exchange(output_, &out);
  struct Restore {
    std::string*& output;
    std::string* value;
    ~Restore() { output = value; }
  } const restore{output_, before};
  render();
  charge_texts(1, 0);
  return out;
}

Interpreter::Flow Interpreter::run_checked(const Statement& s, const FramePointer& frame) {
  switch (s.kind) {
    case Statement::Kind::kData:
      print(s.text);
      break;
    case Statement::Kind::kOutput:
      print(evaluate(*s.value, frame).text(budget_));
      break;
    case Statement::Kind::kDo:
      evaluate(*s.value, frame);
      break;
    case Statement::Kind::kIf:
      for (const auto& [condition, body] : s.branches)
        if (evaluate(*condition, frame).truth()) return run(body, frame);
      return run(s.otherwise, frame);
    case Statement::Kind::kFor:
      run_for(s, frame, evaluate(*s.value, frame), 0);
      break;
    case Statement::Kind::kSet:
      if (s.value) {
        assign(*s.target, evaluate(*s.value, frame), frame);
      } else {
        const FramePointer scope = inner(frame);
        Value text(captured([&] { run(s.body, scope); }));
        if (s.filter) {
          scope->variables[""] = text;
          text = evaluate(*s.filter, scope);
        }
        assign(*s.target, text, frame);
      }
      break;
    case Statement::Kind::kMacro:
      frame->variables[s.text] =
          std::static_pointer_cast<Object>(std::make_shared<Macro>(s, frame));
      break;
    case Statement::Kind::kCall: {
      const Value caller =
          make_function("caller", [this, &s, frame](Interpreter&, const Arguments& a) {
            return Value(call_macro(s, frame, a, Undefined{"caller"}));
          });
      print(evaluate_call(*s.value, frame, &caller).text(budget_));
      break;
    }
    case Statement::Kind::kFilter: {
      const FramePointer scope = inner(frame);
      scope->variables[""] = Value(captured([&] { run(s.body, scope); }));
      print(evaluate(*s.value, scope).text(budget_));
      break;
    }
    case Statement::Kind::kWith: {
      const FramePointer scope = inner(frame);
      for (const auto& [target, value] : s.assignments)
        assign(*target, evaluate(*value, frame), scope);
      return run(s.body, scope);
    }
    case Statement::Kind::kBlock:
      return run(s.body, inner(frame));
    case Statement::Kind::kBreak:
      return Flow::kBreak;
    case Statement::Kind::kContinue:
      return Flow::kContinue;
  }
  return Flow::kNext;
}

void Interpreter::run_for(const Statement& s, const FramePointer& frame, const Value& iterable,
                          int depth) {
  std::vector<Value> items = iterate(*this, iterable);
  if (s.filter)
    std::erase_if(items, [&](const Value& item) {
      const FramePointer scope = inner(frame);
      assign(*s.target, item, scope);
      return !evaluate(*s.filter, scope).truth();
    });
  if (items.empty()) {
    run(s.otherwise, inner(frame));
    return;
  }
  const auto loop = std::make_shared<Loop>();
  track(loop);
  loop->statement = &s;
  loop->scope = frame;
  loop->items = &items;
  loop->depth = depth;
  for (size_t i = 0; i < items.size(); ++i) {
    step();
    loop->index = i;
    const FramePointer scope = inner(frame);
    scope->variables["loop"] = std::static_pointer_cast<Object>(loop);
    assign(*s.target, items[i], scope);
    const Flow flow = run(s.body, scope);
    if (flow == Flow::kBreak) break;
  }
  // A loop that a namespace kept has ended.
  static const std::vector<Value> none;
  loop->items = &none;
  loop->scope = nullptr;
}

Value Interpreter::call_loop(const Statement& loop, const FramePointer& scope, const Value& items,
                             int depth) {
  if (!scope) fail(ErrorCode::kData, "the loop has ended");
  const Depth guard(*this);
  return captured([&] { run_for(loop, scope, items, depth); });
}

void Interpreter::assign(const Expression& target, const Value& value, const FramePointer& frame) {
  if (target.kind == Expression::Kind::kName) {
    frame->variables[target.name] = value;
    return;
  }
  if (target.kind == Expression::Kind::kAttribute) {
    const Value object = evaluate(*target.operands[0], frame);
    auto* space = object.is_object() ? dynamic_cast<Namespace*>(object.object().get()) : nullptr;
    if (!space)
      fail(ErrorCode::kData, "attributes of a ", object.type_name(),
           " cannot be set; only those of a namespace can");
    space->values[target.name] = value;
    return;
  }
  const std::vector<Value> items = iterate(*this, value);
  if (items.size() != target.operands.size())
    fail(ErrorCode::kData, items.size(), " values for ", target.operands.size(), " names");
  for (size_t i = 0; i < items.size(); ++i) assign(*target.operands[i], items[i], frame);
}

std::string Interpreter::call_macro(const Statement& macro, const FramePointer& scope,
                                    const Arguments& arguments, const Value& caller) {
  const Depth guard(*this);
  const FramePointer frame = inner(scope);
  const auto& parameters = macro.parameters;
  std::vector<bool> given(parameters.size());
  for (size_t i = 0; i < parameters.size() && i < arguments.positional.size(); ++i) {
    frame->variables[parameters[i].name] = arguments.positional[i];
    given[i] = true;
  }
  std::vector<Value> rest;
  if (arguments.positional.size() > parameters.size())
    rest.assign(arguments.positional.begin() + static_cast<ptrdiff_t>(parameters.size()),
                arguments.positional.end());
  Dict others;
  for (const auto& [name, value] : arguments.named) {
    const auto it = std::find_if(parameters.begin(), parameters.end(),
                                 [&, key = name](const Parameter& p) { return p.name == key; });
    if (it == parameters.end()) {
      if (name == "caller")
        frame->variables["caller"] = value;
      else
        others.set(name, value);
      continue;
    }
    const auto i = static_cast<size_t>(it - parameters.begin());
    if (given[i]) fail(ErrorCode::kData, "'", macro.text, "': two values for '", name, "'");
    frame->variables[name] = value;
    given[i] = true;
  }
  for (size_t i = 0; i < parameters.size(); ++i)
    if (!given[i])
      frame->variables[parameters[i].name] = parameters[i].fallback
                                                 ? evaluate(*parameters[i].fallback, frame)
                                                 : Value(Undefined{parameters[i].name});
  if (macro.kind == Statement::Kind::kMacro) {
    frame->variables["varargs"] = Value::tuple(std::move(rest));
    frame->variables["kwargs"] = std::make_shared<const Dict>(std::move(others));
    if (!caller.is_undefined()) frame->variables["caller"] = caller;
  }
  return captured([&] { run(macro.body, frame); });
}

Value Interpreter::call(const Value& function, const Arguments& arguments) {
  if (function.is_undefined()) reject_undefined(function.undefined());
  if (!function.is_object() || !function.object()->is_callable())
    fail(ErrorCode::kData, "'", function.type_name(), "' object is not callable");
  return function.object()->call(*this, arguments);
}

Arguments Interpreter::evaluate(const CallArguments& arguments, const FramePointer& frame) {
  Arguments out;
  for (const auto& value : arguments.positional) out.positional.push_back(evaluate(*value, frame));
  if (arguments.star)
    for (Value& value : iterate(*this, evaluate(*arguments.star, frame)))
      out.positional.push_back(std::move(value));
  for (const auto& [name, value] : arguments.named)
    out.named.emplace_back(name, evaluate(*value, frame));
  if (arguments.double_star) {
    const Value dict = evaluate(*arguments.double_star, frame);
    if (!dict.is_dict()) fail(ErrorCode::kData, "a ", dict.type_name(), " after **");
    for (const auto& [key, value] : dict.dict().entries)
      out.named.emplace_back(key.text(budget_), value);
  }
  return out;
}

Value Interpreter::evaluate_call(const Expression& e, const FramePointer& frame,
                                 const Value* caller) {
  const Value function = evaluate(*e.operands[0], frame);
  Arguments arguments = evaluate(e.arguments, frame);
  if (caller) arguments.named.emplace_back("caller", *caller);
  return call(function, arguments);
}

Value Interpreter::evaluate(const Expression& e, const FramePointer& frame) {
  step();
  const Depth depth(*this);
  using Kind = Expression::Kind;
  switch (e.kind) {
    case Kind::kConstant:
      return e.value;
    case Kind::kName: {
      const Value* found = frame->find(e.name);
      return found ? *found : Value(Undefined{e.name});
    }
    case Kind::kList:
    case Kind::kTuple: {
      std::vector<Value> items;
      for (const auto& operand : e.operands) items.push_back(evaluate(*operand, frame));
      charge_list(items.size());
      return e.kind == Kind::kList ? Value::list(std::move(items)) : Value::tuple(std::move(items));
    }
    case Kind::kDict: {
      Dict dict;
      for (size_t i = 0; i < e.operands.size(); i += 2)
        dict.set(evaluate(*e.operands[i], frame), evaluate(*e.operands[i + 1], frame), budget_);
      charge_list(2 * dict.entries.size());
      return std::make_shared<const Dict>(std::move(dict));
    }
    case Kind::kAttribute:
      return attribute_of(evaluate(*e.operands[0], frame), e.name);
    case Kind::kItem:
      return item_of(*this, evaluate(*e.operands[0], frame), evaluate(*e.operands[1], frame));
    case Kind::kSlice:
      return slice(e, frame);
    case Kind::kCall:
      return evaluate_call(e, frame, nullptr);
    case Kind::kFilter: {
      const Filter filter = find_filter(e.name);
      if (!filter) fail(ErrorCode::kModel, missing_filter(e.name));
      // In filter blocks the operand is the block's output, under the empty name.
      const Value input = e.operands[0] ? evaluate(*e.operands[0], frame) : frame->variables.at("");
      return filter(*this, input, evaluate(e.arguments, frame));
    }
    case Kind::kTest: {
      const Test test = find_test(e.name);
      if (!test) fail(ErrorCode::kModel, "there is no test '", e.name, "'");
      return test(*this, evaluate(*e.operands[0], frame), evaluate(e.arguments, frame));
    }
    case Kind::kUnary: {
      const Value value = evaluate(*e.operands[0], frame);
      if (e.name == "not") return !value.truth();
      if (value.is_undefined()) reject_undefined(value.undefined());
      if (!value.is_number())
        fail(ErrorCode::kData, "bad operand of unary ", e.name, ": ", value.type_name());
      if (value.is_big()) return e.name == "-" ? negated(value) : value;
      if (value.is_integer())
        return e.name == "-" ? arithmetic(*this, "-", int64_t{0}, value) : value.integer();
      return e.name == "-" ? -value.number() : value.number();
    }
    case Kind::kBinary:
      return binary(e, frame);
    case Kind::kComparison:
      return comparison(e, frame);
    case Kind::kConditional:
      if (evaluate(*e.operands[1], frame).truth()) return evaluate(*e.operands[0], frame);
      return e.operands[2] ? evaluate(*e.operands[2], frame) : Value(Undefined{"the inline if"});
  }
  return {};
}

Value Interpreter::binary(const Expression& e, const FramePointer& frame) {
  Value left = evaluate(*e.operands[0], frame);
  if (e.name == "and") return left.truth() ? evaluate(*e.operands[1], frame) : left;
  if (e.name == "or") return left.truth() ? left : evaluate(*e.operands[1], frame);
  const Value right = evaluate(*e.operands[1], frame);
  if (e.name == "~") {
    BudgetedText out(budget_);
    (out += left.text(budget_)) += right.text(budget_);
    charge_texts(1, 0);
    return out.take();
  }
  if (left.is_undefined()) reject_undefined(left.undefined());
  if (right.is_undefined()) reject_undefined(right.undefined());
  return e.name == "+" ? add(*this, left, right) : arithmetic(*this, e.name, left, right);
}

Value Interpreter::comparison(const Expression& e, const FramePointer& frame) {
  Value left = evaluate(*e.operands[0], frame);
  for (size_t i = 0; i < e.names.size(); ++i) {
    const std::string& name = e.names[i];
    Value right = evaluate(*e.operands[i + 1], frame);
    bool holds = false;
    if (name == "==" || name == "!=") {
      holds = equal(left, right, budget_) == (name == "==");
    } else if (name == "in" || name == "not in") {
      holds = contains(*this, right, left) == (name == "in");
    } else {
      if (left.is_undefined()) reject_undefined(left.undefined());
      if (right.is_undefined()) reject_undefined(right.undefined());
      const int order = compare(left, right, budget_);
      holds = name == "<"    ? order < 0
              : name == ">"  ? order > 0
              : name == "<=" ? order <= 0
                             : order >= 0;
    }
    if (!holds) return false;
    left = std::move(right);
  }
  return true;
}

Value Interpreter::slice(const Expression& e, const FramePointer& frame) {
  const Value object = evaluate(*e.operands[0], frame);
  const auto bound = [&](size_t i) -> std::optional<int64_t> {
    if (!e.operands[i]) return std::nullopt;
    const Value value = evaluate(*e.operands[i], frame);
    if (value.is_none()) return std::nullopt;
    if (!value.is_integer()) fail(ErrorCode::kData, "a slice bound of type ", value.type_name());
    return value.integer();
  };
  const auto begin = bound(1), end = bound(2);
  const int64_t stride = bound(3).value_or(1);
  if (stride == 0) fail(ErrorCode::kData, "a slice with step 0");
  if (object.is_undefined()) return object;
  if (!object.is_string() && (!object.is_list() || object.items().is_generator))
    fail(ErrorCode::kData, "'", object.type_name(), "' object cannot be sliced");
  std::vector<std::string_view> letters;
  if (object.is_string()) letters = characters(object.string(), budget_);
  const auto size =
      static_cast<int64_t>(object.is_string() ? letters.size() : object.items().values.size());
  const auto clamp = [&](int64_t i, int64_t low, int64_t high) {
    return std::clamp(i < 0 ? i + size : i, low, high);
  };
  const int64_t first = stride > 0 ? begin ? clamp(*begin, 0, size) : 0
                        : begin    ? clamp(*begin, -1, size - 1)
                                   : size - 1;
  const int64_t last = stride > 0 ? end ? clamp(*end, 0, size) : size
                       : end      ? clamp(*end, -1, size - 1)
                                  : -1;
  if (object.is_string())
    charge_texts(1, object.string().size());
  else
    charge_list(object.items().values.size());
  std::string text;
  std::vector<Value> items;
  for (int64_t i = first; stride > 0 ? i < last : i > last;) {
    if (object.is_string())
      text += letters[static_cast<size_t>(i)];
    else
      items.push_back(object.items().values[static_cast<size_t>(i)]);
    if (__builtin_add_overflow(i, stride, &i)) break;
  }
  if (object.is_string()) return text;
  return object.items().is_tuple ? Value::tuple(std::move(items)) : Value::list(std::move(items));
}

Template::Template(std::string source, std::string name)
    : name_(std::move(name)), root_(parse(source, name_)) {}
Template::~Template() = default;
Template::Template(Template&&) noexcept = default;

std::string Template::render(const Value& variables, const RenderLimits& limits) const {
  return Interpreter(name_, limits, now).render(*root_, variables);
}

}  // namespace paddle::jinja
