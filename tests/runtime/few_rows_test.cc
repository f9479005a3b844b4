// Products of one to eight rows with a large matrix, against plain sums in double.

#include <gtest/gtest.h>

#include <cmath>

#include "base/thread_scope.h"
#include "kernels/linalg/few_rows.h"
#include "ops/core/operators.h"
#include "ops/generated/linalg.h"
#include "ops/generated/nn.h"
#include "ops/generated/shape.h"
#include "runtime/execute.h"
#include "support/numbers.h"

namespace paddle {
namespace {

using testing_support::drawn;

struct Sizes {
  int64_t m, k, n;
};
// Not multiples of vectors, streams or tiles.
constexpr Sizes kSizes[] = {{1, 515, 2061}, {2, 514, 777}, {3, 301, 1001},
                            {5, 1030, 515}, {7, 97, 4099}, {8, 513, 1027}};

class FewRows : public testing::Test {
  runtime::EagerExecutor eager_;
  InterpreterScope scope_{eager_};
};

void expect_product(const Array& got, const Array& x, const Array& y, bool transpose,
                    double tolerance, const std::string& what) {
  const int64_t m = x.shape[0], k = x.shape[1], n = got.shape[1];
  const Array values = got.contiguous();
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; j += 37) {
      double sum = 0, size = 0;
      for (int64_t l = 0; l < k; ++l) {
        const double term = x.number(i * k + l) * y.number(transpose ? j * k + l : l * n + j);
        sum += term;
        size += std::abs(term);
      }
      ASSERT_NEAR(values.number(i * n + j), sum, tolerance * size) << what << " " << i << "," << j;
    }
}

TEST_F(FewRows, AreSumsOfProducts) {
  for (const Sizes& s : kSizes)
    for (const bool transpose : {false, true})
      for (const DType dtype : {DType::kF32, DType::kBF16}) {
        const Array x = drawn({s.m, s.k}, 3, 1).cast(dtype);
        const Array y = drawn(transpose ? Dims{s.n, s.k} : Dims{s.k, s.n}, 4, 1).cast(dtype);
        const Tensor out = ops::matmul(Tensor(x), Tensor(y), false, transpose);
        expect_product(out.array(), x, y, transpose, dtype == DType::kF32 ? 1e-6 : 4e-3,
                       str(s.m, "x", s.k, "x", s.n, transpose ? " transposed " : " ", text(dtype)));
      }
}

TEST_F(FewRows, HaveTheSameBitsWithAnyNumberOfThreads) {
  const Array x = drawn({3, 600}, 5, 1), y = drawn({600, 1500}, 6, 1);
  const auto product = [&](int threads) {
    const ThreadScope scope(threads);
    return ops::matmul(Tensor(x), Tensor(y)).array().contiguous();
  };
  const Array one = product(1), two = product(2);
  for (int64_t i = 0; i < one.size(); ++i) ASSERT_EQ(one.number(i), two.number(i)) << i;
}

TEST_F(FewRows, TakeBias) {
  const Array x = drawn({2, 300}, 7, 1), y = drawn({300, 1000}, 8, 1), bias = drawn({1000}, 9, 1);
  const Array with = ops::linear(Tensor(x), Tensor(y), Tensor(bias)).array().contiguous();
  const Array without = ops::matmul(Tensor(x), Tensor(y)).array().contiguous();
  for (int64_t i = 0; i < with.size(); ++i)
    ASSERT_EQ(with.data<float>()[i], without.data<float>()[i] + bias.data<float>()[i % 1000]) << i;
}

TEST_F(FewRows, ApplyToLargeMatricesOnly) {
  cpu::MatmulShape shape;
  shape.m = 8;
  shape.k = 512;
  shape.n = 512;
  shape.x_column = shape.y_column = 1;
  shape.x_row = shape.y_row = 512;
  EXPECT_TRUE(cpu::is_few_rows(shape));
  shape.m = 9;
  EXPECT_FALSE(cpu::is_few_rows(shape));
  shape.m = 1;
  shape.n = 128;
  EXPECT_FALSE(cpu::is_few_rows(shape));
}

}  // namespace
}  // namespace paddle
