// Reductions, GEMM and the strided reader on awkward layouts against plain loops, and independence
// of the number of threads.

#include "kernels/reduce/reduce.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numeric>

#include "base/parallel.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/linalg/gemm.h"
#include "kernels/reduce/reduce_simd.h"
#include "tensor/random.h"

namespace paddle::cpu {
namespace {

Array normal(DType dtype, Dims shape, uint64_t seed = 1) {
  Array x = Array::empty(DType::kF64, std::move(shape));
  Random(seed).fill_normal(std::span(x.data<double>(), static_cast<size_t>(x.size())));
  return x.cast(dtype);
}

/// Runs a kernel of one operand and one result.
Array run(const Kernel& kernel, const Array& x, DType type, Dims shape) {
  Array out = Array::zeros(type, std::move(shape));
  auto scratch = Storage::allocate(kernel.scratch_bytes() + 1);
  void* operands[] = {x.raw()};
  void* results[] = {out.raw()};
  kernel.run({scratch->data(), nullptr}, operands, results);
  return out;
}

struct Case {
  Dims shape;
  std::vector<int64_t> axes;
};

class ReduceTest : public testing::TestWithParam<Case> {};

TEST_P(ReduceTest, SumsAndProductsMatchPlainLoops) {
  const auto& [shape, axes] = GetParam();
  const Array x = normal(DType::kF32, shape);
  Array factors = Array::zeros(DType::kF32, shape);
  for (int64_t i = 0; i < x.size(); ++i) factors.data<float>()[i] = 1 + 0.01F * x.data<float>()[i];
  Dims kept;
  std::vector<bool> reduced(shape.size(), axes.empty());
  for (const int64_t axis : axes) reduced[static_cast<size_t>(axis)] = true;
  for (size_t i = 0; i < shape.size(); ++i)
    if (!reduced[i]) kept.push_back(shape[i]);
  const auto results = static_cast<size_t>(element_count(std::span<const int64_t>(kept)));
  std::vector<double> expected(results, 0.0), sizes(results, 0.0), products(results, 1.0);
  for (int64_t flat = 0; flat < x.size(); ++flat) {
    int64_t rest = flat, at = 0, step = 1;
    for (size_t i = shape.size(); i-- > 0;) {
      const int64_t index = rest % shape[i];
      rest /= shape[i];
      if (reduced[i]) continue;
      at += index * step;
      step *= shape[i];
    }
    expected[static_cast<size_t>(at)] += x.number(flat);
    sizes[static_cast<size_t>(at)] += std::abs(x.number(flat));
    products[static_cast<size_t>(at)] *= factors.number(flat);
  }
  const auto kernel =
      reduce(Layout::of(x), {axes, Reduction::kSum, ReduceForm::kPlain}, DType::kF32);
  const Array out = run(*kernel, x, DType::kF32, kept);
  // Four elements at a time are added as floats.
  for (size_t i = 0; i < results; ++i)
    EXPECT_NEAR(out.number(static_cast<int64_t>(i)), expected[i],
                1e-6 * (1 + std::abs(expected[i])) + 1e-8 * sizes[i]);
  const auto product =
      reduce(Layout::of(x), {axes, Reduction::kProd, ReduceForm::kPlain}, DType::kF32);
  const Array multiplied = run(*product, factors, DType::kF32, kept);
  for (size_t i = 0; i < results; ++i)
    EXPECT_NEAR(multiplied.number(static_cast<int64_t>(i)), products[i], 2e-5 * products[i]);
}
INSTANTIATE_TEST_SUITE_P(
    Layouts, ReduceTest,
    testing::Values(Case{{}, {}}, Case{{1}, {0}}, Case{{5}, {}}, Case{{3, 4}, {0}},
                    Case{{3, 4}, {1}}, Case{{2, 3, 4, 5}, {0, 2}}, Case{{2, 3, 4, 5}, {1, 3}},
                    Case{{2, 1, 3, 1}, {1}}, Case{{0, 3}, {0}}, Case{{3, 0}, {0}},
                    Case{{70001}, {}}, Case{{3000, 37}, {0}}, Case{{37, 3000}, {0}},
                    Case{{2, 40000}, {1}}, Case{{40, 3, 900}, {0, 2}}, Case{{4, 600, 5}, {1}}));

TEST(Reduce, DoesNotDependOnThreads) {
  const int threads = thread_count();
  for (const Case& c : {Case{{200003}, {}}, Case{{3000, 100}, {0}}, Case{{64, 7, 1000}, {0, 2}}}) {
    const Array x = normal(DType::kF32, c.shape, 5);
    Dims kept;
    for (size_t i = 0; i < c.shape.size(); ++i)
      if (!c.axes.empty() && std::count(c.axes.begin(), c.axes.end(), static_cast<int64_t>(i)) == 0)
        kept.push_back(c.shape[i]);
    const auto kernel =
        reduce(Layout::of(x), {c.axes, Reduction::kSum, ReduceForm::kMean}, DType::kF32);
    set_thread_count(1);
    const Array one = run(*kernel, x, DType::kF32, kept);
    set_thread_count(3);
    const Array three = run(*kernel, x, DType::kF32, kept);
    EXPECT_EQ(std::memcmp(one.raw(), three.raw(), static_cast<size_t>(one.size()) * 4), 0);
  }
  set_thread_count(threads);
}

TEST(Reduce, ExtremaPropagateNaN) {
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kF16}) {
    Array x = normal(DType::kF64, {5, 67});
    x.data<double>()[1 * 67 + 3] = x.data<double>()[4 * 67 + 66] = std::nan("");
    x = x.cast(dtype);
    for (const Reduction reduction : {Reduction::kMax, Reduction::kMin})
      for (const int64_t axis : {0, 1}) {
        const auto kernel = reduce(Layout::of(x), {{axis}, reduction, ReduceForm::kPlain}, dtype);
        const Array out = run(*kernel, x, dtype, {axis == 0 ? 67 : 5});
        for (int64_t i = 0; i < out.size(); ++i)
          EXPECT_EQ(std::isnan(out.number(i)), axis == 0 ? i == 3 || i == 66 : i == 1 || i == 4)
              << text(dtype) << " axis " << axis << " at " << i;
      }
  }
}

