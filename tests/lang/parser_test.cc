// The body language: tokens, grammar, and texts that must be rejected with a place.
#include "lang/syntax/parser.h"

#include <gtest/gtest.h>

#include "lang/syntax/lexer.h"
#include "lang/syntax/syntax_text.h"

namespace paddle::lang {
namespace {

Node scalar(const std::string& body) {
  std::string yaml = "m: |\n";
  for (const std::string& line : split(body, '\n')) yaml += "  " + line + "\n";
  return config::parse_document(yaml, "f.yaml").entries[0].value;
}

Node quoted(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\'') escaped += '\'';
    escaped += c;
  }
  return config::parse_document("m: '" + escaped + "'\n", "f.yaml").entries[0].value;
}

std::string expr(const std::string& source) { return text(*parse_expression(quoted(source))); }
std::string body(const std::string& source) { return text(parse_body(scalar(source)).statements); }

template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kConfig) << error.what();
    return error.what();
  }
  return "no error";
}
std::string body_error(const std::string& source) {
  return error_of([&] { parse_body(scalar(source)); });
}
std::string expr_error(const std::string& source) {
  return error_of([&] { parse_expression(quoted(source)); });
}

TEST(Parser, Ranges) {
  const std::string source =
      "with scope(\"encoder\"):\n  x = relu(x)\n  with scope(\"norm\"):\n    x += 1\nreturn x\n";
  EXPECT_EQ(body(source), source);
  EXPECT_NE(body_error("with scope(x):\n  y = 1").find("the name of the scope as text"),
            std::string::npos);
  EXPECT_NE(body_error("with scope(\"a b\"):\n  y = 1").find("letters, digits and '_'"),
            std::string::npos);
  EXPECT_NE(body_error("with scope(\"a\")").find("':'"), std::string::npos);
  EXPECT_NE(body_error("with open(\"a\"):\n  y = 1").find("'with' is not supported"),
            std::string::npos);
}

TEST(Parser, Precedence) {
  EXPECT_EQ(expr("1 + 2 * 3 - 4"), "(1 + (2 * 3) - 4)");
  EXPECT_EQ(expr("-x ** 2"), "(- (x ** 2))");
  EXPECT_EQ(expr("2 ** -3 ** 2"), "(2 ** (- (3 ** 2)))");
  EXPECT_EQ(expr("a @ b / c // d % e"), "(a @ b / c // d % e)");
  EXPECT_EQ(expr("not a == b and c or d"), "(((not (a == b)) and c) or d)");
  EXPECT_EQ(expr("a < b <= c"), "(a < b <= c)");
  EXPECT_EQ(expr("a not in b"), "(a not in b)");
  EXPECT_EQ(expr("a is none or b is not None"), "((a is none) or (b is not none))");
  EXPECT_EQ(expr("a if b else c if d else e"), "(a if b else (c if d else e))");
  EXPECT_EQ(expr("x.shape[1] != 4 * mid"), "(x.shape[1] != (4 * mid))");
  EXPECT_EQ(expr("f(a, b)(c).d[e]"), "f(a, b)(c).d[e]");
  EXPECT_EQ(expr("(a + b) * c"), "((a + b) * c)");
}

TEST(Parser, AtomsAndIndices) {
  EXPECT_EQ(expr("[1_000, 0x10, 1e-4, .5, 5., true, None]"),
            "[1000, 16, 1e-04, 0.5, 5, true, none]");
  EXPECT_EQ(expr("x[1:2, ..., none, ::-1, i, :]"), "x[1:2, ..., none, ::(- 1), i, :]");
  EXPECT_EQ(expr("(1,)"), "(1,)");
  EXPECT_EQ(expr("()"), "()");
  EXPECT_EQ(expr("a, b"), "(a, b)");
  EXPECT_EQ(expr("'it\\'s\\n' + \"q\\\"\""), "('it's\n' + 'q\"')");
  EXPECT_EQ(expr("f(x, 3, bias=false,)"), "f(x, 3, bias=false)");
  EXPECT_EQ(expr("9223372036854775807"), "9223372036854775807");
}

