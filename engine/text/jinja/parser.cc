// A recursive-descent parser with jinja2's precedences.
#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "text/jinja/ast.h"
#include "text/jinja/lexer.h"

namespace paddle::jinja {

namespace {

constexpr int kMaxNesting = 150;
constexpr int kMaxExpressionDepth = 1000;  // of an expression's tree: long chains nest to the left

class Parser {
 public:
  Parser(std::string_view source, const std::string& name)
      : name_(name), tokens_(tokenize(source, name)) {}

  std::unique_ptr<const TemplateNode> run() {
    auto root = std::make_unique<TemplateNode>();
    root->body = body({});
    return root;
  }

 private:
  using Kind = Token::Kind;
  using Operands = std::vector<ExpressionPointer>;

  /// Counts nested rules, so that hostile templates do not exhaust the stack.
  struct Nesting {
    explicit Nesting(Parser& parser) : parser_(parser) {
      if (++parser.depth_ > kMaxNesting) parser.refuse("nested too deeply");
    }
    ~Nesting() { --parser_.depth_; }
    Parser& parser_;
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
  [[noreturn]] void refuse(const std::string& message) const {
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
    if (!skip_operator(text)) refuse("expected '" + std::string(text) + "', found " + found());
  }
  void expect_name(std::string_view text) {
    if (!skip_name(text)) refuse("expected '" + std::string(text) + "', found " + found());
  }
  void expect_block_end() {
    if (current().kind != Kind::kBlockEnd) refuse("expected '%}', found " + found());
    next();
  }
  std::string expect_identifier() {
    if (current().kind != Kind::kName) refuse("expected a name, found " + found());
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
    if (out->depth > kMaxExpressionDepth) refuse("an expression of too many parts");
    return out;
  }
  static ExpressionPointer constant(Value value, int line) {
    auto out = node(Expression::Kind::kConstant, line);
    out->value = std::move(value);
    return out;
  }

  // --- statements ---

  /// Statements up to a block that begins with one of these names, which is current afterwards.
  Body body(const std::vector<std::string_view>& ends) {
    const Nesting nesting(*this);
    Body out;
    while (true) {
      const Token& token = current();
      if (token.kind == Kind::kEnd) {
        if (!ends.empty())
          refuse("expected '" + std::string(ends.back()) + "', found the end of the template");
        return out;
      }
      auto statement = std::make_unique<Statement>();
      statement->line = token.line;
      next();
      if (token.kind == Kind::kData) {
        statement->kind = Statement::Kind::kData;
        statement->text = token.text;
      } else if (token.kind == Kind::kVariableBegin) {
        statement->kind = Statement::Kind::kOutput;
        statement->value = tuple(true);
        if (current().kind != Kind::kVariableEnd) refuse("expected '}}', found " + found());
        next();
      } else {
        if (current().kind == Kind::kName &&
            std::find(ends.begin(), ends.end(), current().text) != ends.end())
          return out;
        read_statement(*statement);
      }
      out.push_back(std::move(statement));
    }
  }
  /// The same, and the end itself.
  Body body_to(std::string_view end) {
    Body out = body({end});
    next();
    expect_block_end();
    return out;
  }

