// Model files: sections, includes, variants, overrides, and what is rejected from the text only.
#include "lang/syntax/program.h"

#include <cstdio>
#include <filesystem>
#include <fstream>

#include <unistd.h>

#include <gtest/gtest.h>

#include "lang/syntax/syntax_text.h"

namespace paddle::lang {
namespace {

constexpr const char* kResnet = R"(name: resnet
params: {depth: [3, 4, 6, 3], width: 64, classes: 1000}
inputs:
  image: float32[batch, 3, rows, columns]
blocks:
  conv_bn(x, channels, kernel, stride=1): |
    return batch_norm(conv2d(x, channels, kernel, stride=stride, padding=kernel // 2, bias=false))
  head(x):
    - relu
    - linear: {out_features: classes, name: head}
      as: y
model: |
  x = max_pool2d(relu(conv_bn(image, width, 7, 2)), 3, 2, padding=1)
  logits = head(mean(x, [2, 3]))
outputs: [logits]
variants: {s: {width: 32}, l: {width: 128, depth: [3, 4, 23, 3]}}
)";

std::shared_ptr<const Program> program(const std::string& text, ProgramOptions options = {},
                                       const std::string& name = "m.yaml") {
  return read_program(config::parse_document(text, name), options);
}

std::string error_of(const std::string& text, ProgramOptions options = {},
                     ErrorCode code = ErrorCode::kConfig) {
  try {
    program(text, options);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  return "no error";
}

/// A model file around a body.
std::string with_body(const std::string& body) {
  std::string out = "inputs: {x: 'float32[n, 3]'}\nparams: {width: 4}\nmodel: |\n";
  for (const std::string& line : split(body, '\n')) out += "  " + line + "\n";
  return out;
}

TEST(Program, ReadsSections) {
  const auto p = program(kResnet);
  EXPECT_EQ(p->name, "resnet");
  EXPECT_EQ(p->params.size(), 3u);
  EXPECT_EQ(text(*p->find_param("width")->value.expression), "64");
  EXPECT_EQ(p->find_param("depth")->value.items.size(), 4u);
  EXPECT_EQ(p->dims, (std::vector<std::string>{"batch", "rows", "columns"}));
  const Block* block = p->find_block("conv_bn", "m.yaml");
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(block->code.sites.size(), 2u);
  const Block* head = p->find_block("head", "m.yaml");
  ASSERT_TRUE(head->code.is_chain);
  EXPECT_EQ(head->code.chain[1].callee.text, "linear");
  EXPECT_EQ(head->code.chain[1].arguments[0].name.text, "out_features");
  EXPECT_EQ(head->code.chain[1].as[0].text, "y");
  EXPECT_EQ(p->model.outputs[0].text, "logits");
  EXPECT_EQ(p->model.inputs[0].shape.size(), 4u);
}

TEST(Program, ReadsChains) {
  const auto p = program(R"(
inputs: {image: "float32[batch, 1, 28, 28]"}
model:
  - conv2d: {out_channels: 16, kernel_size: [3, 3], padding: SAME}
    as: skip
  - relu
  - residual: 16
  - concat: {axis: 1}
    from: [skip, _]
  - lstm: 128
    as: [y, h]
  - from: skip
)");
  const auto& chain = p->model.code.chain;
  ASSERT_EQ(chain.size(), 6u);
  EXPECT_EQ(chain[0].arguments[1].value.items.size(), 2u);
  EXPECT_EQ(chain[2].arguments[0].name.text, "");
  EXPECT_EQ(chain[3].from.size(), 2u);
  EXPECT_EQ(chain[4].as.size(), 2u);
  EXPECT_EQ(chain[5].callee.text, "");
  EXPECT_EQ(p->model.code.sites.size(), 5u);
}

TEST(Program, VariantsAndOverrides) {
  EXPECT_EQ(text(*program(kResnet, {.variant = "l", .overrides = {}})
                      ->find_param("width")
                      ->value.expression),
            "128");
  const auto p = program(kResnet, {.variant = "s",
                                   .overrides = {config::parse_override("params.depth.1=9"),
                                                 config::parse_override("params.width=2*16")}});
  EXPECT_EQ(text(*p->find_param("width")->value.expression), "(2 * 16)");
  EXPECT_EQ(text(*p->find_param("depth")->value.items[1].expression), "9");
  EXPECT_NE(error_of(kResnet, {.variant = "xl", .overrides = {}}, ErrorCode::kUsage)
                .find("unknown variant 'xl'"),
            std::string::npos);
  EXPECT_NE(
      error_of(kResnet, {.variant = "", .overrides = {config::parse_override("params.widht=3")}},
               ErrorCode::kUsage)
          .find("did you mean 'width'"),
      std::string::npos);
  EXPECT_NE(error_of("inputs: {x: 'float32[2]'}\nmodel: return x\nparams: {a: 1}\n"
                     "variants: {s: {b: 1}}\n")
                .find("m.yaml:4:16: unknown param 'b'"),
            std::string::npos);
  EXPECT_EQ(split_variant("a/resnet.yaml:l").second, "l");
  EXPECT_EQ(split_variant("a:b/resnet.yaml").first, "a:b/resnet.yaml");
}

TEST(Program, OlderNamesOfParamsStandForTheNewOnes) {
  const std::string model =
      "params: {vocab_size: 3, head: 2, head_dim: 4}\n"
      "inputs: {x: \"float32[batch, 2]\"}\n"
      "model: |\n"
      "  return linear(x, vocab_size + head_dim)\n";
  const auto changed = program(model, {.variant = "",
                                       .overrides = {config::parse_override("params.words=7"),
                                                     config::parse_override("params.head=5")}});
  EXPECT_EQ(text(*changed->find_param("vocab_size")->value.expression), "7");
  EXPECT_EQ(text(*changed->find_param("head")->value.expression), "5");  // the model has it
  EXPECT_EQ(text(*changed->find_param("head_dim")->value.expression), "4");
  EXPECT_NE(
      error_of(model, {.variant = "", .overrides = {config::parse_override("params.inner=1")}},
               ErrorCode::kUsage)
          .find("unknown param 'inner'"),
      std::string::npos);
}

TEST(Program, CollectsErrorsWithPlaces) {
  const std::string all = error_of(R"(
inpts: {x: "float32[2]"}
params: {if: 1, width: 4}
inputs: {x: "floot32[n]", y: "float32[2 * m]"}
blocks:
  f(x, x): return x
  max(x): return x
  g(x): |
    y = (x
model: |
  width = 3
  n = 4
outputs: [a, a]
)");
  for (const char* part :
       {"m.yaml:2:1: unknown key 'inpts' (did you mean 'inputs'?)",
        "m.yaml:3:10: 'if' cannot be a param's name",
        "unknown type 'floot32' (did you mean 'float32'?)",
        "the dim 'm' is not a plain dim of any input's shape",
        "m.yaml:6:8: the argument 'x' is named twice", "m.yaml:7:3: a block cannot be called 'max'",
        "m.yaml:9:9: '(' is never closed", "m.yaml:11:3: 'width' is a param and cannot be assigned",
        "the output 'a' is named twice"}) {
    EXPECT_NE(all.find(part), std::string::npos) << part << "\n" << all;
  }
}

TEST(Program, RejectsWrongFiles) {
  for (const char* bad : {
           "3",
           "[]",
           "",
           "model: return x",
           "inputs: {x: 'float32[2]'}",
           "inputs: [x]\nmodel: return x",
           "inputs: {x: float32}\nmodel: return x",
           "inputs: {x: 'float32[n]'}\nmodel: {a: 1}",
           "inputs: {x: 'float32[n]'}\nmodel: []",
           "inputs: {x: 'float32[n]'}\nmodel: [[1]]",
           "inputs: {x: 'float32[n]'}\nmodel: [{relu: , tanh: }]",
           "inputs: {x: 'float32[n]'}\nmodel: [relu(x)]",
           "inputs: {x: 'float32[n]'}\nmodel: [{from: [x, x]}]",
           "inputs: {x: 'float32[n]'}\nmodel: [{relu: , as: 3}]",
           "inputs: {x: 'float32[n]'}\nmodel: [{relu: , as: []}]",
           "inputs: {x: 'float32[n]'}\nmodel: [{relu: , as: _}]",
           "inputs: {x: 'float32[n]'}\nmodel: [relu]\noutputs: []",
           "inputs: {x: 'float32[n]'}\nmodel: [relu]\noutputs: {a: b}",
           "inputs: {x: 'float32[n]'}\nmodel: [relu]\nparams: [1]",
           "inputs: {x: 'float32[n]'}\nmodel: [relu]\nblocks: {f: return x}",
           "inputs: {x: 'float32[n]'}\nmodel: [relu]\nblocks:\n  f(x): return x\n  f(y): return y",
           "inputs: {x: 'float32[n]'}\nmodel: [relu]\ninclude: nope.yaml",
           "inputs: {x: 'float32[n]'}\nmodel: [relu]\nvariants: {s: 3}",
           "inputs: {x: 'float32[x]'}\nmodel: [relu]",
           "inputs: {x: 'float32[n]'}\nparams: {x: 1}\nmodel: [relu]",
           "inputs: {x: 'float32[n]'}\nmodel: [relu]\nfunctions: {f: 3}",
           "inputs: {x: 'float32[n]'}\nmodel: [relu]\nfunctions: {f: {model: return x}}",
       }) {
    const std::string message = error_of(bad);
    EXPECT_TRUE(message.starts_with("m.yaml")) << bad << "\ngave " << message;
  }
}

TEST(Program, AssignmentsToArgumentsAreFine) {
  EXPECT_EQ(
      error_of("inputs: {x: 'float32[n]'}\nparams: {width: 1}\nblocks:\n"
               "  f(x, width): |\n    width = width + 1\n    return x\nmodel: return f(x, 2)\n"),
      "no error");
  EXPECT_NE(error_of(with_body("for n in range(3):\n  x = x + 1\nreturn x"))
                .find("m.yaml:4:7: 'n' is a dim"),
            std::string::npos);
}

TEST(Program, ChecksNames) {
  const auto check = [](const std::string& body) {
    const auto p = program(with_body(body));
    Diagnostics diagnostics;
    KnownNames known;
    const std::vector<std::string> operations = {"relu", "conv2d", "linear", "zeros"};
    known.operations = [&] { return operations; };
    known.is_operation = [&](const std::string& name) {
      return std::count(operations.begin(), operations.end(), name) > 0;
    };
    check_names(*p, known, diagnostics);
    return diagnostics.empty() ? std::string("fine") : std::string(diagnostics.combined().what());
  };
  EXPECT_EQ(check("y = con2d(x, 3)\nreturn relu(z)"),
            "m.yaml:4:7: unknown operation or block 'con2d' (did you mean 'conv2d'?)\n"
            "m.yaml:5:15: unknown name 'z' (text needs quotes: \"z\")");
  EXPECT_EQ(check("return conv2d(x, 3, padding=SAME)"),
            "m.yaml:4:31: unknown name 'SAME' (text needs quotes: \"SAME\")");
  EXPECT_EQ(check("f = relu\nw = param('w', [3], init=normal(0, 1))\nreturn f(x @ w)"), "fine");
  EXPECT_EQ(check("if training:\n  x = x * width\nreturn linear(x, 3, weight_init=zeros)"), "fine");
  EXPECT_EQ(check("return widht"), "m.yaml:4:10: unknown name 'widht' (did you mean 'width'?)");
}

TEST(Program, IncludesFiles) {
  namespace fs = std::filesystem;
  const fs::path dir = fs::temp_directory_path() / str("paddle_include_", getpid());
  fs::create_directories(dir / "sub");
  const auto write = [&](const char* name, const std::string& text) {
    std::ofstream(dir / name) << text;
  };
  const std::string tail = "inputs: {x: 'float32[n]'}\nmodel: return f(x)\n";
  write("main.yaml", "include: [sub/a.yaml, sub/b.yaml]\nparams: {k: 7}\n" + tail);
  write("sub/a.yaml", "include: b.yaml\nparams: {k: 1, m: 2}\nblocks:\n  f(x): return g(x)\n");
  write("sub/b.yaml", "blocks:\n  g(x): return x\n");
  const auto p = read_program((dir / "main.yaml").string());
  EXPECT_EQ(p->blocks.size(), 2u);
  EXPECT_EQ(text(*p->find_param("k")->value.expression), "7");
  EXPECT_EQ(text(*p->find_param("m")->value.expression), "2");
  EXPECT_EQ(p->name, "main");
  write("sub/b.yaml", "include: ../main.yaml\n");
  try {
    read_program((dir / "main.yaml").string());
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("includes itself"), std::string::npos);
  }
  try {
    read_program((dir / "nope.yaml").string());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
  }
  fs::remove_all(dir);
}

TEST(Program, JsonHasPlaces) {
  try {
    program("{\"inputs\": {\"x\": \"float32[n]\"},\n \"model\": \"y = x\\nreturn relu(y z)\"}", {},
            "m.json");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()),
              "m.json:2:33: expected ')' after the arguments of 'relu', found 'z'");
  }
}

}  // namespace
}  // namespace paddle::lang