TEST(Parser, Statements) {
  EXPECT_EQ(body("y, (h, c) = lstm(x, 128)\nx[i] = v\nz += 1\nx[0] @= w\na = b = 1"),
            "(y, (h, c)) = lstm(x, 128)\nx[i] = v\nz += 1\nx[0] @= w\na = b = 1\n");
  EXPECT_EQ(body("if a:  # note\n  x = 1\nelif b: x = 2\nelse:\n  if c:\n    pass\nreturn x, y"),
            "if a:\n  x = 1\nelif b:\n  x = 2\nelse:\n  if c:\n    pass\nreturn (x, y)\n");
  EXPECT_EQ(body("for i, (a, b) in enumerate(l):\n  while a < b:\n    break\n  continue\nreturn"),
            "for (i, (a, b)) in enumerate(l):\n  while (a < b):\n    break\n  continue\nreturn\n");
  EXPECT_EQ(body("x = f(a,\n    b,  # why\n  c)\n\n# end\ny = [1,\n2]"),
            "x = f(a, b, c)\ny = [1, 2]\n");
  EXPECT_EQ(body("x = 1 + \\\n  2"), "x = (1 + 2)\n");
  EXPECT_EQ(body("for i in range(3):\n  x = i\n  # comment at the end\n"),
            "for i in range(3):\n  x = i\n");
}

TEST(Parser, NumbersCallSitesByText) {
  const Body parsed = parse_body(scalar("y = relu(conv2d(conv2d(x, 1), 2))\ny = y.linear(3)"));
  ASSERT_EQ(parsed.sites.size(), 4u);
  EXPECT_EQ(parsed.sites[0].callee, "relu");
  EXPECT_EQ(parsed.sites[1].callee, "conv2d");
  EXPECT_EQ(parsed.sites[3].callee, "linear");
  EXPECT_EQ(assigned_names(parsed.statements), std::vector<std::string>{"y"});
}

TEST(Parser, PointsIntoTheFile) {
  EXPECT_EQ(body_error("x = 1\ny = conv2d(x, 3 x)"),
            "f.yaml:3:19: expected ')' after the arguments of 'conv2d', found 'x'");
  EXPECT_EQ(body_error("x = (1"), "f.yaml:2:7: '(' is never closed");
  EXPECT_EQ(body_error("x = [1)"), "f.yaml:2:9: ')' does not close the '[' of line 2, column 7");
  EXPECT_EQ(body_error("if a:\nx = 1"),
            "f.yaml:3:3: expected an indented line after the condition of 'if', found 'x'");
  EXPECT_EQ(body_error("x = 1\n  y = 2"),
            "f.yaml:3:5: this line is indented more than the one above");
  EXPECT_EQ(body_error("if a:\n    x = 1\n  y = 2"),
            "f.yaml:4:5: this line's indentation matches no line above it");
  EXPECT_EQ(body_error("break"), "f.yaml:2:3: 'break' outside a loop");
  EXPECT_EQ(body_error("else:\n  x = 1"),
            "f.yaml:2:3: 'else' without its 'if' at this indentation");
  EXPECT_EQ(
      error_of([] {
        parse_body(config::parse_document("m:\n  x = 1\n  y = 2\n", "f.yaml").entries[0].value);
      }),
      "f.yaml:3:3: expected the end of the line, found 'y' (a body of several lines needs "
      "'|' after its key)");
}

TEST(Parser, RejectsWhatIsNotTheLanguage) {
  for (const char* bad : {"def f(x): return x",
                          "import os",
                          "x = lambda y: y",
                          "x: int = 3",
                          "x = {1: 2}",
                          "x = [i for i in y]",
                          "f(*args)",
                          "f(**kw)",
                          "f(a=1, 2)",
                          "f(a=1, a=2)",
                          "x.y = 1",
                          "f(x) = 1",
                          "1 = x",
                          "true = 1",
                          "training = 1",
                          "x = 1; y = 2",
                          "x = a && b",
                          "x = !a",
                          "x = a & b",
                          "x = y is z",
                          "x = 'abc",
                          "x = 1__0",
                          "x = 1_",
                          "x = 12ab",
                          "x = 007",
                          "x = 0x",
                          "x = 99999999999999999999",
                          "x = 1e999",
                          "x = 'a\\q'",
                          "x[]",
                          "x = ...",
                          "for x: y",
                          "while: x",
                          "for i in x:\n  y = 1\nelse:\n  z = 1",
                          "x +",
                          "x = ",
                          "(",
                          "f(x",
                          "if x: if y: z = 1",
                          "x ++",
                          "a b",
                          "return return",
                          "x = $y",
                          "x := 1",
                          "x, y += 1",
                          "f() += 1",
                          "del x",
                          "assert",
                          "assert = 1",
                          "assert x, 'a', 'b'",
                          "y = assert x",
                          "a = () = 1",
                          "with x: y = 1",
                          "1.2.3",
                          "x = 'a' 'b'",
                          "f(if=1)"}) {
    const std::string message = body_error(bad);
    EXPECT_TRUE(message.starts_with("f.yaml:")) << bad << " gave " << message;
  }
  EXPECT_NE(expr_error("").find("found nothing"), std::string::npos);
  EXPECT_NE(expr_error("a = 1").find("expected the end of the expression"), std::string::npos);
  EXPECT_NE(body_error("# only a comment").find("without a statement"), std::string::npos);
}

