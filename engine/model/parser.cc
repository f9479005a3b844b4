#include "model/parser.h"

#include <algorithm>
#include <array>
#include <set>

#include "model/lexer.h"

namespace paddle::model {
namespace {

/// Levels of one expression's tree; bounds the recursion of all that walks it.
constexpr int kMaxTreeDepth = 2 * kMaxNesting;

class Parser {
 public:
  Parser(const Node& scalar, bool single_line, std::vector<CallSite>& sites)
      : tokens_(tokenize(scalar, single_line)), sites_(sites), single_line_(single_line) {
    folded_ =
        !single_line && scalar.source && scalar.quote == Node::Quote::kPlain && spans_lines(scalar);
  }

  std::vector<Stmt> body() {
    std::vector<Stmt> statements;
    if (current().kind == TokenKind::kEnd) refuse("a body without a statement");
    while (current().kind != TokenKind::kEnd) statement(statements);
    return statements;
  }

  ExprPtr whole_expression() {
    if (current().kind == TokenKind::kEnd) refuse("expected an expression, found nothing");
    ExprPtr expr = expression_list();
    if (current().kind != TokenKind::kEnd) {
      expected("the end of the expression");
    }
    return expr;
  }

  Signature signature(bool reserved_words) {
    reserved_words_ = reserved_words;
    Signature out;
    out.where = current().where;
    out.name = new_name("a block's name");
    if (!current().is("(")) {
      refuse(str("a block is declared with its arguments: ", out.name, "(x): …"));
    }
    advance();
    std::set<std::string> seen;
    while (!current().is(")")) {
      Parameter parameter;
      parameter.where = current().where;
      parameter.name = new_name("an argument's name");
      if (!seen.insert(parameter.name).second) {
        refuse_at(parameter.where, str("the argument '", parameter.name, "' is named twice"));
      }
      if (current().is("=")) {
        advance();
        parameter.fallback = expression();
      } else if (!out.parameters.empty() && out.parameters.back().fallback) {
        refuse_at(parameter.where, str("the argument '", parameter.name,
                                       "' without a default follows one that has a default"));
      }
      out.parameters.push_back(std::move(parameter));
      if (!current().is(",")) break;
      advance();
    }
    expect(")", str("after the arguments of '", out.name, "'"));
    if (current().kind != TokenKind::kEnd) expected("the end of the block's header");
    return out;
  }

  InputType input_type() {
    InputType out;
    out.where = current().where;
    if (current().kind != TokenKind::kName) expected("a type such as float32[batch, 3]");
    out.dtype = current().text;
    advance();
    if (!current().is("[")) {
      refuse(str("expected '[' and the shape after '", out.dtype, "' (", out.dtype,
                 "[] has no axes), found ", current().describe()));
    }
    advance();
    while (!current().is("]")) {
      out.shape.push_back(expression());
      if (!current().is(",")) break;
      advance();
    }
    expect("]", "after the shape");
    if (current().kind != TokenKind::kEnd) expected("the end of the type");
    return out;
  }

 private:
  /// Counts a level of the recursion for as long as it lives.
  struct Level {
    explicit Level(Parser& p) : parser(p) {
      if (++parser.level_ > kMaxNesting) {
        parser.level_ = 0;
        parser.refuse("more than 200 levels of nesting");
      }
    }
    ~Level() { --parser.level_; }
    Parser& parser;
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

  [[noreturn]] void refuse_at(const Where& where, std::string message) const {
    throw Error(ErrorCode::kConfig, std::move(message), where.place());
  }
  [[noreturn]] void refuse(std::string message) const {
    refuse_at(current().where, std::move(message));
  }
  [[noreturn]] void expected(std::string_view what) const {
    std::string message = str("expected ", what, ", found ", current().describe());
    if (folded_) message += " (a body of several lines needs '|' after its key)";
    refuse(std::move(message));
  }
  void expect(std::string_view op, std::string_view context) {
    if (!current().is(op)) expected(str("'", op, "' ", context));
    advance();
  }

