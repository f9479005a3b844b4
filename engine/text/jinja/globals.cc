// Functions that every template has, and the binding of arguments.
#include <algorithm>

#include "text/jinja/interpreter.h"

namespace paddle::jinja {

Parameters::Parameters(const Arguments& arguments, std::string_view function,
                       std::initializer_list<const char*> names)
    : function_(function), values_(arguments.positional), names_(names) {
  if (values_.size() > names_.size())
    fail(ErrorCode::kData, function_, " takes at most ", names_.size(), " arguments, not ",
         values_.size());
  const size_t positional = values_.size();
  values_.resize(names_.size());
  for (const auto& [name, value] : arguments.named) {
    const auto it = std::find_if(names_.begin(), names_.end(),
                                 [&, key = name](const char* known) { return key == known; });
    if (it == names_.end()) fail(ErrorCode::kData, function_, " has no argument '", name, "'");
    const auto i = static_cast<size_t>(it - names_.begin());
    if (i < positional) fail(ErrorCode::kData, function_, ": two values for '", name, "'");
    values_[i] = value;
  }
}

int64_t Parameters::integer(size_t i, int64_t fallback) const {
  if (!has(i) || values_[i].is_none()) return fallback;
  if (!values_[i].is_integer())
    fail(ErrorCode::kData, function_, ": ", names_[i], " is of type ", values_[i].type_name(),
         ", expected an integer");
  return values_[i].integer();
}

bool Parameters::boolean(size_t i, bool fallback) const {
  return has(i) ? values_[i].truth() : fallback;
}

std::string Parameters::text(size_t i, std::string_view fallback) const {
  if (!has(i)) return std::string(fallback);
  if (!values_[i].is_string())
    fail(ErrorCode::kData, function_, ": ", names_[i], " is of type ", values_[i].type_name(),
         ", expected a string");
  return values_[i].string();
}

Value make_function(std::string name, Function::Body body) {
  return std::static_pointer_cast<Object>(
      std::make_shared<Function>(std::move(name), std::move(body)));
}

Value Namespace::attribute(std::string_view name) const {
  const auto it = values.find(std::string(name));
  return it == values.end() ? Value(Undefined{std::string(name)}) : it->second;
}

void Namespace::clear() {
  std::vector<Value> held;
  for (auto& [name, value] : values)
    if (value.holds_values()) held.push_back(std::move(value));
  values.clear();
  discard(std::move(held));
}

namespace {

constexpr int64_t kMaxRange = 100'000;  // that of jinja2's sandbox

Value range(Interpreter& interpreter, const Arguments& a) {
  const Parameters p(a, "range()", {"start", "stop", "step"});
  if (!p.has(0)) fail(ErrorCode::kData, "range() needs a stop");
  const int64_t begin = p.has(1) ? p.integer(0, 0) : 0;
  const int64_t end = p.has(1) ? p.integer(1, 0) : p.integer(0, 0), step = p.integer(2, 1);
  if (step == 0) fail(ErrorCode::kData, "range() with step 0");
  const double count =
      (static_cast<double>(end) - static_cast<double>(begin)) / static_cast<double>(step);
  if (count > static_cast<double>(kMaxRange))
    fail(ErrorCode::kData, "range() of more than ", kMaxRange, " values");
  interpreter.charge_list(static_cast<size_t>(std::max(count, 0.0)) + 1);
  std::vector<Value> out;
  for (int64_t i = begin; step > 0 ? i < end : i > end;) {
    out.emplace_back(i);
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  return Value::list(std::move(out));
}

/// The entries of dict() and namespace(): a dict or pairs, then named ones.
Dict entries(Interpreter& interpreter, const Arguments& a) {
  Dict out;
  const auto set = [&](const Value& key, const Value& value) {
    interpreter.charge_list(2);
    out.set(key, value, interpreter.budget());
  };
  for (const Value& value : a.positional)
    if (value.is_dict()) {
      for (const auto& [key, item] : value.dict().entries) set(key, item);
    } else {
      for (const Value& pair : iterate(interpreter, value)) {
        const auto parts = iterate(interpreter, pair);
        if (parts.size() != 2) fail(ErrorCode::kData, "dict() needs pairs of a key and a value");
        set(parts[0], parts[1]);
      }
    }
  for (const auto& [name, value] : a.named) set(name, value);
  return out;
}

Value strftime_now(Interpreter& interpreter, const Arguments& a) {
  const std::string format = Parameters(a, "strftime_now()", {"format"}).text(0, "");
  if (format.empty()) return "";
  const std::tm now = interpreter.now();
  constexpr size_t kMaxPerLetter = 32;
  interpreter.charge_texts(1, 64);
  interpreter.budget().charge(format.size(), kMaxPerLetter);
  std::string out(format.size() * kMaxPerLetter + 64, '\0');
  out.resize(std::strftime(out.data(), out.size(), format.c_str(), &now));
  return out;
}

struct Cycler final : Object {
  std::string type_name() const override { return "Cycler"; }
  Value attribute(std::string_view name) const override {
    if (name == "current") return items->values[*at];
    if (name == "next")
      return make_function("next", [items = items, at = at](Interpreter&, const Arguments&) {
        const Value out = items->values[*at];
        *at = (*at + 1) % items->values.size();
        return out;
      });
    if (name == "reset")
      return make_function("reset", [at = at](Interpreter&, const Arguments&) {
        *at = 0;
        return Value(None{});
      });
    return Undefined{std::string(name)};
  }
  std::shared_ptr<const List> items;
  std::shared_ptr<size_t> at = std::make_shared<size_t>(0);
};

FramePointer make_global_frame() {
  auto frame = std::make_shared<Frame>();
  const auto define = [&](const char* name, Function::Body body) {
    frame->variables[name] = make_function(name, std::move(body));
  };
  define("range", range);
  define("dict", [](Interpreter& interpreter, const Arguments& a) {
    return Value(std::make_shared<const Dict>(entries(interpreter, a)));
  });
  define("namespace", [](Interpreter& interpreter, const Arguments& a) {
    constexpr size_t kMemory = 8;  // of a namespace, in values
    interpreter.charge_list(kMemory);
    auto space = std::make_shared<Namespace>();
    interpreter.track(space);
    for (auto& [key, value] : entries(interpreter, a).entries)
      space->values[key.text(interpreter.budget())] = value;
    return Value(std::static_pointer_cast<Object>(space));
  });
  define("raise_exception", [](Interpreter& interpreter, const Arguments& a) -> Value {
    fail(ErrorCode::kData,
         a.positional.empty() ? "raise_exception" : a.positional[0].text(interpreter.budget()));
  });
  define("strftime_now", strftime_now);
  define("joiner", [](Interpreter&, const Arguments& a) {
    const std::string text = Parameters(a, "joiner()", {"sep"}).text(0, ", ");
    return make_function(
        "joiner", [text, used = std::make_shared<bool>(false)](Interpreter&, const Arguments&) {
          return Value(std::exchange(*used, true) ? text : std::string());
        });
  });
  define("cycler", [](Interpreter&, const Arguments& a) {
    if (a.positional.empty()) fail(ErrorCode::kData, "cycler() needs values");
    auto cycler = std::make_shared<Cycler>();
    cycler->items = std::make_shared<const List>(a.positional, true, false);
    return Value(std::static_pointer_cast<Object>(cycler));
  });
  return frame;
}

}  // namespace

FramePointer global_frame() {
  static const FramePointer frame = make_global_frame();
  return frame;
}

}  // namespace paddle::jinja