TEST(Parser, ReadsAssertAsACall) {
  for (const char* form : {"assert x > 0, 'small'", "assert(x > 0, 'small')"}) {
    const Body body = parse_body(scalar(form));
    const Expr& call = *body.statements.at(0).value;
    ASSERT_EQ(call.kind, ExprKind::kCall) << form;
    EXPECT_EQ(call.children[0]->text, "assert_true");
    ASSERT_EQ(call.arguments.size(), 2u) << form;
    EXPECT_EQ(call.arguments[0].value->kind, ExprKind::kCompare);
    EXPECT_EQ(call.arguments[1].value->text, "small");
    EXPECT_EQ(body.sites.at(0).callee, "assert_true");
  }
  EXPECT_EQ(parse_body(scalar("assert (x > 0)")).statements[0].value->arguments.size(), 1u);
}

TEST(Parser, BoundsHostileTexts) {
  const auto repeat = [](const std::string& part, int n) {
    std::string out;
    for (int i = 0; i < n; ++i) out += part;
    return out;
  };
  EXPECT_NE(expr_error(repeat("(", 50000) + "1" + repeat(")", 50000)).find("200"),
            std::string::npos);
  EXPECT_NE(expr_error(repeat("-", 50000) + "1").find("200"), std::string::npos);
  EXPECT_NE(expr_error(repeat("not ", 50000) + "1").find("200"), std::string::npos);
  EXPECT_NE(expr_error("2" + repeat("**2", 50000)).find("200"), std::string::npos);
  EXPECT_NE(expr_error("x" + repeat(".a", 50000)).find("200"), std::string::npos);
  EXPECT_NE(expr_error(repeat("1 if a else ", 50000) + "1").find("200"), std::string::npos);
  EXPECT_EQ(parse_expression(quoted("1" + repeat("+1", 50000)))->children.size(), 50001u);
  EXPECT_EQ(parse_expression(quoted("1" + repeat(" and 1", 5000)))->children.size(), 5001u);
  std::string nested;
  for (int i = 0; i < 300; ++i) nested += std::string(static_cast<size_t>(i), ' ') + "if a:\n";
  EXPECT_NE(body_error(nested + std::string(300, ' ') + "x = 1").find("200"), std::string::npos);
  std::string elifs = "if a:\n  x = 1\n" + repeat("elif a:\n  x = 1\n", 5000);
  EXPECT_EQ(parse_body(scalar(elifs)).statements[0].branches.size(), 5001u);
  std::string mixed = "x";
  for (int i = 0; i < 150; ++i) mixed = "f(" + mixed + repeat(".a", 150) + ")";
  EXPECT_NE(expr_error(mixed).find("200"), std::string::npos);
}

TEST(Parser, SignaturesAndTypes) {
  const Signature s = parse_signature(quoted("conv_bn(x, channels, stride=1, act=relu)"));
  EXPECT_EQ(s.name, "conv_bn");
  ASSERT_EQ(s.parameters.size(), 4u);
  EXPECT_EQ(text(*s.parameters[2].fallback), "1");
  for (const char* bad : {"f", "f(x", "f(x, x)", "f(x=1, y)", "if(x)", "f(none)", "f(x) y", "3(x)",
                          "f(x, *y)", "f(training)"}) {
    EXPECT_TRUE(error_of([&] { parse_signature(quoted(bad)); }).starts_with("f.yaml:1:")) << bad;
  }
  const InputType t = parse_input_type(quoted("float32[batch, 1, 2 * rows]"));
  EXPECT_EQ(t.dtype, "float32");
  EXPECT_EQ(text(*t.shape[2]), "(2 * rows)");
  EXPECT_EQ(parse_input_type(quoted("int64[]")).shape.size(), 0u);
  for (const char* bad : {"float32", "[1]", "float32[1", "float32[1] x", "float32(1)", ""}) {
    EXPECT_TRUE(error_of([&] { parse_input_type(quoted(bad)); }).starts_with("f.yaml:1:")) << bad;
  }
}

}  // namespace
}  // namespace paddle::lang