  std::string new_name(std::string_view what) {
    if (current().kind != TokenKind::kName) expected(what);
    const std::string name = current().text;
    if (is_reserved_word(name) && !reserved_words_) {
      refuse(str("'", name, "' is a word of the language"));
    }
    advance();
    return name;
  }

  ExprPtr make(ExprKind kind, const Where& where) const {
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
        refuse_at(child->where, "an expression of more than 200 levels of nesting");
      }
    }
    parent.children.push_back(std::move(child));
  }

  // ---- statements --------------------------------------------------------------------------

  void statement(std::vector<Stmt>& out) {
    const Token& token = current();
    if (token.kind == TokenKind::kIndent) refuse("this line is indented more than the one above");
    if (token.kind == TokenKind::kKeyword) {
      if (token.text == "if") return out.push_back(if_statement());
      if (token.text == "for") return out.push_back(for_statement());
      if (token.text == "while") return out.push_back(while_statement());
      if (token.text == "elif" || token.text == "else") {
        refuse(str("'", token.text, "' without its 'if' at this indentation"));
      }
    }
    out.push_back(simple_statement());
    end_of_line();
  }

  void end_of_line() {
    if (current().kind == TokenKind::kEnd) return;
    if (current().kind != TokenKind::kNewline) expected("the end of the line");
    advance();
  }

  Stmt start(StmtKind kind) const {
    Stmt statement;
    statement.kind = kind;
    statement.where = current().where;
    return statement;
  }

  Stmt simple_statement() {
    const Token& token = current();
    if (token.kind == TokenKind::kKeyword) {
      if (token.text == "return") return return_statement();
      if (token.text == "break" || token.text == "continue") {
        if (loops_ == 0) refuse(str("'", token.text, "' outside a loop"));
        Stmt out = start(token.text == "break" ? StmtKind::kBreak : StmtKind::kContinue);
        advance();
        return out;
      }
      if (token.text == "pass") {
        Stmt out = start(StmtKind::kPass);
        advance();
        return out;
      }
    }
    if (token.kind == TokenKind::kName && is_reserved_word(token.text) &&
        token.text != "training" && !next().is("(") && !next().is(".")) {
      refuse(str("'", token.text, "' is not part of the language"));
    }
    return assignment_or_expression();
  }

  Stmt return_statement() {
    Stmt out = start(StmtKind::kReturn);
    advance();
    if (current().kind != TokenKind::kNewline && current().kind != TokenKind::kEnd) {
      out.value = expression_list();
    }
    return out;
  }

  Stmt assignment_or_expression() {
    Stmt out = start(StmtKind::kExpression);
    ExprPtr first = expression_list();
    static constexpr std::array<std::string_view, 8> kAugmented = {
        "+=", "-=", "*=", "/=", "//=", "%=", "**=", "@="};
    if (current().kind == TokenKind::kOperator &&
        std::find(kAugmented.begin(), kAugmented.end(), current().text) != kAugmented.end()) {
      out.kind = StmtKind::kAugment;
      out.text = current().text.substr(0, current().text.size() - 1);
      if (first->kind != ExprKind::kName && first->kind != ExprKind::kIndex) {
        refuse_at(first->where, str("'", current().text, "' needs a name or an index on its left"));
      }
      check_target(*first);
      advance();
      out.targets.push_back(std::move(first));
      out.value = expression_list();
      return out;
    }
    if (!current().is("=")) {
      if (current().is(":")) refuse("a type annotation is not part of the language");
      out.value = std::move(first);
      return out;
    }
    out.kind = StmtKind::kAssign;
    while (current().is("=")) {
      check_target(*first);
      out.targets.push_back(std::move(first));
      advance();
      first = expression_list();
    }
    out.value = std::move(first);
    return out;
  }

