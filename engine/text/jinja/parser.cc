// The statements of templates; expressions are those of ExpressionParser.

#include <utility>

#include "text/jinja/expression_parser.h"

namespace paddle::jinja {

namespace {

class Parser : private ExpressionParser {
 public:
  Parser(std::string_view source, const std::string& name) : ExpressionParser(source, name) {}

  std::unique_ptr<const TemplateNode> run() {
    auto root = std::make_unique<TemplateNode>();
    root->body = body({});
    return root;
  }

 private:
  /// Statements up to a block that begins with one of these names, which is current afterwards.
  Body body(const std::vector<std::string_view>& ends) {
    const Nesting nesting(*this);
    Body out;
    while (true) {
      const Token& token = current();
      if (token.kind == Kind::kEnd) {
        if (!ends.empty())
          reject("expected '" + std::string(ends.back()) + "', found the end of the template");
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
        if (current().kind != Kind::kVariableEnd) reject("expected '}}', found " + found());
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
      if (s.value->kind != Expression::Kind::kCall) reject("'call' needs a call of a macro");
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
      if (loops_ == 0) reject("'" + word + "' outside of a loop");
      expect_block_end();
    } else if (word == "do") {
      s.kind = Statement::Kind::kDo;
      s.value = tuple(true);
      expect_block_end();
    } else {
      const auto others = {"include", "import", "from", "extends", "autoescape", "trans"};
      if (std::find(others.begin(), others.end(), word) != others.end())
        reject("Jinja's statement '" + word + "' is not supported; a template has one file");
      reject("unknown statement '" + word + "'");
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
        reject("non-default argument follows default argument");
    }
    return out;
  }

  int loops_ = 0;  ///< around the statement that is read
};

}  // namespace

std::unique_ptr<const TemplateNode> parse(std::string_view source, const std::string& name) {
  return Parser(source, name).run();
}

}  // namespace paddle::jinja
