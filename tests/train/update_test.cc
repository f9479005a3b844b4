// Updates from gradients, in both modes: loss scaling follows PaddlePaddle's GradScaler, a
// skipped update changes nothing, and scaling and clipping inside an update's pass are those of
// gradients before it.

#include "optim/loss_scaler.h"

#include <cmath>
#include <limits>
#include <regex>
#include <sstream>

#include <gtest/gtest.h>

#include "base/parallel.h"
#include "ir/tracer.h"
#include "ops/core/call.h"
#include "ops/core/operators.h"
#include "ops/core/row_sparse.h"
#include "ops/generated/ops.h"
#include "optim/optimizer.h"
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
  runtime::optimize(*function);
  runtime::Executable executable(function);
  std::vector<Array> out;
  for (const Array& a : executable.run(inputs)) {  // which lie in the executable's memory
    Array own = Array::empty(DType::kF64, a.shape);
    for (int64_t i = 0; i < a.size(); ++i) own.data<double>()[i] = a.number(i);
    out.push_back(own);
  }
  return out;
}

struct Row {
  bool finite;
  double scale;
  int64_t good, bad;
};

/// Scales by GradScaler's own rule with incr_every_n_steps=3 and decr_every_n_nan_or_inf=2,
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

constexpr const char* kKinds[] = {"sgd", "momentum", "adam", "adamw", "adagrad", "rmsprop"};

