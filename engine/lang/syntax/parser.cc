#include "lang/syntax/parser.h"

#include <array>

#include "lang/syntax/expression_parser.h"

namespace paddle::lang {
namespace {

class Parser : public ExpressionParser {
 public:
  using ExpressionParser::ExpressionParser;

  std::vector<Stmt> body() {
    std::vector<Stmt> statements;
    if (current().kind == TokenKind::kEnd) reject("a body without a statement");
    while (current().kind != TokenKind::kEnd) statement(statements);
    return statements;
  }

  Signature signature(bool reserved_words) {
    reserved_words_ = reserved_words;
    Signature out;
    out.where = current().where;
    out.name = new_name("a block's name");
    if (!current().is("(")) {
      reject(str("a block is declared with its arguments: ", out.name, "(x): …"));
    }
    advance();
    std::set<std::string> seen;
    while (!current().is(")")) {
      Parameter parameter;
      parameter.where = current().where;
      parameter.name = new_name("an argument's name");
      if (!seen.insert(parameter.name).second) {
        reject_at(parameter.where, str("the argument '", parameter.name, "' is named twice"));
      }
      if (current().is("=")) {
        advance();
        parameter.fallback = expression();
      } else if (!out.parameters.empty() && out.parameters.back().fallback) {
        reject_at(parameter.where, str("the argument '", parameter.name,
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
      reject(str("expected '[' and the shape after '", out.dtype, "' (", out.dtype,
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
  void statement(std::vector<Stmt>& out) {
    const Token& token = current();
    if (token.kind == TokenKind::kIndent) reject("this line is indented more than the one above");
    if (token.kind == TokenKind::kKeyword) {
      if (token.text == "if") return out.push_back(if_statement());
      if (token.text == "for") return out.push_back(for_statement());
      if (token.text == "while") return out.push_back(while_statement());
      if (token.text == "elif" || token.text == "else") {
        reject(str("'", token.text, "' without its 'if' at this indentation"));
      }
    }
    if (token.kind == TokenKind::kName && token.text == "with" &&
        (next().text == "scope" || next().text == "range"))
      return out.push_back(scope_statement());
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
        if (loops_ == 0) reject(str("'", token.text, "' outside a loop"));
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
    if (token.kind == TokenKind::kName && token.text == "assert" && !next().is("="))
      return assert_statement();
    if (token.kind == TokenKind::kName && is_reserved_word(token.text) &&
        token.text != "training" && !next().is("(") && !next().is(".")) {
      reject(str("'", token.text, "' is not supported"));
    }
    return assignment_or_expression();
  }

  /// `assert condition, "message"` (in parentheses as well) is a call of assert_true.
  Stmt assert_statement() {
    Stmt out = start(StmtKind::kExpression);
    ExprPtr callee = make(ExprKind::kName, current().where);
    callee->text = "assert_true";
    advance();
    std::vector<ExprPtr> arguments;
    ExprPtr list = expression_list();
    if (list->kind == ExprKind::kTuple) {
      if (list->children.size() != 2)
        reject_at(list->where, "assert takes a condition and a message");
      arguments = std::move(list->children);
    } else {
      arguments.push_back(std::move(list));
    }
    out.value = make(ExprKind::kCall, out.where);
    out.value->site = static_cast<int>(sites_.size());
    sites_.push_back({callee->text, out.where});
    adopt(*out.value, std::move(callee));
    for (ExprPtr& each : arguments) {
      out.value->depth = std::max(out.value->depth, each->depth + 1);
      out.value->arguments.push_back({"", each->where, std::move(each)});
    }
    return out;
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
        reject_at(first->where, str("'", current().text, "' needs a name or an index on its left"));
      }
      check_target(*first);
      advance();
      out.targets.push_back(std::move(first));
      out.value = expression_list();
      return out;
    }
    if (!current().is("=")) {
      if (current().is(":")) reject("type annotations are not supported");
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
          reject_at(target.where, str("'", target.text,
                                      "' is a keyword and cannot be "
                                      "assigned"));
        }
        return;
      case ExprKind::kIndex:
        return;
      case ExprKind::kTuple:
      case ExprKind::kList:
        if (target.children.empty()) reject_at(target.where, "nothing to assign to");
        for (const ExprPtr& child : target.children) check_target(*child);
        return;
      case ExprKind::kBool:
      case ExprKind::kNone:
        reject_at(target.where, "a keyword cannot be assigned to");
      case ExprKind::kAttribute:
        reject_at(target.where, str("an attribute ('.", target.text, "') cannot be assigned"));
      case ExprKind::kCall:
        reject_at(target.where, "a call cannot be assigned");
      default:
        reject_at(target.where, "only names, indices and tuples of them can be assigned");
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
      reject(str("expected an indented line after ", after, ", found ",
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
    if (current().is("else")) reject("'else' after a loop is not supported");
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
    if (current().is("else")) reject("'else' after a loop is not supported");
    return out;
  }

  /// `with scope("name"):` marks the operations of its body for profiles. `range` is an older word.
  Stmt scope_statement() {
    Level level(*this);
    Stmt out = start(StmtKind::kScope);
    advance();
    advance();
    expect("(", "after 'scope'");
    out.text = current().text;
    const bool name =
        current().kind == TokenKind::kString && !out.text.empty() && out.text.size() <= 100 &&
        std::all_of(out.text.begin(), out.text.end(),
                    [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; });
    if (!name)
      reject(str("expected the name of the scope as text of letters, digits and '_', found ",
                 current().describe()));
    advance();
    expect(")", "after the name of the scope");
    Branch branch;
    branch.where = out.where;
    branch.body = suite("the scope");
    out.branches.push_back(std::move(branch));
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
};

void require_scalar(const Node& node, std::string_view what) {
  if (!node.is_scalar()) {
    throw Error(ErrorCode::kConfig, str("expected ", what, ", found ", node.describe()),
                node.location());
  }
}

}  // namespace

std::vector<std::string> assigned_names(const std::vector<Stmt>& statements) {
  std::vector<std::string> names;
  visit_bound_names(statements, [&](const std::string& name, const SourcePosition&) {
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

}  // namespace paddle::lang
