#pragma once
// The syntax tree of a template.

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "text/jinja/value.h"

namespace paddle::jinja {

struct Expression;
using ExpressionPointer = std::unique_ptr<const Expression>;

struct CallArguments {
  std::vector<ExpressionPointer> positional;
  std::vector<std::pair<std::string, ExpressionPointer>> named;
  ExpressionPointer star, double_star;  ///< *list, **dict
};

struct Expression {
  enum class Kind {
    kConstant,     ///< value
    kName,         ///< name
    kList,         ///< operands
    kTuple,        ///< operands
    kDict,         ///< operands: key, value, key, value, …
    kAttribute,    ///< operands[0].name
    kItem,         ///< operands[0][operands[1]]
    kSlice,        ///< operands[0][operands[1]:operands[2]:operands[3]], null where left out
    kCall,         ///< operands[0](arguments)
    kFilter,       ///< operands[0] | name(arguments); no operand in a filter block
    kTest,         ///< operands[0] is name(arguments)
    kUnary,        ///< name: - + not
    kBinary,       ///< name: + - * / // % ** ~ and or
    kComparison,   ///< operands[0] names[0] operands[1] names[1] …
    kConditional,  ///< operands: value, condition, otherwise (may be null)
  };
  Kind kind;
  int line = 0;
  int depth = 1;  ///< of the tree below
  std::string name;
  std::vector<std::string> names;
  Value value;
  std::vector<ExpressionPointer> operands;
  CallArguments arguments;
};

struct Statement;
using Body = std::vector<std::unique_ptr<const Statement>>;

struct Parameter {
  std::string name;
  ExpressionPointer fallback;  ///< may be null
};

struct Statement {
  enum class Kind {
    kData,    ///< text
    kOutput,  ///< value
    kIf,      ///< branches, otherwise
    kFor,     ///< target, value, filter, body, otherwise
    kSet,     ///< target, value; without a value, the block's output
    kMacro,   ///< name, parameters, body
    kCall,    ///< value (a call), parameters, body
    kFilter,  ///< value (a filter without operand), body
    kWith,    ///< assignments, body
    kBlock,   ///< body: generation, autoescape, block
    kBreak,
    kContinue,
    kDo,  ///< value
  };
  Kind kind;
  int line = 0;
  std::string text;  ///< literal text, or a name
  ExpressionPointer target, value, filter;
  bool recursive = false;
  std::vector<std::pair<ExpressionPointer, Body>> branches;
  std::vector<std::pair<ExpressionPointer, ExpressionPointer>> assignments;
  std::vector<Parameter> parameters;
  Body body, otherwise;
};

struct TemplateNode {
  Body body;
};

/// kModel, with the line, for syntax errors.
std::unique_ptr<const TemplateNode> parse(std::string_view source, const std::string& name);

}  // namespace paddle::jinja
