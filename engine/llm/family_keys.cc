#include "llm/family_keys.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "llm/expression.h"

namespace paddle::llm {

namespace {

using config::Node;

bool is_name_letter(char c) {
  return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/// Names in an expression, in its order; `variables` leaves out texts, attributes and filters.
std::vector<std::string> names_in(const std::string& expression, bool variables) {
  std::vector<std::string> out;
  char before = ' ', quote = '\0';
  for (size_t i = 0; i < expression.size();) {
    const char c = expression[i];
    if (variables && (quote != '\0' || c == '\'' || c == '"')) {
      quote = quote == '\0' ? c : c == quote ? '\0' : quote;
      ++i;
      continue;
    }
    if (!is_name_letter(c)) {
      if (c != ' ') before = c;
      ++i;
      continue;
    }
    const size_t begin = i;
    while (i < expression.size() && is_name_letter(expression[i])) ++i;
    const bool is_variable = before != '.' && before != '|' && (c < '0' || c > '9');
    if (is_variable || !variables) out.push_back(expression.substr(begin, i - begin));
    before = 'a';
  }
  return out;
}

/// Words of the language, and variables other than keys.
bool is_word(const std::string& name) {
  static const std::set<std::string> words = {
      "and",  "or",   "not",   "if",      "else",   "in",           "is",          "defined",
      "none", "true", "false", "tensors", "tokens", "architecture", "token_types", "model_type"};
  return words.contains(name);
}

/// Sizes and counts among the params of families.
bool is_size(const std::string& param) {
  static const std::set<std::string> sizes = {
      "width",
      "layers",
      "heads",
      "kv_heads",
      "head_dim",
      "intermediate_size",
      "vocab_size",
      "context",
      "experts",
      "experts_per_token",
      "expert_intermediate_size",
      "shared_intermediate_size",
      "types",
      "rotary_width",
      "pattern",
      "norms",
      "window",
      "embedding_width",
  };
  return sizes.contains(param);
}

}  // namespace

FamilyKeys::FamilyKeys(const ModelFiles& files, bool is_given)
    : files_(files),
      is_given_(is_given),
      variables_(std::make_shared<const jinja::Dict>(files.variables)) {}

/// "llama.block_count is 0": what the files say of the keys that an expression names.
std::vector<std::string> FamilyKeys::describe(const Node& expression, bool with_missing) const {
  constexpr size_t kMaxLength = 60;
  constexpr uint64_t kMaxBytes = uint64_t{1} << 20;
  std::vector<std::string> parts;
  std::set<std::string> seen;
  for (const std::string& name : names_in(expression.text, true)) {
    if (is_word(name) || !seen.insert(name).second) continue;
    const jinja::Value* const value = files_.variables.find(std::string_view(name));
    if (!value) {
      if (with_missing) parts.push_back(files_.spelled(name) + " is missing");
      continue;
    }
    std::string text = "a long value";
    try {
      TextBudget budget("describing a key", kMaxBytes);
      text = value->repr(budget);
    } catch (const Error&) {
      // as it is
    }
    if (text.size() > kMaxLength) text = "a long value";
    parts.push_back(str(files_.spelled(name), " is ", text));
  }
  return parts;
}

void FamilyKeys::reject(const std::vector<const Node*>& expressions,
                        const std::string& problem) const {
  std::vector<std::string> parts;
  for (const Node* expression : expressions)
    for (std::string& key : describe(*expression, false))
      if (std::find(parts.begin(), parts.end(), key) == parts.end())
        parts.push_back(std::move(key));
  if (parts.empty()) parts = describe(*expressions.at(0), true);
  fail(ErrorCode::kModel, files_.config, ": ", join(parts, ", "), ": ", problem);
}

void FamilyKeys::reject_where(const Node& condition) const {
  const std::string keys = join(describe(condition, false), ", ");
  fail(ErrorCode::kModel, files_.config, ": models of type '", files_.type,
       "' are supported only where ", condition.text, keys.empty() ? "" : "; " + keys);
}

std::string FamilyKeys::read(const Node& expression) {
  for (std::string& name : names_in(expression.as_string(), false)) known_.insert(std::move(name));
  std::string problem;
  try {
    return evaluate(expression, variables_);
  } catch (const Error& e) {
    if (is_given_) throw;
    problem = e.message();
  }
  // "'expression': why"
  const std::string quoted = "'" + expression.text + "': ";
  if (problem.starts_with(quoted)) problem.erase(0, quoted.size());
  const bool is_missing = problem.find("is undefined") != problem.npos ||
                          problem.find("type Undefined") != problem.npos;
  const std::string keys = join(describe(expression, is_missing), ", ");
  fail(ErrorCode::kModel, files_.config, ": ", keys.empty() ? quoted : keys + ": ",
       is_missing ? "the model needs '" + expression.text + "'" : problem);
}

std::string FamilyKeys::read_param(const std::string& name, const Node& expression,
                                   const Node* own) {
  std::string value = read(expression);
  const auto expected = [&](const char* what) {
    reject({&expression}, str("expected ", what, " for '", name, "', found ", value));
  };
  if (value == "null")
    fail(ErrorCode::kModel, files_.config, ": no value for the param '", name, "' (",
         expression.text, ")");
  if (!own) return value;
  const bool is_text = value.starts_with('"'), is_list = value.starts_with('['),
             is_boolean = value == "true" || value == "false";
  const bool is_number = !is_text && !is_list && !is_boolean && !value.starts_with('{');
  const auto least = own->try_double();
  if (own->is_sequence()) {
    if (!is_list) expected("a list");
  } else if (own->try_bool()) {
    if (!is_boolean) expected("true or false");
  } else if (own->is_quoted()) {
    if (!is_text) expected("a text");
  } else {
    if (!is_number || value == "NaN" || value.ends_with("Infinity")) expected("a finite number");
    const Json parsed = parse_json(value, name);
    if (!parsed.text.empty()) expected("a number of 64 bits");
    if (is_size(name)) {
      constexpr int64_t kMax = int64_t{1} << 40;
      if (parsed.kind != Json::Kind::kInteger) expected("an integer");
      if (parsed.integer < 0 || parsed.integer > kMax) expected("a size");
      if (parsed.integer == 0 && !(least && *least == 0)) expected("at least 1");
    } else if (least && *least >= 0 && value.starts_with('-')) {
      expected("a number that is not negative");
    }
  }
  return value;
}

void FamilyKeys::check_known(const std::string& key, const std::string& path,
                             const jinja::Value* value) const {
  if (key.starts_with('_')) return;
  if (!known_.contains(key))
    fail(
        ErrorCode::kModel, files_.config, ": the family does not know the key '", path,
        "', which may change the model; list it in `ignored_keys` of its `sources` if it does not");
  if (!value || !value->is_dict()) return;
  for (const auto& [inner, inner_value] : value->dict().entries)
    if (inner.is_string())
      check_known(inner.string(), str(path, ".", inner.string()), &inner_value);
}

void FamilyKeys::check_all_read(const std::set<std::string>& ignored) const {
  for (const std::string& key : files_.keys)
    if (!ignored.contains(key))
      check_known(key, files_.spelled(key), files_.variables.find(std::string_view(key)));
}

}  // namespace paddle::llm
