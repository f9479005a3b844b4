#include "text/jinja/expression_parser.h"

#include <charconv>

namespace paddle::jinja {

ExpressionPointer ExpressionParser::tuple(bool with_condition, bool in_for) {
  const int line = current().line;
  const auto item = [&] { return with_condition || !in_for ? expression() : disjunction(); };
  Operands items;
  bool many = false;
  while (true) {
    if (is_tuple_end(in_for)) break;
    items.push_back(item());
    if (!skip_operator(",")) break;
    many = true;
  }
  if (!many) {
    if (items.empty()) reject("expected an expression, found " + found());
    return std::move(items[0]);
  }
  auto out = node(Expression::Kind::kTuple, line);
  out->operands = std::move(items);
  return out;
}

bool ExpressionParser::is_tuple_end(bool in_for) const {
  return current().kind == Kind::kVariableEnd || current().kind == Kind::kBlockEnd ||
         is_operator(")") || (in_for && is_name("recursive"));
}

ExpressionPointer ExpressionParser::expression() {
  const Nesting nesting(*this);
  ExpressionPointer out = disjunction();
  while (is_name("if")) {
    const int line = next().line;
    ExpressionPointer condition = disjunction(), otherwise;
    if (skip_name("else")) otherwise = expression();
    out = node(Expression::Kind::kConditional, line, "", std::move(out), std::move(condition),
               std::move(otherwise));
  }
  return out;
}

ExpressionPointer ExpressionParser::disjunction() {
  ExpressionPointer out = conjunction();
  while (is_name("or")) {
    const int line = next().line;
    out = node(Expression::Kind::kBinary, line, "or", std::move(out), conjunction());
  }
  return out;
}

ExpressionPointer ExpressionParser::conjunction() {
  ExpressionPointer out = negation();
  while (is_name("and")) {
    const int line = next().line;
    out = node(Expression::Kind::kBinary, line, "and", std::move(out), negation());
  }
  return out;
}

ExpressionPointer ExpressionParser::negation() {
  const Nesting nesting(*this);
  if (!is_name("not")) return comparison();
  const int line = next().line;
  return node(Expression::Kind::kUnary, line, "not", negation());
}

ExpressionPointer ExpressionParser::comparison() {
  ExpressionPointer first = sum();
  auto out = node(Expression::Kind::kComparison, current().line);
  out->operands.push_back(std::move(first));
  while (true) {
    std::string name;
    for (const char* candidate : {"==", "!=", "<=", ">=", "<", ">"})
      if (is_operator(candidate)) name = candidate;
    if (is_name("in")) name = "in";
    if (is_name("not") && at_ + 1 < tokens_.size() && tokens_[at_ + 1].kind == Kind::kName &&
        tokens_[at_ + 1].text == "in") {
      next();
      name = "not in";
    }
    if (name.empty()) break;
    next();
    out->names.push_back(name);
    out->operands.push_back(sum());
  }
  if (out->names.empty()) return std::move(out->operands[0]);
  return out;
}

ExpressionPointer ExpressionParser::sum() {
  return chain({"+", "-"}, [&] { return concatenation(); });
}

ExpressionPointer ExpressionParser::concatenation() {
  return chain({"~"}, [&] { return product(); });
}

ExpressionPointer ExpressionParser::product() {
  return chain({"*", "//", "/", "%"}, [&] { return power(); });
}

ExpressionPointer ExpressionParser::power() {
  return chain({"**"}, [&] { return unary(true); });
}

ExpressionPointer ExpressionParser::unary(bool with_filters) {
  const Nesting nesting(*this);
  ExpressionPointer out;
  if (is_operator("-") || is_operator("+")) {
    const Token& token = next();
    out = node(Expression::Kind::kUnary, token.line, token.text, unary(false));
  } else {
    out = postfix(primary());
  }
  return with_filters ? filters_and_tests(std::move(out)) : std::move(out);
}

ExpressionPointer ExpressionParser::primary() {
  const Token& token = next();
  const int line = token.line;
  switch (token.kind) {
    case Kind::kName:
      if (token.text == "true" || token.text == "True") return constant(true, line);
      if (token.text == "false" || token.text == "False") return constant(false, line);
      if (token.text == "none" || token.text == "None") return constant(None{}, line);
      return node(Expression::Kind::kName, line, token.text);
    case Kind::kString: {
      std::string text = token.text;
      while (current().kind == Kind::kString) text += next().text;
      return constant(text, line);
    }
    case Kind::kInteger:
    case Kind::kFloat:
      return number(token);
    case Kind::kOperator:
      if (token.text == "(") return parenthesized(line);
      if (token.text == "[") {
        auto out = node(Expression::Kind::kList, line);
        out->operands = items("]");
        return out;
      }
      if (token.text == "{") return dict(line);
      break;
    default:
      break;
  }
  --at_;
  reject("expected an expression, found " + found());
}

ExpressionPointer ExpressionParser::number(const Token& token) {
  const char *begin = token.text.data(), *end = begin + token.text.size();
  if (token.kind == Kind::kInteger) {
    int64_t value = 0;
    if (std::from_chars(begin, end, value).ec == std::errc()) return constant(value, token.line);
    return constant(BigInteger{token.text.substr(token.text.find_first_not_of('0'))}, token.line);
  }
  double value = 0;
  std::from_chars(begin, end, value);
  return constant(value, token.line);
}

ExpressionPointer ExpressionParser::parenthesized(int line) {
  if (skip_operator(")")) return node(Expression::Kind::kTuple, line);
  ExpressionPointer out = tuple(true);
  expect_operator(")");
  return out;
}

ExpressionParser::Operands ExpressionParser::items(std::string_view end) {
  Operands out;
  while (!skip_operator(end)) {
    if (!out.empty()) {
      expect_operator(",");
      if (skip_operator(end)) break;
    }
    out.push_back(expression());
  }
  return out;
}

ExpressionPointer ExpressionParser::dict(int line) {
  auto out = node(Expression::Kind::kDict, line);
  while (!skip_operator("}")) {
    if (!out->operands.empty()) {
      expect_operator(",");
      if (skip_operator("}")) break;
    }
    out->operands.push_back(expression());
    expect_operator(":");
    out->operands.push_back(expression());
  }
  return out;
}

ExpressionPointer ExpressionParser::postfix(ExpressionPointer out) {
  while (true) {
    const int line = current().line;
    if (skip_operator(".")) {
      if (current().kind == Kind::kInteger)
        out = node(Expression::Kind::kItem, line, "", std::move(out), number(next()));
      else
        out = node(Expression::Kind::kAttribute, line, expect_identifier(), std::move(out));
    } else if (skip_operator("[")) {
      out = subscript(std::move(out), line);
    } else if (is_operator("(")) {
      auto call = node(Expression::Kind::kCall, line, "", std::move(out));
      call->arguments = call_arguments();
      out = std::move(call);
    } else {
      return out;
    }
  }
}

ExpressionPointer ExpressionParser::subscript(ExpressionPointer object, int line) {
  ExpressionPointer parts[3];
  if (!is_operator(":")) parts[0] = expression();
  if (!is_operator(":")) {
    if (is_operator(",")) reject("an index of several parts is not supported");
    expect_operator("]");
    return node(Expression::Kind::kItem, line, "", std::move(object), std::move(parts[0]));
  }
  for (int i = 1; i < 3 && skip_operator(":"); ++i)
    if (!is_operator(":") && !is_operator("]")) parts[i] = expression();
  expect_operator("]");
  return node(Expression::Kind::kSlice, line, "", std::move(object), std::move(parts[0]),
              std::move(parts[1]), std::move(parts[2]));
}

CallArguments ExpressionParser::call_arguments() {
  CallArguments out;
  expect_operator("(");
  bool first = true;
  while (!skip_operator(")")) {
    if (!first) {
      expect_operator(",");
      if (skip_operator(")")) break;
    }
    first = false;
    if (skip_operator("**")) {
      out.double_star = expression();
    } else if (skip_operator("*")) {
      out.star = expression();
    } else if (current().kind == Kind::kName && at_ + 1 < tokens_.size() &&
               tokens_[at_ + 1].kind == Kind::kOperator && tokens_[at_ + 1].text == "=") {
      std::string name = next().text;
      next();
      out.named.emplace_back(std::move(name), expression());
    } else {
      if (!out.named.empty()) reject("positional argument follows keyword argument");
      out.positional.push_back(expression());
    }
  }
  return out;
}

std::string ExpressionParser::dotted_name() {
  std::string name = expect_identifier();
  while (skip_operator(".")) name += "." + expect_identifier();
  return name;
}

ExpressionPointer ExpressionParser::filters_and_tests(ExpressionPointer out) {
  while (true) {
    const int line = current().line;
    if (is_operator("|")) {
      out = filters(std::move(out), false);
    } else if (skip_name("is")) {
      out = test(std::move(out), line);
    } else if (is_operator("(")) {
      out = postfix(std::move(out));
    } else {
      return out;
    }
  }
}

ExpressionPointer ExpressionParser::filters(ExpressionPointer out, bool begin) {
  while (begin || is_operator("|")) {
    const int line = current().line;
    if (!begin) next();
    begin = false;
    auto filter = node(Expression::Kind::kFilter, line, dotted_name(), std::move(out));
    if (is_operator("(")) filter->arguments = call_arguments();
    out = std::move(filter);
  }
  return out;
}

ExpressionPointer ExpressionParser::test(ExpressionPointer object, int line) {
  const bool negated = skip_name("not");
  auto out = node(Expression::Kind::kTest, line, dotted_name(), std::move(object));
  const bool starts = current().kind == Kind::kName || current().kind == Kind::kString ||
                      current().kind == Kind::kInteger || current().kind == Kind::kFloat ||
                      is_operator("[") || is_operator("{");
  if (is_operator("(")) {
    out->arguments = call_arguments();
  } else if (starts && !is_name("else") && !is_name("or") && !is_name("and") && !is_name("if") &&
             !is_name("not") && !is_name("in") && !is_name("is") && !is_name("recursive")) {
    out->arguments.positional.push_back(postfix(primary()));
  }
  if (!negated) return out;
  return node(Expression::Kind::kUnary, line, "not", ExpressionPointer(std::move(out)));
}

}  // namespace paddle::jinja
