#pragma once
// Rewrite rules: a pattern of operations and its replacement, declared as text.
// docs/guide/rewrites.md describes the syntax; standard.rules holds the rules of the compiled mode.

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/registry.h"
#include "ops/core/op.h"

namespace paddle::passes {

/// An attribute in a rule: a value, a name `:n` that a pattern binds and a replacement uses, or, in
/// replacements, an expression over such names.
struct RuleAttr {
  enum class Kind : uint8_t {
    kValue,     ///< value
    kName,      ///< name
    kProduct,   ///< parts[0] * parts[1]; element by element if parts[0] is a list
    kQuotient,  ///< parts[0] / parts[1], in the same way; integers must divide without remainder
    kShape,     ///< the dims of the tensor `name`
    kLast,      ///< the last of these dims
    kChain,     ///< the permutation parts[0] followed by parts[1]
  };
  int index = -1;  ///< of the operation's attribute
  Kind kind = Kind::kValue;
  AttrValue value;
  std::string name;
  std::vector<RuleAttr> parts;
};

/// A term of a pattern or a replacement.
struct Term {
  enum class Kind : uint8_t {
    kTensor,  ///< any value; the same one for every occurrence of `name`
    kNumber,  ///< a constant of one element, equal to `number`
    kScalar,  ///< a constant of one element, bound to `:name`
    kAbsent,  ///< `_`: no operand
    kCall,    ///< op(operands, attrs); `name` is bound to its result if not empty
  };
  Kind kind = Kind::kTensor;
  std::string name;
  double number = 0;
  const Op* op = nullptr;
  std::vector<Term> operands;       ///< flat: lists are expanded
  std::vector<int32_t> list_sizes;  ///< lengths of the operation's lists
  std::vector<RuleAttr> attrs;
};

struct RuleCondition {
  enum class Kind : uint8_t { kConstant, kRank, kEqual };
  Kind kind = Kind::kConstant;
  std::string name;
  int64_t rank = 0;
  std::vector<RuleAttr> sides;  ///< kEqual: both sides of the equation
};

struct Rule {
  std::string name;
  Term pattern, replacement;
  std::vector<RuleCondition> conditions;
};

/// Parses rules. kConfig with file and line for syntax errors and unknown operations, attributes
/// and names. `first_line` is that of the text in the file.
std::vector<Rule> parse_rules(std::string_view text, const std::string& file, int first_line = 1);
/// Parses a file; kUsage if it does not exist.
std::vector<Rule> read_rules(const std::string& path);
/// The rules of the compiled mode whose pattern is a call of `root`. Those of other operations are
/// not parsed.
std::span<const Rule> standard_rules(const Op& root);

/// Rules that are added to a running program, such as those of a plug-in.
struct RuleSet {
  std::string name;
  std::vector<Rule> rules;
};
/// They are tried before the standard rules, in all functions that are compiled from now on.
Registry<RuleSet>& added_rules();

}  // namespace paddle::passes
