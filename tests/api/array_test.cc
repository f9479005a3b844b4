// Arrays of the public interface: what they hold, what they share, and what they reject.

#include <gtest/gtest.h>

#include "paddle/array.h"
#include "paddle/error.h"

namespace {

using paddle::Array;
using paddle::DType;

TEST(ApiArray, HoldsValuesInRowMajorOrder) {
  const Array a = Array::from<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(a.dtype(), DType::kFloat32);
  EXPECT_EQ(a.shape(), (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(a.size(), 6);
  EXPECT_EQ(a.bytes(), 24u);
  EXPECT_EQ(a.data<float>()[4], 5);
  EXPECT_EQ(Array().size(), 0);
  EXPECT_EQ(Array(DType::kInt64, {3}).to_vector<int64_t>(), (std::vector<int64_t>{0, 0, 0}));
}

TEST(ApiArray, CopiesShareAndClonesDoNot) {
  Array a = Array::from<int32_t>({2}, {1, 2});
  Array shared = a, own = a.clone();
  a.data<int32_t>()[0] = 7;
  EXPECT_EQ(shared.data<int32_t>()[0], 7);
  EXPECT_EQ(own.data<int32_t>()[0], 1);
  EXPECT_EQ(a.reshape({1, 2}).raw(), a.raw());
}

TEST(ApiArray, MovedFromArraysAreEmpty) {
  Array a = Array::scalar(1.0);
  const Array b = std::move(a);
  EXPECT_EQ(b.size(), 1);
  EXPECT_EQ(a.size(), 0);  // NOLINT: documented to be usable
}

TEST(ApiArray, BorrowsMemoryAndKeepsItsOwner) {
  auto values = std::make_shared<std::vector<double>>(std::vector<double>{1, 2});
  const std::weak_ptr<std::vector<double>> watched = values;
  {
    double* const data = values->data();
    Array a = Array::borrow(DType::kFloat64, {2}, data, std::move(values));
    EXPECT_EQ(a.raw(), data);
    EXPECT_FALSE(watched.expired());
  }
  EXPECT_TRUE(watched.expired());
}

TEST(ApiArray, Casts) {
  const Array a = Array::from<float>({4}, {-1.9f, 0, 0.4f, 3.5f});
  EXPECT_EQ(a.cast(DType::kInt32).to_vector<int32_t>(), (std::vector<int32_t>{-1, 0, 0, 3}));
  EXPECT_EQ(a.cast(DType::kBool).to_vector<bool>(), (std::vector<bool>{true, false, true, true}));
  EXPECT_EQ(a.cast(DType::kFloat16).bytes(), 8u);
  // A cast is a copy, also to the same type.
  EXPECT_NE(a.cast(DType::kFloat32).raw(), a.raw());
}

TEST(ApiArray, RejectsWhatCannotBe) {
  EXPECT_THROW(Array(DType::kFloat32, {2, -1}), paddle::UsageError);
  EXPECT_THROW(Array(DType::kFloat32, {int64_t{1} << 40, int64_t{1} << 40}), paddle::UsageError);
  EXPECT_THROW(Array(static_cast<DType>(99), {1}), paddle::UsageError);
  EXPECT_THROW(Array::from<float>({3}, {1, 2}), paddle::UsageError);
  EXPECT_THROW(Array::copy(DType::kFloat32, {1}, nullptr), paddle::UsageError);
  alignas(8) char bytes[16] = {};
  EXPECT_THROW(Array::borrow(DType::kFloat32, {1}, bytes + 1), paddle::UsageError);
  EXPECT_THROW(Array(DType::kFloat32, {1}).data<double>(), paddle::UsageError);
  EXPECT_THROW(Array(DType::kFloat32, {4}).reshape({3}), paddle::UsageError);
  EXPECT_EQ(Array(DType::kFloat32, {0, int64_t{1} << 62}).size(), 0);
}

}  // namespace
