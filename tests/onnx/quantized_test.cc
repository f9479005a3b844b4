// Models quantized by ONNX Runtime's tools, against results of ONNX Runtime
// (tests/data/quantized/make_models.py), in int8 and node by node.

#include <gtest/gtest.h>

#include <cmath>

#include "formats/npz.h"
#include "ir/module.h"
#include "onnx/graph/session.h"
#include "ops/core/backend.h"
#include "runtime/compile.h"

namespace paddle::onnx {
namespace {

struct Quantized {
  std::string name;
  int convolutions, products,
      values = 0;  ///< that run in int8; values: products of two activations
};

class QuantizedModel : public testing::TestWithParam<Quantized> {};

std::string path_of(const std::string& name) { return "tests/data/quantized/" + name; }

TEST_P(QuantizedModel, MatchesOnnxRuntime) {
  const std::string name = GetParam().name;
  const formats::NpzReader arrays(path_of(name + ".npz"));
  const Array x = arrays.read("x"), wanted = arrays.read("y").contiguous();
  for (const Mode mode : {Mode::kAutomatic, Mode::kEager}) {
    Session session(path_of(name + ".onnx"), SessionOptions{.mode = mode});
    const Values out = session.run({Value(Tensor(x))});
    const Array y = out.at(0).tensor().array().contiguous();
    ASSERT_EQ(y.shape, wanted.shape);
    double largest = 0, most = 0, sum = 0;
    for (int64_t i = 0; i < y.size(); ++i) {
      const double difference = std::abs(y.number(i) - wanted.number(i));
      largest = std::max(largest, std::abs(wanted.number(i)));
      most = std::max(most, difference);
      sum += difference;
    }
    // One step of the last quantize is at most 1 / 127 of the largest value.
    EXPECT_LE(most, 0.016 * largest) << name;
    EXPECT_LE(sum / static_cast<double>(y.size()), 0.003 * largest) << name;
  }
}

TEST_P(QuantizedModel, RunsInInt8) {
  Session session(path_of(GetParam().name + ".onnx"));
  const formats::NpzReader arrays(path_of(GetParam().name + ".npz"));
  Shape shape = to_shape(arrays.header("x").shape);
  shape[0] = Dim::symbol("batch");
  const auto function = session.trace({{DType::kF32, shape}});
  runtime::optimize(*function);
  int convolutions = 0, products = 0, values = 0, floats = 0;
  ir::for_each_operation(function->body, [&](const ir::Operation& o) {
    convolutions += o.op->name() == "quantized_conv";
    products += o.op->name() == "quantized_linear";
    values += o.op->name() == "quantized_matmul";
    floats += o.op->name() == "conv2d" || o.op->name() == "conv2d_input_grad" ||
              o.op->name() == "conv3d" || o.op->name() == "matmul" || o.op->name() == "linear";
  });
  Array extremes = Array::empty(DType::kI8, {1});
  *extremes.data<int8_t>() = 127;
  if (!has_int8_kernel({}, DType::kI8, extremes)) {
    EXPECT_LE(convolutions, GetParam().convolutions);
    return;  // this processor has no exact int8 products of these kinds
  }
  EXPECT_EQ(convolutions, GetParam().convolutions);
  EXPECT_EQ(products, GetParam().products);
  if (!has_int8_matmul({})) {
    EXPECT_EQ(values, 0);
    return;
  }
  EXPECT_EQ(values, GetParam().values);
  EXPECT_EQ(floats, 0) << ir::print(*function);
}

INSTANTIATE_TEST_SUITE_P(
    Tools, QuantizedModel,
    testing::Values(Quantized{"images_qdq_u8", 3, 1}, Quantized{"images_qdq_s8", 3, 1},
                    Quantized{"images_operators", 3, 1}, Quantized{"products_qdq", 0, 2},
                    Quantized{"products_dynamic", 0, 2}, Quantized{"products_dynamic_u8", 0, 4},
                    Quantized{"images_operators_u8", 6, 2}, Quantized{"lines_qdq", 3, 1},
                    Quantized{"lines_operators", 3, 1}, Quantized{"lines_dynamic", 6, 2},
                    Quantized{"attention_qdq_u8", 0, 4, 2}, Quantized{"attention_qdq_s8", 0, 4, 2},
                    Quantized{"attention_operators", 0, 4, 2}, Quantized{"volumes_qdq_u8", 3, 1},
                    Quantized{"volumes_qdq_s8", 3, 1}, Quantized{"volumes_operators", 3, 1},
                    Quantized{"volumes_dynamic", 6, 2}, Quantized{"transposed_qdq_u8", 3, 0},
                    Quantized{"transposed_qdq_s8", 3, 0}),
    [](const auto& parameter) { return parameter.param.name; });

}  // namespace
}  // namespace paddle::onnx
