#pragma once
// The expressions of the body language, by recursive descent over tokens; the parser of statements
// is built on it. Not for use outside the room.

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "lang/config_types.h"
#include "lang/syntax/lexer.h"
#include "lang/syntax/syntax.h"

namespace paddle::lang {

/// Levels of one expression's tree; bounds the recursion of all that walks it.
inline constexpr int kMaxTreeDepth = 2 * kMaxNesting;

class ExpressionParser {
 public:
  ExpressionParser(const Node& scalar, bool single_line, std::vector<CallSite>& sites)
      : tokens_(tokenize(scalar, single_line)), sites_(sites), single_line_(single_line) {
    folded_ =
        !single_line && scalar.source && scalar.quote == Node::Quote::kPlain && spans_lines(scalar);
  }

  ExprPtr whole_expression() {
    if (current().kind == TokenKind::kEnd) reject("expected an expression, found nothing");
    ExprPtr expr = expression_list();
    if (current().kind != TokenKind::kEnd) {
      expected("the end of the expression");
    }
    return expr;
  }

 protected:
  /// Counts a level of the recursion for as long as it lives.
  struct Level {
    explicit Level(ExpressionParser& p) : parser(p) {
      if (++parser.level_ > kMaxNesting) {
        parser.level_ = 0;
        parser.reject("more than 200 levels of nesting");
      }
    }
    ~Level() { --parser.level_; }
    ExpressionParser& parser;
  };

  static bool spans_lines(const Node& scalar) {
    const std::string_view source = scalar.source->text();
    const size_t end = source.find('\n', scalar.offset);
    return end != std::string_view::npos && end - scalar.offset < scalar.text.size();
  }

  const Token& current() const { return tokens_[i_]; }
  const Token& next() const { return tokens_[std::min(i_ + 1, tokens_.size() - 1)]; }
  void advance() {
    if (i_ + 1 < tokens_.size()) ++i_;
  }

  [[noreturn]] void reject_at(const SourcePosition& where, std::string message) const {
    throw Error(ErrorCode::kConfig, std::move(message), where.location());
  }
  [[noreturn]] void reject(std::string message) const {
    reject_at(current().where, std::move(message));
  }
  [[noreturn]] void expected(std::string_view what) const {
    std::string message = str("expected ", what, ", found ", current().describe());
    if (folded_) message += " (a body of several lines needs '|' after its key)";
    reject(std::move(message));
  }
  void expect(std::string_view op, std::string_view context) {
    if (!current().is(op)) expected(str("'", op, "' ", context));
    advance();
  }

  std::string new_name(std::string_view what) {
    if (current().kind != TokenKind::kName) expected(what);
    const std::string name = current().text;
    if (is_reserved_word(name) && !reserved_words_) {
      reject(str("'", name, "' is a keyword"));
    }
    advance();
    return name;
  }

  ExprPtr make(ExprKind kind, const SourcePosition& where) const {
    auto expr = std::make_unique<Expr>();
    expr->kind = kind;
    expr->where = where;
    return expr;
  }

  /// Adds a child and keeps the depth of the tree bounded.
  void adopt(Expr& parent, ExprPtr child) const {
    if (child) {
      parent.depth = std::max(parent.depth, child->depth + 1);
      if (parent.depth > kMaxTreeDepth) {
        reject_at(child->where, "an expression of more than 200 levels of nesting");
      }
    }
    parent.children.push_back(std::move(child));
  }

  bool at_expression_end() const;
  /// An expression, or a tuple without brackets.
  ExprPtr expression_list();
  ExprPtr expression();
  ExprPtr logical(std::string_view word);
  ExprPtr negation();
  void take_operator(Expr& expr, std::string op) const;
  /// The comparison operator at the current token, or "".
  std::string comparison_operator() const;
  ExprPtr comparison();
  /// Sums (level 0) of products (level 1), each a flat chain.
  ExprPtr chain(int level);
  ExprPtr unary();
  ExprPtr power();
  ExprPtr postfix();
  ExprPtr attribute(ExprPtr value);
  ExprPtr call(ExprPtr callee);
  Argument argument(std::set<std::string>& seen, Expr& call);
  ExprPtr index(ExprPtr value);
  ExprPtr index_item();
  ExprPtr atom();
  ExprPtr keyword_atom(const Token& token);
  ExprPtr parenthesis();
  ExprPtr list();

  std::vector<Token> tokens_;
  std::vector<CallSite>& sites_;
  size_t i_ = 0;
  int level_ = 0;
  int loops_ = 0;
  bool single_line_;
  bool folded_ = false;
  bool reserved_words_ = false;
};

}  // namespace paddle::lang