TEST(RowLoops, MaxPropagatesNaN) {
  const RowLoops<float>& rows = row_loops<float>();
  for (const int64_t n : {1, 15, 16, 63, 64, 65, 200}) {
    for (int64_t at = 0; at < n; ++at) {
      std::vector<float> x(static_cast<size_t>(n), -2);
      x[static_cast<size_t>(at)] = 3;
      EXPECT_EQ(rows.max(x.data(), n), 3) << at << " of " << n;
      x[static_cast<size_t>(at)] = NAN;
      EXPECT_TRUE(std::isnan(rows.max(x.data(), n))) << at << " of " << n;
    }
  }
}

TEST(RowLoops, MaskedScoresAddNothing) {
  const RowLoops<float>& rows = row_loops<float>();
  std::vector<float> x(101, -3.4e38f), y(101);
  x[7] = 1;
  x[64] = 1;
  x[65] = -99;
  x[100] = -INFINITY;
  EXPECT_EQ(rows.exp_and_sum(x.data(), y.data(), 101, 1), 2);
  EXPECT_EQ(rows.sum_exp(x.data(), 101, 1), 2);
  for (size_t i = 0; i < y.size(); ++i) EXPECT_EQ(y[i], i == 7 || i == 64 ? 1 : 0) << i;
}

TEST(StridedReader, ReadsAnyPartOfAnyLayout) {
  const Array base = normal(DType::kF32, {4, 5, 6});
  Layout turned = Layout::of(base);
  std::swap(turned.shape[0], turned.shape[2]);
  std::swap(turned.strides[0], turned.strides[2]);
  Layout backwards = Layout::of(base);
  backwards.strides[1] = -backwards.strides[1];
  Layout repeated = Layout::of(base);
  repeated.shape = {5, 6};
  repeated.strides = {6, 1};
  struct Variant {
    Layout layout;
    Dims shape;
    int64_t start;
  };
  for (const Variant& v : {Variant{turned, turned.shape, 0}, Variant{backwards, base.shape, 24},
                           Variant{repeated, {3, 5, 6}, 0}}) {
    const StridedReader reader(v.layout, v.shape, DType::kF64);
    const int64_t size = element_count(std::span<const int64_t>(v.shape));
    std::vector<double> all(static_cast<size_t>(size)), part(static_cast<size_t>(size));
    for (int64_t flat = 0; flat < size; ++flat) {
      int64_t rest = flat, at = v.start;
      for (size_t i = v.shape.size(); i-- > 0;) {
        const size_t lead = v.shape.size() - v.layout.shape.size();
        if (i >= lead) at += rest % v.shape[i] * v.layout.strides[i - lead];
        rest /= v.shape[i];
      }
      all[static_cast<size_t>(flat)] = base.number(at);
    }
    for (int64_t begin = 0; begin < size; begin += 7)
      for (int64_t n = 1; begin + n <= size; n += 13) {
        const double* values = static_cast<const double*>(
            reader.read(base.data<float>() + v.start, begin, n, part.data()));
        for (int64_t i = 0; i < n; ++i) ASSERT_EQ(values[i], all[static_cast<size_t>(begin + i)]);
      }
  }
}

TEST(Gemm, MatchesPlainLoopsForAllTails) {
  std::vector<std::byte> workspace(gemm_workspace_bytes(8));
  for (const auto& [m, n, k] : {std::array<int64_t, 3>{1, 1, 1},
                                {5, 7, 3},
                                {12, 16, 192},
                                {13, 33, 200},
                                {25, 17, 400},
                                {192, 384, 10},
                                {3, 2, 0}}) {
    const Array a = normal(DType::kF64, {m, k}, 2), b = normal(DType::kF64, {n, k}, 3);
    std::vector<double> c(static_cast<size_t>(m * (n + 3)), 0.5);
    gemm_block(m, n, k, MatrixView<double>{a.data<double>(), k, 1},
               MatrixView<double>{b.data<double>(), 1, k}, c.data(), n + 3, workspace.data());
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0.5;
        for (int64_t l = 0; l < k; ++l)
          sum += a.data<double>()[i * k + l] * b.data<double>()[j * k + l];
        EXPECT_NEAR(c[static_cast<size_t>(i * (n + 3) + j)], sum, 1e-11);
      }
      for (int64_t j = n; j < n + 3; ++j) EXPECT_EQ(c[static_cast<size_t>(i * (n + 3) + j)], 0.5);
    }
  }
}

}  // namespace
}  // namespace paddle::cpu
