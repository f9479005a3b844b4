// Declared rewrites: every standard rule finds its own pattern and computes the same, what else
// reads inside a pattern prevents it, and wrong rules are rejected with their place.

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "compiler/passes/passes.h"
#include "ir/tracer.h"
#include "ops/core/call.h"
#include "runtime/executable.h"
#include "runtime/execute.h"

namespace paddle {
namespace {

using passes::Rule;
using passes::RuleAttr;
using passes::RuleCondition;
using passes::Term;

Array values(const Dims& shape, double seed) {
  Array a = Array::zeros(DType::kF32, shape);
  for (int64_t i = 0; i < a.size(); ++i)
    a.data<float>()[i] = static_cast<float>(std::sin(seed + 1.7 * static_cast<double>(i)) * 2);
  return a;
}

/// The pattern of a rule as a function of its free names.
class PatternFunction {
 public:
  explicit PatternFunction(const Rule& rule)
      : function(std::make_shared<ir::Function>("f")), rule_(rule), tracer_(*function) {
    const InterpreterScope scope(tracer_);
    tracer_.output({ir::PortKind::kValue, "y"}, term(rule.pattern));
  }
  std::shared_ptr<ir::Function> function;
  std::vector<Array> inputs;

 private:
  Tensor term(const Term& t) {
    switch (t.kind) {
      case Term::Kind::kAbsent:
        return {};
      case Term::Kind::kNumber:
        return Tensor(Array::from<float>({static_cast<float>(t.number)}, {}));
      case Term::Kind::kScalar:
        return Tensor(Array::from<float>({t.name == "e" ? 1e-3f : 0.25f}, {}));
      case Term::Kind::kTensor:
        break;
      case Term::Kind::kCall: {
        Tensors operands;
        for (const Term& o : t.operands) operands.push_back(term(o));
        Attrs attrs = default_attrs(*t.op);
        attrs.list_sizes = t.list_sizes;
        for (const RuleAttr& a : t.attrs)
          attrs[static_cast<size_t>(a.index)] =
              a.kind == RuleAttr::Kind::kName ? named(a) : a.value;
        const Tensor out = call_single(*t.op, std::move(operands), std::move(attrs));
        return t.name.empty() ? out : tensors_.emplace(t.name, out).first->second;
      }
    }
    const auto known = tensors_.find(t.name);
    if (known != tensors_.end()) return known->second;
    bool constant = false;
    Dims shape = {2, 4, 8, 8};
    if (t.name == "mask") shape[1] = 1;
    if (t.name == "c" || t.name == "s") shape[3] = 4;  // angles of pairs
    for (const RuleCondition& c : rule_.conditions) {
      if (c.name != t.name) continue;
      if (c.kind == RuleCondition::Kind::kConstant) {
        constant = true;
        if (shape.size() == 4) shape = {8};
      } else {
        shape.assign(static_cast<size_t>(c.rank), 8);
      }
    }
    const Array array = values(shape, static_cast<double>(tensors_.size()));
    Tensor out(array);
    if (!constant) {
      out = tracer_.input({ir::PortKind::kValue, t.name}, {DType::kF32, to_shape(shape)});
      inputs.push_back(array);
    }
    return tensors_.emplace(t.name, out).first->second;
  }
  static AttrValue named(const RuleAttr& attr) {
    if (attr.name == "e") return 1e-3;
    if (attr.name == "n" || attr.name == "z" || attr.name == "f") return std::vector<int64_t>{8};
    if (attr.name == "h") return std::vector<int64_t>{4};
    if (attr.name == "u") return std::vector<int64_t>{2, 4, 8, 4, 1};
    if (attr.name == "v") return std::vector<int64_t>{2, 4, 8, 8};
    return std::vector<int64_t>{0, 3, 1, 2};  // a permutation
  }

