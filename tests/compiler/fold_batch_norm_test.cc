// fold_batch_norm after transposed convolutions: the numbers of the function as it was traced,
// from a transposed convolution and a sum.

#include <gtest/gtest.h>

#include <cmath>

#include "compiler/passes/passes.h"
#include "ir/tracer.h"
#include "ops/core/operators.h"
#include "ops/generated/ops.h"
#include "runtime/compile.h"
#include "runtime/execute.h"
#include "support/numbers.h"

namespace paddle {
namespace {

using Body = std::function<Tensor(const Tensor&)>;

Array random_doubles(const Dims& shape, uint32_t seed, double scale, double shift = 0) {
  Array out = Array::empty(DType::kF64, shape);
  testing_support::Generator generator(seed);
  for (int64_t i = 0; i < out.size(); ++i)
    out.data<double>()[i] = shift + scale * generator.number();
  return out;
}

std::shared_ptr<ir::Function> traced(const Body& body, const Dims& shape) {
  runtime::register_backends();
  auto function = std::make_shared<ir::Function>("main");
  ir::Tracer tracer(*function);
  const InterpreterScope scope(tracer);
  Shape any = to_shape(shape);
  any[0] = Dim::symbol("batch");
  tracer.output({ir::PortKind::kValue, "y"},
                body(tracer.input({ir::PortKind::kValue, "x"}, {DType::kF64, any})));
  return function;
}

std::vector<double> computed(const std::shared_ptr<ir::Function>& function, const Array& x) {
  runtime::Executable executable(function);
  const Array y = executable.run({x})[0].contiguous();
  return {y.data<double>(), y.data<double>() + y.size()};
}

int64_t count(const ir::Function& function, const char* name) {
  int64_t n = 0;
  ir::for_each_operation(function.body, [&](const ir::Operation& o) { n += o.op->name() == name; });
  return n;
}

/// Checks the function as saving optimizes it against the traced one; gives it.
std::shared_ptr<ir::Function> checked(const Body& body, const Array& x, const std::string& what) {
  const auto function = traced(body, x.shape);
  EXPECT_EQ(count(*function, "batch_norm"), 1) << what;
  const std::vector<double> wanted = computed(function, x);
  runtime::optimize_for_saving(*function);
  ir::verify(*function);
  const std::vector<double> got = computed(function, x);
  EXPECT_EQ(got.size(), wanted.size()) << what;
  double largest = 0, difference = 0;
  for (size_t i = 0; i < std::min(got.size(), wanted.size()); ++i) {
    largest = std::max(largest, std::abs(wanted[i]));
    difference = std::max(difference, std::abs(got[i] - wanted[i]));
  }
  EXPECT_GT(largest, 1) << what;
  EXPECT_LE(difference, 1e-13 * largest) << what;
  return function;
}

/// A transposed convolution of 6 to 4 * groups channels and its normalization.
struct Case {
  bool last = false, bias = true, affine = true, sum_first = false;
  int64_t groups = 1;

  Tensor run(const Tensor& x) const {
    const int64_t channels = 4 * groups;
    const char* const format = last ? "NHWC" : "NCHW";
    const auto parameter = [&](uint32_t seed, double scale, double shift) {
      return Tensor(random_doubles({channels}, seed, scale, shift));
    };
    const Tensor weight(random_doubles({6, 4, 3, 2}, 1, 1));
    Tensor y = ops::conv2d_transpose(x, weight, bias && !sum_first ? parameter(2, 2, 1) : Tensor(),
                                     std::vector<int64_t>{2, 3}, 1, 0, 1, groups, {}, format);
    if (sum_first) y = Tensor(Array::scalar(0.75)) + y;
    return ops::batch_norm(y, parameter(3, 2, 0), parameter(4, 0.4, 1),
                           affine ? parameter(5, 2, 0) : Tensor(),
                           affine ? parameter(6, 2, 0) : Tensor(), false, 0.9, 1e-3, format);
  }
  Array input() const { return random_doubles(last ? Dims{2, 4, 5, 6} : Dims{2, 6, 4, 5}, 7, 1); }
  std::string text() const {
    return std::string(last ? "NHWC" : "NCHW") + (bias ? " bias" : "") + (affine ? " affine" : "") +
           (sum_first ? " number" : "") + " groups " + std::to_string(groups);
  }
};

TEST(FoldBatchNorm, IntoTransposedConvolutions) {
  for (const bool last : {false, true})
    for (const bool bias : {false, true})
      for (const bool affine : {false, true})
        for (const bool sum_first : {false, true})
          for (const int64_t groups : {1, 2, 3, 6}) {
            const Case each{last, bias, affine, sum_first, groups};
            const auto function =
                checked([&](const Tensor& x) { return each.run(x); }, each.input(), each.text());
            EXPECT_EQ(count(*function, "batch_norm"), 0) << each.text();
            EXPECT_EQ(count(*function, "conv2d_input_grad"), 1) << each.text();
            EXPECT_EQ(count(*function, "add"), 1) << each.text();
            EXPECT_EQ(function->operation_count(), 2) << each.text();
            // The bias may still be a reshaped constant.
            const auto alone =
                traced([&](const Tensor& x) { return each.run(x); }, each.input().shape);
            passes::fold_batch_norm(*alone);
            passes::remove_dead_code(*alone);
            EXPECT_EQ(alone->operation_count(), 2) << each.text();
          }
}

TEST(FoldBatchNorm, LeavesWhatItCannotFold) {
  const Case each{.groups = 2};
  const Array x = each.input();
  const auto norm = [&](const Tensor& y, const char* format, bool training) {
    const auto parameter = [&](uint32_t seed, double shift) {
      return Tensor(random_doubles({format[1] == 'C' ? 8 : 12}, seed, 0.4, shift));
    };
    return ops::batch_norm(y, parameter(3, 0), parameter(4, 1), {}, {}, training, 0.9, 1e-3,
                           format);
  };
  const Tensor weight(random_doubles({6, 4, 3, 2}, 1, 1));
  const auto transposed = [&](const Tensor& t) {
    return ops::conv2d_transpose(t, weight, {}, std::vector<int64_t>{2, 3}, 1, 0, 1, 2);
  };
  const std::pair<const char*, Body> bodies[] = {
      {"read twice",
       [&](const Tensor& t) {
         const Tensor y = transposed(t);
         return norm(y, "NCHW", false) * ops::exp(y);
       }},
      {"a number for each column",
       [&](const Tensor& t) {
         return norm(transposed(t) + Tensor(random_doubles({12}, 8, 1)), "NCHW", false);
       }},
      {"a sum of more channels",
       [&](const Tensor& t) {
         const Tensor one(random_doubles({6, 1, 3, 2}, 1, 1));
         const Tensor y = ops::conv2d_transpose(t, one, {}, std::vector<int64_t>{2, 3}, 1);
         return norm(y + Tensor(random_doubles({8, 1, 1}, 9, 1)), "NCHW", false);
       }},
      {"other channels", [&](const Tensor& t) { return norm(transposed(t), "NHWC", false); }},
      {"statistics of the batch",
       [&](const Tensor& t) { return norm(transposed(t), "NCHW", true); }},
  };
  for (const auto& [what, body] : bodies) {
    const auto function = checked(body, x, what);
    EXPECT_EQ(count(*function, "batch_norm"), 1) << what;
  }
}

}  // namespace
}  // namespace paddle