  void read_statement(Statement& s) {
    const std::string word = expect_identifier();
    if (word == "if") return read_if(s);
    if (word == "for") return read_for(s);
    if (word == "set") return read_set(s);
    if (word == "macro") {
      s.kind = Statement::Kind::kMacro;
      s.text = expect_identifier();
      s.parameters = parameters();
      expect_block_end();
      const int loops = std::exchange(loops_, 0);
      s.body = body_to("endmacro");
      loops_ = loops;
    } else if (word == "call") {
      s.kind = Statement::Kind::kCall;
      if (is_operator("(")) s.parameters = parameters();
      s.value = expression();
      if (s.value->kind != Expression::Kind::kCall) refuse("'call' needs a call of a macro");
      expect_block_end();
      s.body = body_to("endcall");
    } else if (word == "filter") {
      s.kind = Statement::Kind::kFilter;
      s.value = filters(nullptr, true);
      expect_block_end();
      s.body = body_to("endfilter");
    } else if (word == "with") {
      s.kind = Statement::Kind::kWith;
      while (current().kind != Kind::kBlockEnd) {
        if (!s.assignments.empty()) expect_operator(",");
        ExpressionPointer target = target_name();
        expect_operator("=");
        s.assignments.emplace_back(std::move(target), expression());
      }
      expect_block_end();
      s.body = body_to("endwith");
    } else if (word == "generation") {
      s.kind = Statement::Kind::kBlock;
      expect_block_end();
      s.body = body_to("endgeneration");
    } else if (word == "block") {
      s.kind = Statement::Kind::kBlock;
      expect_identifier();
      expect_block_end();
      s.body = body({"endblock"});
      next();
      if (current().kind == Kind::kName) next();
      expect_block_end();
    } else if (word == "break" || word == "continue") {
      s.kind = word == "break" ? Statement::Kind::kBreak : Statement::Kind::kContinue;
      if (loops_ == 0) refuse("'" + word + "' outside of a loop");
      expect_block_end();
    } else if (word == "do") {
      s.kind = Statement::Kind::kDo;
      s.value = tuple(true);
      expect_block_end();
    } else {
      const auto others = {"include", "import", "from", "extends", "autoescape", "trans"};
      if (std::find(others.begin(), others.end(), word) != others.end())
        refuse("Jinja's statement '" + word + "' is not supported; a template has one file");
      refuse("unknown statement '" + word + "'");
    }
  }

  void read_if(Statement& s) {
    s.kind = Statement::Kind::kIf;
    while (true) {
      ExpressionPointer condition = tuple(false);
      expect_block_end();
      Body then = body({"elif", "else", "endif"});
      s.branches.emplace_back(std::move(condition), std::move(then));
      if (skip_name("elif")) continue;
      if (skip_name("else")) {
        expect_block_end();
        s.otherwise = body({"endif"});
      }
      next();
      expect_block_end();
      return;
    }
  }

  void read_for(Statement& s) {
    s.kind = Statement::Kind::kFor;
    s.target = target_tuple();
    expect_name("in");
    s.value = tuple(false, true);
    if (skip_name("if")) s.filter = expression();
    s.recursive = skip_name("recursive");
    expect_block_end();
    ++loops_;
    s.body = body({"endfor", "else"});
    --loops_;
    if (skip_name("else")) {
      expect_block_end();
      s.otherwise = body({"endfor"});
    }
    next();
    expect_block_end();
  }

  void read_set(Statement& s) {
    s.kind = Statement::Kind::kSet;
    s.target = target_tuple();
    if (skip_operator("=")) {
      s.value = tuple(true);
      expect_block_end();
      return;
    }
    if (is_operator("|")) s.filter = filters(nullptr, false);
    expect_block_end();
    s.body = body_to("endset");
  }

  ExpressionPointer target_name() {
    const int line = current().line;
    if (skip_operator("(")) {
      ExpressionPointer out = target_tuple();
      expect_operator(")");
      return out;
    }
    ExpressionPointer out = node(Expression::Kind::kName, line, expect_identifier());
    if (skip_operator("."))
      out = node(Expression::Kind::kAttribute, line, expect_identifier(), std::move(out));
    return out;
  }
  ExpressionPointer target_tuple() {
    const Nesting nesting(*this);
    const int line = current().line;
    Operands items;
    items.push_back(target_name());
    bool many = false;
    while (skip_operator(",")) {
      many = true;
      if (current().kind != Kind::kName && !is_operator("(")) break;
      if (is_name("in")) break;
      items.push_back(target_name());
    }
    if (!many) return std::move(items[0]);
    auto out = node(Expression::Kind::kTuple, line);
    out->operands = std::move(items);
    return out;
  }

  std::vector<Parameter> parameters() {
    std::vector<Parameter> out;
    expect_operator("(");
    while (!skip_operator(")")) {
      if (!out.empty()) {
        expect_operator(",");
        if (skip_operator(")")) break;
      }
      Parameter& parameter = out.emplace_back();
      parameter.name = expect_identifier();
      if (skip_operator("="))
        parameter.fallback = expression();
      else if (out.size() > 1 && out[out.size() - 2].fallback)
        refuse("a parameter without a default behind one with a default");
    }
    return out;
  }

  // --- expressions ---

