// Packed copies of strided windows, element by element: transposed, reversed, broadcast, of every
// element size, with sizes around those of tiles, on one thread and several.

#include "tensor/strided_copy.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "base/parallel.h"
#include "tensor/tensor.h"

namespace paddle {
namespace {

struct Window {
  Dims shape, strides;
  int64_t first;     ///< element of the memory where the window begins
  int64_t elements;  ///< of the memory
};

/// A contiguous tensor whose axes are in another order.
Window permuted(const Dims& shape, const std::vector<size_t>& axes) {
  Window out{{}, {}, 0, 1};
  const Dims strides = contiguous_strides(shape);
  for (const size_t axis : axes) {
    out.shape.push_back(shape[axis]);
    out.strides.push_back(strides[axis]);
  }
  for (const int64_t d : shape) out.elements *= d;
  return out;
}

void expect_copied(const Window& w, int64_t item) {
  std::vector<uint8_t> memory(static_cast<size_t>(w.elements * item));
  for (size_t i = 0; i < memory.size(); ++i)
    memory[i] = static_cast<uint8_t>(i * 2654435761u >> 11);
  int64_t size = 1;
  for (const int64_t d : w.shape) size *= d;
  std::vector<uint8_t> got(static_cast<size_t>(size * item) + 1, 0x5a);
  StridedCopy(w.shape, w.strides, item).run(memory.data() + w.first * item, got.data());
  for (int64_t flat = 0; flat < size; ++flat) {
    int64_t rest = flat, at = w.first;
    for (size_t axis = w.shape.size(); axis-- > 0;) {
      at += rest % w.shape[axis] * w.strides[axis];
      rest /= w.shape[axis];
    }
    ASSERT_EQ(
        std::memcmp(got.data() + flat * item, memory.data() + at * item, static_cast<size_t>(item)),
        0)
        << "element " << flat << " of " << str(w.shape) << " with strides " << str(w.strides);
  }
  EXPECT_EQ(got.back(), 0x5a);
}

class StridedCopies : public testing::TestWithParam<int> {
 protected:
  void SetUp() override { set_thread_count(GetParam()); }
  void TearDown() override { set_thread_count(available_cores()); }
};

TEST_P(StridedCopies, MatchElements) {
  const Window windows[] = {
      permuted({}, {}),
      permuted({7}, {0}),
      permuted({5, 4}, {1, 0}),
      permuted({16, 16}, {1, 0}),
      permuted({3, 300}, {1, 0}),
      permuted({300, 3}, {1, 0}),
      permuted({67, 131}, {1, 0}),
      permuted({2, 19, 5, 37}, {0, 2, 3, 1}),
      permuted({2, 5, 37, 19}, {0, 3, 1, 2}),
      permuted({3, 17, 2, 9}, {0, 2, 1, 3}),
      permuted({4, 3, 9, 21}, {3, 1, 0, 2}),
      permuted({2, 1, 33, 40}, {3, 2, 1, 0}),
      permuted({257, 300}, {1, 0}),
      {{4, 6}, {6, -1}, 5, 24},           // rows backwards
      {{6, 5}, {1, -6}, 24, 30},          // transposed and backwards
      {{3, 40, 4}, {0, 1, 0}, 0, 40},     // repeated
      {{5, 20, 24}, {0, 1, 20}, 0, 480},  // repeated and transposed
      {{8, 9}, {3, 50}, 1, 430},          // no axis is contiguous
      {{0, 4}, {1, 7}, 0, 1},
  };
  for (const Window& w : windows)
    for (const int64_t item : {1, 2, 4, 8, 16}) expect_copied(w, item);
}

INSTANTIATE_TEST_SUITE_P(Threads, StridedCopies, testing::Values(1, 3));

TEST(StridedCopies, RejectOtherElements) {
  const uint8_t from[3] = {};
  uint8_t to[3];
  EXPECT_THROW(StridedCopy({1}, {1}, 3).run(from, to), Error);
}

}  // namespace
}  // namespace paddle
