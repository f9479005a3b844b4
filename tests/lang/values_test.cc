// Values of expressions on types only: numbers and lists, text, distributions, indexing.

#include <gtest/gtest.h>

#include "support/evaluate_types.h"

namespace paddle::lang {
namespace {

using namespace testing_support;

TEST(Evaluator, NumbersAndLists) {
  // Each line must hold: the model returns a shape built from the check.
  for (const char* truth : {"7 // 2 == 3 and -7 // 2 == -4 and -7 % 3 == 2",
                            "7 / 2 == 3.5",
                            "2 ** 10 == 1024",
                            "2 ** -1 == 0.5",
                            "1 < 2 < 3",
                            "not (1 < 2 > 3)",
                            "[1, 2] + [3] == [1, 2, 3]",
                            "[0] * 3 == [0, 0, 0]",
                            "len([1, 2]) == 2",
                            "max(1, 5, 3) == 5 and min([4, 2]) == 2",
                            "round(2.5) == 2 and round(3.5) == 4",
                            "sum([1, 2, 3]) == 6",
                            "int(3.9) == 3 and float(2) == 2.0",
                            "abs(-3) == 3",
                            "2 in [1, 2]",
                            "'a' + 'b' == 'ab'",
                            "none is none",
                            "x is not none",
                            "[1, 2, 3][-1] == 3",
                            "[1, 2, 3][::-1] == [3, 2, 1]",
                            "[1, 2, 3, 4][1:3] == [2, 3]",
                            "(1, 2) == (1, 2)",
                            "x.ndim == 2",
                            "x.dtype == 'float32'",
                            "x.shape[1] == 4",
                            "cfg.depth == 2",
                            "cfg.act == relu",
                            "width == 8 and sizes[1] == 5",
                            "x.shape[0] == n",
                            "n * 2 // 2 == n",
                            "(n + 1) * 2 == 2 * n + 2",
                            "n >= 1",
                            "floor(2.7) == 2 and ceil(2.1) == 3",
                            "exp(0) == 1",
                            "bool(3)",
                            "list_test()[0] == 1",
                            "static(n) == 7",
                            "range(5)[2] == 2",
                            "zip([1], [2])[0] == (1, 2)",
                            "(3 if true else 4) == 3",
                            "0x10 == 16 and 1_000 == 1000",
                            "none == none and not none",
                            "not training",
                            "round(1.25, 1) == 1.2",
                            "sqrt(16) == 4 and log(1) == 0",
                            "calculate_gain('relu') == sqrt(2)",
                            "calculate_gain('leaky_relu', 1) == 1",
                            "calculate_gain('leaky_relu', param=1) == 1",
                            "calculate_gain('tanh') == 5 / 3",
                            "finfo(x.dtype).eps == 1.1920928955078125e-07",
                            "finfo('float16').max == 65504 and finfo('float16').min == -65504",
                            "finfo('bfloat16').max == 3.3895313892515355e+38",
                            "finfo('double').tiny == 2.2250738585072014e-308",
                            "iinfo('int8').min == -128 and iinfo('uint8').max == 255",
                            "iinfo('int64').max == 9223372036854775807",
                            "iinfo('int64').min + 1 == 0 - iinfo('int64').max",
                            "[] or [1]",
                            "x.shape == [n, 4]"}) {
    const std::string text = std::string(
                                 "inputs: {x: 'float32[n, 4]'}\nparams: {width: 8, sizes: [3, 5], "
                                 "cfg: {depth: 2, act: relu}}\n") +
                             "blocks:\n  list_test(): |\n    l = []\n    l.append(1)\n    "
                             "l.append(2)\n    y = l.pop()\n    return l\n" +
                             "model: |\n  if " + truth + ":\n    y = relu(x)\n  return y\n";
    EXPECT_EQ(run_text(text).error, "") << truth;
  }
}

TEST(Evaluator, Text) {
  const Result run = run_text(R"(
inputs: {x: "float32[2]"}
model: |
  words = "One two\tTHREE".lower().split()
  parts = "a::b::".split("::")
  same = words[2] == "three" and "x1".upper() == "X1" and parts[2] == ""
  return zeros([len(words), len(parts), 7 if same else 1]) + x.sum()
)");
  EXPECT_EQ(run.error, "");
  EXPECT_EQ(run.types(), "output float32[3, 3, 7]\n");
  const auto error = [](const std::string& call) {
    return run_text("inputs: {x: \"float32[2]\"}\nmodel: |\n  return x * len(" + call + ")\n")
        .error;
  };
  EXPECT_NE(error("\"a\".lowr()").find("a text has no 'lowr' (did you mean 'lower'?)"),
            std::string::npos);
  EXPECT_NE(error("\"a\".split(\"\")").find("split takes a separator"), std::string::npos);
  EXPECT_NE(error("\"a\".upper(1)").find("upper takes no arguments"), std::string::npos);
}

TEST(Evaluator, Distributions) {
  const auto error = [](const std::string& body) {
    return run_text("inputs: {x: \"float32[n, 2]\"}\nmodel: |\n  return " + body + "\n").error;
  };
  EXPECT_EQ(error("normal(x, 1).log_prob(x)"), "");
  EXPECT_EQ(error("normal(x, 1) + gamma(x, 2).rsample()"), "");
  EXPECT_EQ(error("uniform([2], min=0, max=1) + uniform(0, 1).sample([2])"), "");
  EXPECT_NE(error("normal(x, 1).log_porb(x)").find("log_porb"), std::string::npos);
  EXPECT_NE(error("gamma(x, 1).log_porb(x)").find("did you mean 'log_prob'?"), std::string::npos);
  EXPECT_NE(error("gamma(x, 1).mean()").find("'mean' is not a method: write .mean"),
            std::string::npos);
  EXPECT_NE(error("gamma(x, 1).entropy").find("'entropy' is a method"), std::string::npos);
  EXPECT_NE(error("gamma(x, 1) * 2").find("the distribution 'gamma'"), std::string::npos);
  EXPECT_NE(error("gamma(x)").find("needs the parameter 'rate'"), std::string::npos);
  EXPECT_NE(error("gamma(x, ratio=2)").find("did you mean 'rate'?"), std::string::npos);
  EXPECT_NE(error("gamma(x, 1).kl_divergence(normal(0, 1))").find("there is no rule"),
            std::string::npos);
  EXPECT_NE(error("poisson(rate=x).rsample()").find("rsample does not exist"), std::string::npos);
  EXPECT_NE(error("gama(x, 1)").find("did you mean 'gamma'?"), std::string::npos);
  EXPECT_NE(error("exp_transfom().forward(x)").find("did you mean 'exp_transform'?"),
            std::string::npos);
}

TEST(Evaluator, ImaginaryNumbers) {
  for (const char* body : {"return x * (1 - 2.5e-1j)", "return abs(x * 1j) + 2j * 3"}) {
    const Result run = run_body(body);
    EXPECT_EQ(run.error, "") << body;
    for (const NamedTensor& o : run.outputs)
      EXPECT_EQ(o.tensor.type().text(), "complex64[n, 4]") << body;
  }
  EXPECT_NE(run_body("return x + 2jk").error.find("'2jk' is not a number"), std::string::npos);
}

TEST(Evaluator, NumberErrors) {
  for (const auto& [source, part] : std::vector<std::pair<const char*, const char*>>{
           {"y = 9223372036854775807 + 1", "64 bits"},
           {"y = 2 ** 64", "64 bits"},
           {"y = 1 // 0", "division by zero"},
           {"y = 1 / 0", "division by zero"},
           {"y = n / 2", "use '//'"},
           {"y = x[9]", ""},
           {"if n > 3:\n  y = x", "depends on the input"},
           {"for i in range(n):\n  y = x", "static(n)"},
           {"for i in x:\n  y = x", "a loop over a tensor of 'n' elements"},
           {"y = z\nz = x", "read before it is assigned"},
           {"if false:\n  y = x\nz = y", "read before it is assigned"},
           {"y = [1, 2][5]", "index 5 of a list of 2"},
           {"a, b = [1, 2, 3]\ny = x", "expected 2 values to unpack, found 3"},
           {"y = 'a' + 1", "'+'"},
           {"y = relu(x, 3, 4, 5)", "relu"},
           {"y = conv2d(x)", "'out_channels' is missing"},
           {"y = nosuch(x)", "unknown operation"},
           {"y = x.nosuch()", "no 'nosuch'"},
           {"y = x.shap", "did you mean 'shape'"},
           {"y = cfg.dept", "did you mean 'depth'"},
           {"y = width(x)", "cannot be called"},
           {"y = range(10000000)", "million"},
           {"i = 0\nwhile true:\n  i += 1\ny = x", "million"},
           {"y = [0] * 2000000", "million"},
           {"l = []\nl.append(l)\ny = x", "cannot hold itself"},
           {"y = x[0, 0, 0]", "an index of 3 axes"},
           {"y = concat([x], 7)", "concat"},
           {"return x, x", "'outputs' must name"},
           {"y = x", "returns nothing"},
           {"y = x @ none", "none"},
           {"return relu", "output"},
           {"y = int('3')", "int"},
           {"y = x.shape[7]", "index 7"},
           {"y = update(x, x)", "what state"},
           {"y = static(x)", "tensor"}}) {
    const Result run = run_body(source);
    EXPECT_TRUE(run.error.starts_with("m.yaml:")) << source << " gave " << run.error;
    EXPECT_NE(run.error.find(part), std::string::npos) << source << " gave " << run.error;
  }
}

TEST(Evaluator, Indexing) {
  for (const auto& [source, type] :
       std::vector<std::pair<const char*, const char*>>{{"x[:, 0]", "float32[n]"},
                                                        {"x[0]", "float32[4]"},
                                                        {"x[-1]", "float32[4]"},
                                                        {"x[..., 1:3]", "float32[n, 2]"},
                                                        {"x[:, none]", "float32[n, 1, 4]"},
                                                        {"x[:, ::2]", "float32[n, 2]"},
                                                        {"x[:, ::-1]", "float32[n, 4]"},
                                                        {"x[none, ..., -1]", "float32[1, n]"},
                                                        {"x[:, -1]", "float32[n]"}}) {
    const Result run = run_body(std::string("return ") + source);
    EXPECT_EQ(run.error, "") << source;
    EXPECT_EQ(run.types(), std::string("output ") + type + "\n") << source;
  }
  EXPECT_EQ(run_body("x[:, 0] = 1\nx[0] = x[0] * 2\nx[:, 1] += 3\nreturn x").error, "");
  EXPECT_NE(run_body("return x[:, 4]").error.find("index 4 is outside the axis of size 4"),
            std::string::npos);
}

TEST(Evaluator, IndexingByTensors) {
  for (const auto& [source, type] : std::vector<std::pair<const char*, const char*>>{
           {"x[k]", "float32[4]"},
           {"x[[0, 2]]", "float32[2, 4]"},
           {"x[:, [[0, 1], [2, 3]]]", "float32[n, 2, 2]"},
           {"x[[0, 1], [2, 3]]", "float32[2]"},
           {"x[x[:, 0] > 0].sum(0)", "float32[4]"}}) {
    const Result run = run_body(std::string("return ") + source);
    EXPECT_EQ(run.error, "") << source;
    EXPECT_EQ(run.types(), std::string("output ") + type + "\n") << source;
  }
  EXPECT_EQ(run_body("x[x > 0] = 0\nx[:, [0, 2]] = 7\nx[[0, 1]] += 1\nreturn x").error, "");
}

}  // namespace
}  // namespace paddle::lang