  const Rule& rule_;
  ir::Tracer tracer_;
  std::map<std::string, Tensor> tensors_;
};

/// The rules of the compiled mode, of all root operations.
const std::vector<Rule>& all_standard_rules() {
  static const std::vector<Rule> rules = [] {
    std::vector<Rule> out;
    for (const Op* root : all_ops()) {
      const auto some = passes::standard_rules(*root);
      out.insert(out.end(), some.begin(), some.end());
    }
    return out;
  }();
  return rules;
}

class StandardRules : public testing::TestWithParam<size_t> {};

TEST_P(StandardRules, FindTheirPatternAndComputeTheSame) {
  runtime::register_backends();
  const Rule& rule = all_standard_rules()[GetParam()];
  PatternFunction before(rule), after(rule);
  passes::apply_rules(*after.function, {rule});
  ir::verify(*after.function);
  const std::string text = ir::print(*after.function);
  EXPECT_NE(text, ir::print(*before.function)) << rule.name;
  EXPECT_NE(text.find(str(" = ", rule.replacement.op->name(), "(")), std::string::npos) << text;
  runtime::Executable plain(before.function), rewritten(after.function);
  const Array a = plain.run(before.inputs)[0], b = rewritten.run(after.inputs)[0];
  ASSERT_EQ(a.shape, b.shape);
  for (int64_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a.number(i), b.number(i), 2e-5) << rule.name;
}

TEST_P(StandardRules, FindTheirPatternAmongAll) {
  // A rule before it may not take a part of the pattern away.
  runtime::register_backends();
  const Rule& rule = all_standard_rules()[GetParam()];
  PatternFunction all(rule), alone(rule);
  passes::apply_rules(*all.function, all_standard_rules());
  passes::apply_rules(*alone.function, {rule});
  passes::apply_rules(*alone.function, all_standard_rules());
  EXPECT_EQ(ir::print(*all.function), ir::print(*alone.function)) << rule.name;
}

INSTANTIATE_TEST_SUITE_P(All, StandardRules, testing::Range<size_t>(0, all_standard_rules().size()),
                         [](const auto& info) { return all_standard_rules()[info.param].name; });

std::string rewritten(const std::string& body, const std::string& rules) {
  ir::Module m =
      ir::parse("module 'm' {\n  func 'f'(\n      %0 : float32[n, 4] 'x') {\n" + body + "  }\n}\n",
                "rewrite_test.txt");
  ir::verify(m);
  passes::apply_rules(*m.functions[0], passes::parse_rules(rules, "my.rules"));
  ir::verify(m);
  return ir::print(m);
}

TEST(RewriteRules, KeepsSharedValues) {
  const std::string rule = "silu: multiply(x, sigmoid(x)) -> silu(x)\n";
  const std::string body =
      "    %1 = sigmoid(%0) : float32[n, 4]\n"
      "    %2 = multiply(%1, %0) : float32[n, 4]\n";
  EXPECT_NE(rewritten(body + "    return %2 'y'\n", rule).find("= silu(%0)"), std::string::npos);
  // The sigmoid is a result as well.
  EXPECT_EQ(rewritten(body + "    return %2 'y', %1 's'\n", rule).find("silu"), std::string::npos);
}

TEST(RewriteRules, ANameIsBoundToOneValue) {
  const std::string text = rewritten(
      "    %1 = sigmoid(%0) : float32[n, 4]\n"
      "    %2 = tanh(%0) : float32[n, 4]\n"
      "    %3 = multiply(%1, %2) : float32[n, 4]\n"
      "    return %3 'y'\n",
      "silu: multiply(x, sigmoid(x)) -> silu(x)\n");
  EXPECT_EQ(text.find("silu"), std::string::npos) << text;
}

TEST(RewriteRules, MatchesNumbersAndAttributes) {
  const auto clipped = [](const std::string& limit) {
    return rewritten("    %1 = clip(%0) {min = 0.0, max = " + limit +
                         "} : float32[n, 4]\n"
                         "    return %1 'y'\n",
                     "relu6: clip(x, min=0, max=6) -> relu6(x)\n");
  };
  EXPECT_NE(clipped("6.0").find("relu6"), std::string::npos);
  EXPECT_EQ(clipped("5.0").find("relu6"), std::string::npos);
}

TEST(RewriteRules, KeepsTypes) {
  // The sum over an axis has another shape than the operation that it would replace.
  const std::string text = rewritten(
      "    %1 = tanh(%0) : float32[n, 4]\n"
      "    return %1 'y'\n",
      "wrong: tanh(x) -> sum(x, axis=0)\n");
  EXPECT_NE(text.find("= tanh(%0)"), std::string::npos) << text;
  EXPECT_EQ(text.find("sum"), std::string::npos) << text;
}

TEST(RewriteRules, StopsRulesThatDoNotTerminate) {
  EXPECT_THROW(rewritten("    %1 = relu(%0) : float32[n, 4]\n    return %1 'y'\n",
                         "more: relu(x) -> relu(tanh(x))\n"),
               Error);
}

TEST(RewriteRules, ListsAndEqualities) {
  const std::string rule =
      "swap: concat([strided_slice(x, axes=[1], starts=:h, ends=[4], strides=[1]), "
      "strided_slice(x, axes=[1], starts=[0], ends=:h, strides=[1])], axis=1)\n"
      "  -> relu(x) where :h == last(x) / 2\n";
  const auto swapped = [&](const std::string& at, const std::string& left,
                           const std::string& right) {
    return rewritten("    %1 = strided_slice(%0) {axes = [1], starts = [" + at +
                         "], ends = [4], strides = [1]} : float32[n, " + left +
                         "]\n    %2 = strided_slice(%0) {axes = [1], starts = [0], ends = [" + at +
                         "], strides = [1]} : float32[n, " + right +
                         "]\n    %3 = concat([%1, %2]) {axis = 1} : float32[n, 4]\n"
                         "    return %3 'y'\n",
                     rule);
  };
  EXPECT_NE(swapped("2", "2", "2").find("= relu(%0)"), std::string::npos);
  EXPECT_EQ(swapped("1", "3", "1").find("relu"), std::string::npos);
}

TEST(RewriteRules, ErrorsHaveALine) {
  const auto rejection = [](const std::string& text) {
    try {
      passes::parse_rules(text, "my.rules");
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kConfig);
      EXPECT_EQ(error.location().file, "my.rules");
      return str(error.location().line, ": ", error.message());
    }
    return std::string("nothing");
  };
  EXPECT_EQ(rejection("# a comment\n\na: sigmoidd(x) -> relu(x)\n"),
            "3: there is no operation 'sigmoidd' (did you mean 'sigmoid'?)");
  EXPECT_EQ(rejection("a: relu(x) -> tanh(y)\n"), "1: the pattern does not bind 'y'");
  EXPECT_EQ(rejection("a: softmax(x, axes=1) -> x\n"),
            "1: softmax has no attribute 'axes' (did you mean 'axis'?)");
  EXPECT_EQ(rejection("a: relu(x)\n"), "1: expected '->', found ''");
  EXPECT_EQ(rejection("a: relu(x, y) -> x\n"), "1: relu has 1 operands, found more");
  EXPECT_EQ(
      rejection("a: relu(x) -> tanh(x) where even(x)\n"),
      "1: 'even(x)' is not a condition; there are constant(x), rank(x) == n and equalities such as "
      ":h == last(x) / 2");
  EXPECT_EQ(rejection("a: concat(x) -> x\n"), "1: expected '[', found 'x) -> x'");
  EXPECT_EQ(rejection("a: relu(x) -> tanh(x) where :n == 2\n"), "1: the pattern does not bind 'n'");
  EXPECT_EQ(rejection("a: relu(x) -> tanh(x)\na: tanh(x) -> relu(x)\n"),
            "2: two rules are called 'a'");
  EXPECT_EQ(rejection("a: x -> relu(x)\n"), "1: a pattern must be an operation");
  EXPECT_EQ(rejection("a: relu(" + std::string(100, '(') + "\n").substr(0, 11), "1: expected");
}

}  // namespace
}  // namespace paddle
