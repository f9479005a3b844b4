#include "lang/layers/initializer_words.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <optional>
#include <unordered_set>

#include "lang/eval/gain.h"

namespace paddle::lang {
namespace {

using Kind = Initializer::Kind;

struct Word {
  std::string_view name;
  Kind kind;
  double a, b;  ///< defaults
  std::array<const char*, 2> parameters;
};

constexpr std::array<Word, 13> kWords = {{
    {"zeros", Kind::kConstant, 0, 0, {nullptr, nullptr}},
    {"ones", Kind::kConstant, 1, 0, {nullptr, nullptr}},
    {"normal", Kind::kNormal, 0, 1, {"mean", "std"}},
    {"truncated_normal", Kind::kTruncatedNormal, 0, 1, {"mean", "std"}},
    {"uniform", Kind::kUniform, -1, 1, {"low", "high"}},
    {"xavier_uniform", Kind::kXavierUniform, 0, 0, {"gain", nullptr}},
    {"xavier_normal", Kind::kXavierNormal, 0, 0, {"gain", nullptr}},
    {"kaiming_uniform", Kind::kKaimingUniform, 0, 0, {"negative_slope", "nonlinearity"}},
    {"kaiming_normal", Kind::kKaimingNormal, 0, 0, {"negative_slope", "nonlinearity"}},
    {"orthogonal", Kind::kOrthogonal, 0, 0, {"gain", nullptr}},
    {"dirac", Kind::kDirac, 1, 0, {"groups", nullptr}},
    {"bilinear", Kind::kBilinear, 0, 0, {nullptr, nullptr}},
    {"assign", Kind::kAssign, 0, 0, {nullptr, nullptr}},
}};

const Word* find_word(std::string_view name) {
  for (const Word& word : kWords) {
    if (word.name == name) return &word;
  }
  return nullptr;
}

void collect_numbers(const Value& value, std::vector<double>& out, WalkBudget& budget,
                     int depth = 0) {
  budget.take();
  if (value.is_number()) {
    out.push_back(value.number());
    return;
  }
  const ValueList* items = value.items();
  if (!items || depth > kMaxNesting) {
    fail(ErrorCode::kConfig, "assign: expected a list of numbers, found ", value.describe());
  }
  for (const Value& item : *items) collect_numbers(item, out, budget, depth + 1);
}

double number_of(const Word& word, const Value& value) {
  if (!value.is_number()) {
    fail(ErrorCode::kConfig, word.name, ": expected a number, found ", value.describe());
  }
  return value.number();
}

/// The arguments by place, null where they are not given.
std::array<const Value*, 2> arguments_of(const Word& word, const ValueList& positional,
                                         const NamedValues& named) {
  const size_t allowed = word.parameters[1] ? 2 : word.parameters[0] ? 1 : 0;
  if (positional.size() > allowed) {
    fail(ErrorCode::kConfig, word.name, ": at most ", allowed, " arguments, found ",
         positional.size());
  }
  std::array<const Value*, 2> out = {};
  for (size_t i = 0; i < positional.size(); ++i) out[i] = &positional[i];
  for (const auto& [key, value] : named) {
    bool found = false;
    for (size_t i = 0; i < allowed; ++i) {
      if (key != word.parameters[i]) continue;
      if (out[i]) fail(ErrorCode::kConfig, word.name, ": '", key, "' is given twice");
      out[i] = &value;
      found = true;
    }
    if (!found) fail(ErrorCode::kConfig, word.name, ": unknown argument '", key, "'");
  }
  return out;
}

/// The gain of `nonlinearity`; that of relu, or leaky_relu of a slope only, without one.
double kaiming_gain(const Word& word, const std::array<const Value*, 2>& arguments) {
  std::optional<double> slope;
  if (arguments[0]) slope = number_of(word, *arguments[0]);
  if (!arguments[1]) return activation_gain(word.name, "leaky_relu", slope.value_or(0));
  const auto* name = arguments[1]->get<std::string>();
  if (!name)
    fail(ErrorCode::kConfig, word.name, ": nonlinearity must be the name of an activation, found ",
         arguments[1]->describe());
  if (*name != "leaky_relu" && slope == 0.0) slope.reset();
  return activation_gain(word.name, *name, slope);
}

void check_numbers(const Word& word, const Initializer& init) {
  const bool normal = word.kind == Kind::kNormal || word.kind == Kind::kTruncatedNormal;
  if (normal && !(init.b >= 0)) fail(ErrorCode::kConfig, word.name, ": std is negative");
  if (word.kind == Kind::kUniform && !(init.a <= init.b))
    fail(ErrorCode::kConfig, word.name, ": low is above high");
  if (word.kind == Kind::kDirac &&
      !(init.a >= 1 && init.a <= 1 << 30 && init.a == std::floor(init.a)))
    fail(ErrorCode::kConfig, word.name, ": groups must be a positive integer, not ", init.a);
}

}  // namespace

bool is_initializer_word(std::string_view word) { return find_word(word) != nullptr; }

std::vector<std::string> initializer_words() {
  std::vector<std::string> words;
  for (const Word& word : kWords) words.emplace_back(word.name);
  return words;
}

Initializer make_initializer(const std::string& name, const ValueList& positional,
                             const NamedValues& named) {
  const Word& word = *find_word(name);
  Initializer out{word.kind, word.a, word.b, {}};
  if (word.kind == Kind::kAssign) {
    if (positional.size() != 1 || !named.empty()) {
      fail(ErrorCode::kConfig, "assign takes one list of numbers");
    }
    WalkBudget budget;
    collect_numbers(positional[0], out.values, budget);
    return out;
  }
  const std::array<const Value*, 2> arguments = arguments_of(word, positional, named);
  const bool scaled = word.kind == Kind::kXavierUniform || word.kind == Kind::kXavierNormal ||
                      word.kind == Kind::kOrthogonal;
  if (word.kind == Kind::kKaimingUniform || word.kind == Kind::kKaimingNormal) {
    out.factor = kaiming_gain(word, arguments) / std::numbers::sqrt2;
  } else if (scaled) {
    if (arguments[0]) out.factor = number_of(word, *arguments[0]);
    if (!(out.factor > 0 && std::isfinite(out.factor)))
      fail(ErrorCode::kConfig, name, ": gain must be positive, not ", out.factor);
  } else {
    std::array<double*, 2> slots = {&out.a, &out.b};
    for (size_t i = 0; i < slots.size(); ++i)
      if (arguments[i]) *slots[i] = number_of(word, *arguments[i]);
  }
  check_numbers(word, out);
  return out;
}

Initializer to_initializer(const Value& value) {
  if (const Initializer* init = value.initializer()) return *init;
  if (value.is_number()) return Initializer::constant(value.number());
  if (const auto* reference = value.get<Callable>(); reference && find_word(reference->name)) {
    return make_initializer(reference->name, {}, {});
  }
  const std::vector<std::string> words = initializer_words();
  std::string hint;
  if (const auto* text = value.get<std::string>()) {
    if (find_word(*text)) return make_initializer(*text, {}, {});
    hint = did_you_mean(*text, words);
  }
  fail(ErrorCode::kConfig, "expected an initializer (a number, ", join(words, ", "), "), found ",
       value.describe(), hint);
}

bool list_holds(const Value& value, const ValueList* list) {
  std::vector<const ValueList*> open;
  std::unordered_set<const ValueList*> seen;
  if (value.items()) open.push_back(value.items());
  while (!open.empty()) {
    const ValueList* items = open.back();
    open.pop_back();
    if (items == list) return true;
    if (!seen.insert(items).second) continue;
    for (const Value& item : *items) {
      if (item.items()) open.push_back(item.items());
    }
  }
  return false;
}

}  // namespace paddle::lang
