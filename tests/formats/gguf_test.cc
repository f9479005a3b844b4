// GGUF files against the values that the Python package gguf reads from them (make_gguf.py).
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>
#include <random>

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/error.h"
#include "formats/gguf/blocks.h"
#include "formats/gguf/quantize.h"
#include "formats/gguf/reader.h"
#include "formats/gguf/writer.h"
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

TEST(Gguf, BlocksAreThoseOfTheReferenceQuantizer) {
  const NpzReader golden("tests/formats/data/quantized.npz");
  const Array values = golden.read("values");
  for (const char* name : {"Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0"}) {
    const Array wanted = golden.read(name);
    const auto blocks =
        quantize(*find_block_type(name),
                 std::span<const float>(values.data<float>(), static_cast<size_t>(values.size())));
    ASSERT_EQ(static_cast<int64_t>(blocks.size()), wanted.size()) << name;
    for (int64_t i = 0; i < wanted.size(); ++i)
      ASSERT_EQ(blocks[static_cast<size_t>(i)], wanted.data<uint8_t>()[i]) << name << " " << i;
  }
}

/// The relative error of values that are quantized and read back.
double error_of(const char* name, const std::vector<float>& values,
                BlockScales scales = BlockScales::kPlain) {
  const BlockType& type = *find_block_type(name);
  const auto blocks = quantize(type, values, scales);
  const BlockFormat& format = *find_block_format(type.type);
  std::vector<float> found(values.size());
  for (size_t b = 0; b < values.size() / static_cast<size_t>(type.values); ++b)
    format.dequantize(blocks.data() + b * static_cast<size_t>(type.bytes),
                      found.data() + b * static_cast<size_t>(type.values));
  double error = 0, size = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double wanted = std::isfinite(values[i]) ? values[i] : 0;
    EXPECT_TRUE(std::isfinite(found[i])) << name << " " << i;
    error += (found[i] - wanted) * (found[i] - wanted);
    size += wanted * wanted;
  }
  return std::sqrt(error / std::max(size, 1e-300));
}

TEST(Gguf, SearchedScalesLoseLess) {
  std::mt19937 random(2);
  std::normal_distribution<float> normal;
  std::vector<float> values(32 * 512);
  for (float& x : values) x = normal(random);
  for (const auto& [name, share] :
       {std::pair{"q4_0", 0.95}, std::pair{"q4_1", 0.95}, std::pair{"q5_0", 0.95},
        std::pair{"q5_1", 0.95}, std::pair{"q8_0", 0.995}, std::pair{"q4_k", 0.995},
        std::pair{"q5_k", 0.995}, std::pair{"q6_k", 0.995}}) {
    EXPECT_LT(error_of(name, values, BlockScales::kSearched), share * error_of(name, values))
        << name;
    // Constants, zeros, numbers that are not finite and very small ones.
    for (const float x : {0.0f, 1.5f, -3.0f, 1e-38f, 65000.0f}) {
      const std::vector<float> same(256, x);
      EXPECT_LE(error_of(name, same, BlockScales::kSearched), error_of(name, same)) << name << x;
    }
    std::vector<float> odd(256, 0.25f);
    odd[3] = std::numeric_limits<float>::quiet_NaN();
    odd[4] = std::numeric_limits<float>::infinity();
    EXPECT_LT(error_of(name, odd, BlockScales::kSearched), 0.1) << name;
  }
}

TEST(Gguf, KQuantsLoseLessThanBlocksOfTheSameSize) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> values(256 * 64);
  for (float& x : values) x = normal(random);
  EXPECT_LT(error_of("q4_k", values), 0.85 * error_of("q4_0", values));  // 4.5 bits each
  EXPECT_LT(error_of("q5_k", values), 0.85 * error_of("q5_0", values));  // 5.5 bits
  EXPECT_LT(error_of("q6_k", values), 0.018);
  for (float& x : values) x = x * x;  // one sign
  EXPECT_LT(error_of("q4_k", values), error_of("q4_1", values));
}

