// Attention and its gradient against the formula in f64, for sizes around block and tile
// boundaries, and the GEMMs that it uses.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "base/parallel.h"
#include "kernels/linalg/gemm.h"
#include "ops/core/call.h"
#include "ops/core/kernel.h"

namespace paddle::cpu {

std::unique_ptr<Kernel> prepare_attention(const KernelRequest& request);
std::unique_ptr<Kernel> prepare_attention_grad(const KernelRequest& request);

namespace {

double number(int64_t i, double seed) { return std::sin(seed + 1.7 * static_cast<double>(i)); }

Array drawn(DType dtype, const Dims& shape, double seed) {
  Array a = Array::zeros(DType::kF64, shape);
  for (int64_t i = 0; i < a.size(); ++i) a.data<double>()[i] = number(i, seed);
  return a.cast(dtype);
}

struct Case {
  int64_t queries, keys, width, values;
  bool causal, masked;
  int64_t batch = 2, heads = 3;
};

std::string name(const Case& c) {
  return str(c.queries, " queries, ", c.keys, " keys, ", c.width, " and ", c.values, " wide",
             c.causal ? ", causal" : "", c.masked ? ", masked" : "");
}

const Case kCases[] = {
    {1, 1, 1, 1, false, false},
    {1, 300, 64, 64, false, false},
    {47, 31, 7, 33, false, true},
    {48, 48, 16, 16, true, false},
    {49, 49, 80, 20, true, true},
    {100, 97, 33, 64, false, true},
    {13, 200, 96, 1, true, false},
    {97, 13, 20, 112, true, false},
    {256, 256, 64, 64, true, false, 1, 1},
};

/// The element [batch, position, head, feature] of a contiguous f64 array.
double at(const Array& a, int64_t b, int64_t i, int64_t h, int64_t d) {
  return a.data<double>()[((b * a.shape[1] + i) * a.shape[2] + h) * a.shape[3] + d];
}

struct Problem {
  Case c;
  double scale = 0.3;
  Array q, k, v, mask, grad;

  Problem(const Case& given, DType dtype)
      : c(given),
        q(drawn(dtype, {c.batch, c.queries, c.heads, c.width}, 1)),
        k(drawn(dtype, {c.batch, c.keys, c.heads, c.width}, 2)),
        v(drawn(dtype, {c.batch, c.keys, c.heads, c.values}, 3)),
        mask(drawn(dtype == DType::kF64 ? DType::kF64 : DType::kF32, {c.heads, 1, c.keys}, 4)),
        grad(drawn(dtype, {c.batch, c.queries, c.heads, c.values}, 5)) {}

  /// Attention weights of a query over all keys; a row without visible keys has none.
  std::vector<double> weights(int64_t b, int64_t h, int64_t i) const {
    std::vector<double> w(static_cast<size_t>(c.keys));
    double top = -std::numeric_limits<double>::infinity(), sum = 0;
    for (int64_t j = 0; j < c.keys; ++j) {
      double score = 0;
      for (int64_t d = 0; d < c.width; ++d) score += at(q, b, i, h, d) * at(k, b, j, h, d);
      score *= scale;
      if (c.masked) score += mask.number(h * c.keys + j);
      if (c.causal && j > i) score = -std::numeric_limits<double>::infinity();
      w[static_cast<size_t>(j)] = score;
      top = std::max(top, score);
    }
    for (double& x : w) sum += x = std::exp(x - top);
    for (double& x : w) x /= sum;
    return w;
  }
};

struct Kernels {
  explicit Kernels(const Problem& p)
      : out(Array::zeros(p.q.dtype, {p.c.batch, p.c.queries, p.c.heads, p.c.values})),
        log_sum(Array::zeros(p.q.dtype == DType::kF64 ? DType::kF64 : DType::kF32,
                             {p.c.batch, p.c.heads, p.c.queries})),
        dq(Array::zeros(p.q.dtype, p.q.shape)),
        dk(Array::zeros(p.k.dtype, p.k.shape)),
        dv(Array::zeros(p.v.dtype, p.v.shape)) {
    run("attention", prepare_attention, p, {&p.q, &p.k, &p.v, p.c.masked ? &p.mask : nullptr},
        {&out, &log_sum});
    run("attention_grad", prepare_attention_grad, p,
        {&p.grad, &p.q, &p.k, &p.v, p.c.masked ? &p.mask : nullptr, &out, &log_sum},
        {&dq, &dk, &dv});
  }