  void check_target(const Expr& target) const {
    switch (target.kind) {
      case ExprKind::kName:
        if (is_reserved_word(target.text)) {
          refuse_at(target.where, str("'", target.text,
                                      "' is a word of the language and cannot be "
                                      "assigned"));
        }
        return;
      case ExprKind::kIndex:
        return;
      case ExprKind::kTuple:
      case ExprKind::kList:
        if (target.children.empty()) refuse_at(target.where, "nothing to assign to");
        for (const ExprPtr& child : target.children) check_target(*child);
        return;
      case ExprKind::kBool:
      case ExprKind::kNone:
        refuse_at(target.where, "a word of the language cannot be assigned");
      case ExprKind::kAttribute:
        refuse_at(target.where, str("an attribute ('.", target.text, "') cannot be assigned"));
      case ExprKind::kCall:
        refuse_at(target.where, "a call cannot be assigned");
      default:
        refuse_at(target.where, "only names, indices and tuples of them can be assigned");
    }
  }

  /// The indented lines after a ':', or one simple statement on the same line.
  std::vector<Stmt> suite(std::string_view after) {
    expect(":", str("after ", after));
    std::vector<Stmt> body;
    if (current().kind != TokenKind::kNewline) {
      if (current().kind == TokenKind::kKeyword &&
          (current().text == "if" || current().text == "for" || current().text == "while")) {
        expected("a line end (a nested block starts on its own line)");
      }
      if (current().kind == TokenKind::kEnd) expected(str("a statement after ", after));
      body.push_back(simple_statement());
      end_of_line();
      return body;
    }
    advance();
    if (current().kind != TokenKind::kIndent) {
      refuse(str("expected an indented line after ", after, ", found ",
                 current().kind == TokenKind::kDedent ? "a line that is indented less"
                                                      : current().describe()));
    }
    advance();
    while (current().kind != TokenKind::kDedent && current().kind != TokenKind::kEnd) {
      statement(body);
    }
    if (current().kind == TokenKind::kDedent) advance();
    return body;
  }

  Stmt if_statement() {
    Level level(*this);
    Stmt out = start(StmtKind::kIf);
    while (true) {
      Branch branch;
      branch.where = current().where;
      const std::string word = current().text;
      advance();
      if (word == "else") {
        branch.body = suite("'else'");
      } else {
        branch.condition = expression();
        branch.body = suite(str("the condition of '", word, "'"));
      }
      out.branches.push_back(std::move(branch));
      if (word == "else" || !(current().is("elif") || current().is("else"))) return out;
    }
  }

  Stmt for_statement() {
    Level level(*this);
    Stmt out = start(StmtKind::kFor);
    advance();
    out.targets.push_back(target_list());
    expect("in", "after the names of 'for'");
    out.value = expression_list();
    Branch branch;
    branch.where = out.where;
    ++loops_;
    branch.body = suite("the range of 'for'");
    --loops_;
    out.branches.push_back(std::move(branch));
    if (current().is("else")) refuse("'else' of a loop is not part of the language");
    return out;
  }

  Stmt while_statement() {
    Level level(*this);
    Stmt out = start(StmtKind::kWhile);
    advance();
    out.value = expression();
    Branch branch;
    branch.where = out.where;
    ++loops_;
    branch.body = suite("the condition of 'while'");
    --loops_;
    out.branches.push_back(std::move(branch));
    if (current().is("else")) refuse("'else' of a loop is not part of the language");
    return out;
  }

  /// `a, (b, c)` before `in`: postfix expressions only, so that `in` is not taken as an operator.
  ExprPtr target_list() {
    ExprPtr first = postfix();
    if (current().is(",")) {
      ExprPtr tuple = make(ExprKind::kTuple, first->where);
      adopt(*tuple, std::move(first));
      while (current().is(",")) {
        advance();
        if (current().is("in")) break;
        adopt(*tuple, postfix());
      }
      first = std::move(tuple);
    }
    check_target(*first);
    return first;
  }

  // ---- expressions -------------------------------------------------------------------------

  bool at_expression_end() const {
    const TokenKind kind = current().kind;
    return kind == TokenKind::kNewline || kind == TokenKind::kEnd || kind == TokenKind::kDedent ||
           current().is("=") || current().is(")") || current().is("]") || current().is(":");
  }

