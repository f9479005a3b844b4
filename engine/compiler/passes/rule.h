#pragma once
// Declared rewrites: a pattern of operations and what takes its place, as text. The form is that of
// docs/rewrites.md; compiler/passes/rules/standard.rules holds those that the compiled mode knows.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ops/op.h"

namespace paddle::passes {

/// An attribute in a rule: a value, a name `:n` that a pattern binds and a replacement uses, or in
/// replacements what is made of such names.
struct RuleAttr {
  enum class Kind : uint8_t {
    kValue,     ///< value
    kName,      ///< name
    kProduct,   ///< parts[0] * parts[1]; of a list and a number, each of the list's
    kQuotient,  ///< parts[0] / parts[1], the same way; of integers only where nothing is left over
    kShape,     ///< the dims of the tensor `name`
    kLast,      ///< the last of them
    kChain,     ///< the permutation parts[0], then parts[1]
  };
  int index = -1;  ///< among the operation's attributes
  Kind kind = Kind::kValue;
  AttrValue value;
  std::string name;
  std::vector<RuleAttr> parts;
};

/// A term of a pattern or a replacement.
struct Term {
  enum class Kind : uint8_t {
    kTensor,  ///< any value; `name` is the same one wherever it stands
    kNumber,  ///< a constant of one element, equal to `number`
    kScalar,  ///< a constant of one element, bound to `:name`
    kAbsent,  ///< `_`: no operand
    kCall,    ///< op(operands, attrs); `name` stands for its result if it is not empty
  };
  Kind kind = Kind::kTensor;
  std::string name;
  double number = 0;
  const Op* op = nullptr;
  std::vector<Term> operands;       ///< flat: those of a list one after another
  std::vector<int32_t> list_sizes;  ///< lengths of the operation's lists
  std::vector<RuleAttr> attrs;
};

struct RuleCondition {
  enum class Kind : uint8_t { kConstant, kRank, kEqual };
  Kind kind = Kind::kConstant;
  std::string name;
  int64_t rank = 0;
  std::vector<RuleAttr> sides;  ///< kEqual: what must have the same value
};

struct Rule {
  std::string name;
  Term pattern, replacement;
  std::vector<RuleCondition> conditions;
};

/// Reads rules; kConfig with file and line if a text is none, naming unknown operations, attributes
/// and names.
std::vector<Rule> parse_rules(std::string_view text, const std::string& file);
/// The same of a file; kUsage if it is not there.
std::vector<Rule> read_rules(const std::string& path);
/// The rules of the compiled mode.
const std::vector<Rule>& standard_rules();

}  // namespace paddle::passes
