// Linear layers of which only the weights are integers: the numbers of the dequantized weights, up
// to the rounding of activations to 16 bits, from packed rows.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "ir/tracer.h"
#include "ops/core/backend.h"
#include "ops/core/operators.h"
#include "ops/generated/ops.h"
#include "runtime/compile.h"
#include "runtime/executable.h"
#include "runtime/execute.h"
#include "support/numbers.h"

namespace paddle {
namespace {

using testing_support::Generator;
using Body = std::function<Tensor(const Tensor&)>;

struct Outcome {
  Array result;
  std::string text;
};

/// Traced for any batch, or for that of x.
Outcome outcome(const Body& body, const Array& x, bool exact, bool any_batch) {
  runtime::register_backends();
  auto function = std::make_shared<ir::Function>("main");
  {
    ir::Tracer tracer(*function);
    const InterpreterScope scope(tracer);
    Shape shape = to_shape(x.shape);
    if (any_batch) shape[0] = Dim::symbol("batch");
    const Tensor y = body(tracer.input({ir::PortKind::kValue, "x"}, {x.dtype, shape}));
    tracer.output({ir::PortKind::kValue, "y"}, y);
  }
  runtime::optimize(*function, {.exact = exact});
  ir::verify(*function);
  runtime::Executable executable(function);
  const Array y = executable.run({x})[0].contiguous();
  Array copy = Array::empty(y.dtype, y.shape);
  std::memcpy(copy.raw(), y.raw(), static_cast<size_t>(storage_bytes(y.dtype, y.size())));
  return {copy, ir::print(*function)};
}

Array random_floats(const Dims& shape, uint32_t seed, double scale, double shift = 0) {
  Array out = Array::empty(DType::kF32, shape);
  Generator generator(seed);
  for (int64_t i = 0; i < out.size(); ++i)
    out.data<float>()[i] = static_cast<float>(shift + scale * generator.number());
  return out;
}

/// Integers from `least` to `most` in 8 bits.
Array random_integers(DType dtype, const Dims& shape, uint32_t seed, int least, int most) {
  Array out = Array::empty(dtype, shape);
  Generator generator(seed);
  for (int64_t i = 0; i < out.size(); ++i)
    static_cast<uint8_t*>(out.raw())[i] = static_cast<uint8_t>(
        least + static_cast<int>(generator.next() % static_cast<uint32_t>(most - least + 1)));
  return out;
}

bool packs(bool any_batch, int64_t rows) {
  runtime::register_backends();
  if (has_int8_matmul({})) return true;  // VNNI
  return !any_batch && rows <= 4 &&
         has_int8_kernel({}, DType::kU8, Array::zeros(DType::kI8, {1, 1}));
}

void expect_packed(const Body& body, const Array& x, const std::string& format) {
  const Array floats = outcome(body, x, true, true).result;
  for (const bool any_batch : {true, false}) {
    const Outcome packed = outcome(body, x, false, any_batch);
    const bool is_packed = packed.text.find("{format = '" + format + "'") != std::string::npos;
    EXPECT_EQ(is_packed, packs(any_batch, x.size() / x.shape.back())) << format;
    ASSERT_EQ(packed.result.shape, floats.shape);
    double largest = 0, most = 0;
    for (int64_t i = 0; i < floats.size(); ++i) {
      largest = std::max(largest, std::abs(floats.number(i)));
      most = std::max(most, std::abs(floats.number(i) - packed.result.number(i)));
    }
    EXPECT_GT(largest, 0);
    // Scales of blocks are float16 where they are not the channel's.
    EXPECT_LE(most / largest, format == "q8_0" ? 2e-4 : 1e-3) << format;
  }
}

void expect_floats(const Body& body, const Array& x, bool exact = false) {
  EXPECT_EQ(outcome(body, x, exact, false).text.find("packed_linear"), std::string::npos);
}

constexpr int64_t kFeatures = 512, kChannels = 530;

/// A linear layer with integers [features, channels] and a scale for each channel.
Body layer(int64_t features, int64_t channels, DType dtype, int center) {
  const int low = center - 127, high = center + 127;
  const Array weight = random_integers(dtype, {features, channels}, 1, low, high);
  const Array scale = random_floats({1, channels}, 2, 0.003, 0.01),
              bias = random_floats({channels}, 3, 1);
  const Array zero = random_integers(dtype, {}, 4, center, center);
  return [=](const Tensor& x) {
    return ops::linear(x, ops::dequantize(Tensor(weight), Tensor(scale), Tensor(zero)),
                       Tensor(bias));
  };
}

/// A product with 4-bit integers in groups of features.
Body grouped(DType dtype, int64_t group, bool transposed, bool zeros_differ) {
  const int low = dtype == DType::kI8 ? -8 : 0;
  const int64_t groups = kFeatures / group;
  const Dims values = transposed ? Dims{kChannels, groups, group} : Dims{groups, group, kChannels};
  const Dims along = transposed ? Dims{kChannels, groups, 1} : Dims{groups, 1, kChannels};
  const Shape whole =
      to_shape(transposed ? Dims{kChannels, kFeatures} : Dims{kFeatures, kChannels});
  const Array weight = random_integers(dtype, values, 1, low, low + 15);
  const Array scale = random_floats(along, 2, 0.00003, 0.0001);
  const Array zero = zeros_differ ? random_integers(dtype, along, 3, low + 4, low + 12)
                                  : random_integers(dtype, {}, 3, low + 8, low + 8);
  return [=](const Tensor& x) {
    const Tensor w = ops::dequantize(Tensor(weight), Tensor(scale), Tensor(zero));
    return ops::matmul(x, ops::reshape(w, whole), false, transposed);
  };
}

TEST(PackWeights, OfEightBits) {
  for (const int64_t rows : {1, 3, 40}) {
    const Array x = random_floats({rows, kFeatures}, 9, 2);
    expect_packed(layer(kFeatures, kChannels, DType::kI8, 0), x, "q8_0");
    expect_packed(layer(kFeatures, kChannels, DType::kU8, 128), x, "q8_0");
  }
  const Array batches = random_floats({2, 3, kFeatures}, 9, 2);
  expect_packed(layer(kFeatures, kChannels, DType::kI8, 0), batches, "q8_0");
}

TEST(PackWeights, OfFourBitsInGroups) {
  const Array x = random_floats({3, kFeatures}, 9, 2);
  for (const bool transposed : {false, true})
    for (const int64_t group : {32, 128}) {
      expect_packed(grouped(DType::kI8, group, transposed, false), x, "q4_0");
      expect_packed(grouped(DType::kU8, group, transposed, false), x, "q4_0");
      expect_packed(grouped(DType::kU8, group, transposed, true), x, "q4_1");
      expect_packed(grouped(DType::kI8, group, transposed, true), x, "q4_1");
    }
}

TEST(PackWeights, ThatDoNotFitStayFloats) {
  expect_floats(layer(kFeatures, kChannels, DType::kI8, 0), random_floats({2, kFeatures}, 9, 2),
                true);
  expect_floats(layer(64, 64, DType::kI8, 0), random_floats({2, 64}, 9, 2));     // small
  expect_floats(layer(500, 600, DType::kI8, 0), random_floats({2, 500}, 9, 2));  // blocks
  expect_floats(grouped(DType::kI8, 16, false, false), random_floats({2, kFeatures}, 9, 2));
}

}  // namespace
}  // namespace paddle