  /// An expression, or a tuple without brackets.
  ExprPtr expression_list() {
    ExprPtr first = expression();
    if (!current().is(",")) return first;
    ExprPtr tuple = make(ExprKind::kTuple, first->where);
    adopt(*tuple, std::move(first));
    while (current().is(",")) {
      advance();
      if (at_expression_end()) break;
      adopt(*tuple, expression());
    }
    return tuple;
  }

  ExprPtr expression() {
    Level level(*this);
    ExprPtr value = logical("or");
    if (!current().is("if")) return value;
    ExprPtr out = make(ExprKind::kConditional, current().where);
    advance();
    ExprPtr condition = logical("or");
    expect("else", "after the condition of 'if'");
    adopt(*out, std::move(value));
    adopt(*out, std::move(condition));
    adopt(*out, expression());
    return out;
  }

  ExprPtr logical(std::string_view word) {
    const auto operand = [&] { return word == "or" ? logical("and") : negation(); };
    ExprPtr first = operand();
    if (!current().is(word)) return first;
    ExprPtr out = make(ExprKind::kLogical, current().where);
    adopt(*out, std::move(first));
    while (current().is(word)) {
      take_operator(*out, std::string(word));
      advance();
      adopt(*out, operand());
    }
    return out;
  }

  ExprPtr negation() {
    if (!current().is("not")) return comparison();
    Level level(*this);
    ExprPtr out = make(ExprKind::kUnary, current().where);
    take_operator(*out, "not");
    advance();
    adopt(*out, negation());
    return out;
  }

  void take_operator(Expr& expr, std::string op) const {
    expr.operators.push_back(std::move(op));
    expr.operator_places.push_back(current().where);
  }

  /// The comparison operator at the current token, or "".
  std::string comparison_operator() const {
    static constexpr std::array<std::string_view, 6> kOps = {"==", "!=", "<", "<=", ">", ">="};
    if (current().kind == TokenKind::kOperator) {
      const bool known = std::find(kOps.begin(), kOps.end(), current().text) != kOps.end();
      return known ? current().text : "";
    }
    if (current().is("in")) return "in";
    if (current().is("not") && next().is("in")) return "not in";
    if (current().is("is")) return next().is("not") ? "is not" : "is";
    return "";
  }

  ExprPtr comparison() {
    ExprPtr first = chain(0);
    std::string op = comparison_operator();
    if (op.empty()) return first;
    ExprPtr out = make(ExprKind::kCompare, current().where);
    adopt(*out, std::move(first));
    while (!op.empty()) {
      take_operator(*out, op);
      advance();
      if (op == "not in" || op == "is not") advance();
      if (op.starts_with("is") && !(current().is("none") || current().is("None"))) {
        refuse(str("'", op, "' compares with none only, found ", current().describe(), " (write '",
                   op == "is" ? "==" : "!=", "')"));
      }
      adopt(*out, chain(0));
      op = comparison_operator();
    }
    return out;
  }

  /// Sums (level 0) of products (level 1), each a flat chain.
  ExprPtr chain(int level) {
    const auto is_operator = [&] {
      const Token& t = current();
      if (level == 0) return t.is("+") || t.is("-");
      return t.is("*") || t.is("/") || t.is("//") || t.is("%") || t.is("@");
    };
    const auto operand = [&] { return level == 0 ? chain(1) : unary(); };
    ExprPtr first = operand();
    if (!is_operator()) return first;
    ExprPtr out = make(ExprKind::kBinary, current().where);
    adopt(*out, std::move(first));
    while (is_operator()) {
      take_operator(*out, current().text);
      advance();
      adopt(*out, operand());
    }
    return out;
  }

  ExprPtr unary() {
    if (!current().is("-") && !current().is("+")) return power();
    Level level(*this);
    ExprPtr out = make(ExprKind::kUnary, current().where);
    take_operator(*out, current().text);
    advance();
    adopt(*out, unary());
    return out;
  }

