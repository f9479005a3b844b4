// Loss scaling follows PaddlePaddle's GradScaler, and a skipped update changes nothing; in both
// modes.

#include "optim/loss_scaler.h"

#include <limits>

#include <gtest/gtest.h>

#include "ir/tracer.h"
#include "ops/call.h"
#include "ops/operators.h"
#include "optim/optimizer.h"
#include "passes/passes.h"
#include "runtime/compile.h"
#include "runtime/executable.h"
#include "runtime/execute.h"

namespace paddle::optim {
namespace {

using Fn = std::function<Tensors(const Tensors&)>;

std::vector<Array> eager(const Fn& fn, const std::vector<Array>& inputs) {
  runtime::register_backends();
  runtime::EagerExecutor executor;
  const InterpreterScope scope(executor);
  Tensors given;
  for (const Array& x : inputs) given.push_back(Tensor(x));
  std::vector<Array> out;
  for (const Tensor& t : fn(given)) out.push_back(t.array().contiguous());
  return out;
}

std::vector<Array> compiled(const Fn& fn, const std::vector<Array>& inputs) {
  runtime::register_backends();
  auto function = std::make_shared<ir::Function>("f");
  {
    ir::Tracer tracer(*function);
    const InterpreterScope scope(tracer);
    Tensors given;
    for (size_t i = 0; i < inputs.size(); ++i)
      given.push_back(tracer.input({ir::PortKind::kValue, "x" + std::to_string(i)},
                                   {inputs[i].dtype, to_shape(inputs[i].shape)}));
    size_t i = 0;
    for (const Tensor& t : fn(given))
      tracer.output({ir::PortKind::kValue, "y" + std::to_string(i++)}, t);
  }
  passes::run_standard(*function, runtime::pass_options());
  runtime::Executable executable(function);
  std::vector<Array> out;
  for (const Array& a : executable.run(inputs)) out.push_back(a.cast(DType::kF64));
  return out;
}

struct Row {
  bool finite;
  double scale;
  int64_t good, bad;
};

/// What GradScaler's own rule gives with incr_every_n_steps=3 and decr_every_n_nan_or_inf=2,
/// from 16.
constexpr Row kTable[] = {{true, 16, 1, 0},  {true, 16, 2, 0},  {true, 32, 0, 0}, {false, 32, 0, 1},
                          {false, 16, 0, 0}, {true, 16, 1, 0},  {true, 16, 2, 0}, {false, 16, 0, 1},
                          {true, 16, 1, 0},  {true, 16, 2, 0},  {true, 32, 0, 0}, {false, 32, 0, 1},
                          {false, 16, 0, 0}, {false, 16, 0, 1}, {false, 8, 0, 0}, {true, 8, 1, 0},
                          {false, 8, 0, 1},  {true, 8, 1, 0},   {false, 8, 0, 1}, {true, 8, 1, 0},
                          {true, 8, 2, 0},   {true, 16, 0, 0}};

std::vector<Array> numbers(const std::vector<Array>& state) {
  return {state[0].cast(DType::kF32), state[1].cast(DType::kI64), state[2].cast(DType::kI64),
          state[3].cast(DType::kI64), state[4].cast(DType::kI64)};
}

Fn one_update(const LossScaling& options) {
  return [options](const Tensors& t) {
    const ScalerState next = next_state({t[1], t[2], t[3], t[4], t[5]}, t[0], options);
    return Tensors{next.scale, next.good, next.bad, next.updates, next.skipped};
  };
}

std::vector<Array> state_of(float scale) {
  std::vector<Array> state = {Array::scalar(scale)};
  for (int i = 0; i < 4; ++i) state.push_back(Array::scalar(int64_t{0}));
  return state;
}

TEST(LossScaler, FollowsGradScaler) {
  LossScaling options;
  options.growth_interval = 3;
  options.backoff_interval = 2;
  for (auto run : {eager, compiled}) {
    std::vector<Array> state = state_of(16);
    int64_t updates = 0, skipped = 0;
    for (const Row& row : kTable) {
      std::vector<Array> inputs = {Array::scalar(row.finite)};
      inputs.insert(inputs.end(), state.begin(), state.end());
      state = numbers(run(one_update(options), inputs));
      (row.finite ? updates : skipped) += 1;
      EXPECT_EQ(state[0].number(), row.scale);
      EXPECT_EQ(state[1].integer(), row.good);
      EXPECT_EQ(state[2].integer(), row.bad);
      EXPECT_EQ(state[3].integer(), updates);
      EXPECT_EQ(state[4].integer(), skipped);
    }
  }
}

TEST(LossScaler, StaysAboveItsMinimumAndFinite) {
  LossScaling options;
  options.growth_interval = 1;
  std::vector<Array> inputs = {Array::scalar(false)};
  for (const Array& a : state_of(1.5f)) inputs.push_back(a);
  EXPECT_EQ(eager(one_update(options), inputs)[0].number(), 1);
  inputs[0] = Array::scalar(true);
  inputs[1] = Array::scalar(3e38f);
  EXPECT_EQ(eager(one_update(options), inputs)[0].number(), 3e38f);
  options.dynamic = false;
  inputs[0] = Array::scalar(false);
  EXPECT_EQ(eager(one_update(options), inputs)[0].number(), 3e38f);
  EXPECT_EQ(eager(one_update(options), inputs)[4].integer(), 1);
}

TEST(AllFinite, SeesEveryElementOfEveryType) {
  const auto finite = [](const std::vector<Array>& inputs) {
    return eager([](const Tensors& t) { return Tensors{all_finite(t)}; }, inputs)[0].integer() != 0;
  };
  const double kInfinity = std::numeric_limits<double>::infinity();
  for (const DType dtype : {DType::kF16, DType::kBF16, DType::kF32, DType::kF64}) {
    std::vector<double> values(5003, 2);
    values[7] = -60000;
    const auto of = [&] { return Array::from<double>(values, {5003}).cast(dtype); };
    const Array good = of();
    EXPECT_TRUE(finite({good}));
    for (const size_t at : {size_t{0}, size_t{1023}, size_t{5002}})
      for (const double bad : {kInfinity, -kInfinity, std::numeric_limits<double>::quiet_NaN()}) {
        const double kept = std::exchange(values[at], bad);
        EXPECT_FALSE(finite({of()})) << text(dtype) << " " << at;
        EXPECT_FALSE(finite({good, of()}));
        values[at] = kept;
      }
  }
  // Finite in float64, infinite in float32.
  EXPECT_TRUE(finite({Array::from<double>({1e300}, {1}), Array::from<float>({1}, {1})}));
}

TEST(SkippedUpdate, ChangesNothing) {
  for (const OptimizerKind kind :
       {OptimizerKind::kSgd, OptimizerKind::kMomentum, OptimizerKind::kAdam, OptimizerKind::kAdamW,
        OptimizerKind::kAdagrad, OptimizerKind::kRmsProp})
    for (const bool with_master : {false, true})
      for (const bool skip : {false, true})
        for (auto run : {eager, compiled}) {
          OptimizerOptions options;
          options.kind = kind;
          options.weight_decay = 0.1;
          const Optimizer optimizer(options);
          const size_t states = optimizer.slots().size();
          const DType low = with_master ? DType::kBF16 : DType::kF32;
          const Array exact = Array::from<float>({1.001f, -2.003f, 0.5f}, {3});
          std::vector<Array> inputs = {
              exact.cast(low),     Array::from<float>({0.25f, -1, 2}, {3}).cast(low),
              Array::scalar(0.1f), Array::scalar(int64_t{1}),
              Array::scalar(skip), exact};
          for (size_t s = 0; s < states; ++s)
            inputs.push_back(Array::from<float>({0.5f, 0.25f, 0.125f}, {3}));
          const auto out = run(
              [&](const Tensors& t) {
                return optimizer.update("p", t[0], t[1], Tensors(t.begin() + 6, t.end()),
                                        {t[2], t[3], with_master ? t[5] : Tensor(), t[4]});
              },
              inputs);
          ASSERT_EQ(out.size(), 1 + states + (with_master ? 1 : 0));
          for (int64_t i = 0; i < 3; ++i) {
            EXPECT_EQ(out[0].number(i) == inputs[0].number(i), skip);
            for (size_t s = 0; s < states; ++s)
              EXPECT_TRUE(!skip || out[1 + s].number(i) == inputs[6 + s].number(i));
            if (with_master) {
              EXPECT_EQ(out.back().number(i) == exact.number(i), skip);
              // The parameter is the rounded master.
              EXPECT_EQ(out.back().cast(DType::kF32).cast(low).number(i), out[0].number(i));
            }
          }
        }
}

TEST(MasterUpdate, IsTheUpdateInFloat32) {
  OptimizerOptions options;
  options.weight_decay = 0.01;
  const Optimizer optimizer(options);
  const Array exact = Array::from<float>({1.001f, -2.003f, 0.5f}, {3});
  const Array gradient = Array::from<float>({0.25f, -1, 2}, {3});
  const Array m = Array::from<float>({0.5f, 0.25f, 0.125f}, {3});
  const std::vector<Array> inputs = {exact, exact.cast(DType::kF16), gradient.cast(DType::kF16), m,
                                     m,     Array::scalar(0.1f),     Array::scalar(int64_t{3})};
  const auto out = eager(
      [&](const Tensors& t) {
        Tensors a = optimizer.update("p", t[0], ops::cast(t[2], DType::kF32), {t[3], t[4]},
                                     {t[5], t[6], {}, {}});
        const Tensors b = optimizer.update("p", t[1], t[2], {t[3], t[4]}, {t[5], t[6], t[0], {}});
        a.insert(a.end(), b.begin(), b.end());
        return a;
      },
      inputs);
  for (int64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(out[0].number(i), out[6].number(i));  // the master
    EXPECT_EQ(out[1].number(i), out[4].number(i));
    EXPECT_EQ(out[2].number(i), out[5].number(i));
    EXPECT_EQ(out[3].dtype, DType::kF16);
  }
}

TEST(RowUpdates, SkipAndKeepAMaster) {
  for (const bool skip : {false, true}) {
    const auto out = eager(
        [&](const Tensors& t) {
          const Op& op = get_op("adam_update_rows");
          return call(op, {t[0], t[1], t[2], t[2], t[3], t[4], t[5], t[6], t[7]},
                      default_attrs(op));
        },
        {Array::from<float>({1, 2, 3, 4}, {2, 2}).cast(DType::kF16),
         Array::from<float>({1, 1, 2, 2, 0.5f, 0.5f}, {3, 2}).cast(DType::kF16),
         Array::from<float>({0, 0, 0, 0}, {2, 2}), Array::from<float>({1, 2, 3, 4}, {2, 2}),
         Array::scalar(0.1f), Array::scalar(int64_t{1}), Array::scalar(skip),
         Array::from<int64_t>({1, 1, 1}, {3})});
    ASSERT_EQ(out.size(), 4u);
    EXPECT_EQ(out[0].dtype, DType::kF16);
    EXPECT_EQ(out[3].number(0), 1);
    EXPECT_EQ(out[1].number(2), skip ? 0 : 3.5f * (1 - 0.9f));
    EXPECT_NEAR(out[3].number(2), skip ? 3 : 2.9, 1e-6);
    EXPECT_EQ(out[3].cast(DType::kF16).number(2), out[0].number(2));
  }
}

}  // namespace
}  // namespace paddle::optim