  static void run(const char* name, PrepareFn prepare, const Problem& p,
                  std::vector<const Array*> from, std::vector<Array*> to) {
    const Op& op = get_op(name);
    Attrs attrs = default_attrs(op);
    attrs[static_cast<size_t>(op.attr_index("scale"))] = p.scale;
    attrs[static_cast<size_t>(op.attr_index("is_causal"))] = p.c.causal;
    std::vector<Layout> operands, results;
    std::vector<void*> reads, writes;
    for (const Array* a : from) {
      operands.emplace_back();
      operands.back().present = a != nullptr;
      if (a) operands.back() = Layout::of(*a);
      reads.push_back(a ? const_cast<void*>(a->raw()) : nullptr);
    }
    for (Array* a : to) {
      results.push_back(Layout::of(*a));
      writes.push_back(a->raw());
    }
    const auto kernel =
        prepare({.op = op, .attrs = attrs, .operands = operands, .results = results});
    ASSERT_NE(kernel, nullptr);
    const auto scratch = Storage::allocate(kernel->scratch_bytes());
    std::fill_n(scratch->data(), kernel->scratch_bytes(), std::byte{0xff});  // NaN
    kernel->run({scratch->data(), nullptr}, reads.data(), writes.data());
  }

  Array out, log_sum, dq, dk, dv;
};

/// The largest difference relative to the largest value.
class Difference {
 public:
  void add(double got, double wanted) {
    const double gap = std::abs(got - wanted);
    most_ = gap <= most_ ? most_ : gap;  // keeps NaN
    largest_ = std::max(largest_, std::abs(wanted));
  }
  double value() const { return largest_ == 0 ? most_ : most_ / largest_; }

