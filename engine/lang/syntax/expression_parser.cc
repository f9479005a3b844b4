#include "lang/syntax/expression_parser.h"

#include <array>

namespace paddle::lang {
bool ExpressionParser::at_expression_end() const {
  const TokenKind kind = current().kind;
  return kind == TokenKind::kNewline || kind == TokenKind::kEnd || kind == TokenKind::kDedent ||
         current().is("=") || current().is(")") || current().is("]") || current().is(":");
}

ExprPtr ExpressionParser::expression_list() {
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

ExprPtr ExpressionParser::expression() {
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

ExprPtr ExpressionParser::logical(std::string_view word) {
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

ExprPtr ExpressionParser::negation() {
  if (!current().is("not")) return comparison();
  Level level(*this);
  ExprPtr out = make(ExprKind::kUnary, current().where);
  take_operator(*out, "not");
  advance();
  adopt(*out, negation());
  return out;
}

void ExpressionParser::take_operator(Expr& expr, std::string op) const {
  expr.operators.push_back(std::move(op));
  expr.operator_places.push_back(current().where);
}

std::string ExpressionParser::comparison_operator() const {
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

ExprPtr ExpressionParser::comparison() {
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
      reject(str("'", op, "' compares with none only, found ", current().describe(), " (write '",
                 op == "is" ? "==" : "!=", "')"));
    }
    adopt(*out, chain(0));
    op = comparison_operator();
  }
  return out;
}

ExprPtr ExpressionParser::chain(int level) {
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

ExprPtr ExpressionParser::unary() {
  if (!current().is("-") && !current().is("+")) return power();
  Level level(*this);
  ExprPtr out = make(ExprKind::kUnary, current().where);
  take_operator(*out, current().text);
  advance();
  adopt(*out, unary());
  return out;
}

ExprPtr ExpressionParser::power() {
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

ExprPtr ExpressionParser::postfix() {
  ExprPtr value = atom();
  int trailers = 0;
  while (current().is("(") || current().is("[") || current().is(".")) {
    if (++trailers > kMaxNesting) reject("more than 200 calls or indices in a row");
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

ExprPtr ExpressionParser::attribute(ExprPtr value) {
  advance();
  if (current().kind != TokenKind::kName) expected("a name after '.'");
  ExprPtr out = make(ExprKind::kAttribute, current().where);
  out->text = current().text;
  adopt(*out, std::move(value));
  advance();
  return out;
}

ExprPtr ExpressionParser::call(ExprPtr callee) {
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
    reject("comprehensions are not supported: use a 'for' loop and append");
  }
  expect(")", context);
  return out;
}

Argument ExpressionParser::argument(std::set<std::string>& seen, Expr& call) {
  Argument out;
  out.where = current().where;
  if (current().is("*") || current().is("**")) {
    reject(str("'", current().text, "' before an argument is not supported"));
  }
  const bool word = current().kind == TokenKind::kName || current().kind == TokenKind::kKeyword;
  if (word && next().is("=")) {
    if (current().kind == TokenKind::kKeyword) {
      reject(str("'", current().text, "' is a keyword and cannot name an argument"));
    }
    out.name = current().text;
    if (!seen.insert(out.name).second) reject(str("the argument '", out.name, "' is given twice"));
    advance();
    advance();
  } else if (!seen.empty()) {
    reject("a positional argument after a named one");
  }
  out.value = expression();
  call.depth = std::max(call.depth, out.value->depth + 1);
  if (call.depth > kMaxTreeDepth) {
    reject_at(out.where, "an expression of more than 200 levels of nesting");
  }
  return out;
}

ExprPtr ExpressionParser::index(ExprPtr value) {
  ExprPtr out = make(ExprKind::kIndex, value->where);
  adopt(*out, std::move(value));
  advance();
  if (current().is("]")) reject("an index is missing between '[' and ']'");
  while (!current().is("]")) {
    adopt(*out, index_item());
    if (!current().is(",")) break;
    advance();
    out->trailing_tuple = current().is("]");
  }
  expect("]", "after the index");
  return out;
}

ExprPtr ExpressionParser::index_item() {
  if (current().is("...")) {
    ExprPtr out = make(ExprKind::kEllipsis, current().where);
    advance();
    return out;
  }
  const SourcePosition where = current().where;
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

ExprPtr ExpressionParser::atom() {
  const Token token = current();
  switch (token.kind) {
    case TokenKind::kInteger: {
      ExprPtr out = make(ExprKind::kInteger, token.where);
      out->integer = token.integer;
      advance();
      return out;
    }
    case TokenKind::kImaginary:
    case TokenKind::kReal: {
      const bool imaginary = token.kind == TokenKind::kImaginary;
      ExprPtr out = make(imaginary ? ExprKind::kImaginary : ExprKind::kReal, token.where);
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
      if (token.text == "lambda") reject("'lambda' is not supported");
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
  if (token.is("...")) reject("'...' is allowed only inside an index");
  expected("an expression");
}

ExprPtr ExpressionParser::keyword_atom(const Token& token) {
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

ExprPtr ExpressionParser::parenthesis() {
  const SourcePosition where = current().where;
  advance();
  if (current().is(")")) {
    advance();
    return make(ExprKind::kTuple, where);
  }
  ExprPtr inner = expression_list();
  if (current().is("for")) {
    reject("comprehensions are not supported: use a 'for' loop and append");
  }
  expect(")", "to close the parenthesis");
  return inner;
}

ExprPtr ExpressionParser::list() {
  ExprPtr out = make(ExprKind::kList, current().where);
  advance();
  while (!current().is("]")) {
    adopt(*out, expression());
    if (!current().is(",")) break;
    advance();
  }
  if (current().is("for")) {
    reject("comprehensions are not supported: use a 'for' loop and append");
  }
  expect("]", "to close the list");
  return out;
}

}  // namespace paddle::lang
