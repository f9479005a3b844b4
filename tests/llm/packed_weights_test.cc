// Products with packed weights: blocks as formats/gguf dequantizes them, against sums in double,
// and rows that do not depend on the other rows of the batch.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "autograd/autograd.h"
#include "base/error.h"
#include "formats/gguf/blocks.h"
#include "ops/generated/generation.h"
#include "ops/generated/nn.h"
#include "ops/generation/packed_format.h"
#include "runtime/execute.h"

namespace paddle::llm {
namespace {

struct Format {
  const char* name;
  int64_t type;                      ///< ggml's number
  std::vector<int64_t> half_places;  ///< of float16 scales in a block
};

const Format kFormats[] = {
    {"q4_0", 2, {0}}, {"q4_1", 3, {0, 2}},  {"q5_0", 6, {0}},     {"q5_1", 7, {0, 2}},
    {"q8_0", 8, {0}}, {"q4_k", 12, {0, 2}}, {"q5_k", 13, {0, 2}}, {"q6_k", 14, {208}},
};

/// Rows of random blocks with scales around 1/100.
Array random_blocks(const Format& format, int64_t rows, int64_t features, std::mt19937& random) {
  const PackedFormat& packed = *find_packed_format(format.name);
  Array out = Array::zeros(DType::kU8, {rows, features / packed.values * packed.bytes});
  for (int64_t i = 0; i < out.size(); ++i) out.data<uint8_t>()[i] = static_cast<uint8_t>(random());
  std::uniform_real_distribution<float> scale(-0.02F, 0.02F);
  for (int64_t b = 0; b < out.size(); b += packed.bytes)
    for (const int64_t place : format.half_places) {
      const float16 value(scale(random));
      std::memcpy(out.data<uint8_t>() + b + place, &value, sizeof value);
    }
  return out;
}

Array random_floats(const Dims& shape, std::mt19937& random) {
  Array out = Array::empty(DType::kF32, shape);
  std::normal_distribution<float> normal;
  for (int64_t i = 0; i < out.size(); ++i) out.data<float>()[i] = normal(random);
  return out;
}

Array dequantized(const Format& format, const Array& blocks, int64_t features) {
  const auto* const decoder = formats::gguf::find_block_format(format.type);
  Array out = Array::empty(DType::kF32, {blocks.shape[0], features});
  for (int64_t b = 0; b * decoder->bytes < blocks.size(); ++b)
    decoder->dequantize(blocks.data<uint8_t>() + b * decoder->bytes,
                        out.data<float>() + b * decoder->values);
  return out;
}

Array product(const Array& x, const Array& weight, const Array* bias, const std::string& format,
              int64_t features, int64_t bits = 8) {
  return ops::packed_linear(Tensor(x), Tensor(weight), bias ? Tensor(*bias) : Tensor(), format,
                            features, bits)
      .array()
      .contiguous();
}

class PackedWeights : public testing::TestWithParam<Format> {
 protected:
  PackedWeights() : scope_(executor_) {}
  runtime::EagerExecutor executor_;
  InterpreterScope scope_;
  std::mt19937 random_{1};
};

TEST_P(PackedWeights, RowsAreThoseOfTheFormat) {
  const Array blocks = random_blocks(GetParam(), 5, 512, random_);
  const Array wanted = dequantized(GetParam(), blocks, 512);
  const std::vector<int64_t> rows = {3, 0, -1};
  const Array found =
      ops::packed_rows(Tensor(blocks), Tensor(Array::from(rows, {3})), GetParam().name, 512)
          .array()
          .contiguous();
  for (size_t r = 0; r < 3; ++r) {
    const int64_t row = (rows[r] + 5) % 5;
    for (int64_t i = 0; i < 512; ++i)
      ASSERT_EQ(found.data<float>()[static_cast<int64_t>(r) * 512 + i],
                wanted.data<float>()[row * 512 + i])
          << row << " " << i;
  }
  EXPECT_THROW(
      ops::packed_rows(Tensor(blocks), Tensor(Array::from<int64_t>({5}, {1})), GetParam().name, 512)
          .array(),
      Error);
}

TEST_P(PackedWeights, AllRowsComeWithoutIndices) {
  const Array blocks = random_blocks(GetParam(), 3, 512, random_);
  const Array wanted = dequantized(GetParam(), blocks, 512);
  const Array found =
      ops::packed_rows(Tensor(blocks), Tensor(), GetParam().name, 512).array().contiguous();
  ASSERT_EQ(found.shape, (Dims{3, 512}));
  for (int64_t i = 0; i < found.size(); ++i)
    ASSERT_EQ(found.data<float>()[i], wanted.data<float>()[i]) << i;
}

/// Compares with sums in float64: of a product with the dequantized weight, or its transpose.
void expect_float_product(const Format& format, const Array& blocks, int64_t m, bool transposed,
                          std::mt19937& random) {
  const int64_t rows = blocks.shape[0], features = 512;
  const Array weight = dequantized(format, blocks, features);
  const int64_t depth = transposed ? rows : features, columns = transposed ? features : rows;
  const Array x = random_floats({m, depth}, random);
  const Array found =
      ops::packed_matmul(Tensor(x), Tensor(blocks), format.name, features, transposed)
          .array()
          .contiguous();
  ASSERT_EQ(found.shape, (Dims{m, columns}));
  const auto* const w = weight.data<float>();
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < columns; ++j) {
      double sum = 0, size = 0;
      for (int64_t k = 0; k < depth; ++k) {
        const double term = static_cast<double>(x.data<float>()[i * depth + k]) *
                            (transposed ? w[k * features + j] : w[j * features + k]);
        sum += term;
        size += std::abs(term);
      }
      ASSERT_NEAR(found.data<float>()[i * columns + j], sum, 1e-6 * size + 1e-30)
          << format.name << " " << i << " " << j;
    }
}

TEST_P(PackedWeights, FloatProductsAreThoseOfTheDequantizedMatrix) {
  for (const int64_t rows : {1, 37, 300})
    for (const int64_t m : {1, 5, 200})
      for (const bool transposed : {false, true})
        expect_float_product(GetParam(), random_blocks(GetParam(), rows, 512, random_), m,
                             transposed, random_);
}

TEST_P(PackedWeights, TheGradientOfAFloatProductIsTheOtherProduct) {
  const Tensor weight(random_blocks(GetParam(), 7, 512, random_)),
      x(random_floats({3, 512}, random_)), cotangent(random_floats({3, 7}, random_));
  autograd::Tape tape;
  const InterpreterScope recording(tape);
  const auto function = [&](const Tensors& v) {
    return Tensors{ops::packed_matmul(v[0], weight, GetParam().name, 512)};
  };
  const Array found = autograd::vjp(function, {x}, {cotangent}).at(0).array().contiguous();
  const Array wanted =
      ops::packed_matmul(cotangent, weight, GetParam().name, 512, true).array().contiguous();
  for (int64_t i = 0; i < wanted.size(); ++i)
    ASSERT_EQ(found.data<float>()[i], wanted.data<float>()[i]);
}

/// x as the kernel quantizes it: units of 32, the largest value of each becomes `limit`.
std::vector<double> quantized(const float* x, int64_t n, float limit) {
  std::vector<double> out;
  for (int64_t begin = 0; begin < n; begin += 32) {
    float top = 0;
    for (int64_t i = 0; i < 32; ++i) top = std::max(top, std::abs(x[begin + i]));
    const float scale = top / limit, inverse = top > 0 ? limit / top : 0;
    for (int64_t i = 0; i < 32; ++i)
      out.push_back(std::nearbyint(x[begin + i] * inverse) * static_cast<double>(scale));
  }
  return out;
}

TEST_P(PackedWeights, ProductsAreSumsOverQuantizedActivations) {
  for (const int64_t columns : {1, 16, 37, 64})
    for (const int64_t bits : {8, 16}) {
      const int64_t rows = 15, features = 512;
      const Array blocks = random_blocks(GetParam(), columns, features, random_);
      const Array weight = dequantized(GetParam(), blocks, features);
      const Array x = random_floats({rows, features}, random_);
      const Array bias = random_floats({columns}, random_);
      const Array found = product(x, blocks, &bias, GetParam().name, features, bits);
      ASSERT_EQ(found.shape, (Dims{rows, columns}));
      for (int64_t r = 0; r < rows; ++r) {
        const auto left =
            quantized(x.data<float>() + r * features, features, bits == 8 ? 127.F : 127.F * 128.F);
        for (int64_t c = 0; c < columns; ++c) {
          double sum = bias.data<float>()[c], size = std::abs(sum);
          for (int64_t k = 0; k < features; ++k) {
            const double term =
                left[static_cast<size_t>(k)] * weight.data<float>()[c * features + k];
            sum += term;
            size += std::abs(term);
          }
          ASSERT_NEAR(found.data<float>()[r * columns + c], sum, 1e-5 * size) << r << " " << c;
        }
      }
    }
}

TEST_P(PackedWeights, ARowDoesNotDependOnTheOthers) {
  const int64_t rows = 31, features = 256, columns = 40;
  const Array blocks = random_blocks(GetParam(), columns, features, random_);
  const Array x = random_floats({rows, features}, random_);
  for (const int64_t bits : {8, 16}) {
    const Array all = product(x, blocks, nullptr, GetParam().name, features, bits);
    for (int64_t r = 0; r < rows; ++r) {
      Array one = Array::empty(DType::kF32, {1, features});
      std::copy_n(x.data<float>() + r * features, features, one.data<float>());
      const Array alone = product(one, blocks, nullptr, GetParam().name, features, bits);
      ASSERT_EQ(std::memcmp(alone.data<float>(), all.data<float>() + r * columns,
                            static_cast<size_t>(columns) * sizeof(float)),
                0)
          << r;
    }
  }
}

TEST_P(PackedWeights, ANaNStaysInItsRow) {
  const Array blocks = random_blocks(GetParam(), 16, 256, random_);
  Array x = random_floats({2, 256}, random_);
  x.data<float>()[40] = NAN;
  const Array found = product(x, blocks, nullptr, GetParam().name, 256);
  EXPECT_TRUE(std::isnan(found.data<float>()[3]));
  EXPECT_FALSE(std::isnan(found.data<float>()[16 + 3]));
}

INSTANTIATE_TEST_SUITE_P(Formats, PackedWeights, testing::ValuesIn(kFormats),
                         [](const auto& info) { return std::string(info.param.name); });

using FloatWeights = PackedWeights;
TEST_P(FloatWeights, ProductsAreSumsWhateverTheCompany) {
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    const int64_t rows = 30, features = 75, columns = 53;
    const Array weight = random_floats({columns, features}, random_).cast(dtype).contiguous();
    const Array values = weight.cast(DType::kF32).contiguous();
    const Array x = random_floats({rows, features}, random_);
    const Array all = product(x, weight, nullptr, "float", features);
    for (int64_t r = 0; r < rows; ++r) {
      Array one = Array::empty(DType::kF32, {1, features});
      std::copy_n(x.data<float>() + r * features, features, one.data<float>());
      const Array alone = product(one, weight, nullptr, "float", features);
      for (int64_t c = 0; c < columns; ++c) {
        double sum = 0, size = 0;
        for (int64_t k = 0; k < features; ++k) {
          const double term = static_cast<double>(x.data<float>()[r * features + k]) *
                              values.data<float>()[c * features + k];
          sum += term;
          size += std::abs(term);
        }
        ASSERT_NEAR(all.data<float>()[r * columns + c], sum, 1e-5 * size);
        ASSERT_EQ(all.data<float>()[r * columns + c], alone.data<float>()[c]) << r << " " << c;
      }
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Floats, FloatWeights, testing::Values(Format{"float", 0, {}}));

void expect_same_bits(const Array& found, const Array& wanted, const std::string& what) {
  ASSERT_EQ(found.shape, wanted.shape) << what;
  EXPECT_EQ(std::memcmp(found.raw(), wanted.raw(), static_cast<size_t>(wanted.size()) * 4), 0)
      << what;
}

/// Products of one x with matrices of all formats, and of floats where `with_floats`, in one pass
/// and one by one.
void compare_products(int64_t rows, int64_t bits, bool with_floats, bool biased, bool normed) {
  const int64_t features = 256;
  std::mt19937 random(1);
  const Array x = random_floats({rows, features}, random);
  const Array norm = random_floats({features}, random);
  Tensors weights, biases;
  std::vector<std::string> formats;
  const auto add = [&](const std::string& format, const Array& weight) {
    formats.push_back(format);
    weights.emplace_back(weight);
    if (biased) biases.emplace_back(random_floats({weight.shape[0]}, random));
  };
  int64_t columns = 5;
  for (const Format& format : kFormats)
    add(format.name, random_blocks(format, columns += 14, features, random));
  if (with_floats)
    for (const DType dtype : {DType::kF32, DType::kBF16})
      add("float", random_floats({columns += 14, features}, random).cast(dtype).contiguous());
  const double epsilon = 1e-3;
  const Tensors found =
      ops::packed_linears(Tensor(x), weights, biases, normed ? Tensor(norm) : Tensor(), formats,
                          features, bits, epsilon);
  ASSERT_EQ(found.size(), weights.size());
  const Tensor read =
      normed ? ops::rms_norm(Tensor(x), features, Tensor(norm), epsilon) : Tensor(x);
  for (size_t i = 0; i < weights.size(); ++i)
    expect_same_bits(found[i].array().contiguous(),
                     ops::packed_linear(read, weights[i], biased ? biases[i] : Tensor(), formats[i],
                                        features, bits)
                         .array()
                         .contiguous(),
                     str(formats[i], " ", rows, " rows, ", bits, " bits"));
}

TEST(PackedWeight, ProductsInOnePassAreThoseOneByOne) {
  runtime::EagerExecutor executor;
  const InterpreterScope scope(executor);
  for (const int64_t rows : {1, 13, 70})
    for (const int64_t bits : {8, 16})
      for (const bool with_floats : {false, true})
        for (const bool normed : {false, true})
          compare_products(rows, bits, with_floats, rows == 13, normed);
}

TEST(PackedWeight, ListsThatDoNotFitAreRejected) {
  runtime::EagerExecutor executor;
  const InterpreterScope scope(executor);
  const Tensor x(Array::zeros(DType::kF32, {1, 64})), blocks(Array::zeros(DType::kU8, {4, 36})),
      bias(Array::zeros(DType::kF32, {4})), norm(Array::zeros(DType::kF32, {32}));
  using Names = std::vector<std::string>;
  const Names two = {"q4_0", "q4_0"};
  EXPECT_NO_THROW(ops::packed_linears(x, {blocks, blocks}, {bias, bias}, Tensor(), two, 64));
  EXPECT_THROW(ops::packed_linears(x, {}, {}, Tensor(), Names{}, 64), Error);
  EXPECT_THROW(ops::packed_linears(x, {blocks}, {}, Tensor(), two, 64), Error);
  EXPECT_THROW(ops::packed_linears(x, {blocks, blocks}, {bias}, Tensor(), two, 64), Error);
  EXPECT_THROW(ops::packed_linears(x, {blocks, blocks}, {}, norm, two, 64), Error);
}

TEST(PackedWeight, OfAnotherFormOrSizeIsRejected) {
  runtime::EagerExecutor executor;
  const InterpreterScope scope(executor);
  const Array x = Array::zeros(DType::kF32, {1, 64}), blocks = Array::zeros(DType::kU8, {4, 36});
  EXPECT_NO_THROW(product(x, blocks, nullptr, "q4_0", 64));
  EXPECT_THROW(product(x, blocks, nullptr, "q4_1", 64), Error);
  EXPECT_THROW(product(x, blocks, nullptr, "q4_k", 64), Error);
  EXPECT_THROW(product(x, blocks, nullptr, "q9_0", 64), Error);
  EXPECT_THROW(product(x, x, nullptr, "q4_0", 64), Error);
  EXPECT_THROW(product(x, blocks, nullptr, "float", 64), Error);
  EXPECT_THROW(product(x, blocks, nullptr, "q4_0", 64, 12), Error);
}

}  // namespace
}  // namespace paddle::llm