 private:
  double most_ = 0, largest_ = 0;
};

void check(Problem p, Kernels got, double tolerance) {
  const Case& c = p.c;
  for (Array* const a : {&p.q, &p.k, &p.v, &p.grad, &got.out, &got.dq, &got.dk, &got.dv})
    *a = a->cast(DType::kF64);
  Difference out, dq, dk, dv;
  for (int64_t b = 0; b < c.batch; ++b)
    for (int64_t h = 0; h < c.heads; ++h) {
      std::vector<double> wanted_dk(static_cast<size_t>(c.keys * c.width)),
          wanted_dv(static_cast<size_t>(c.keys * c.values));
      for (int64_t i = 0; i < c.queries; ++i) {
        const std::vector<double> w = p.weights(b, h, i);
        std::vector<double> slopes(w.size());
        double mean = 0;
        for (int64_t j = 0; j < c.keys; ++j) {
          const auto place = static_cast<size_t>(j);
          for (int64_t d = 0; d < c.values; ++d) {
            slopes[place] += at(p.grad, b, i, h, d) * at(p.v, b, j, h, d);
            wanted_dv[static_cast<size_t>(j * c.values + d)] += w[place] * at(p.grad, b, i, h, d);
          }
          mean += w[place] * slopes[place];
        }
        for (int64_t d = 0; d < c.values; ++d) {
          double sum = 0;
          for (int64_t j = 0; j < c.keys; ++j)
            sum += w[static_cast<size_t>(j)] * at(p.v, b, j, h, d);
          out.add(at(got.out, b, i, h, d), sum);
        }
        for (size_t j = 0; j < w.size(); ++j) slopes[j] = w[j] * (slopes[j] - mean) * p.scale;
        for (int64_t d = 0; d < c.width; ++d) {
          double sum = 0;
          for (int64_t j = 0; j < c.keys; ++j) {
            const double slope = slopes[static_cast<size_t>(j)];
            sum += slope * at(p.k, b, j, h, d);
            wanted_dk[static_cast<size_t>(j * c.width + d)] += slope * at(p.q, b, i, h, d);
          }
          dq.add(at(got.dq, b, i, h, d), sum);
        }
      }
      for (int64_t j = 0; j < c.keys; ++j) {
        for (int64_t d = 0; d < c.width; ++d)
          dk.add(at(got.dk, b, j, h, d), wanted_dk[static_cast<size_t>(j * c.width + d)]);
        for (int64_t d = 0; d < c.values; ++d)
          dv.add(at(got.dv, b, j, h, d), wanted_dv[static_cast<size_t>(j * c.values + d)]);
      }
    }
  EXPECT_LT(out.value(), tolerance) << name(c);
  // With a single key the gradients for queries and keys are zero up to rounding.
  if (c.keys > 1) {
    EXPECT_LT(dq.value(), tolerance) << name(c);
    EXPECT_LT(dk.value(), tolerance) << name(c);
  }
  EXPECT_LT(dv.value(), tolerance) << name(c);
}

TEST(Attention, MatchesTheFormula) {
  for (const Case& c : kCases)
    for (const DType dtype : {DType::kF32, DType::kF64, DType::kBF16}) {
      const Problem p(c, dtype);
      check(p, Kernels(p), dtype == DType::kF64 ? 1e-12 : dtype == DType::kF32 ? 3e-5 : 3e-2);
    }
}

TEST(Attention, ReadsStridedOperands) {
  const Case c{50, 50, 24, 24, true, false};
  Problem p(c, DType::kF32);
  const Kernels wanted(p);
  // Queries, keys and values interleaved, as one matmul computes them; then features strided.
  const auto strided = [](const Array& a, int64_t apart) {
    Array wide = Array::zeros(a.dtype, {a.size() * apart});
    Array out = wide;
    out.shape = a.shape;
    out.strides = contiguous_strides(a.shape);
    for (int64_t& s : out.strides) s *= apart;
    for (int64_t i = 0; i < a.size(); ++i)
      wide.data<float>()[i * apart] = static_cast<float>(a.number(i));
    return out;
  };
  const auto turned = [](const Array& a) {  // [batch, head, feature, position] in memory
    const Array wide = a.cast(DType::kF64);
    Array out = Array::zeros(a.dtype, a.shape);
    out.strides = {a.shape[1] * a.shape[2] * a.shape[3], 1, a.shape[1] * a.shape[3], a.shape[1]};
    for (int64_t b = 0; b < a.shape[0]; ++b)
      for (int64_t i = 0; i < a.shape[1]; ++i)
        for (int64_t h = 0; h < a.shape[2]; ++h)
          for (int64_t d = 0; d < a.shape[3]; ++d)
            out.data<float>()[b * out.strides[0] + i * out.strides[1] + h * out.strides[2] +
                              d * out.strides[3]] = static_cast<float>(at(wide, b, i, h, d));
    return out;
  };
  p.q = turned(p.q);
  p.k = strided(p.k, 3);
  p.v = turned(p.v);
  p.grad = strided(p.grad, 2);
  const Kernels got(p);
  for (const auto& [a, b] : {std::pair{&got.out, &wanted.out},
                             {&got.dq, &wanted.dq},
                             {&got.dk, &wanted.dk},
                             {&got.dv, &wanted.dv}})
    for (int64_t i = 0; i < a->size(); ++i) EXPECT_NEAR(a->number(i), b->number(i), 1e-5);
}

TEST(Attention, DoesNotDependOnThreads) {
  const Problem p({61, 61, 40, 40, true, false}, DType::kF32);
  const int threads = thread_count();
  set_thread_count(1);
  const Kernels one(p);
  set_thread_count(3);
  const Kernels three(p);
  set_thread_count(threads);
  for (int64_t i = 0; i < one.dk.size(); ++i) EXPECT_EQ(one.dk.number(i), three.dk.number(i));
}

TEST(PackedGemm, UsesPartOfThePackedMatrix) {
  for (const int64_t depth : {1, 5, 64})
    for (const int64_t columns : {1, 15, 16, 17, 33, 70}) {
      std::vector<float> b(static_cast<size_t>(depth * columns));
      for (size_t i = 0; i < b.size(); ++i)
        b[i] = static_cast<float>(number(static_cast<int64_t>(i), 1));
      std::vector<float> packed_b(packed_bytes(depth, columns, sizeof(float)) / sizeof(float));
      pack(depth, columns, MatrixView<float>{b.data(), columns, 1}, packed_b.data());
      for (const int64_t m : {1, 11, 12, 25})
        for (const int64_t k : {depth, (depth + 1) / 2})
          for (const int64_t n : {columns, (columns + 1) / 2})
            for (const int64_t apart : {1, 2, 30}) {  // rows of a, or its columns, or neither
              std::vector<float> a(static_cast<size_t>(m * k * 64 * 2));
              for (size_t i = 0; i < a.size(); ++i)
                a[i] = static_cast<float>(number(static_cast<int64_t>(i), 2));
              const MatrixView<float> view = apart == 1   ? MatrixView<float>{a.data(), k + 3, 1}
                                             : apart == 2 ? MatrixView<float>{a.data(), 1, m + 5}
                                                          : MatrixView<float>{a.data(), 2, 2 * m};
              std::vector<std::byte> workspace(packed_product_workspace_bytes(k, sizeof(float)));
              for (const bool add : {false, true}) {
                std::vector<float> c(static_cast<size_t>(m * (n + 2)), 7);
                multiply(PackedProduct<float>{m, n, k, view, packed_b.data(), depth, 0.5f, add,
                                              c.data(), n + 2},
                         workspace.data());
                for (int64_t i = 0; i < m; ++i)
                  for (int64_t j = 0; j < n + 2; ++j) {
                    double wanted = add || j >= n ? 7 : 0;
                    for (int64_t l = 0; l < k && j < n; ++l)
                      wanted += 0.5 *
                                static_cast<double>(
                                    view.data[i * view.row_stride + l * view.column_stride]) *
                                static_cast<double>(b[static_cast<size_t>(l * columns + j)]);
                    ASSERT_NEAR(c[static_cast<size_t>(i * (n + 2) + j)], wanted, 1e-4)
                        << m << " x " << n << " x " << k << " of " << depth << " x " << columns;
                  }
              }
            }
    }
}

}  // namespace
}  // namespace paddle::cpu
