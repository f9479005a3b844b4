// The summary of a model: layers, sizes and operations without running anything.
#include "lang/eval/summary.h"

#include <gtest/gtest.h>

namespace paddle::lang {
namespace {

TEST(Summary, CountsLeNet) {
  const auto program = read_program(config::parse_document(R"(
name: lenet
inputs: {image: "float32[batch, 1, 28, 28]"}
blocks:
  head(x, size):
    - linear: size
    - relu
model:
  - conv2d: {out_channels: 6, kernel_size: 3, padding: 1}
  - relu
  - max_pool2d: 2
  - conv2d: {out_channels: 16, kernel_size: 5}
  - relu
  - max_pool2d: 2
  - flatten
  - head: 120
  - head: 84
  - linear: 10
outputs: [logits]
)",
                                                           "lenet.yaml"));
  const Summary summary = summarize(*program, program->model, {{"batch", 2}});
  EXPECT_EQ(summary.parameter_count, 61610);
  ASSERT_EQ(summary.lines.size(), 14u);
  EXPECT_EQ(summary.lines[0].path, "conv2d");
  EXPECT_EQ(summary.lines[0].parameters, 60);
  EXPECT_EQ(summary.lines[0].flops, 2.0 * 2 * 6 * 28 * 28 * 9);
  EXPECT_EQ(summary.lines[7].path, "head");
  EXPECT_TRUE(summary.lines[7].is_block);
  EXPECT_EQ(summary.lines[7].parameters, 48120);
  EXPECT_EQ(summary.lines[8].path, "head.linear");
  EXPECT_EQ(summary.lines[8].depth, 1);
  EXPECT_EQ(summary.lines[13].output, "float32[batch, 10]");
  const std::string printed = text(summary);
  EXPECT_NE(printed.find("parameters: 61,610"), std::string::npos) << printed;
  EXPECT_NE(printed.find("for batch=2"), std::string::npos) << printed;
}

TEST(Summary, NamesTables) {
  const auto program = read_program(
      config::parse_document("name: net\ninputs: {u: 'int64[batch]'}\nmodel: |\n  return "
                             "linear(sparse_embedding(u, 8, name='user'), 2)\n",
                             "m.yaml"));
  const Summary summary = summarize(*program, program->model);
  EXPECT_EQ(summary.parameter_count, 18);
  ASSERT_EQ(summary.lines.size(), 2u);
  EXPECT_EQ(summary.lines[0].path, "user");
  EXPECT_EQ(summary.lines[0].output, "float32[batch, 8]");
  EXPECT_NE(text(summary).find("table user: a row of float32[8] for each key"), std::string::npos);
}

TEST(Summary, CountsTheProductsOfMultiHeadAttention) {
  const auto program = read_program(config::parse_document(R"(
inputs: {x: "float32[batch, 5, 8]", memory: "float32[batch, 7, 6]"}
model: |
  y = multi_head_attention(x, 2)
  z = multi_head_attention(y, 2, key=memory)
outputs: [z]
)",
                                                           "attention.yaml"));
  const Summary summary = summarize(*program, program->model, {{"batch", 3}});
  ASSERT_EQ(summary.lines.size(), 2u);
  EXPECT_EQ(summary.lines[0].flops, 2.0 * 3 * (4 * 5 * 8 * 8 + 5 * 5 * 16));
  EXPECT_EQ(summary.lines[1].flops, 2.0 * 3 * (2 * 5 * 8 * 8 + 2 * 7 * 6 * 8 + 5 * 7 * 16));
}

}  // namespace
}  // namespace paddle::lang
