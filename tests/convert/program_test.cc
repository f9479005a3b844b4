// Programs of PaddlePaddle as ONNX files.
#include <filesystem>

#include <gtest/gtest.h>

#include "convert/convert.h"
#include "formats/onnx/model.h"
#include "onnx/validity/validity.h"
#include "paddle_program/pir_program.h"

namespace paddle::convert {
namespace {

using paddle_program::PirProgram;

formats::onnx::Model converted(const std::string& program) {
  Options options;
  options.in = program;
  options.out = testing::TempDir() + "/converted.onnx";
  options.overwrite = true;
  run(options, {[](const std::string&) {}, [](const std::string&) {}});
  return formats::onnx::read_model(options.out);
}

TEST(ConvertedProgram, IsAValidFile) {
  PirProgram p;
  const int x = p.input("x", "i64", "[2,3,4]"), y = p.input("y", "i64", "[2,3,4]");
  p.fetch(p.op("logical_and", {x, y}, {}, "bool", "[2,3,4]"), "bool", "[2,3,4]");
  p.fetch(p.op("transpose", {x}, {PirProgram::number("perm", "[-1,0,-2]")}, "i64", "[4,2,3]"),
          "i64", "[4,2,3]");
  const formats::onnx::Model model = converted(p.write("valid"));
  EXPECT_EQ(model.opsets.at(""), 17);
  EXPECT_TRUE(onnx::validity_problems(model).empty());
  ASSERT_EQ(model.graph.inputs.size(), 2u);
  EXPECT_EQ(model.graph.inputs[0].name, "x");
  for (const auto& output : model.graph.outputs) EXPECT_TRUE(output.type.shape.has_value());
}

TEST(ConvertedProgram, HasTheOpsetOfItsTypes) {
  PirProgram p;
  const int x = p.input("x", "bf16", "[1,1,4,4]"), filter = p.input("w", "bf16", "[1,1,3,3]");
  const int y =
      p.op("conv2d", {x, filter},
           {PirProgram::number("strides", "[1,1]"), PirProgram::number("dilations", "[1,1]"),
            PirProgram::number("paddings", "[1,1]"), PirProgram::number("groups", "1")},
           "bf16", "[1,1,4,4]");
  p.fetch(p.op("max", {y, p.integers("[3]", "[1]")}, {PirProgram::number("keepdim", "false")},
               "bf16", "[1,1,4]"),
          "bf16", "[1,1,4]");
  const formats::onnx::Model model = converted(p.write("bfloat16"));
  EXPECT_EQ(model.opsets.at(""), 22);  // the first with Conv of bfloat16
  EXPECT_TRUE(onnx::validity_problems(model).empty());
}

}  // namespace
}  // namespace paddle::convert
