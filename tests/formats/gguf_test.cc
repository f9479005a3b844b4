// GGUF files against the values that the Python package gguf reads from them (make_gguf.py).
#include <gtest/gtest.h>

#include "base/error.h"
#include "formats/gguf/reader.h"
#include "formats/npz.h"

namespace paddle::formats::gguf {
namespace {

TEST(Gguf, BlocksHaveTheValuesOfTheReference) {
  const Reader file = Reader::open("tests/formats/data/blocks.gguf");
  const NpzReader golden("tests/formats/data/blocks.npz");
  EXPECT_EQ(file.tensors().size(), golden.names().size());
  for (const std::string& name : golden.names()) {
    const TensorInfo* tensor = file.find_tensor(name);
    ASSERT_NE(tensor, nullptr) << name;
    const Array values = file.read_float(*tensor), wanted = golden.read(name);
    ASSERT_EQ(values.shape, wanted.shape) << name;
    for (int64_t i = 0; i < values.size(); ++i)
      ASSERT_FLOAT_EQ(values.data<float>()[i], wanted.data<float>()[i]) << name << " " << i;
  }
}

TEST(Gguf, MetadataIsTyped) {
  const Reader file = Reader::open("tests/formats/data/blocks.gguf");
  EXPECT_EQ(file.text("general.architecture"), "test");
  EXPECT_EQ(file.text("test.text"), "é");
  EXPECT_EQ(file.numbers("test.numbers"), (Value::Numbers{1.5, 2.5}));
  EXPECT_EQ(file.integer("test.missing"), std::nullopt);
  EXPECT_THROW(file.integer("test.text"), Error);
}

}  // namespace
}  // namespace paddle::formats::gguf
