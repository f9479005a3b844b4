// New versions of parameters and states that a plan writes over the old ones: each state gets its
// own, whatever other outputs share the value or still read the old versions.

#include <gtest/gtest.h>

#include "ir/tracer.h"
#include "ops/core/operators.h"
#include "ops/generated/ops.h"
#include "runtime/compile.h"
#include "runtime/executable.h"
#include "runtime/execute.h"

namespace paddle {
namespace {

Array numbers(const std::vector<float>& values, Dims shape) { return Array::from(values, shape); }

std::vector<double> values_of(const Array& a) {
  std::vector<double> out;
  for (int64_t i = 0; i < a.size(); ++i) out.push_back(a.number(i));
  return out;
}

using Values = std::vector<std::vector<double>>;
using Fn = std::function<Tensors(const Tensors& states)>;

/// Runs `fn` twice on states of these first values. It returns their new versions in order, then
/// further outputs. Returns the states after the second run, then those outputs.
Values after_two_runs(const Fn& fn, std::vector<Array> states) {
  runtime::register_backends();
  auto function = std::make_shared<ir::Function>("f");
  {
    ir::Tracer tracer(*function);
    const InterpreterScope scope(tracer);
    Tensors traced;
    for (size_t i = 0; i < states.size(); ++i)
      traced.push_back(tracer.input({ir::PortKind::kState, "s" + std::to_string(i)},
                                    {states[i].dtype, to_shape(states[i].shape)}));
    const Tensors out = fn(traced);
    for (size_t i = 0; i < out.size(); ++i) {
      const bool state = i < states.size();
      tracer.output({state ? ir::PortKind::kState : ir::PortKind::kValue,
                     (state ? "s" : "y") + std::to_string(i)},
                    out[i]);
    }
  }
  runtime::optimize(*function);
  runtime::Executable executable(function, {4, {.check_memory = true, .profile = nullptr}});
  executable.run(states);
  const std::vector<Array>& outputs = executable.run(states);
  Values out;
  for (const Array& state : states) out.push_back(values_of(state));
  for (size_t i = states.size(); i < outputs.size(); ++i) out.push_back(values_of(outputs[i]));
  return out;
}

TEST(NewVersions, OneValueForSeveralStates) {
  const Fn zeros = [](const Tensors& s) { return Tensors{zeros_like(s[0]), zeros_like(s[1])}; };
  EXPECT_EQ(after_two_runs(zeros, {numbers({1, 2}, {2}), numbers({3, 4}, {2})}),
            (Values{{0, 0}, {0, 0}}));
  const Fn sums = [](const Tensors& s) { return Tensors{s[0] + s[1], s[0] + s[1]}; };
  EXPECT_EQ(after_two_runs(sums, {numbers({1, 2}, {2}), numbers({3, 4}, {2})}),
            (Values{{8, 12}, {8, 12}}));
}

TEST(NewVersions, StatesThatExchangeTheirValues) {
  const Fn turn = [](const Tensors& s) { return Tensors{s[1], s[2], s[0]}; };
  EXPECT_EQ(
      after_two_runs(turn, {numbers({1, 2}, {2}), numbers({3, 4}, {2}), numbers({5, 6}, {2})}),
      (Values{{5, 6}, {1, 2}, {3, 4}}));
}

TEST(NewVersions, TheOldVersionAsAnOutput) {
  const Fn count = [](const Tensors& s) {
    return Tensors{s[0] + 1.0, s[0], ops::transpose(s[0], {1, 0})};
  };
  EXPECT_EQ(after_two_runs(count, {numbers({1, 2, 3, 4}, {2, 2})}),
            (Values{{3, 4, 5, 6}, {2, 3, 4, 5}, {2, 4, 3, 5}}));
}

TEST(NewVersions, AViewOfTheOldVersion) {
  const Fn transposed = [](const Tensors& s) { return Tensors{ops::transpose(s[0], {1, 0})}; };
  const Array square = numbers({1, 2, 3, 4}, {2, 2});
  EXPECT_EQ(after_two_runs(transposed, {square}), (Values{{1, 2, 3, 4}}));
  const Fn once_and_count = [](const Tensors& s) {
    return Tensors{ops::transpose(s[0], {1, 0}), s[1] + s[0]};
  };
  EXPECT_EQ(after_two_runs(once_and_count,
                           {numbers({1, 2, 3, 4}, {2, 2}), numbers({0, 0, 0, 0}, {2, 2})}),
            (Values{{1, 2, 3, 4}, {2, 5, 5, 8}}));
}

}  // namespace
}  // namespace paddle
