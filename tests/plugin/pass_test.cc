// Passes of plug-ins: what they give takes the function's place only if it is a module with the
// same inputs, results and effects.

#include "plugin/pass_adapter.h"

#include <gtest/gtest.h>

#include <fstream>

#include "compiler/passes/rules/rule.h"
#include "ir/tracer.h"
#include "ops/core/call.h"
#include "partition/rules.h"
#include "plugin/host.h"
#include "plugin/plugin.h"
#include "runtime/compile.h"
#include "runtime/execute.h"

namespace paddle::plugin {
namespace {

/// Applied to the text by the pass of a test; static, since passes are C functions.
std::function<std::string(const std::string&)> edit;

paddle_status run_edit(paddle_call* call, const char* module) {
  const std::string out = edit(module);
  if (out == "fail") return host().fail(call, PADDLE_DATA, "no data\nfor it");
  host().write(call, out.c_str());
  return PADDLE_OK;
}

constexpr paddle_pass kPass = {
    sizeof(paddle_pass), PADDLE_STAGE_CANONICALIZE, "edit", nullptr, 0, 0, run_edit};
const PassContext kContext = {"acme 1.0.0", "acme.edit", &kPass};

std::shared_ptr<ir::Function> function_of(const std::string& body) {
  runtime::register_backends();
  return ir::parse(
             "module 'm' {\n  func 'f'(\n      %0 : float32[n, 2] 'x') {\n" + body + "  }\n}\n",
             "pass_test.txt")
      .functions[0];
}
const char* const kBody =
    "    %1 = exp(%0) : float32[n, 2]  // model.yaml:3:4\n    return %1 'y'\n";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from << " in\n" << text;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

TEST(PluginPass, ReplacesTheFunction) {
  const auto f = function_of(kBody);
  edit = [](const std::string& text) { return replaced(text, "exp(", "sin("); };
  run_plugin_pass(kContext, *f);
  EXPECT_EQ(f->name, "f");
  EXPECT_EQ(f->body.operations.front()->op->name(), "sin");
  EXPECT_EQ(f->body.operations.front()->location, "model.yaml:3:4");
}

TEST(PluginPass, LeavesItIfNothingIsWritten) {
  const auto f = function_of(kBody);
  const std::string before = ir::print(*f);
  edit = [](const std::string&) { return ""; };
  run_plugin_pass(kContext, *f);
  EXPECT_EQ(ir::print(*f), before);
}

TEST(PluginPass, ConstantsAreReferences) {
  auto f = std::make_shared<ir::Function>("f");
  const Array large = Array::zeros(DType::kF32, {2000});
  {
    ir::Tracer tracer(*f);
    const InterpreterScope scope(tracer);
    const Tensor x = tracer.input({ir::PortKind::kValue, "x"}, {DType::kF32, {2000}});
    tracer.output({ir::PortKind::kValue, "y"}, call_single(get_op("multiply"), {x, Tensor(large)},
                                                           default_attrs(get_op("multiply"))));
  }
  edit = [](const std::string& text) {
    EXPECT_LT(text.size(), 500u);
    return replaced(text, "multiply(", "add(");
  };
  run_plugin_pass(kContext, *f);
  const auto& operands = f->body.operations.front()->operands;
  ASSERT_TRUE(operands[1]->constant);
  EXPECT_EQ(operands[1]->constant->raw(), large.raw()) << "not copied";
  edit = [](const std::string& text) {
    return replaced(text, "at 'constant0'", "at '/etc/hostname'");
  };
  EXPECT_THROW(run_plugin_pass(kContext, *f), compiler::PassError);
}

TEST(PluginPass, PassErrorsAreRejectedWithTheirPlace) {
  struct Case {
    const char *from, *to, *message;
    int line;
  };
  const std::string body =
      "    %1 = exp(%0) : float32[n, 2]\n    %2 = abs(%1) : float32[n, 2]\n    return %2 'y'\n";
  for (const Case& c :
       {Case{"exp(%0)", "exp(%7)", "%7", 4}, Case{"exp(%0)", "exq(%0)", "exq", 4},
        Case{"abs(%1) : float32", "abs(%1) : float64", "result 0 is", 5},
        Case{"%0 : float32[n, 2] 'x'", "%0 : float32[n, 2] 'z'", "input 0 was value 'x'", 0},
        Case{"return %2 'y'", "return %2 'y', %1 'more'", "result 1 was nothing", 0},
        Case{"abs(%1)", "read_file() {path = '/etc/hostname'}", "", 0},
        Case{"module 'module'", "modul", "expected 'module'", 1}}) {
    const auto f = function_of(body);
    const std::string before = ir::print(*f);
    std::string given;
    edit = [&](const std::string& text) { return given = replaced(text, c.from, c.to); };
    try {
      run_plugin_pass(kContext, *f);
      ADD_FAILURE() << c.to << " was accepted";
    } catch (const compiler::PassError& e) {
      EXPECT_EQ(e.code(), ErrorCode::kModel);
      EXPECT_NE(e.message().find("the pass acme.edit of acme 1.0.0 gave no valid module"),
                std::string::npos);
      EXPECT_NE(e.message().find(c.message), std::string::npos) << e.what();
      EXPECT_EQ(e.location().file, "acme.edit");
      if (c.line) {
        EXPECT_EQ(e.location().line, c.line) << e.what();
      }
      EXPECT_EQ(e.text, given);
    }
    EXPECT_EQ(ir::print(*f), before) << "the function is as before";
  }
}

TEST(PluginPass, EffectsStayInOrder) {
  const auto f = function_of(
      "    %1 = print(%0) {message = 'one'} : float32[n, 2]\n"
      "    %2 = abs(%1) : float32[n, 2]\n    return %2 'y'\n");
  edit = [](const std::string& text) {
    return replaced(replaced(text, "print(%0)", "assign(%0)"), " {message = 'one'}", "");
  };
  if (!get_op("print").has(kEffect)) GTEST_SKIP() << "print has no effect";
  EXPECT_THROW(run_plugin_pass(kContext, *f), compiler::PassError);
}

TEST(PluginPass, FailuresKeepTheirStatus) {
  const auto f = function_of(kBody);
  edit = [](const std::string&) { return "fail"; };
  try {
    run_plugin_pass(kContext, *f);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kData);
    EXPECT_EQ(e.message(), "the pass acme.edit: no data for it");
  }
}

TEST(PluginPass, ObserversSeeWhatIsInvalid) {
  compiler::added_passes().add({added_pass(kContext)}, {"pass_test.cc"});
  const auto f = function_of(kBody);
  edit = [](const std::string&) { return "nonsense"; };
  std::string pass, text;
  EXPECT_THROW(runtime::optimize(*f, {},
                                 {.stage = {},
                                  .invalid =
                                      [&](const auto& name, const auto& t) {
                                        pass = name;
                                        text = t;
                                      }}),
               compiler::PassError);
  EXPECT_EQ(pass, "acme.edit");
  EXPECT_EQ(text, "nonsense");
  edit = [](const std::string&) {
    ADD_FAILURE() << "it may not run";
    return "";
  };
  runtime::optimize(*function_of(kBody), {.exact = true});
  runtime::optimize(*function_of(kBody), {.added = std::vector<std::string>{}});
  const auto training = ir::parse(
                            "module 'm' {\n  parameter 'w' : float32[2] = 'zeros'\n  func 'f'(\n"
                            "      %0 : float32[2] parameter 'w') {\n"
                            "    %1 = exp(%0) : float32[2]\n    return %1 parameter 'w'\n  }\n}\n",
                            "pass_test.txt")
                            .functions[0];
  runtime::optimize(*training);
  compiler::added_passes().remove({"acme.edit"});
}

TEST(PluginRules, AreTriedFirstAndNameOperationsOfPlugins) {
  const std::string path = testing::TempDir() + "ruled.plugin.yaml";
  std::ofstream(path) << R"(plugin: {name: ruled, version: 1.0.0, abi: 1}
operations:
  gated:
    signature: (x:T) -> out
    doc: x times its sigmoid.
    dtypes: {x: float}
    body: x * sigmoid(x)
    sharding: "[rows, ...] -> [rows, ...]"
rules: |
  # before the standard one, which is for silu
  gated: multiply(x, sigmoid(x)) -> ruled.gated(x)
  back: ruled.gated(abs(x)) -> silu(abs(x))
)";
  const Plugin& plugin = load(path);
  EXPECT_EQ(plugin.rules, (std::vector<std::string>{"ruled.gated", "ruled.back"}));
  const auto sets = passes::added_rules().all();
  ASSERT_FALSE(sets.empty());
  EXPECT_EQ(sets.back()->rules[0].replacement.op->name(), "ruled.gated");
  const auto f = function_of(
      "    %1 = sigmoid(%0) : float32[n, 2]\n    %2 = multiply(%0, %1) : float32[n, 2]\n"
      "    return %2 'y'\n");
  std::string rewritten;
  runtime::optimize(*f, {.fusion = true}, {[&](const ir::Function& now, const std::string& stage) {
    if (stage == "rewrite") rewritten = ir::print(now);
  }});
  // Without a kernel the operation becomes its body again.
  EXPECT_EQ(rewritten.find("silu"), std::string::npos) << rewritten;
  passes::added_rules().remove({"ruled"});
}

TEST(PluginRules, ErrorsHaveTheirLine) {
  const std::string path = testing::TempDir() + "misruled.plugin.yaml";
  std::ofstream(path) << "plugin: {name: misruled, version: 1.0.0, abi: 1}\nrules: |\n"
                         "  a: abs(x) -> relu(x)\n  b: abs(x) -> relux(x)\n";
  try {
    load(path);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kConfig);
    EXPECT_EQ(e.location().line, 4) << e.what();
    EXPECT_NE(e.message().find("relux"), std::string::npos);
  }
}

}  // namespace
}  // namespace paddle::plugin
