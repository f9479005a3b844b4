#pragma once
// Tokens of a template: literal text, and the words between {{ }} and {% %} with jinja2's rules for
// whitespace (trim_blocks and lstrip_blocks are on).

#include <string>
#include <string_view>
#include <vector>

namespace paddle::jinja {

struct Token {
  enum class Kind {
    kData,           ///< literal text
    kVariableBegin,  ///< {{
    kVariableEnd,
    kBlockBegin,  ///< {%
    kBlockEnd,
    kName,
    kString,  ///< unescaped
    kInteger,
    kFloat,
    kOperator,
    kEnd
  };
  Kind kind;
  std::string text;
  int line;
};

/// kModel, with the line, for text that is not a template.
std::vector<Token> tokenize(std::string_view source, const std::string& name);

[[noreturn]] void fail_at(const std::string& name, int line, const std::string& message);

}  // namespace paddle::jinja