TEST(SkippedUpdate, ChangesNothing) {
  for (const char* kind : kKinds)
    for (const bool with_master : {false, true})
      for (const bool skip : {false, true})
        for (auto run : {eager, compiled}) {
          OptimizerOptions options;
          options.rule = make_rule(kind);
          options.weight_decay = 0.1;
          const Optimizer optimizer(options);
          const size_t states = optimizer.slots("p", {3}).size();
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
                                        {.lr = t[2],
                                         .step = t[3],
                                         .master = with_master ? t[5] : Tensor(),
                                         .skip = t[4]});
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
                                     {.lr = t[5], .step = t[6]});
        const Tensors b = optimizer.update("p", t[1], t[2], {t[3], t[4]},
                                           {.lr = t[5], .step = t[6], .master = t[0]});
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
          return call(op, {t[0], t[1], t[2], t[2], t[3], t[4], t[5], t[6], {}, t[7]},
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

Array wave(Dims shape, double scale, double shift = 0) {
  Array a = Array::empty(DType::kF32, std::move(shape));
  for (int64_t i = 0; i < a.size(); ++i)
    a.data<float>()[i] = static_cast<float>(scale * std::sin(0.7 * static_cast<double>(i) + shift));
  return a;
}

/// Updates by a gradient that is scaled by t[4] and bounded, inside the update or before it.
Fn bounded_update(const char* kind, bool with_master, bool sparse, bool inside) {
  return [=](const Tensors& t) {
    constexpr double kBound = 0.3;
    OptimizerOptions options;
    options.rule = make_rule(kind);
    options.weight_decay = 0.1;
    const Optimizer optimizer(options);
    Tensor gradient = t[1];
    if (sparse) gradient = make_row_sparse(t[5], gradient, t[0].dim(0));
    UpdateInputs inputs{.lr = t[2], .step = t[3]};
    if (with_master) inputs.master = t[0];
    if (inside) {
      inputs.scale = t[4];
      inputs.bound = kBound;
    } else {
      gradient = ops::clip(ops::cast(gradient, DType::kF32) * t[4], -kBound, kBound);
    }
    const Tensor parameter = with_master ? ops::cast(t[0], t[1].dtype()) : t[0];
    const size_t states = optimizer.slots("p", {3}).size();
    return optimizer.update("p", parameter, gradient,
                            Tensors(t.begin() + 6, t.begin() + 6 + static_cast<int64_t>(states)),
                            inputs);
  };
}

TEST(BoundedUpdate, IsTheUpdateByABoundedGradient) {
  for (const char* kind : kKinds)
    for (const bool with_master : {false, true})
      for (const bool sparse : {false, true})
        for (auto run : {eager, compiled}) {
          const int64_t rows = sparse ? 6 : 40;
          // Half is a factor that commutes with the rounding of the sum of a row's gradients.
          std::vector<Array> inputs = {wave({40, 31}, 2),
                                       wave({rows, 31}, 1, 1),
                                       Array::scalar(0.1f),
                                       Array::scalar(int64_t{3}),
                                       Array::scalar(sparse ? 0.5f : 0.37f),
                                       Array::from<int64_t>({3, 7, 3, 39, 0, 3}, {6})};
          if (with_master) inputs[1] = inputs[1].cast(DType::kF16);
          for (int s = 0; s < 3; ++s) {
            inputs.push_back(wave({40, 31}, 0.5, s));
            for (int64_t i = 0; i < 40 * 31; ++i) {
              float& value = inputs.back().data<float>()[i];
              value = std::abs(value);
            }
          }
          const auto one = run(bounded_update(kind, with_master, sparse, true), inputs);
          const auto two = run(bounded_update(kind, with_master, sparse, false), inputs);
          ASSERT_EQ(one.size(), two.size());
          for (size_t r = 0; r < one.size(); ++r)
            for (int64_t i = 0; i < one[r].size(); ++i)
              ASSERT_EQ(one[r].number(i), two[r].number(i))
                  << kind << " result " << r << " at " << i << (sparse ? " of rows" : "")
                  << (with_master ? " with a master" : "");
        }
}

TEST(BoundedUpdate, KeepsNaN) {
  const float kNaN = std::numeric_limits<float>::quiet_NaN();
  const auto out = eager(
      [](const Tensors& t) {
        return Optimizer({.rule = make_rule("sgd")})
            .update("p", t[0], t[1], {}, {.lr = t[2], .bound = 0.5});
      },
      {Array::from<float>({1, 1, 1}, {3}), Array::from<float>({kNaN, 9, -9}, {3}),
       Array::scalar(1.0f)});
  EXPECT_TRUE(std::isnan(out[0].number(0)));
  EXPECT_EQ(out[0].number(1), 0.5);
  EXPECT_EQ(out[0].number(2), 1.5);
}

TEST(SumOfSquares, OfEveryTypeSizeAndThreadCount) {
  const auto sum = [](const Array& x) {
    return eager([](const Tensors& t) { return Tensors{ops::sum_of_squares(t[0], {})}; }, {x})[0]
        .number();
  };
  const int threads = thread_count();
  for (const DType dtype : {DType::kF16, DType::kBF16, DType::kF32, DType::kF64})
    for (const int64_t size :
         {int64_t{0}, int64_t{1}, int64_t{33}, int64_t{5003}, int64_t{200001}}) {
      const Array x = wave({size}, 3).cast(dtype);
      double wanted = 0;
      for (int64_t i = 0; i < size; ++i) wanted += x.number(i) * x.number(i);
      const double found = sum(x);
      EXPECT_NEAR(found, wanted, 1e-12 * wanted) << text(dtype) << " " << size;
      set_thread_count(1);
      EXPECT_EQ(sum(x), found);
      // A wider type that holds the same numbers changes nothing either.
      if (dtype != DType::kF64) {
        EXPECT_EQ(sum(x.cast(DType::kF32)), found);
      }
      set_thread_count(threads);
    }
  // Finite where all elements are, and not where one is not.
  EXPECT_EQ(sum(Array::from<float>({2e38f, 2e38f}, {2})) / (2.0 * 2e38f * 2e38f), 1);
  for (const float bad :
       {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()})
    EXPECT_FALSE(std::isfinite(sum(Array::from<float>({1, bad, 1}, {3}))));
}

TEST(GradientScales, FollowTheNorms) {
  // A dense gradient of norm 13, a table's with row 4 twice: (3, 0) + (1, 3), norm 5, and
  // none; all times 8.
  const auto scales = [](const ClipOptions& clip) {
    return [clip](const Tensors& t) {
      const Tensors gradients = {t[0], make_row_sparse(t[1], t[2], Dim(9)), Tensor()};
      const Tensor unscale = 1.0 / t[3];
      const Tensors squares = sums_of_squares(gradients, clip);
      return gradient_scales(gradients, squares, clip, unscale);
    };
  };
  const std::vector<Array> inputs = {
      Array::from<float>({24, 32, 96}, {3}).cast(DType::kF16), Array::from<int64_t>({4, 4}, {2}),
      Array::from<float>({24, 0, 8, 24}, {2, 2}), Array::scalar(8.0f)};
  for (auto run : {eager, compiled}) {
    const auto of = [&](const ClipOptions& clip) {
      return run(
          [&](const Tensors& t) {
            Tensors all = scales(clip)(t);
            all.pop_back();
            return all;
          },
          inputs);
    };
    const auto each = of({.norm = 6.5}), all = of({.global_norm = std::sqrt(194.0) / 4}),
               far = of({.global_norm = 1e6}), none = of({.value = 1.0});
    EXPECT_NEAR(each[0].number(), 0.5 / 8, 1e-12);
    EXPECT_NEAR(each[1].number(), 1.0 / 8, 1e-12);
    for (const size_t i : {size_t{0}, size_t{1}}) {
      EXPECT_NEAR(all[i].number(), 0.25 / 8, 1e-12);
      EXPECT_EQ(far[i].number(), 1.0 / 8);
      EXPECT_EQ(none[i].number(), 1.0 / 8);
    }
  }
}

/// The operations of a clipped AdamW update of `p` [24, 32] by a product's gradient, in 16 bits
/// under loss scaling, after the passes: each line that gives a value of the gradient's shape, and
/// the one after the product.
struct Written {
  std::vector<std::string> operations;
  std::string behind_product;
};
Written written(bool low, bool exact) {
  runtime::register_backends();
  ir::Function function("f");
  {
    ir::Tracer tracer(function);
    const InterpreterScope scope(tracer);
    const DType dtype = low ? DType::kF16 : DType::kF32;
    const auto input = [&](const char* name, DType of, Shape shape) {
      return tracer.input({ir::PortKind::kValue, name}, {of, std::move(shape)});
    };
    const Tensor x = input("x", dtype, {8, 24}), dy = input("dy", dtype, {8, 32});
    const Tensor p = input("p", DType::kF32, {24, 32}), m = input("m", DType::kF32, {24, 32}),
                 v = input("v", DType::kF32, {24, 32});
    const Tensor lr = input("lr", DType::kF32, {}), step = input("step", DType::kI64, {});
    const Tensor b = input("b", DType::kF32, {32});
    const Tensors gradients = {ops::cast(ops::matmul(x, dy, true), DType::kF32),
                               ops::sum(ops::cast(dy, DType::kF32), std::vector<int64_t>{0})};
    const ClipOptions clip = {.global_norm = 1.0};
    const Tensors squares = sums_of_squares(gradients, clip);
    UpdateInputs inputs{.lr = lr, .step = step};
    Tensor unscale;
    if (low) {
      inputs.skip = ops::logical_not(all_finite(squares));
      unscale = 1.0 / input("scale", DType::kF32, {});
    }
    const Tensors scales = gradient_scales(gradients, squares, clip, unscale);
    const Optimizer optimizer({.rule = make_rule("adamw"), .weight_decay = 0.1});
    inputs.scale = scales[0];
    size_t i = 0;
    for (const Tensor& t : optimizer.update("p", p, gradients[0], {m, v}, inputs))
      tracer.output({ir::PortKind::kValue, "y" + std::to_string(i++)}, t);
    inputs.scale = scales[1];
    const Optimizer plain({.rule = make_rule("sgd")});
    tracer.output({ir::PortKind::kValue, "b"}, plain.update("b", b, gradients[1], {}, inputs)[0]);
  }
  runtime::optimize(function, {.exact = exact});
  Written out;
  std::istringstream lines(ir::print(function));
  bool behind = false;
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    if (!std::regex_search(line, match, std::regex(R"(= (\w+)\(.* : (.*))"))) continue;
    if (behind) out.behind_product = match[1];
    behind = match[1] == "matmul";
    if (match[2].str().find("[24, 32]") != std::string::npos) out.operations.push_back(match[1]);
  }
  return out;
}

TEST(ClippedStep, WritesNoScaledGradient) {
  for (const bool low : {false, true})
    for (const bool exact : {false, true}) {
      const Written found = written(low, exact);
      EXPECT_EQ(found.operations, (std::vector<std::string>{"matmul", "adam_update"}));
      EXPECT_EQ(found.behind_product, "sum_of_squares");  // while the gradient is near
    }
}

}  // namespace
}  // namespace paddle::optim