TEST(Gguf, KQuantsTakeAnyValues) {
  for (const char* name : {"q4_k", "q5_k", "q6_k"}) {
    std::vector<float> values(256, 0.0f);
    EXPECT_EQ(error_of(name, values), 0) << name;
    std::fill(values.begin(), values.end(), -3.0f);
    EXPECT_LT(error_of(name, values), 1e-3) << name;
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = std::ldexp(1.0f, static_cast<int>(i) - 150);
    error_of(name, values);
    values[7] = std::numeric_limits<float>::quiet_NaN();
    values[8] = -std::numeric_limits<float>::infinity();
    values[9] = std::numeric_limits<float>::max();
    error_of(name, values);
  }
}

TEST(Gguf, WrittenFilesAreRead) {
  const std::string path = testing::TempDir() + "/paddle_written.gguf";
  const Array values = NpzReader("tests/formats/data/quantized.npz").read("values");
  const Array low = values.cast(DType::kBF16);
  {
    Writer writer(
        path,
        {{"a", 0, values.shape}, {"b", 8, values.shape}, {"c", 30, values.shape}, {"d", 0, {}}},
        {{"general.architecture", "test"}, {"note", "ä"}});
    for (const Array& each : {values, values, low, Array::scalar(2.5f)}) writer.add(each);
    writer.close();
  }
  const Reader file = Reader::open(path);
  EXPECT_EQ(file.text("general.architecture"), "test");
  EXPECT_EQ(file.text("note"), "ä");
  EXPECT_EQ(file.integer("general.quantization_version"), 2);
  ASSERT_EQ(file.tensors().size(), 4u);
  EXPECT_EQ(type_name(file.find_tensor("b")->type), "Q8_0");
  const Array a = file.read_float(*file.find_tensor("a")),
              b = file.read_float(*file.find_tensor("b")),
              c = file.read_float(*file.find_tensor("c"));
  for (int64_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(a.number(i), values.number(i));
    EXPECT_NEAR(b.number(i), values.number(i), 0.05);
    EXPECT_EQ(c.number(i), low.number(i));
  }
  EXPECT_EQ(file.read_float(*file.find_tensor("d")).number(0), 2.5);
  EXPECT_THROW(Writer(path, {{"x", 8, {3, 40}}}), Error);
  EXPECT_THROW(Writer(path, {{std::string(64, 'x'), 0, {1}}}), Error);
  EXPECT_THROW(Writer(path, {{"x", 0, {1, 1, 1, 1, 1}}}), Error);
}

/// Parts of tests/llm/make_gguf.py.
std::string split_part(int number) {
  return "split-0000" + std::to_string(number) + "-of-00003.gguf";
}

TEST(Gguf, TheFirstPartOpensAllParts) {
  const std::string data = "tests/llm/data/";
  const Reader parts = Reader::open(data + split_part(1)),
               whole = Reader::open(data + "starcoder2.gguf");
  ASSERT_EQ(parts.tensors().size(), whole.tensors().size());
  for (const TensorInfo& tensor : whole.tensors()) {
    const TensorInfo* const found = parts.find_tensor(tensor.name);
    ASSERT_TRUE(found) << tensor.name;
    ASSERT_EQ(found->shape, tensor.shape);
    EXPECT_EQ(std::memcmp(found->data, tensor.data, tensor.bytes), 0) << tensor.name;
  }
  for (const RawValue& value : parts.raw_metadata()) EXPECT_FALSE(value.key.starts_with("split."));
  // The values outlive the reader.
  const Array last = [&] {
    const Reader file = Reader::open(data + split_part(1));
    return file.read_float(file.tensors().back());
  }();
  EXPECT_EQ(last.number(0),
            whole.read_float(*whole.find_tensor(parts.tensors().back().name)).number(0));
}

