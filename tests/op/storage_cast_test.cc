// Casts from and to the types that are only stored, against PyTorch (make_storage_types.py) for the
// 8-bit floats, and against their definitions for the rest.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "formats/npz.h"
#include "ops/generated/ops.h"
#include "runtime/execute.h"

namespace paddle {
namespace {

Array cast(const Array& x, DType to) {
  runtime::EagerExecutor executor;
  const InterpreterScope scope(executor);
  return ops::cast(Tensor(x), to).array().contiguous();
}

Array of_bytes(DType dtype, const Dims& shape, const std::vector<uint8_t>& bytes) {
  Array a = Array::empty(dtype, shape);
  std::memcpy(a.raw(), bytes.data(), bytes.size());
  return a;
}

std::vector<uint8_t> bytes_of(const Array& a) {
  const auto* first = static_cast<const uint8_t*>(static_cast<const void*>(a.raw()));
  return {first, first + storage_bytes(a.dtype, a.size())};
}

class SmallFloats : public testing::TestWithParam<std::pair<const char*, DType>> {};

TEST_P(SmallFloats, AreAsInPyTorch) {
  const auto [name, dtype] = GetParam();
  const formats::NamedArrays golden = formats::read_npz("tests/op/storage_types.npz");
  const auto find = [&](const std::string& part) {
    for (const auto& [key, array] : golden)
      if (key == std::string(name) + "." + part) return array;
    throw std::runtime_error("no " + part);
  };
  std::vector<uint8_t> all(256);
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint8_t>(i);
  const Array means = cast(of_bytes(dtype, {256}, all), DType::kF32), expected = find("means");
  for (int64_t i = 0; i < 256; ++i) {
    if (std::isnan(expected.number(i)))
      EXPECT_TRUE(std::isnan(means.number(i))) << "code " << i;
    else
      EXPECT_EQ(means.number(i), expected.number(i)) << "code " << i;
  }
  const Array values = find("values"), codes = find("codes");
  const std::vector<uint8_t> ours = bytes_of(cast(values, dtype));
  for (int64_t i = 0; i < values.size(); ++i) {
    const auto code = static_cast<int64_t>(ours[static_cast<size_t>(i)]);
    if (std::isnan(expected.number(codes.integer(i))))
      EXPECT_TRUE(std::isnan(expected.number(code))) << "of " << values.number(i);
    else
      EXPECT_EQ(code, codes.integer(i)) << "of " << values.number(i);
  }
}

INSTANTIATE_TEST_SUITE_P(All, SmallFloats,
                         testing::Values(std::pair("e4m3fn", DType::kF8E4M3FN),
                                         std::pair("e5m2", DType::kF8E5M2),
                                         std::pair("e4m3fnuz", DType::kF8E4M3FNUZ),
                                         std::pair("e5m2fnuz", DType::kF8E5M2FNUZ),
                                         std::pair("e8m0fnu", DType::kF8E8M0)),
                         [](const auto& info) { return std::string(info.param.first); });

TEST(StorageCast, FourBitFloats) {
  const std::vector<float> all = {0,    0.5f,  1,  1.5f,  2,  3,  4,  6,
                                  -0.f, -0.5f, -1, -1.5f, -2, -3, -4, -6};
  const Array packed = cast(Array::from<float>(all, {16}), DType::kF4E2M1);
  EXPECT_EQ(bytes_of(packed),
            (std::vector<uint8_t>{0x10, 0x32, 0x54, 0x76, 0x98, 0xba, 0xdc, 0xfe}));
  const Array back = cast(packed, DType::kF32);
  for (int64_t i = 0; i < 16; ++i)
    EXPECT_EQ(back.number(i), static_cast<double>(all[static_cast<size_t>(i)]));
  // Ties go to the even code; what is too large becomes the largest.
  const Array odd = cast(Array::from<float>({0.25f, 0.75f, 2.5f, 5, 100}, {5}), DType::kF4E2M1);
  const Array read = cast(odd, DType::kF64);
  const std::vector<double> expected = {0, 1, 2, 4, 6};
  for (int64_t i = 0; i < 5; ++i) EXPECT_EQ(read.number(i), expected[static_cast<size_t>(i)]);
}

TEST(StorageCast, PackedIntegers) {
  const Array x = Array::from<int64_t>({-8, 7, 1, -1, 15}, {5});
  EXPECT_EQ(bytes_of(cast(x, DType::kI4)), (std::vector<uint8_t>{0x78, 0xf1, 0x0f}));
  const Array back = cast(cast(x, DType::kI4), DType::kI32);
  for (const auto& [at, value] : {std::pair{0, -8}, {1, 7}, {2, 1}, {3, -1}, {4, -1}})
    EXPECT_EQ(back.integer(at), value);
  EXPECT_EQ(cast(cast(x, DType::kU4), DType::kI32).integer(4), 15);
  EXPECT_EQ(bytes_of(cast(Array::from<int64_t>({0, 1, 2, 3, 1}, {5}), DType::kU2)),
            (std::vector<uint8_t>{0xe4, 0x01}));
  EXPECT_EQ(cast(cast(Array::from<int64_t>({2, 3}, {2}), DType::kI2), DType::kI64).integer(0), -2);
}

TEST(StorageCast, ComplexNumbersKeepTheirRealPart) {
  const Array x = Array::from<double>({1.5, -2}, {2});
  const Array z = cast(x, DType::kC128);
  EXPECT_EQ(z.shape, (Dims{2}));
  EXPECT_EQ(cast(z, DType::kF32).number(1), -2);
  EXPECT_EQ(cast(cast(z, DType::kC64), DType::kF64).number(0), 1.5);
  EXPECT_EQ(cast(z, DType::kBool).integer(0), 1);
}

TEST(StorageCast, StringsAreRejected) {
  EXPECT_THROW(cast(Array::from<float>({1}, {1}), DType::kString), Error);
}

}  // namespace
}  // namespace paddle
