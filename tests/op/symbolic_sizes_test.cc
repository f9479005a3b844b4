// Operations whose sizes are known only at run time: compiled once for symbolic sizes, they give
// the values and gradients of eager mode, where sizes are known, for every size.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "autograd/autograd.h"
#include "ir/tracer.h"
#include "ops/core/call.h"
#include "ops/core/operators.h"
#include "ops/generated/ops.h"
#include "runtime/compile.h"
#include "runtime/executable.h"
#include "runtime/execute.h"

namespace paddle {
namespace {

using Body = std::function<Tensors(const Tensor&)>;

/// The results of `body`, and the gradient of the sum of the squares of the first one.
Tensors with_gradient(const Body& body, const Tensor& x) {
  Tensors out = body(x);
  out.push_back(autograd::grad({ops::sum(out[0] * out[0])}, {x})[0]);
  return out;
}

std::vector<Array> eager(const Body& body, const Array& x) {
  runtime::register_backends();
  runtime::EagerExecutor executor;
  const InterpreterScope below(executor);
  autograd::Tape tape;
  const InterpreterScope above(tape);
  std::vector<Array> out;
  for (const Tensor& t : with_gradient(body, autograd::variable(Tensor(x))))
    out.push_back(t.array().contiguous());
  return out;
}

/// `body` compiled for x of this shape.
class Compiled {
 public:
  Compiled(const Body& body, DType dtype, const Shape& shape) {
    runtime::register_backends();
    auto function = std::make_shared<ir::Function>("symbolic");
    {
      ir::Tracer tracer(*function);
      const InterpreterScope scope(tracer);
      const Tensor x = tracer.input({ir::PortKind::kValue, "x"}, {dtype, shape});
      const Tensors results = with_gradient(body, x);
      for (size_t i = 0; i < results.size(); ++i)
        tracer.output({ir::PortKind::kValue, str("y", i)}, results[i]);
    }
    runtime::optimize(*function);
    ir::verify(*function);
    executable_ = std::make_unique<runtime::Executable>(
        function, runtime::ExecutableOptions{1, {.check_memory = true, .profile = nullptr}});
  }
  std::vector<Array> run(const Array& x) {
    std::vector<Array> out;
    for (const Array& y : executable_->run({x})) out.push_back(y.contiguous());
    return out;
  }