TEST(Gguf, PartsThatAreMissingOrWrongAreNamed) {
  namespace fs = std::filesystem;
  const fs::path folder =
      fs::path(testing::TempDir()) / ("paddle_parts_" + std::to_string(getpid()));
  fs::create_directories(folder);
  const auto copy = [&](int number, const std::string& to) {
    fs::copy_file("tests/llm/data/" + split_part(number), folder / to,
                  fs::copy_options::overwrite_existing);
  };
  const auto message = [&](const std::string& name) -> std::string {
    try {
      Reader::open((folder / name).string());
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kModel);
      return e.message();
    }
    return "accepted";
  };
  const std::string at = folder.string() + "/";
  copy(1, split_part(1));
  copy(3, split_part(3));
  EXPECT_EQ(message(split_part(1)),
            at + split_part(1) + ": part 2 of 3, '" + at + split_part(2) + "', is missing");
  EXPECT_EQ(message(split_part(3)), at + split_part(3) + ": is part 3 of 3; open the first one, '" +
                                        at + split_part(1) + "'");
  copy(3, split_part(2));
  EXPECT_EQ(message(split_part(1)),
            at + split_part(2) + ": is not part 2 of 3 by its split.no and split.count");
  copy(1, "model.gguf");
  EXPECT_EQ(message("model.gguf"), at + "model.gguf: is part 1 of 3; its name should end in "
                                        "'-00001-of-00003.gguf'");
  fs::copy_file("tests/llm/data/starcoder2.gguf", folder / split_part(2),
                fs::copy_options::overwrite_existing);
  EXPECT_EQ(message(split_part(1)),
            at + split_part(2) + ": is not part 2 of 3 by its split.no and split.count");
  copy(2, split_part(2));
  EXPECT_EQ(message(split_part(1)), "accepted");
  fs::remove_all(folder);
}

TEST(Gguf, NamesOfPartsAreCut) {
  EXPECT_EQ(without_part("llama-00001-of-00003"), "llama");
  EXPECT_EQ(without_part("llama-0001-of-00003"), "llama-0001-of-00003");
  EXPECT_EQ(without_part("-00001-of-00003"), "-00001-of-00003");
}

TEST(Gguf, MetadataIsTyped) {
  const Reader file = Reader::open("tests/formats/data/blocks.gguf");
  EXPECT_EQ(file.text("general.architecture"), "test");
  EXPECT_EQ(file.text("test.text"), "é");
  EXPECT_EQ(file.numbers("test.numbers"), (Value::Numbers{1.5, 2.5}));
  EXPECT_EQ(file.integer("test.missing"), std::nullopt);
  EXPECT_THROW(file.integer("test.text"), Error);
}

/// Values, and the blocks that ggml makes of them (make_k_quants.py).
void expect_blocks_of_ggml(const std::string& file) {
  const NpzReader golden(file);
  const Array values = golden.read("values").contiguous();
  for (const char* name : {"q4_k", "q5_k", "q6_k"}) {
    const Array wanted = golden.read(name).contiguous();
    const auto found = quantize(*find_block_type(name),
                                {values.data<float>(), static_cast<size_t>(values.size())});
    ASSERT_EQ(static_cast<int64_t>(found.size()), wanted.size());
    const int64_t bytes = wanted.shape[1];
    int64_t different = 0;
    for (int64_t b = 0; b < wanted.shape[0]; ++b)
      different += !std::equal(found.begin() + b * bytes, found.begin() + (b + 1) * bytes,
                               wanted.data<uint8_t>() + b * bytes);
    EXPECT_EQ(different, 0) << name << ": blocks of " << wanted.shape[0];
  }
}

TEST(Gguf, PlainKQuantsHaveTheBytesOfGgml) {
  expect_blocks_of_ggml("tests/formats/data/k_quants.npz");
  if (const char* more = std::getenv("PADDLE_K_QUANTS")) expect_blocks_of_ggml(more);
}

}  // namespace
}  // namespace paddle::formats::gguf
