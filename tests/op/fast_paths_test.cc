// Kernels that choose among loops by shape: each result against plain code on the same numbers.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "ops/core/operators.h"
#include "ops/generated/indexing.h"
#include "ops/generated/math.h"
#include "ops/generated/nn.h"
#include "ops/generated/reduce.h"
#include "ops/generated/shape.h"
#include "ops/generated/sorting.h"
#include "runtime/execute.h"
#include "support/numbers.h"

namespace paddle {
namespace {

using testing_support::drawn;
using testing_support::Generator;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

class FastPaths : public testing::Test {
  runtime::EagerExecutor eager_;
  InterpreterScope scope_{eager_};
};

void expect_same(const Tensor& got, const Tensor& wanted, const std::string& what) {
  const Array a = got.array().contiguous(), b = wanted.array().contiguous();
  ASSERT_EQ(a.shape, b.shape) << what;
  for (int64_t i = 0; i < a.size(); ++i) {
    const double x = a.number(i), y = b.number(i);
    if (std::isnan(y)) {
      ASSERT_TRUE(std::isnan(x)) << what << " at " << i;
    } else {
      ASSERT_EQ(x, y) << what << " at " << i;
    }
  }
}

// With indices, windows are compared element by element.
TEST_F(FastPaths, MaxPoolingWithoutIndices) {
  Generator generator(5);
  const auto up_to = [&](int64_t most) {
    return 1 + static_cast<int64_t>(generator.next()) % most;
  };
  for (int i = 0; i < 150; ++i) {
    Array x = drawn({2, 3, up_to(40), up_to(150)}, static_cast<uint32_t>(i), 4);
    if (i % 5 == 0) x.data<float>()[x.size() / 3] = kNaN;
    if (i % 3 == 0)
      for (int64_t k = 0; k < x.size(); ++k) x.data<float>()[k] = std::trunc(x.data<float>()[k]);
    const int64_t kh = up_to(11), kw = up_to(11);
    const int64_t top = up_to(kh / 2 + 1) - 1, left = up_to(kw / 2 + 1) - 1;
    if (x.shape[2] + 2 * top < kh || x.shape[3] + 2 * left < kw) continue;
    const AttrValue kernel(std::vector<int64_t>{kh, kw}), padding(std::vector<int64_t>{top, left}),
        stride(std::vector<int64_t>{up_to(4), up_to(4)});
    const bool ceil = i % 2 == 0;
    expect_same(ops::max_pool2d(Tensor(x), kernel, stride, padding, false, ceil)[0],
                ops::max_pool2d(Tensor(x), kernel, stride, padding, true, ceil)[0],
                str("pooling ", i, " of ", str(x.shape), " by ", kh, " x ", kw));
  }
}

TEST_F(FastPaths, MaxPoolingOfVolumesWithoutIndices) {
  const Tensor x(drawn({2, 3, 7, 12, 19}, 1, 2));
  for (const int64_t size : {1, 2, 3})
    for (const char* format : {"NCDHW", "NDHWC"}) {
      const AttrValue kernel(size), stride(int64_t{2}), padding(size / 2);
      expect_same(ops::max_pool3d(x, kernel, stride, padding, false, true, format)[0],
                  ops::max_pool3d(x, kernel, stride, padding, true, true, format)[0], format);
    }
}

/// x with the axis last.
Tensor with_axis_last(const Tensor& x, int64_t axis) {
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < x.ndim(); ++i)
    if (i != axis) axes.push_back(i);
  axes.push_back(axis);
  return Tensor(ops::transpose(x, axes).array().contiguous());
}

TEST_F(FastPaths, ScansAcrossRows) {
  for (const Dims& shape : {Dims{9, 20}, Dims{3, 17, 300}, Dims{40, 3, 257}}) {
    Array numbers = drawn(shape, 2, 5);
    for (const DType dtype : {DType::kF32, DType::kF64, DType::kBF16, DType::kI32, DType::kU8}) {
      const Tensor x(numbers.cast(dtype));
      for (int64_t axis = 0; axis + 1 < x.ndim(); ++axis) {
        const std::string what = str(text(dtype), " along axis ", axis, " of ", str(shape));
        const Tensor last = with_axis_last(x, axis);
        expect_same(with_axis_last(ops::cumsum(x, axis), axis), ops::cumsum(last, -1), what);
        expect_same(ops::argmax(x, axis), ops::argmax(last, -1), "argmax " + what);
        expect_same(ops::argmin(x, axis), ops::argmin(last, -1), "argmin " + what);
      }
    }
  }
}

TEST_F(FastPaths, ExtremaOfEqualNumbersAndNaN) {
  Array x = Array::zeros(DType::kF32, {4, 200});
  float* const v = x.data<float>();
  v[130] = v[70] = 3;
  v[200 + 199] = -1;
  v[2 * 200 + 5] = v[2 * 200 + 150] = kNaN;
  v[3 * 200 + 196] = std::numeric_limits<float>::infinity();
  const auto places = [](const Tensor& t) {
    const Array a = t.array().contiguous();
    return std::vector<int64_t>(a.data<int64_t>(), a.data<int64_t>() + a.size());
  };
  const std::vector<int64_t> largest = {70, 0, 5, 196}, least = {0, 199, 5, 0};
  EXPECT_EQ(places(ops::argmax(Tensor(x), 1)), largest);
  EXPECT_EQ(places(ops::argmin(Tensor(x), 1)), least);
  const Tensor columns = ops::tile(ops::unsqueeze(Tensor(x), std::vector<int64_t>{2}), {1, 1, 20});
  EXPECT_EQ(ops::argmax(columns, 1).array().integer(20), 0);
  EXPECT_EQ(ops::argmax(columns, 1).array().integer(0), 70);
  EXPECT_EQ(ops::argmin(columns, 1).array().integer(45), 5);
}

/// The first `limit` indices of a row in a stable order with NaN as the largest.
std::vector<int64_t> order_of(const Array& row, bool descending, int64_t limit) {
  std::vector<int64_t> out(static_cast<size_t>(row.size()));
  std::iota(out.begin(), out.end(), int64_t{0});
  const auto less = [&](int64_t a, int64_t b) {
    const double x = row.number(a), y = row.number(b);
    return x < y || (std::isnan(y) && !std::isnan(x));
  };
  std::stable_sort(out.begin(), out.end(),
                   [&](int64_t a, int64_t b) { return descending ? less(b, a) : less(a, b); });
  out.resize(static_cast<size_t>(limit));
  return out;
}

TEST_F(FastPaths, SortsAreStable) {
  for (const int64_t n : {1, 7, 200, 1000})
    for (const DType dtype : {DType::kF32, DType::kF64, DType::kF16, DType::kI8, DType::kU8,
                              DType::kI32, DType::kI64, DType::kBool}) {
      Array numbers = drawn({n}, static_cast<uint32_t>(n), 30);
      for (int64_t i = 0; i < n; ++i) {
        float& value = numbers.data<float>()[i];
        value = i % 3 == 0 ? std::trunc(value) : value;
        if (i % 50 == 17) value = kNaN;
        if (i % 50 == 18) value = i % 100 < 50 ? -0.0f : 0.0f;
        if (i % 70 == 19) value = -std::numeric_limits<float>::infinity();
      }
      const Array row = numbers.cast(dtype);
      for (const bool descending : {false, true})
        for (const int64_t limit : {int64_t{1}, std::min<int64_t>(n, 5), n / 3 + 1, n}) {
          const std::string what =
              str(limit, " of ", n, " ", text(dtype), descending ? ", descending" : "");
          const std::vector<int64_t> wanted = order_of(row, descending, limit);
          const Tensors got = ops::sort_pairs(Tensor(row), 0, descending, limit);
          const Tensor column(
              ops::tile(ops::unsqueeze(Tensor(row), std::vector<int64_t>{1}), {1, 3})
                  .array()
                  .contiguous());
          const Tensors columns = ops::sort_pairs(column, 0, descending, limit);
          for (int64_t i = 0; i < limit; ++i) {
            ASSERT_EQ(got[1].array().integer(i), wanted[static_cast<size_t>(i)]) << what;
            ASSERT_EQ(columns[1].array().integer(3 * i + 2), wanted[static_cast<size_t>(i)])
                << what;
          }
          expect_same(got[0], ops::index_select(Tensor(row), got[1], 0), what);
        }
    }
}

// Along the last axis and along others, negative and out of range, of every integer type.
TEST_F(FastPaths, IndicesOfEveryType) {
  const Array x = drawn({3, 700}, 4, 1), columns = ops::transpose(Tensor(x), {1, 0}).array();
  const Array y = columns.contiguous();
  Generator generator(6);
  for (const DType dtype : {DType::kI64, DType::kI32, DType::kI16}) {
    Array at = Array::empty(DType::kI64, {3, 530});
    for (int64_t i = 0; i < at.size(); ++i)
      at.data<int64_t>()[i] = static_cast<int64_t>(generator.next() % 1400) - 700;
    const auto of = [&](int64_t row, int64_t i) {
      const int64_t place = at.data<int64_t>()[row * 530 + i];
      return x.data<float>()[row * 700 + (place < 0 ? place + 700 : place)];
    };
    const Tensor index(at.cast(dtype)), across(ops::transpose(index, {1, 0}).array().contiguous());
    const Array got = ops::gather_along(Tensor(x), index, 1).array(),
                down = ops::gather_along(Tensor(y), across, 0).array();
    for (int64_t row = 0; row < 3; ++row)
      for (int64_t i = 0; i < 530; ++i) {
        ASSERT_EQ(got.data<float>()[row * 530 + i], of(row, i)) << text(dtype);
        ASSERT_EQ(down.data<float>()[i * 3 + row], of(row, i)) << text(dtype);
      }
    for (const int64_t wrong : {int64_t{700}, int64_t{-701}, int64_t{32767}, int64_t{-32768}}) {
      Array bad = at.cast(DType::kI64);
      bad.data<int64_t>()[1000] = wrong;
      EXPECT_THROW(ops::gather_along(Tensor(x), Tensor(bad.cast(dtype)), 1), Error) << wrong;
    }
  }
  for (const int64_t wrong :
       {std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min()})
    EXPECT_THROW(ops::gather_along(Tensor(x), Tensor(Array::from<int64_t>({wrong}, {1, 1})), 1),
                 Error);
}

TEST_F(FastPaths, TrianglesOfMatrices) {
  const Tensor x(drawn({2, 5, 7}, 3, 1));
  for (const int64_t diagonal :
       {int64_t{-9}, int64_t{-2}, int64_t{0}, int64_t{3}, int64_t{9},
        std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min()}) {
    const Array lower = ops::tril(x, diagonal).array(), upper = ops::triu(x, diagonal).array();
    for (int64_t i = 0; i < x.array().size(); ++i) {
      const int64_t row = i / 7 % 5, column = i % 7;
      const double value = x.array().number(i);
      EXPECT_EQ(lower.number(i), column - row <= diagonal ? value : 0) << i << ", " << diagonal;
      EXPECT_EQ(upper.number(i), column - row >= diagonal ? value : 0) << i << ", " << diagonal;
    }
  }
}

TEST_F(FastPaths, RowsThatRepeat) {
  const Tensor x(drawn({6, 5, 300}, 4, 1)), row(drawn({300}, 5, 1)), column(drawn({5, 1}, 6, 1)),
      middle(drawn({6, 1, 300}, 7, 1));
  const Tensor chosen = ops::greater_than(column, Tensor::number(0.0));
  const Array got = ops::where(chosen, x, row + middle).array(), sum = (x * column).array();
  for (int64_t i = 0; i < got.size(); ++i) {
    const int64_t k = i % 300, r = i / 300 % 5, n = i / 1500;
    const float other = row.array().data<float>()[k] + middle.array().data<float>()[n * 300 + k];
    const float c = column.array().data<float>()[r], value = x.array().data<float>()[i];
    ASSERT_EQ(got.data<float>()[i], c > 0 ? value : other) << i;
    ASSERT_EQ(sum.data<float>()[i], value * c) << i;
  }
}

TEST_F(FastPaths, FloatsToIntegers) {
  Array x = drawn({1000}, 8, 300);
  float* const v = x.data<float>();
  const float others[] = {kNaN, 1e30f, -1e30f, 0x1p31f, -0x1p31f, 0x1p32f, 0x1p62f, 0x1p63f, 4e9f};
  for (size_t i = 0; i < std::size(others); ++i) v[400 + 3 * i] = others[i];
  for (const DType to : {DType::kI8, DType::kU8, DType::kI16, DType::kU16, DType::kI32, DType::kU32,
                         DType::kI64, DType::kU64, DType::kBool}) {
    const Array got = ops::cast(Tensor(x), to).array(), wanted = x.cast(to);
    for (int64_t i = 0; i < x.size(); ++i)
      ASSERT_EQ(got.integer(i), wanted.integer(i)) << text(to) << " of " << v[i];
  }
}

TEST_F(FastPaths, SoftmaxIsAccurate) {
  for (const int64_t n : {1, 5, 8, 49, 1023}) {
    Array x = drawn({3, n}, static_cast<uint32_t>(n), 40);
    x.data<float>()[0] = -std::numeric_limits<float>::infinity();
    if (n == 1) x.data<float>()[0] = 2;
    const Array got = ops::softmax(Tensor(x), -1).array(),
                logs = ops::log_softmax(Tensor(x), -1).array();
    for (int64_t r = 0; r < 3; ++r) {
      const float* const row = x.data<float>() + r * n;
      const float highest = *std::max_element(row, row + n);
      double sum = 0;
      for (int64_t i = 0; i < n; ++i) sum += std::exp(row[i] - highest);
      for (int64_t i = 0; i < n; ++i) {
        const double wanted = std::exp(row[i] - highest) / sum;
        EXPECT_NEAR(got.number(r * n + i), wanted, 1e-6 * wanted + 1e-38) << row[i];
        if (std::isfinite(row[i])) {
          EXPECT_NEAR(logs.number(r * n + i), row[i] - highest - std::log(sum), 1e-5);
        }
      }
    }
    x.data<float>()[n / 2] = kNaN;
    EXPECT_TRUE(std::isnan(ops::softmax(Tensor(x), -1).array().number(0)));
  }
}

TEST_F(FastPaths, NormsOverMoreAxesThanThereAreAreRejected) {
  using Axes = std::vector<int64_t>;
  const Tensor x(Array::from<float>({3, 4}, {2}));
  EXPECT_EQ(ops::vector_norm(x, 2.0, Axes{0}).array().number(0), 5);
  for (const Axes& axes : {Axes{-2, -1}, Axes{0, 1}, Axes{0, 0}}) try {
      ops::vector_norm(x, 2.0, axes);
      FAIL() << axes.size();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUsage) << error.what();
    }
}

}  // namespace
}  // namespace paddle
