#pragma once
// Recursive descent over the expressions of templates, with jinja2's precedences. Not for use
// outside of the parser.

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "text/jinja/ast.h"
#include "text/jinja/lexer.h"

namespace paddle::jinja {

class ExpressionParser {
 protected:
  ExpressionParser(std::string_view source, const std::string& name)
      : name_(name), tokens_(tokenize(source, name)) {}

  using Kind = Token::Kind;
  using Operands = std::vector<ExpressionPointer>;

  /// Counts nested rules, so that hostile templates do not exhaust the stack.
  struct Nesting {
    explicit Nesting(ExpressionParser& parser) : parser_(parser) {
      if (++parser.depth_ > kMaxNesting) parser.reject("nested too deeply");
    }
    ~Nesting() { --parser_.depth_; }
    ExpressionParser& parser_;
  };

  // --- tokens ---

  const Token& current() const { return tokens_[at_]; }
  const Token& next() { return tokens_[at_ + 1 < tokens_.size() ? at_++ : at_]; }
  bool is(Kind kind, std::string_view text) const {
    return current().kind == kind && current().text == text;
  }
  bool is_operator(std::string_view text) const { return is(Kind::kOperator, text); }
  bool is_name(std::string_view text) const { return is(Kind::kName, text); }
  bool skip_operator(std::string_view text) { return is_operator(text) && (next(), true); }
  bool skip_name(std::string_view text) { return is_name(text) && (next(), true); }
  [[noreturn]] void reject(const std::string& message) const {
    fail_at(name_, current().line, message);
  }
  std::string found() const {
    switch (current().kind) {
      case Kind::kEnd:
        return "the end of the template";
      case Kind::kVariableEnd:
        return "'}}'";
      case Kind::kBlockEnd:
        return "'%}'";
      default:
        return "'" + current().text + "'";
    }
  }
  void expect_operator(std::string_view text) {
    if (!skip_operator(text)) reject("expected '" + std::string(text) + "', found " + found());
  }
  void expect_name(std::string_view text) {
    if (!skip_name(text)) reject("expected '" + std::string(text) + "', found " + found());
  }
  void expect_block_end() {
    if (current().kind != Kind::kBlockEnd) reject("expected '%}', found " + found());
    next();
  }
  std::string expect_identifier() {
    if (current().kind != Kind::kName) reject("expected a name, found " + found());
    return next().text;
  }

  static std::unique_ptr<Expression> node(Expression::Kind kind, int line) {
    auto out = std::make_unique<Expression>();
    out->kind = kind;
    out->line = line;
    return out;
  }
  template <class... Parts>
  std::unique_ptr<Expression> node(Expression::Kind kind, int line, std::string name,
                                   Parts... operands) {
    auto out = node(kind, line);
    out->name = std::move(name);
    (out->operands.push_back(std::move(operands)), ...);
    for (const ExpressionPointer& operand : out->operands)
      if (operand) out->depth = std::max(out->depth, operand->depth + 1);
    if (out->depth > kMaxExpressionDepth) reject("an expression of too many parts");
    return out;
  }
  static ExpressionPointer constant(Value value, int line) {
    auto out = node(Expression::Kind::kConstant, line);
    out->value = std::move(value);
    return out;
  }

  // --- expressions ---

  /// One expression, or several with commas in between.
  ExpressionPointer tuple(bool with_condition, bool in_for = false);
  bool is_tuple_end(bool in_for) const;
  ExpressionPointer expression();
  ExpressionPointer disjunction();
  ExpressionPointer conjunction();
  ExpressionPointer negation();
  ExpressionPointer comparison();
  /// Left-associative operators.
  template <class Operand>
  ExpressionPointer chain(std::initializer_list<const char*> operators, Operand&& operand) {
    ExpressionPointer out = operand();
    while (true) {
      const auto it = std::find_if(operators.begin(), operators.end(),
                                   [&](const char* o) { return is_operator(o); });
      if (it == operators.end()) return out;
      const int line = next().line;
      out = node(Expression::Kind::kBinary, line, *it, std::move(out), operand());
    }
  }
  ExpressionPointer sum();
  ExpressionPointer concatenation();
  ExpressionPointer product();
  ExpressionPointer power();
  ExpressionPointer unary(bool with_filters);
  ExpressionPointer primary();
  ExpressionPointer number(const Token& token);
  ExpressionPointer parenthesized(int line);
  Operands items(std::string_view end);
  ExpressionPointer dict(int line);
  ExpressionPointer postfix(ExpressionPointer out);
  ExpressionPointer subscript(ExpressionPointer object, int line);
  CallArguments call_arguments();
  std::string dotted_name();
  ExpressionPointer filters_and_tests(ExpressionPointer out);
  /// `| name(arguments)`, repeated. With `begin`, the first one has no bar.
  ExpressionPointer filters(ExpressionPointer out, bool begin);
  ExpressionPointer test(ExpressionPointer object, int line);

 private:
  static constexpr int kMaxNesting = 150;
  /// Of an expression's tree: long chains nest to the left.
  static constexpr int kMaxExpressionDepth = 1000;

  const std::string& name_;
  std::vector<Token> tokens_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace paddle::jinja