  ExprPtr power() {
    ExprPtr base = postfix();
    if (!current().is("**")) return base;
    Level level(*this);
    ExprPtr out = make(ExprKind::kBinary, current().where);
    take_operator(*out, "**");
    advance();
    adopt(*out, std::move(base));
    adopt(*out, unary());
    return out;
  }

  ExprPtr postfix() {
    ExprPtr value = atom();
    int trailers = 0;
    while (current().is("(") || current().is("[") || current().is(".")) {
      if (++trailers > kMaxNesting) refuse("more than 200 calls or indices in a row");
      if (current().is("(")) {
        value = call(std::move(value));
      } else if (current().is("[")) {
        value = index(std::move(value));
      } else {
        value = attribute(std::move(value));
      }
    }
    return value;
  }

  ExprPtr attribute(ExprPtr value) {
    advance();
    if (current().kind != TokenKind::kName) expected("a name after '.'");
    ExprPtr out = make(ExprKind::kAttribute, current().where);
    out->text = current().text;
    adopt(*out, std::move(value));
    advance();
    return out;
  }

  ExprPtr call(ExprPtr callee) {
    const bool named = callee->kind == ExprKind::kName || callee->kind == ExprKind::kAttribute;
    const std::string context =
        named ? str("after the arguments of '", callee->text, "'") : "after the arguments";
    ExprPtr out = make(ExprKind::kCall, callee->where);
    out->site = static_cast<int>(sites_.size());
    sites_.push_back({named ? callee->text : "", callee->where});
    adopt(*out, std::move(callee));
    advance();
    std::set<std::string> seen;
    while (!current().is(")")) {
      out->arguments.push_back(argument(seen, *out));
      if (!current().is(",")) break;
      advance();
    }
    if (current().is("for")) {
      refuse("comprehensions are not part of the language: use a 'for' loop and append");
    }
    expect(")", context);
    return out;
  }

  Argument argument(std::set<std::string>& seen, Expr& call) {
    Argument out;
    out.where = current().where;
    if (current().is("*") || current().is("**")) {
      refuse(str("'", current().text, "' before an argument is not part of the language"));
    }
    const bool word = current().kind == TokenKind::kName || current().kind == TokenKind::kKeyword;
    if (word && next().is("=")) {
      if (current().kind == TokenKind::kKeyword) {
        refuse(str("'", current().text, "' is a word of the language, no argument's name"));
      }
      out.name = current().text;
      if (!seen.insert(out.name).second)
        refuse(str("the argument '", out.name, "' is given twice"));
      advance();
      advance();
    } else if (!seen.empty()) {
      refuse("a positional argument after a named one");
    }
    out.value = expression();
    call.depth = std::max(call.depth, out.value->depth + 1);
    if (call.depth > kMaxTreeDepth) {
      refuse_at(out.where, "an expression of more than 200 levels of nesting");
    }
    return out;
  }

  ExprPtr index(ExprPtr value) {
    ExprPtr out = make(ExprKind::kIndex, value->where);
    adopt(*out, std::move(value));
    advance();
    if (current().is("]")) refuse("an index is missing between '[' and ']'");
    while (!current().is("]")) {
      adopt(*out, index_item());
      if (!current().is(",")) break;
      advance();
      out->trailing_tuple = current().is("]");
    }
    expect("]", "after the index");
    return out;
  }

  ExprPtr index_item() {
    if (current().is("...")) {
      ExprPtr out = make(ExprKind::kEllipsis, current().where);
      advance();
      return out;
    }
    const Where where = current().where;
    const auto part = [&]() -> ExprPtr {
      if (current().is(":") || current().is(",") || current().is("]")) return nullptr;
      return expression();
    };
    ExprPtr start = part();
    if (!current().is(":")) {
      if (!start) expected("an index");
      return start;
    }
    ExprPtr out = make(ExprKind::kSlice, where);
    advance();
    ExprPtr stop = part();
    ExprPtr step;
    if (current().is(":")) {
      advance();
      step = part();
    }
    adopt(*out, std::move(start));
    adopt(*out, std::move(stop));
    adopt(*out, std::move(step));
    return out;
  }