  /// One expression, or several with commas in between.
  ExpressionPointer tuple(bool with_condition, bool in_for = false) {
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
      if (items.empty()) refuse("expected an expression, found " + found());
      return std::move(items[0]);
    }
    auto out = node(Expression::Kind::kTuple, line);
    out->operands = std::move(items);
    return out;
  }
  bool is_tuple_end(bool in_for) const {
    return current().kind == Kind::kVariableEnd || current().kind == Kind::kBlockEnd ||
           is_operator(")") || (in_for && is_name("recursive"));
  }

  ExpressionPointer expression() {
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

  ExpressionPointer disjunction() {
    ExpressionPointer out = conjunction();
    while (is_name("or")) {
      const int line = next().line;
      out = node(Expression::Kind::kBinary, line, "or", std::move(out), conjunction());
    }
    return out;
  }
  ExpressionPointer conjunction() {
    ExpressionPointer out = negation();
    while (is_name("and")) {
      const int line = next().line;
      out = node(Expression::Kind::kBinary, line, "and", std::move(out), negation());
    }
    return out;
  }
  ExpressionPointer negation() {
    const Nesting nesting(*this);
    if (!is_name("not")) return comparison();
    const int line = next().line;
    return node(Expression::Kind::kUnary, line, "not", negation());
  }

  ExpressionPointer comparison() {
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
  ExpressionPointer sum() {
    return chain({"+", "-"}, [&] { return concatenation(); });
  }
  ExpressionPointer concatenation() {
    return chain({"~"}, [&] { return product(); });
  }
  ExpressionPointer product() {
    return chain({"*", "//", "/", "%"}, [&] { return power(); });
  }
  ExpressionPointer power() {
    return chain({"**"}, [&] { return unary(true); });
  }

  ExpressionPointer unary(bool with_filters) {
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

  ExpressionPointer primary() {
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
    refuse("expected an expression, found " + found());
  }

  ExpressionPointer number(const Token& token) {
    const char *begin = token.text.data(), *end = begin + token.text.size();
    if (token.kind == Kind::kInteger) {
      int64_t value = 0;
      if (std::from_chars(begin, end, value).ptr == end && value >= 0 && token.text.size() < 20)
        return constant(value, token.line);
      fail_at(name_, token.line, "the number " + token.text + " is too large");
    }
    double value = 0;
    std::from_chars(begin, end, value);
    return constant(value, token.line);
  }

  ExpressionPointer parenthesized(int line) {
    if (skip_operator(")")) return node(Expression::Kind::kTuple, line);
    ExpressionPointer out = tuple(true);
    expect_operator(")");
    return out;
  }

  Operands items(std::string_view end) {
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

  ExpressionPointer dict(int line) {
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

  ExpressionPointer postfix(ExpressionPointer out) {
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

  ExpressionPointer subscript(ExpressionPointer object, int line) {
    ExpressionPointer parts[3];
    if (!is_operator(":")) parts[0] = expression();
    if (!is_operator(":")) {
      if (is_operator(",")) refuse("an index of several parts is not supported");
      expect_operator("]");
      return node(Expression::Kind::kItem, line, "", std::move(object), std::move(parts[0]));
    }
    for (int i = 1; i < 3 && skip_operator(":"); ++i)
      if (!is_operator(":") && !is_operator("]")) parts[i] = expression();
    expect_operator("]");
    return node(Expression::Kind::kSlice, line, "", std::move(object), std::move(parts[0]),
                std::move(parts[1]), std::move(parts[2]));
  }

  CallArguments call_arguments() {
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
        if (!out.named.empty()) refuse("a positional argument behind a named one");
        out.positional.push_back(expression());
      }
    }
    return out;
  }

  std::string dotted_name() {
    std::string name = expect_identifier();
    while (skip_operator(".")) name += "." + expect_identifier();
    return name;
  }

  ExpressionPointer filters_and_tests(ExpressionPointer out) {
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

  /// `| name(arguments)`, repeated. With `begin`, the first one has no bar.
  ExpressionPointer filters(ExpressionPointer out, bool begin) {
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

  ExpressionPointer test(ExpressionPointer object, int line) {
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

  const std::string& name_;
  std::vector<Token> tokens_;
  size_t at_ = 0;
  int depth_ = 0, loops_ = 0;
};

}  // namespace

std::unique_ptr<const TemplateNode> parse(std::string_view source, const std::string& name) {
  return Parser(source, name).run();
}

}  // namespace paddle::jinja
