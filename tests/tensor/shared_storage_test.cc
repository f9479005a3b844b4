// In-place writes to tensors whose memory others hold as well.

#include "tensor/shared_storage.h"

#include <gtest/gtest.h>

namespace paddle {
namespace {

std::vector<float> values_of(const Array& array) {
  std::vector<float> out;
  for (int64_t i = 0; i < array.size(); ++i) out.push_back(static_cast<float>(array.number(i)));
  return out;
}

Array window(const std::shared_ptr<Storage>& storage, Dims shape, Dims strides, int64_t offset) {
  Array out;
  out.dtype = DType::kF32;
  out.shape = std::move(shape);
  out.strides = std::move(strides);
  out.offset = offset;
  out.storage = storage;
  return out;
}

TEST(SharedStorage, IsWrittenWhereItIs) {
  const Array array = Array::from<float>({1, 2, 3}, {3});
  const Tensor plain(array);
  plain.assign(Tensor(Array::from<float>({4, 5, 6}, {3})));
  EXPECT_EQ(values_of(array), (std::vector<float>{1, 2, 3}));

  const Tensor shared(array);
  share(array.storage);
  EXPECT_TRUE(is_shared(array));
  EXPECT_FALSE(is_shared_writable(array));
  shared.assign(Tensor(Array::from<float>({4, 5, 6}, {3})));
  EXPECT_EQ(values_of(array), (std::vector<float>{1, 2, 3}));

  const Tensor writable(array);
  share_writable(array.storage);
  share(array.storage);  // does not take the right away
  EXPECT_TRUE(is_shared_writable(array));
  writable.assign(Tensor(Array::from<float>({7, 8, 9}, {3})));
  EXPECT_EQ(values_of(array), (std::vector<float>{7, 8, 9}));
  EXPECT_EQ(writable.array().storage, array.storage);
}

TEST(SharedStorage, CopiesIntoWindowsAndOverItself) {
  const Array whole = Array::from<float>({0, 1, 2, 3, 4, 5, 6, 7}, {8});
  // Every second element, from the end.
  copy_elements(Array::from<float>({10, 20, 30, 40}, {2, 2}),
                window(whole.storage, {2, 2}, {-4, -2}, 7));
  EXPECT_EQ(values_of(whole), (std::vector<float>{0, 40, 2, 30, 4, 20, 6, 10}));
  copy_elements(window(whole.storage, {8}, {-1}, 7), whole);
  EXPECT_EQ(values_of(whole), (std::vector<float>{10, 6, 20, 4, 30, 2, 40, 0}));
  copy_elements(Array::from<float>({5}, {}), window(whole.storage, {}, {}, 3));
  copy_elements(Array::empty(DType::kF32, {2, 0}), window(whole.storage, {2, 0}, {4, 1}, 0));
  EXPECT_EQ(values_of(whole), (std::vector<float>{10, 6, 20, 5, 30, 2, 40, 0}));
}

TEST(SharedStorage, IsForgottenWithTheStorage) {
  for (int i = 0; i < 1000; ++i) {
    const Array array = Array::from<float>({1}, {1});
    EXPECT_FALSE(is_shared(array));
    share_writable(array.storage);
    EXPECT_TRUE(is_shared_writable(array));
  }
}

}  // namespace
}  // namespace paddle
