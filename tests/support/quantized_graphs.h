#pragma once
// Graphs of quantized values, compiled with integer kernels and without, and how close both are.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>

#include "ir/tracer.h"
#include "ops/core/backend.h"
#include "ops/generated/ops.h"
#include "runtime/compile.h"
#include "runtime/executable.h"
#include "runtime/execute.h"
#include "support/numbers.h"

namespace paddle::testing_support {

using Body = std::function<Tensor(const Tensor&)>;

inline Array bytes(DType dtype, const Dims& shape, int seed, int least, int greatest) {
  Array a = Array::empty(dtype, shape);
  Generator generator(static_cast<uint32_t>(seed) * 2654435761u + 1);
  for (int64_t i = 0; i < a.size(); ++i) {
    const int value =
        least + static_cast<int>(generator.next() % static_cast<uint32_t>(greatest - least + 1));
    if (dtype == DType::kU8)
      a.data<uint8_t>()[i] = static_cast<uint8_t>(value);
    else
      a.data<int8_t>()[i] = static_cast<int8_t>(value);
  }
  return a;
}

inline Array floats(const Dims& shape, int seed, double scale, double shift = 0) {
  Array a = Array::empty(DType::kF32, shape);
  Generator generator(static_cast<uint32_t>(seed) * 2654435761u + 1);
  for (int64_t i = 0; i < a.size(); ++i) {
    a.data<float>()[i] = static_cast<float>(shift + scale * generator.number());
  }
  return a;
}

inline Tensor number(float value) { return Tensor(Array::scalar<float>(value)); }

struct Compiled {
  std::shared_ptr<ir::Function> function;
  std::string text;
  Array result;
};

/// The function of one input, traced for any batch and compiled; `exact` leaves the integers only.
inline Compiled compiled(const Body& body, const Array& x, bool exact) {
  runtime::register_backends();
  auto function = std::make_shared<ir::Function>("main");
  {
    ir::Tracer tracer(*function);
    const InterpreterScope scope(tracer);
    Shape shape = to_shape(x.shape);
    shape[0] = Dim::symbol("batch");
    const Tensor y = body(tracer.input({ir::PortKind::kValue, "x"}, {x.dtype, shape}));
    tracer.output({ir::PortKind::kValue, "y"}, y);
  }
  runtime::optimize(*function, {.exact = exact});
  ir::verify(*function);
  runtime::Executable executable(function);
  const Array y = executable.run({x})[0].contiguous();
  Array copy = Array::empty(y.dtype, y.shape);  // the executable keeps its results' memory
  std::memcpy(copy.raw(), y.raw(), static_cast<size_t>(storage_bytes(y.dtype, y.size())));
  return {function, ir::print(*function), copy};
}

inline int count(const std::string& text, const std::string& word) {
  int n = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++n;
  return n;
}

/// Integers may differ by one step, in few places; floats by rounding.
inline void expect_close(const Array& a, const Array& b, const std::string& what) {
  ASSERT_EQ(a.dtype, b.dtype) << what;
  ASSERT_EQ(a.shape, b.shape) << what;
  int64_t apart = 0, distinct = 0;
  double largest = 1e-30, most = 0;
  for (int64_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(a.number(i) - b.number(i));
    apart += difference > 0;
    distinct += i > 0 && b.number(i) != b.number(0);
    most = std::max(most, difference);
    largest = std::max(largest, std::abs(b.number(i)));
  }
  EXPECT_TRUE(distinct > 0 || a.size() < 2)
      << what << ": the case says nothing, all values are equal";
  if (is_float(a.dtype)) {
    EXPECT_LE(most / largest, 2e-6) << what;
    return;
  }
  EXPECT_LE(most, a.dtype == DType::kI32 ? 0 : 1) << what;
  EXPECT_LE(apart, 1 + a.size() / 500) << what;
}

inline bool has_integer_kernels(DType x, const Array& weight) {
  runtime::register_backends();
  return has_int8_kernel({}, x, weight);
}

}  // namespace paddle::testing_support
