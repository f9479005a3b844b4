// A reserved arena grows for a larger run and is reduced again after smaller ones.

#include <gtest/gtest.h>

#include "ir/tracer.h"
#include "ops/core/operators.h"
#include "ops/generated/ops.h"
#include "runtime/executable.h"
#include "runtime/execute.h"

namespace paddle {
namespace {

TEST(Arena, ReturnsToItsReserve) {
  runtime::register_backends();
  auto function = std::make_shared<ir::Function>("f");
  {
    ir::Tracer tracer(*function);
    const InterpreterScope scope(tracer);
    const Tensor x =
        tracer.input({ir::PortKind::kValue, "x"}, {DType::kF32, {Dim::symbol("batch"), 64}});
    tracer.output({ir::PortKind::kValue, "y"}, ops::softmax(ops::tanh(x)));
  }
  runtime::Executable executable(function);
  const std::vector<Array> few = {Array::zeros(DType::kF32, {4, 64})};
  const std::vector<Array> many = {Array::zeros(DType::kF32, {400, 64})};
  const size_t reserve = executable.prepare(few).arena_bytes();
  const size_t larger = executable.prepare(many).arena_bytes();
  ASSERT_LT(reserve, larger);
  executable.reserve_arena(reserve);
  EXPECT_EQ(executable.arena_bytes(), reserve);
  executable.run(many);
  EXPECT_EQ(executable.arena_bytes(), larger);
  for (int i = 0; i < 10; ++i) executable.run(few);
  EXPECT_EQ(executable.arena_bytes(), larger);
  executable.run(many);
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(executable.run(few)[0].data<float>()[4 * 64 - 1], 1.0f / 64);
  EXPECT_EQ(executable.arena_bytes(), reserve);
}

}  // namespace
}  // namespace paddle
