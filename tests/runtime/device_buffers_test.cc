// Inputs and outputs that stay on a device, copies from and to the host, and recorded segments of
// plans.

#include <gtest/gtest.h>

#include <cmath>

#include "ir/tracer.h"
#include "kernels/mirror/mirror.h"
#include "ops/core/call.h"
#include "ops/core/operators.h"
#include "ops/generated/ops.h"
#include "runtime/compile.h"
#include "runtime/execute.h"
#include "runtime/plan_graphs.h"
#include "tensor/device_functions.h"
#include "tensor/dlpack.h"

namespace paddle {
namespace {

using Trace = std::function<void(ir::Tracer&)>;

Device mirror() {
  runtime::register_backends();
  return parse_device("mirror");
}

std::unique_ptr<runtime::Executable> compiled(const Trace& trace, compiler::GraphMode graphs = {}) {
  auto function = std::make_shared<ir::Function>("f");
  {
    ir::Tracer tracer(*function);
    const InterpreterScope scope(tracer);
    const ir::LocationScope location("model.yaml:3:5");
    trace(tracer);
  }
  return runtime::compile(function, {.graphs = graphs, .target = {.device = mirror()}});
}

Tensor value(ir::Tracer& tracer, const std::string& name, Shape shape) {
  return tracer.input({ir::PortKind::kValue, name}, {DType::kF32, std::move(shape)});
}
void output(ir::Tracer& tracer, const std::string& name, const Tensor& tensor) {
  tracer.output({ir::PortKind::kValue, name}, tensor);
}

Array array(std::vector<float> values) {
  const auto size = static_cast<int64_t>(values.size());
  return Array::from(values, {size});
}

struct Copies {
  uint64_t in, out;
  bool operator==(const Copies&) const = default;
};
/// Copies from and to the host while the body runs.
Copies copies(const std::function<void()>& body) {
  const paddle_device_statistics before = device_statistics(mirror());
  body();
  const paddle_device_statistics after = device_statistics(mirror());
  return {after.copies_to_device - before.copies_to_device,
          after.copies_to_host - before.copies_to_host};
}

void three_in_two_out(ir::Tracer& tracer) {
  const Tensor a = value(tracer, "a", {4}), b = value(tracer, "b", {4}),
               c = value(tracer, "c", {4});
  output(tracer, "sum", ops::sum(a + b * c));
  output(tracer, "product", a * b);
}

TEST(DeviceBuffers, SmallInputsAndOutputsAreOneCopyEach) {
  const auto executable = compiled(three_in_two_out);
  const std::vector<Array> inputs = {array({1, 2, 3, 4}), array({1, 1, 2, 2}), array({0, 1, 0, 1})};
  executable->run(inputs);
  const std::vector<Array>* outputs = nullptr;
  EXPECT_EQ(copies([&] { outputs = &executable->run(inputs); }), (Copies{1, 1}));
  EXPECT_EQ((*outputs)[0].number(), 13);
  EXPECT_EQ((*outputs)[1].number(3), 8);
}

TEST(DeviceBuffers, InputsOnTheDeviceAreReadInPlace) {
  const auto executable = compiled(three_in_two_out);
  const Array a = array({1, 2, 3, 4}).to(mirror()), c = array({0, 1, 0, 1}).to(mirror());
  Array b = array({1, 1, 2, 2});
  for (int i = 0; i < 5; ++i) {
    b.data<float>()[3] = static_cast<float>(i);
    double sum = 0;
    EXPECT_EQ(copies([&] { sum = executable->run({a, b, c})[0].number(); }), (Copies{1, 1}));
    EXPECT_EQ(sum, 11 + i);
  }
  // All of them there: nothing is copied in. A mixture, again.
  const Array there = b.to(mirror());
  EXPECT_EQ(copies([&] {
              EXPECT_EQ(executable->run({a, there, c})[0].number(), 15);
            }),
            (Copies{0, 1}));
  EXPECT_EQ(executable->run({a.on_host(), there, c.on_host()})[0].number(), 15);
  // Of another device: by way of the host.
  const Array elsewhere = b.to(parse_device("mirror:1"));
  EXPECT_EQ(executable->run({a, elsewhere, c})[0].number(), 15);
}

TEST(DeviceBuffers, OutputsStayOnTheDevice) {
  const auto executable = compiled([](ir::Tracer& tracer) {
    const Tensor x = value(tracer, "x", {4});
    output(tracer, "y", x * 2 + 1);
  });
  std::vector<Array> held;
  Array x = array({0, 1, 2, 3}).to(mirror());
  executable->run_on_device({x});
  // A loop that feeds its own results copies nothing.
  EXPECT_EQ(copies([&] {
              for (int i = 0; i < 6; ++i) {
                x = executable->run_on_device({x})[0];
                held.push_back(x);
              }
            }),
            (Copies{0, 0}));
  for (size_t i = 0; i < held.size(); ++i) {
    EXPECT_EQ(held[i].device(), mirror());
    EXPECT_EQ(held[i].on_host().number(1), std::exp2(i + 2) - 1) << "result " << i;
  }
  // Memory that no caller holds is used again.
  held.clear();
  x = array({0, 1, 2, 3}).to(mirror());
  const uint64_t before = device_statistics(mirror()).allocations;
  for (int i = 0; i < 6; ++i) executable->run_on_device({x});
  EXPECT_EQ(device_statistics(mirror()).allocations, before);
}

TEST(DeviceBuffers, OutputsOfTheCpuAreTheirOwnToo) {
  auto function = std::make_shared<ir::Function>("f");
  {
    ir::Tracer tracer(*function);
    const InterpreterScope scope(tracer);
    output(tracer, "y", value(tracer, "x", {2}) + 1);
  }
  const auto executable = runtime::compile(function, {});
  const Array first = executable->run_on_device({array({1, 2})})[0];
  const Array second = executable->run_on_device({array({5, 6})})[0];
  EXPECT_EQ(first.number(), 2);
  EXPECT_EQ(second.number(), 6);
}

TEST(DeviceBuffers, LargeInputsAreCopiedOnTheirOwn) {
  constexpr int64_t kLarge = (int64_t{4} << 20) / 4 + 1;
  const auto executable = compiled([](ir::Tracer& tracer) {
    const Tensor x = value(tracer, "x", {kLarge}), y = value(tracer, "y", {4});
    output(tracer, "z", ops::sum(x) + ops::sum(y));
  });
  const Array large = Array::zeros(DType::kF32, {kLarge});
  large.data<float>()[kLarge - 1] = 3;
  EXPECT_EQ(copies([&] {
              EXPECT_EQ(executable->run({large, array({1, 1, 1, 1})})[0].number(), 7);
            }),
            (Copies{2, 1}));
}

TEST(DeviceBuffers, GoThroughDlpackWithoutACopy) {
  const Array there = array({1, 2, 3, 4}).to({mirror().kind, 1});
  auto* const handed = dlpack::managed<dlpack::Managed>(there);
  EXPECT_EQ(handed->tensor.data, there.address());
  EXPECT_EQ(handed->tensor.device.id, 1);
  std::shared_ptr<void> owner(handed, [](void* each) {
    auto* const managed = static_cast<dlpack::Managed*>(each);
    managed->deleter(managed);
  });
  const dlpack::View view = handed->tensor;
  const Array back = dlpack::array_of(view, std::move(owner));
  EXPECT_EQ(back.device(), there.device());
  EXPECT_EQ(back.address(), there.address());
  EXPECT_EQ(back.on_host().number(3), 4);
  dlpack::View unknown = view;
  unknown.device = {12, 2};
  EXPECT_THROW(dlpack::array_of(unknown, nullptr), Error);
  unknown.device = {8, 0};
  EXPECT_THROW(dlpack::array_of(unknown, nullptr), Error);
}

// --- recorded segments ---

/// A state, an input of the host, and enough kernels that do not fuse.
void steps(ir::Tracer& tracer) {
  const Tensor w = tracer.input({ir::PortKind::kParameter, "w"}, {DType::kF32, {3, 3}});
  const Tensor x = tracer.input({ir::PortKind::kValue, "x"}, {DType::kF32, {2, 3}});
  Tensor y = x;
  for (int i = 0; i < 3; ++i) y = ops::softmax(ops::matmul(y, w), -1);
  output(tracer, "y", y);
  tracer.output({ir::PortKind::kParameter, "w"}, w + ops::matmul(ops::transpose(y, {1, 0}), y));
}

std::vector<float> numbers(const Array& a) {
  std::vector<float> out;
  const Array here = a.on_host();
  for (int64_t i = 0; i < here.size(); ++i) out.push_back(static_cast<float>(here.number(i)));
  return out;
}

Array input_of_run(int run) {
  const auto v = static_cast<float>(run);
  return Array::from<float>({v, 1, 2, 3, v * 0.5f, 1}, {2, 3});
}

TEST(Graphs, RunsAreThoseWithoutThemBitByBit) {
  std::vector<std::vector<float>> results[2];
  for (const auto mode : {compiler::GraphMode::kOff, compiler::GraphMode::kOn}) {
    const auto executable = compiled(steps, mode);
    const Array w = Array::from<float>({1, 2, 3, -1, 0, 1, 2, 1, 0}, {3, 3}).to(mirror());
    auto& found = results[mode == compiler::GraphMode::kOn ? 1 : 0];
    for (int run = 0; run < 7; ++run)
      found.push_back(numbers(executable->run({w, input_of_run(run)})[0]));
    found.push_back(numbers(w));
    const runtime::GraphReport report = executable->prepare({w, input_of_run(0)}).graph_report();
    if (mode == compiler::GraphMode::kOff) {
      EXPECT_EQ(report.graphs, 0);
      continue;
    }
    EXPECT_EQ(report.segments, 1);
    EXPECT_EQ(report.graphs, 2) << "one for each turn of staging memory";
    EXPECT_EQ(report.captured, report.instructions - 1) << "all but the copy of the input";
  }
  EXPECT_EQ(results[0], results[1]);
}

TEST(Graphs, KernelsAreQueuedInOneCall) {
  const auto executable = compiled(steps);
  const Array w = Array::zeros(DType::kF32, {3, 3}).to(mirror());
  for (int run = 0; run < 3; ++run) executable->run({w, input_of_run(run)});
  const paddle_device_statistics before = device_statistics(mirror());
  executable->run({w, input_of_run(3)});
  const paddle_device_statistics after = device_statistics(mirror());
  EXPECT_EQ(after.launches, before.launches);
  EXPECT_EQ(after.graph_launches - before.graph_launches, 1u);
}

TEST(Graphs, OldAddressesAreNeverReplayed) {
  const auto executable = compiled(steps);
  const auto plain = compiled(steps, compiler::GraphMode::kOff);
  const std::vector<float> start = {1, 2, 3, -1, 0, 1, 2, 1, 0};
  // Parameters move: more often than there are records for, and back.
  std::vector<Array> parameters, expected;
  for (size_t i = 0; i < runtime::PlanGraphs::kMaxPlaces + 3; ++i) {
    parameters.push_back(Array::from(start, {3, 3}).to(mirror()));
    expected.push_back(Array::from(start, {3, 3}).to(mirror()));
  }
  for (int round = 0; round < 3; ++round)
    for (size_t i = 0; i < parameters.size(); ++i) {
      const Array x = input_of_run(static_cast<int>(i) + round);
      EXPECT_EQ(numbers(executable->run({parameters[i], x})[0]),
                numbers(plain->run({expected[i], x})[0]));
    }
  for (size_t i = 0; i < parameters.size(); ++i)
    EXPECT_EQ(numbers(parameters[i]), numbers(expected[i])) << i;
  const runtime::GraphReport report =
      executable->prepare({parameters[0], input_of_run(0)}).graph_report();
  EXPECT_EQ(report.changed, 9) << "runs on the last three, of three rounds";
  // The arena moves.
  executable->reserve_arena(size_t{1} << 20);
  for (int run = 0; run < 4; ++run)
    EXPECT_EQ(numbers(executable->run({parameters[0], input_of_run(run)})[0]),
              numbers(plain->run({expected[0], input_of_run(run)})[0]));
  EXPECT_EQ(numbers(parameters[0]), numbers(expected[0]));
}

TEST(Graphs, ControlFlowAndTheHostAreOutside) {
  const Tensor zero(Array::scalar(0.0f));
  const Trace trace = [&](ir::Tracer& tracer) {
    const Tensor x = tracer.input({ir::PortKind::kValue, "x"}, {DType::kF32, {2, 2}});
    const Tensor y = ops::softmax(ops::matmul(x, x), -1);
    const Tensors z = current_interpreter().branch(
        ops::greater_than(ops::sum(x), zero),
        [&](const Tensors&) {
          return Tensors{ops::matmul(ops::softmax(ops::matmul(y, x), -1), y)};
        },
        [&](const Tensors&) { return Tensors{y - 1}; });
    output(tracer, "z", ops::cumsum(z[0], 0));
  };
  const struct Missing {
    Missing() { mirror::set_missing_kernels({"cumsum"}); }
    ~Missing() { mirror::set_missing_kernels({}); }
  } missing;
  const auto on = compiled(trace), off = compiled(trace, compiler::GraphMode::kOff);
  for (int run = 0; run < 6; ++run) {
    const float sign = run % 2 ? -1 : 1;
    const Array x = Array::from<float>({sign, 2 * sign, 3 * sign, 0}, {2, 2});
    EXPECT_EQ(numbers(on->run({x})[0]), numbers(off->run({x})[0])) << "run " << run;
  }
  const auto report = on->prepare({Array::zeros(DType::kF32, {2, 2})}).graph_report();
  EXPECT_GE(report.segments, 2);
  EXPECT_LT(report.captured, report.instructions);
  EXPECT_GT(report.graphs, 0);
}

TEST(Graphs, ErrorsInDataHaveTheirLocationInEachRun) {
  const Array table = Array::from<float>({1, 2, 3, 4}, {2, 2});
  const auto executable = compiled([&](ir::Tracer& tracer) {
    const Tensor i = tracer.input({ir::PortKind::kValue, "i"}, {DType::kI64, {Dim(1)}});
    output(tracer, "y", ops::softmax(ops::embedding(i, Tensor(table)), -1));
  });
  for (int run = 0; run < 5; ++run) {
    std::string message;
    try {
      executable->run({Array::from<int64_t>({7}, {1})});
    } catch (const Error& e) {
      message = e.what();
    }
    EXPECT_EQ(message.substr(0, 16), "model.yaml:3:5: ") << "run " << run;
    executable->run({Array::from<int64_t>({1}, {1})});
  }
}

TEST(Graphs, MustBePossibleWhereTheyAreAskedFor) {
  auto function = std::make_shared<ir::Function>("f");
  {
    ir::Tracer tracer(*function);
    const InterpreterScope scope(tracer);
    output(tracer, "y", value(tracer, "x", {2}) + 1);
  }
  try {
    runtime::compile(function, {.graphs = compiler::GraphMode::kOn});
    ADD_FAILURE() << "no error";
  } catch (const Error& e) {
    EXPECT_EQ(e.message(),
              "compile.graphs: the device cpu cannot record work; expected auto or off");
  }
}

}  // namespace
}  // namespace paddle