 private:
  std::unique_ptr<runtime::Executable> executable_;
};

Array image(DType dtype, const Dims& shape) {
  std::vector<double> values;
  for (int64_t i = 0; i < element_count(std::span<const int64_t>(shape)); ++i)
    values.push_back(std::sin(1.7 * static_cast<double>(i) + 0.3));
  return Array::from(values, shape).cast(dtype);
}

const Dim kRows = Dim::symbol("rows", 1), kColumns = Dim::symbol("columns", 1),
          kDepth = Dim::symbol("depth", 1), kBatch = Dim::symbol("batch", 1);

void expect_agreement(const std::string& what, const Body& body, const Shape& shape,
                      const std::vector<Dims>& sizes) {
  SCOPED_TRACE(what);
  Compiled compiled(body, DType::kF64, shape);
  for (const Dims& size : sizes) {
    const Array x = image(DType::kF64, size);
    const std::vector<Array> expected = eager(body, x), got = compiled.run(x);
    ASSERT_EQ(got.size(), expected.size());
    for (size_t r = 0; r < got.size(); ++r) {
      ASSERT_EQ(got[r].shape, expected[r].shape) << "result " << r;
      ASSERT_EQ(text(got[r].dtype), text(expected[r].dtype)) << "result " << r;
      for (int64_t i = 0; i < got[r].size(); ++i)
        ASSERT_NEAR(got[r].number(i), expected[r].number(i), 1e-12)
            << "result " << r << ", element " << i << " of " << text(to_shape(size));
    }
  }
}

const Shape kImage = {kBatch, 3, kRows, kColumns};
const std::vector<Dims> kImages = {{2, 3, 5, 4}, {1, 3, 7, 6}, {3, 3, 1, 2}, {1, 3, 12, 9}};

AttrValue list(std::vector<AttrValue> items) {
  return AttrValue(AttrValue::List(std::move(items)));
}

TEST(SymbolicSizes, AdaptiveAveragePooling) {
  for (const AttrValue& size :
       {AttrValue(1), AttrValue(3), list({2, 1}), list({AttrValue(), 2}), list({4, AttrValue()})})
    expect_agreement(
        str("size ", size),
        [&](const Tensor& x) { return Tensors{ops::adaptive_avg_pool2d(x, size)}; }, kImage,
        kImages);
  expect_agreement("channels last",
                   [](const Tensor& x) { return Tensors{ops::adaptive_avg_pool2d(x, 2, "NHWC")}; },
                   {kBatch, kRows, kColumns, 2}, {{2, 5, 4, 2}, {1, 3, 8, 2}});
  // One of the axes is known.
  expect_agreement("known rows",
                   [](const Tensor& x) { return Tensors{ops::adaptive_avg_pool2d(x, 3)}; },
                   {kBatch, 2, 7, kColumns}, {{2, 2, 7, 5}, {1, 2, 7, 3}});
  for (const int64_t size : {1, 3})
    expect_agreement("1-D",
                     [&](const Tensor& x) { return Tensors{ops::adaptive_avg_pool1d(x, size)}; },
                     {kBatch, 2, kColumns}, {{2, 2, 7}, {1, 2, 3}, {1, 2, 2}});
  for (const AttrValue& size : {AttrValue(1), list({2, 3, 1})})
    expect_agreement("3-D",
                     [&](const Tensor& x) { return Tensors{ops::adaptive_avg_pool3d(x, size)}; },
                     {kBatch, 2, kDepth, kRows, kColumns}, {{1, 2, 3, 4, 5}, {2, 2, 5, 3, 2}});
}

TEST(SymbolicSizes, AdaptiveMaxPooling) {
  for (const AttrValue& size :
       {AttrValue(1), AttrValue(3), list({2, 1}), list({AttrValue(), 2}), list({4, AttrValue()})})
    expect_agreement(
        str("size ", size),
        [&](const Tensor& x) { return ops::adaptive_max_pool2d(x, size, true); }, kImage, kImages);
  for (const int64_t size : {1, 3})
    expect_agreement("1-D",
                     [&](const Tensor& x) { return ops::adaptive_max_pool1d(x, size, true); },
                     {kBatch, 2, kColumns}, {{2, 2, 7}, {1, 2, 3}, {1, 2, 2}});
  for (const AttrValue& size : {AttrValue(1), list({2, 3, 1})})
    expect_agreement("3-D",
                     [&](const Tensor& x) { return ops::adaptive_max_pool3d(x, size, true); },
                     {kBatch, 2, kDepth, kRows, kColumns}, {{1, 2, 3, 4, 5}, {2, 2, 5, 3, 2}});
}

// Of equal maxima the first in the window has the index, as in PyTorch.
TEST(SymbolicSizes, AdaptiveMaxPoolingTakesTheFirstOfEqualMaxima) {
  const Body body = [](const Tensor& x) { return ops::adaptive_max_pool2d(x, 1, true); };
  Compiled compiled(body, DType::kF32, {1, 1, kRows, kColumns});
  const auto results = compiled.run(Array::from<float>({1, 5, 2, 5, 0, 5}, {1, 1, 2, 3}));
  EXPECT_EQ(results[0].number(0), 5);
  EXPECT_EQ(results[1].integer(0), 1);
  const std::vector<double> gradient = {0, 10, 0, 0, 0, 0};
  for (int64_t i = 0; i < 6; ++i)
    EXPECT_EQ(results[2].number(i), gradient[static_cast<size_t>(i)]) << i;
}

TEST(SymbolicSizes, Interpolation) {
  struct Case {
    std::string mode;
    bool corners;
    bool antialias = false;
    int64_t align_mode = 0;
  };
  for (const Case& c : std::vector<Case>{{"nearest", false},
                                         {"bilinear", false},
                                         {"bilinear", true},
                                         {"bilinear", false, false, 1},
                                         {"bilinear", false, true},
                                         {"bicubic", false},
                                         {"bicubic", true},
                                         {"bicubic", false, true},
                                         {"area", false}}) {
    const auto resized = [&](const Tensor& x, const AttrValue& size, const AttrValue& factor) {
      return Tensors{
          ops::interpolate(x, size, factor, c.mode, c.corners, c.align_mode, {}, {}, c.antialias)};
    };
    const std::string what = str(c.mode, c.corners ? " corners" : "", c.antialias ? " smooth" : "");
    for (const AttrValue& factor : {AttrValue(2), list({1.5, 1.25})})
      expect_agreement(
          str(what, " factor ", factor), [&](const Tensor& x) { return resized(x, {}, factor); },
          kImage, kImages);
    expect_agreement(str(what, " half"), [&](const Tensor& x) { return resized(x, {}, 0.5); },
                     kImage, {{2, 3, 5, 4}, {1, 3, 7, 6}, {1, 3, 2, 2}});
    expect_agreement(
        str(what, " to a known size"),
        [&](const Tensor& x) {
          return resized(x, list({6, 1}), {});
        },
        kImage, kImages);
  }
  expect_agreement("channels last",
                   [](const Tensor& x) {
                     return Tensors{ops::interpolate(x, {}, 2, "bilinear", false, 0, "NHWC")};
                   },
                   {kBatch, kRows, kColumns, 2}, {{2, 5, 4, 2}, {1, 3, 8, 2}});
  expect_agreement("1-D",
                   [](const Tensor& x) { return Tensors{ops::interpolate(x, {}, 2, "linear")}; },
                   {kBatch, 2, kColumns}, {{2, 2, 7}, {1, 2, 1}});
  expect_agreement("3-D",
                   [](const Tensor& x) { return Tensors{ops::interpolate(x, {}, 2, "trilinear")}; },
                   {kBatch, 2, kDepth, kRows, kColumns}, {{1, 2, 3, 4, 5}, {2, 2, 1, 3, 2}});
}

// The example of torch.nn.Upsample(scale_factor=2, mode='bilinear') in PyTorch's documentation.
TEST(SymbolicSizes, InterpolationHasTheValuesOfPyTorch) {
  const Body body = [](const Tensor& x) { return Tensors{ops::interpolate(x, {}, 2, "bilinear")}; };
  const std::vector<double> expected = {1.0, 1.25, 1.75, 2.0, 1.5, 1.75, 2.25, 2.5,
                                        2.5, 2.75, 3.25, 3.5, 3.0, 3.25, 3.75, 4.0};
  Compiled compiled(body, DType::kF32, {kBatch, 1, kRows, kColumns});
  const auto results = compiled.run(Array::from<float>({1, 2, 3, 4}, {1, 1, 2, 2}));
  ASSERT_EQ(results[0].shape, (Dims{1, 1, 4, 4}));
  for (int64_t i = 0; i < 16; ++i)
    EXPECT_FLOAT_EQ(static_cast<float>(results[0].number(i)),
                    static_cast<float>(expected[static_cast<size_t>(i)]));
}

// A decoder resizes to the size of a skip connection.
TEST(SymbolicSizes, InterpolationToASymbolicSize) {
  const Body body = [](const Tensor& x) {
    const Tensor half = ops::avg_pool2d(x, 2, {}, 0, true);
    const AttrValue size = list({AttrValue(x.dim(2)), AttrValue(x.dim(3))});
    return Tensors{ops::interpolate(half, size, {}, "bilinear") + x};
  };
  expect_agreement("skip connection", body, kImage, {{2, 3, 5, 4}, {1, 3, 7, 6}});
}

TEST(SymbolicSizes, AScaleFactorMustScaleASymbolicSizeExactly) {
  try {
    Compiled([](const Tensor& x) { return Tensors{ops::interpolate(x, {}, 0.3, "nearest")}; },
             DType::kF32, kImage);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(
        error.message().find("scale_factor 0.3 of the symbolic size 'rows' must be a multiple "
                             "of 1/1024; give the size of the result instead"),
        std::string::npos)
        << error.message();
  }
}

TEST(SymbolicSizes, AveragePoolingOfVolumes) {
  for (const bool exclusive : {false, true})
    for (const bool ceil_mode : {false, true})
      expect_agreement(str("exclusive ", exclusive, ", ceil_mode ", ceil_mode),
                       [&](const Tensor& x) {
                         return Tensors{ops::avg_pool3d(x, 3, 2, 1, ceil_mode, exclusive)};
                       },
                       {kBatch, 2, kDepth, kRows, kColumns}, {{1, 2, 3, 4, 5}, {2, 2, 6, 3, 4}});
}

TEST(SymbolicSizes, AffineGrids) {
  for (const bool corners : {false, true}) {
    const Body body = [&](const Tensor& x) {
      const Tensor theta = ops::reshape(
          ops::strided_slice(ops::reshape(x, Shape{-1}), {0}, {0}, {6}, {1}), {1, 2, 3});
      return Tensors{ops::affine_grid(theta, {1, 1, x.dim(2), x.dim(3)}, corners)};
    };
    expect_agreement(str("corners ", corners), body, {1, 1, kRows, kColumns},
                     {{1, 1, 2, 3}, {1, 1, 6, 1}, {1, 1, 4, 5}});
  }
}

// Transforms of a size that is known only at run time, with real results.
TEST(SymbolicSizes, FourierTransforms) {
  const Shape signal = {kBatch, kColumns};
  const std::vector<Dims> sizes = {{2, 8}, {1, 7}, {3, 12}, {1, 2}};
  const auto check = [&](const std::string& what, const Body& body) {
    expect_agreement(what, body, signal, sizes);
  };
  check("fft", [](const Tensor& x) { return Tensors{ops::imag(ops::fft(x)) + x}; });
  check("rfft", [](const Tensor& x) { return Tensors{ops::real(ops::rfft(x, {}, -1, "ortho"))}; });
  check("irfft", [](const Tensor& x) { return Tensors{ops::irfft(ops::complex(x, x * 0.5))}; });
  check("there and back",
        [](const Tensor& x) { return Tensors{ops::irfft(ops::rfft(x) * 2.0, x.dim(-1))}; });
  check("fftshift", [](const Tensor& x) { return Tensors{ops::fftshift(x)}; });
}

}  // namespace
}  // namespace paddle