  ExprPtr atom() {
    const Token token = current();
    switch (token.kind) {
      case TokenKind::kInteger: {
        ExprPtr out = make(ExprKind::kInteger, token.where);
        out->integer = token.integer;
        advance();
        return out;
      }
      case TokenKind::kReal: {
        ExprPtr out = make(ExprKind::kReal, token.where);
        out->real = token.real;
        advance();
        return out;
      }
      case TokenKind::kString: {
        ExprPtr out = make(ExprKind::kString, token.where);
        out->text = token.text;
        advance();
        if (current().kind == TokenKind::kString) expected("an operator between two strings");
        return out;
      }
      case TokenKind::kName: {
        if (token.text == "lambda") refuse("'lambda' is not part of the language");
        ExprPtr out = make(ExprKind::kName, token.where);
        out->text = token.text;
        advance();
        return out;
      }
      case TokenKind::kKeyword:
        return keyword_atom(token);
      default:
        break;
    }
    if (token.is("(")) return parenthesis();
    if (token.is("[")) return list();
    if (token.is("...")) refuse("'...' stands only inside an index");
    expected("an expression");
  }

  ExprPtr keyword_atom(const Token& token) {
    const bool truth = token.text == "true" || token.text == "True";
    if (truth || token.text == "false" || token.text == "False") {
      ExprPtr out = make(ExprKind::kBool, token.where);
      out->integer = truth;
      advance();
      return out;
    }
    if (token.text == "none" || token.text == "None") {
      advance();
      return make(ExprKind::kNone, token.where);
    }
    expected("an expression");
  }

  ExprPtr parenthesis() {
    const Where where = current().where;
    advance();
    if (current().is(")")) {
      advance();
      return make(ExprKind::kTuple, where);
    }
    ExprPtr inner = expression_list();
    if (current().is("for")) {
      refuse("comprehensions are not part of the language: use a 'for' loop and append");
    }
    expect(")", "to close the parenthesis");
    return inner;
  }

  ExprPtr list() {
    ExprPtr out = make(ExprKind::kList, current().where);
    advance();
    while (!current().is("]")) {
      adopt(*out, expression());
      if (!current().is(",")) break;
      advance();
    }
    if (current().is("for")) {
      refuse("comprehensions are not part of the language: use a 'for' loop and append");
    }
    expect("]", "to close the list");
    return out;
  }

  std::vector<Token> tokens_;
  std::vector<CallSite>& sites_;
  size_t i_ = 0;
  int level_ = 0;
  int loops_ = 0;
  bool single_line_;
  bool folded_ = false;
  bool reserved_words_ = false;
};

void require_scalar(const Node& node, std::string_view what) {
  if (!node.is_scalar()) {
    throw Error(ErrorCode::kConfig, str("expected ", what, ", found ", node.describe()),
                node.place());
  }
}

}  // namespace

std::vector<std::string> assigned_names(const std::vector<Stmt>& statements) {
  std::vector<std::string> names;
  visit_bound_names(statements, [&](const std::string& name, const Where&) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  });
  return names;
}

Body parse_body(const Node& scalar) {
  require_scalar(scalar, "a body");
  Body body;
  body.statements = Parser(scalar, false, body.sites).body();
  return body;
}

ExprPtr parse_expression(const Node& scalar, std::vector<CallSite>* sites) {
  require_scalar(scalar, "an expression");
  std::vector<CallSite> own;
  return Parser(scalar, true, sites ? *sites : own).whole_expression();
}

Signature parse_signature(const Node& key, bool reserved_words) {
  std::vector<CallSite> sites;
  return Parser(key, true, sites).signature(reserved_words);
}

InputType parse_input_type(const Node& scalar) {
  require_scalar(scalar, "a type such as float32[batch, 3]");
  std::vector<CallSite> sites;
  return Parser(scalar, true, sites).input_type();
}

}  // namespace paddle::model
