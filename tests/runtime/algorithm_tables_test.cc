// The selection tables of kernels: which algorithms apply to a problem, in which order, which of
// them computes it, and that all of them give the same result.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "base/text.h"
#include "kernels/elementwise/loops.h"
#include "runtime/execute.h"
#include "tensor/random.h"

namespace paddle::runtime {
namespace {

struct Problem {
  std::string op;
  std::vector<std::pair<std::string, AttrValue>> attributes;
  std::vector<Layout> operands, results;
};

Layout of(DType dtype, Dims shape) { return Layout::contiguous(dtype, std::move(shape)); }
Layout absent(DType dtype, Dims shape) {
  Layout out = of(dtype, std::move(shape));
  out.present = false;
  return out;
}

/// Takes the algorithm of a name, where there is one, and notes what there was to choose from.
struct Forced final : KernelChoices {
  std::string name;
  std::vector<std::string> algorithms;
  std::string choose(const KernelRequest&, ChoiceLevel level,
                     std::span<const std::string> names) override {
    if (level != ChoiceLevel::kAlgorithm) return "";
    algorithms.assign(names.begin(), names.end());
    return name;
  }
};

std::unique_ptr<Kernel> prepare(const Problem& p, KernelChoices* choices = nullptr) {
  register_backends();
  const Op& op = get_op(p.op);
  Attrs attrs{op.defaults, {}};
  for (const auto& [name, value] : p.attributes)
    attrs[static_cast<size_t>(op.attr_index(name))] = value;
  return prepare_kernel({op, attrs, p.operands, p.results, {}, {.choices = choices}});
}

/// "planes, rows": the algorithms that apply; "" if there is no choice.
std::string algorithms(const Problem& p) {
  Forced none;
  prepare(p, &none);
  return join(none.algorithms, ", ");
}

std::string chosen(const Problem& p) { return prepare(p)->implementation(); }

/// The first result of the algorithm of a name, on random numbers.
Array run(const Problem& p, const std::string& algorithm) {
  Forced forced;
  forced.name = algorithm;
  const auto kernel = prepare(p, &forced);
  EXPECT_NE(kernel->implementation().find(algorithm), std::string::npos)
      << kernel->implementation();
  std::vector<Array> arrays;
  std::vector<void*> operands, results;
  for (const Layout& l : p.operands) {
    arrays.push_back(Array::zeros(l.dtype, l.shape));
    Random(7, arrays.size())
        .fill_normal(std::span(arrays.back().data<float>(), static_cast<size_t>(l.size())));
    operands.push_back(arrays.back().raw());
  }
  for (const Layout& l : p.results) {
    arrays.push_back(Array::zeros(l.dtype, l.shape));
    results.push_back(l.present ? arrays.back().raw() : nullptr);
  }
  const auto scratch = Storage::allocate(std::max<size_t>(64, kernel->scratch_bytes()));
  kernel->run({static_cast<std::byte*>(scratch->data())}, operands.data(), results.data());
  return arrays[p.operands.size()];
}

/// All algorithms that apply have the same bits.
void expect_same_bits(const Problem& p) {
  Forced none;
  prepare(p, &none);
  ASSERT_GE(none.algorithms.size(), 2u) << p.op;
  const Array first = run(p, none.algorithms[0]);
  for (const std::string& name : none.algorithms) {
    const Array other = run(p, name);
    EXPECT_EQ(std::memcmp(first.raw(), other.raw(),
                          static_cast<size_t>(first.size() * item_size(first.dtype))),
              0)
        << p.op << " " << name;
  }
}

Problem max_pool(DType dtype, int64_t window, bool indices, const std::string& format) {
  const bool last = format == "NHWC";
  const int64_t out = 12 / window;
  const Dims in_shape = last ? Dims{2, 12, 12, 3} : Dims{2, 3, 12, 12};
  const Dims out_shape = last ? Dims{2, out, out, 3} : Dims{2, 3, out, out};
  return {"max_pool2d",
          {{"kernel_size", window}, {"stride", window}, {"data_format", format}},
          {of(dtype, in_shape)},
          {of(dtype, out_shape),
           indices ? of(DType::kI32, out_shape) : absent(DType::kI32, out_shape)}};
}

TEST(AlgorithmTables, MaxPooling) {
  EXPECT_EQ(algorithms(max_pool(DType::kF32, 3, false, "NCHW")), "planes, rows");
  EXPECT_EQ(chosen(max_pool(DType::kF32, 3, false, "NCHW")), "cpu:planes");
  EXPECT_EQ(chosen(max_pool(DType::kF32, 2, false, "NCHW")), "cpu:2x2");
  EXPECT_EQ(chosen(max_pool(DType::kF32, 2, true, "NCHW")), "cpu:2x2");
  EXPECT_EQ(chosen(max_pool(DType::kF32, 3, true, "NCHW")), "cpu:rows");
  EXPECT_EQ(chosen(max_pool(DType::kF64, 3, false, "NCHW")), "cpu:rows");
  EXPECT_EQ(chosen(max_pool(DType::kF32, 3, false, "NHWC")), "cpu:channels");
  EXPECT_EQ(chosen(max_pool(DType::kU8, 2, true, "NHWC")), "cpu:channels");
  expect_same_bits(max_pool(DType::kF32, 3, false, "NCHW"));
  expect_same_bits(max_pool(DType::kF32, 2, false, "NCHW"));
}

TEST(AlgorithmTables, GradientsOfMaxPooling) {
  const auto grad = [](DType dtype, const std::string& format) {
    return Problem{"max_pool2d_grad",
                   {{"input_shape", std::vector<int64_t>{2, 12, 12, 12}}, {"data_format", format}},
                   {of(dtype, {2, 12, 6, 12}), of(DType::kI32, {2, 12, 6, 12})},
                   {of(dtype, {2, 12, 12, 12})}};
  };
  EXPECT_EQ(chosen(grad(DType::kF32, "NHWC")), "cpu:channels");
  EXPECT_EQ(chosen(grad(DType::kF32, "NCHW")), "cpu:planes");
  EXPECT_EQ(chosen(grad(DType::kBF16, "NCHW")), "cpu:planes");
}

TEST(AlgorithmTables, AveragePooling) {
  const auto pool = [](DType dtype, int64_t window) {
    return Problem{"avg_pool2d",
                   {{"kernel_size", window}, {"stride", window}},
                   {of(dtype, {2, 3, 12, 12})},
                   {of(dtype, {2, 3, 12 / window, 12 / window})}};
  };
  EXPECT_EQ(chosen(pool(DType::kF32, 12)), "cpu:whole_planes");
  EXPECT_EQ(chosen(pool(DType::kF64, 12)), "cpu:whole_planes");
  EXPECT_EQ(chosen(pool(DType::kF64, 3)), "cpu:windows");
  EXPECT_EQ(algorithms(pool(DType::kF64, 12)), "whole_planes, windows");
}

TEST(AlgorithmTables, Extrema) {
  const auto argmax = [](int64_t columns) {
    return Problem{"argmax",
                   {{"axis", int64_t{0}}},
                   {of(DType::kF32, {40, columns})},
                   {of(DType::kI64, {columns})}};
  };
  EXPECT_EQ(chosen(argmax(16)), "cpu:columns");
  EXPECT_EQ(chosen(argmax(15)), "cpu:rows");
  expect_same_bits(argmax(300));
}

TEST(AlgorithmTables, CumulativeSums) {
  const auto cumsum = [](DType dtype, int64_t axis, Dims shape) {
    return Problem{"cumsum", {{"axis", axis}}, {of(dtype, shape)}, {of(dtype, shape)}};
  };
  EXPECT_EQ(chosen(cumsum(DType::kF32, 0, {40, 16})), "cpu:columns");
  EXPECT_EQ(chosen(cumsum(DType::kI64, 0, {40, 16})), "cpu:columns");
  EXPECT_EQ(chosen(cumsum(DType::kF32, 1, {40, 16})), "cpu:rows");
  EXPECT_EQ(chosen(cumsum(DType::kI64, 1, {40, 16})), "cpu:copied_rows");
  EXPECT_EQ(chosen(cumsum(DType::kF32, 0, {40, 8})), "cpu:copied_rows");
  expect_same_bits(cumsum(DType::kF32, 0, {40, 300}));
  expect_same_bits(cumsum(DType::kF32, 1, {7, 40}));
}

TEST(AlgorithmTables, Sorting) {
  const auto sorted = [](DType dtype, int64_t limit) {
    const int64_t count = limit < 0 ? 500 : limit;
    return Problem{"sort_pairs",
                   {{"limit", limit}, {"descending", true}},
                   {of(dtype, {3, 500})},
                   {of(dtype, {3, count}), of(DType::kI64, {3, count})}};
  };
  EXPECT_EQ(algorithms(sorted(DType::kF32, 10)), "selection, keys, comparison");
  EXPECT_EQ(chosen(sorted(DType::kF32, 10)), "cpu:selection");
  EXPECT_EQ(chosen(sorted(DType::kF32, 100)), "cpu:keys");
  EXPECT_EQ(chosen(sorted(DType::kF32, -1)), "cpu:keys");
  EXPECT_EQ(chosen(sorted(DType::kF64, -1)), "cpu:comparison");
  EXPECT_EQ(chosen(sorted(DType::kI64, 10)), "cpu:selection");
  expect_same_bits(sorted(DType::kF32, 10));
  expect_same_bits(sorted(DType::kF32, -1));
}

TEST(AlgorithmTables, SumsOfComplexNumbers) {
  const auto reduce = [](const std::string& op, int64_t axis) {
    return Problem{op,
                   {{"axis", std::vector<int64_t>{axis}}},
                   {of(DType::kC64, {4, 9})},
                   {of(DType::kC64, {axis == 0 ? 9 : 4})}};
  };
  EXPECT_EQ(chosen(reduce("sum", 1)), "cpu:run_sum");
  EXPECT_EQ(algorithms(reduce("sum", 1)), "run_sum, parts");
  EXPECT_EQ(algorithms(reduce("mean", 0)), "");
  EXPECT_EQ(chosen(reduce("prod", 1)), "cpu:product");
}

TEST(AlgorithmTables, MatrixProductsOfOneDnn) {
  const auto matmul = [](int64_t m, int64_t k, int64_t n, const void* constant) {
    Problem p{"matmul",
              {},
              {of(DType::kF32, {m, k}), of(DType::kF32, {k, n})},
              {of(DType::kF32, {m, n})}};
    p.operands[1].constant = constant;
    return p;
  };
  // Whether oneDNN has both depends on the machine; which are tried does not.
  const std::vector<float> weight(512 * 512, 0.5f);
  const bool avx2 = cpu::vector_bytes() == 32;
  EXPECT_EQ(algorithms(matmul(512, 4096, 512, nullptr)),
            avx2 ? "pointwise_conv, repacking, matmul" : "repacking, matmul");
  EXPECT_EQ(algorithms(matmul(512, 512, 512, nullptr)), avx2 ? "pointwise_conv, matmul" : "");
  EXPECT_EQ(algorithms(matmul(512, 512, 512, weight.data())), "pointwise_conv, matmul");
  EXPECT_EQ(algorithms(matmul(2, 512, 512, weight.data())), "few_rows, matmul");
}

TEST(AlgorithmTables, PointwiseConvolutions) {
  const auto conv = [](int64_t in, int64_t out, int64_t size) {
    return Problem{"conv2d",
                   {},
                   {of(DType::kF32, {3, in, size, size}), of(DType::kF32, {out, in, 1, 1}),
                    absent(DType::kF32, {out})},
                   {of(DType::kF32, {3, out, size, size})}};
  };
  EXPECT_EQ(algorithms(conv(64, 80, 4)), "");
  if (algorithms(conv(64, 80, 12)).empty()) GTEST_SKIP() << "needs AVX-512";
  EXPECT_EQ(algorithms(conv(64, 80, 12)), "matmul, onednn");
  for (const Problem& p : {conv(64, 80, 12), conv(256, 128, 28), conv(130, 70, 13)}) {
    const Array matmul = run(p, ""), convolution = run(p, "onednn");
    EXPECT_EQ(std::memcmp(matmul.raw(), convolution.raw(), static_cast<size_t>(matmul.size()) * 4),
              0)
        << chosen(p);
  }
}

}  // namespace
}  // namespace paddle::runtime
