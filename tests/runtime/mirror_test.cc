// The device mirror: what is wrong on a device with its own memory and streams is wrong here, and
// what is right gives the results of the CPU.

#include "kernels/mirror/mirror.h"

#include <gtest/gtest.h>

#include <cstring>

#include "autograd/autograd.h"
#include "ir/tracer.h"
#include "ops/core/call.h"
#include "ops/core/operators.h"
#include "ops/generated/ops.h"
#include "paddle/plugin/device.h"
#include "runtime/compile.h"
#include "runtime/execute.h"
#include "runtime/host_fallback.h"

namespace paddle {
namespace {

Device mirror() {
  runtime::register_backends();
  return parse_device("mirror");
}

std::string message_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

std::vector<float> numbers(const Array& array) {
  std::vector<float> out;
  for (int64_t i = 0; i < array.size(); ++i) out.push_back(static_cast<float>(array.number(i)));
  return out;
}

TEST(Device, NamesAreChecked) {
  runtime::register_backends();
  EXPECT_TRUE(parse_device("cpu").is_cpu());
  EXPECT_TRUE(parse_device("cpu:0").is_cpu());
  EXPECT_EQ(parse_device("mirror:1").text(), "mirror:1");
  EXPECT_TRUE(message_of([] {
                parse_device("gpu");
              }).starts_with("unknown device 'gpu', expected one of cpu, mirror, cuda"));
  EXPECT_EQ(message_of([] { parse_device("mirror:9"); }),
            "there is no device 'mirror:9': 2 of kind 'mirror' found");
  EXPECT_EQ(message_of([] { parse_device("mirror:x"); }),
            "device 'mirror:x': expected a number after ':'");
  EXPECT_EQ(message_of([] { parse_device("mirror:-1"); }),
            "device 'mirror:-1': expected a number after ':'");
}

TEST(Device, TablesOfPluginsAreChecked) {
  paddle_device_api table{};
  table.struct_size = sizeof table;
  table.name = "half";
  EXPECT_EQ(message_of([&] { register_device_kind(table); }),
            "the table of a device lacks functions");
  paddle_device_api complete = device_api(mirror());
  EXPECT_EQ(message_of([&] { register_device_kind(complete); }),
            "there is already a device 'mirror'");
  complete.version = 7;
  EXPECT_EQ(message_of([&] { register_device_kind(complete); }),
            "device 'mirror' is for version 7 of the device functions, expected 1");
}

TEST(Mirror, ArraysMakeTheRoundTrip) {
  const Array x = Array::from<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  const Array there = x.to(mirror());
  EXPECT_EQ(there.device(), mirror());
  EXPECT_EQ(numbers(there.on_host()), numbers(x));
  Array transposed = there;
  transposed.shape = {3, 2};
  transposed.strides = {1, 3};
  EXPECT_EQ(numbers(transposed.on_host()), (std::vector<float>{1, 4, 2, 5, 3, 6}));
  Array reversed = there;
  reversed.strides = {-3, -1};
  reversed.offset = 5;
  EXPECT_EQ(numbers(reversed.on_host()), (std::vector<float>{6, 5, 4, 3, 2, 1}));
  EXPECT_EQ(Array::from<float>({}, {0, 3}).to(mirror()).on_host().shape, (Dims{0, 3}));
}

TEST(Mirror, HostAccessorsReject) {
  const Array there = Array::scalar(1.0f).to(mirror());
  const std::string rejection = "the host accesses memory of the device mirror";
  EXPECT_EQ(message_of([&] { (void)there.raw(); }), rejection);
  EXPECT_EQ(message_of([&] { (void)there.number(); }), rejection);
  EXPECT_EQ(message_of([&] { (void)there.cast(DType::kF64); }), rejection);
}

TEST(MirrorDeathTest, HostCodeThatReadsCrashes) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        const Array there = Array::scalar(1.0f).to(mirror());
        volatile float value = *static_cast<const volatile float*>(there.address());
        (void)value;
      },
      "");
}

TEST(Mirror, NothingRunsBeforeAWait) {
  const Device device = mirror();
  const paddle_device_api& api = device_api(device);
  paddle_stream stream = nullptr;
  ASSERT_EQ(api.create_stream(0, &stream), 0);
  void* memory = nullptr;
  ASSERT_EQ(api.allocate(0, 4, &memory), 0);
  int32_t from = 7, to = 0;
  ASSERT_EQ(api.copy(stream, memory, &from, 4, PADDLE_COPY_TO_DEVICE), 0);
  ASSERT_EQ(api.copy(stream, &to, memory, 4, PADDLE_COPY_TO_HOST), 0);
  from = 8;  // too early, so the copy sees it
  EXPECT_EQ(to, 0);
  ASSERT_EQ(api.synchronize_stream(stream), 0);
  EXPECT_EQ(to, 8);
  ASSERT_EQ(api.release(0, memory), 0);
  api.destroy_stream(stream);
}

TEST(Mirror, EventsOrderStreams) {
  const Device device = mirror();
  const paddle_device_api& api = device_api(device);
  for (const bool waits : {true, false}) {
    paddle_stream first = nullptr, second = nullptr;
    paddle_event event = nullptr;
    api.create_stream(0, &first);
    api.create_stream(0, &second);
    api.create_event(0, &event);
    void* memory = nullptr;
    ASSERT_EQ(api.allocate(0, 4, &memory), 0);
    ASSERT_EQ(api.fill(first, memory, 1, 4), 0);
    ASSERT_EQ(api.synchronize_stream(first), 0);
    ASSERT_EQ(api.fill(first, memory, 2, 4), 0);
    ASSERT_EQ(api.record_event(event, first), 0);
    if (waits) {
      ASSERT_EQ(api.wait_event(second, event), 0);
    }
    uint8_t read[4] = {};
    ASSERT_EQ(api.copy(second, read, memory, 4, PADDLE_COPY_TO_HOST), 0);
    ASSERT_EQ(api.synchronize_stream(second), 0);
    EXPECT_EQ(read[0], waits ? 2 : 1);
    api.release(0, memory);
    api.synchronize_stream(first);
    api.destroy_event(event);
    api.destroy_stream(first);
    api.destroy_stream(second);
  }
}

/// Results of a function in both modes on a device.
std::vector<std::vector<float>> both_modes(const TensorFn& fn, const std::vector<Array>& inputs,
                                           Device device, std::string* names = nullptr) {
  std::vector<std::vector<float>> out;
  {
    runtime::EagerExecutor executor({.device = device});
    const InterpreterScope scope(executor);
    Tensors tensors;
    for (const Array& x : inputs) tensors.emplace_back(x.to(device));
    for (const Tensor& t : fn(tensors)) out.push_back(numbers(t.array().on_host()));
  }
  auto function = std::make_shared<ir::Function>("f");
  {
    ir::Tracer tracer(*function);
    const InterpreterScope scope(tracer);
    const ir::LocationScope location("model.yaml:3:5");
    Tensors tensors;
    for (size_t i = 0; i < inputs.size(); ++i)
      tensors.push_back(tracer.input({ir::PortKind::kValue, str("x", i)},
                                     {inputs[i].dtype, to_shape(inputs[i].shape)}));
    size_t i = 0;
    for (const Tensor& t : fn(tensors)) tracer.output({ir::PortKind::kValue, str("y", i++)}, t);
  }
  const auto executable = runtime::compile(function, {.target = {.device = device}});
  // Twice, with other values between: staging memory and buffers are used again.
  std::vector<Array> others;
  for (const Array& x : inputs) others.push_back(Array::zeros(x.dtype, x.shape));
  executable->run(inputs);
  executable->run(others);
  for (const Array& y : executable->run(inputs)) out.push_back(numbers(y));
  if (names) {
    std::vector<Layout> layouts;
    for (const Array& x : inputs) layouts.push_back(Layout::of(x));
    for (const runtime::Instruction& each : executable->plan(layouts).instructions())
      if (each.kernel) *names += each.kernel->implementation() + " ";
  }
  return out;
}

void expect_same(const TensorFn& fn, const std::vector<Array>& inputs) {
  EXPECT_EQ(both_modes(fn, inputs, mirror()), both_modes(fn, inputs, Device::cpu()));
}

TEST(Mirror, ComputesWhatTheCpuComputes) {
  const Array x = Array::from<float>({1, -2, 3, -4, 5, -6}, {2, 3});
  const Array w = Array::from<float>({1, 2, 3, 4, 5, 6}, {3, 2});
  const Tensor zero(Array::scalar(0.0f));
  expect_same([](const Tensors& t) { return Tensors{ops::relu(ops::matmul(t[0], t[1]) + 1)}; },
              {x, w});
  // A constant, a view that is not contiguous, and a scalar of the host.
  expect_same(
      [&](const Tensors& t) {
        return Tensors{ops::transpose(t[0], {1, 0}) * Tensor(w) * 0.5, ops::sum(t[0])};
      },
      {x});
  // Sizes that are known only at run time.
  expect_same(
      [&](const Tensors& t) { return Tensors{ops::nonzero(ops::greater_than(t[0], zero))}; }, {x});
  // An input that is an output.
  expect_same([](const Tensors& t) { return Tensors{t[0], ops::reshape(t[0], {3, 2})}; }, {x});
}

TEST(Mirror, ControlFlowReadsConditionsBack) {
  const Tensor zero(Array::scalar(0.0f)), hundred(Array::scalar(100.0f));
  const auto branch = [&](const Tensors& t) {
    return current_interpreter().branch(
        ops::greater_than(ops::sum(t[0]), zero), [&](const Tensors&) { return Tensors{t[0] * 2}; },
        [&](const Tensors&) { return Tensors{t[0] - 1}; });
  };
  expect_same(branch, {Array::from<float>({1, 2}, {2})});
  expect_same(branch, {Array::from<float>({-1, -2}, {2})});
  const auto loop = [&](const Tensors& t) {
    return current_interpreter().loop(
        [&](const Tensors& c) { return Tensors{ops::less_than(ops::sum(c[0]), hundred)}; },
        [](const Tensors& c) { return Tensors{c[0] * 2 + 1}; }, {t[0]}, -1);
  };
  expect_same(loop, {Array::from<float>({1, 2}, {2})});
}

TEST(Mirror, ErrorsOfKernelsHaveTheirLocation) {
  const auto look_up = [](const Tensors& t) { return Tensors{ops::embedding(t[0], t[1])}; };
  const Array table = Array::from<float>({1, 2, 3, 4}, {2, 2});
  const auto outcome = [&](Device device, int64_t index) {
    return message_of([&] {
      both_modes(look_up, {Array::from<int64_t>({index}, {1}), table}, device);
    });
  };
  EXPECT_EQ(outcome(mirror(), 1), "no error");
  EXPECT_EQ(outcome(mirror(), 5), outcome(Device::cpu(), 5));
  auto function = std::make_shared<ir::Function>("f");
  {
    ir::Tracer tracer(*function);
    const InterpreterScope scope(tracer);
    const ir::LocationScope location("model.yaml:3:5");
    const Tensor i = tracer.input({ir::PortKind::kValue, "i"}, {DType::kI64, {Dim(1)}});
    tracer.output({ir::PortKind::kValue, "y"}, ops::embedding(i, Tensor(table)));
  }
  const auto executable = runtime::compile(function, {.target = {.device = mirror()}});
  const std::string rejected =
      message_of([&] { executable->run({Array::from<int64_t>({9}, {1})}); });
  EXPECT_EQ(rejected.substr(0, 16), "model.yaml:3:5: ") << rejected;
  // The device works on.
  EXPECT_EQ(numbers(executable->run({Array::from<int64_t>({1}, {1})})[0]),
            (std::vector<float>{3, 4}));
}

// A state that counts runs, and an input of the host that differs from run to run. Reading what a
// run returned computes nothing of the runs after it.
TEST(Mirror, StartedRunsGoOnWhileTheHostReads) {
  const Device device = mirror();
  auto function = std::make_shared<ir::Function>("f");
  {
    ir::Tracer tracer(*function);
    const InterpreterScope scope(tracer);
    const Tensor x = tracer.input({ir::PortKind::kValue, "x"}, {DType::kF32, {Dim(2)}});
    const Tensor s = tracer.input({ir::PortKind::kState, "s"}, {DType::kF32, {Dim(2)}});
    const Tensor next = s * 2 + x;
    tracer.output({ir::PortKind::kValue, "y"}, ops::sum(next));
    tracer.output({ir::PortKind::kState, "s"}, next);
  }
  const auto executable = runtime::compile(function, {.target = {.device = device}});
  const Array state = Array::from<float>({1, 0}, {2}).to(device);
  Array x = Array::from<float>({0, 0}, {2});
  std::vector<std::shared_ptr<runtime::OutputCopies>> started;
  std::vector<float> found, wanted;
  float sum = 1;
  for (int run = 0; run < 9; ++run) {
    x.data<float>()[0] = static_cast<float>(run);  // read by the run that is started next only
    started.push_back(executable->start({x, state}));
    sum = 2 * sum + static_cast<float>(run);
    wanted.push_back(sum);
    if (run == 0) continue;
    found.push_back(static_cast<float>(started[started.size() - 2]->wait()[0].number()));
    EXPECT_GT(mirror::queued_work(), 0u) << "reading run " << run - 1 << " waited for " << run;
  }
  found.push_back(static_cast<float>(started.back()->wait()[0].number()));
  EXPECT_EQ(found, wanted);
  EXPECT_EQ(numbers(state.on_host())[0] + numbers(state.on_host())[1], sum);
  // Copies are there after the executable, and both ways of running mix.
  const auto last = executable->start({x, state});
  sum = 2 * sum + 8;
  EXPECT_EQ(executable->run({x, state})[0].number(), 2 * sum + 8);
  EXPECT_EQ(last->wait()[0].number(), sum);
}

TEST(Mirror, ErrorsOfStartedRunsAreInTheRecordOfTheDevice) {
  const Device device = mirror();
  auto function = std::make_shared<ir::Function>("f");
  {
    ir::Tracer tracer(*function);
    const InterpreterScope scope(tracer);
    const ir::LocationScope location("model.yaml:3:5");
    const Tensor i = tracer.input({ir::PortKind::kValue, "i"}, {DType::kI64, {Dim(1)}});
    tracer.output({ir::PortKind::kValue, "y"},
                  ops::embedding(i, Tensor(Array::from<float>({1, 2}, {2, 1}))));
  }
  const auto executable = runtime::compile(function, {.target = {.device = device}});
  const auto bad = executable->start({Array::from<int64_t>({7}, {1})});
  const auto good = executable->start({Array::from<int64_t>({1}, {1})});
  EXPECT_EQ(message_of([&] { bad->wait(); }), "no error");
  EXPECT_EQ(good->wait()[0].number(), 2);
  EXPECT_EQ(message_of([&] { synchronize(device); }).substr(0, 16), "model.yaml:3:5: ");
  EXPECT_EQ(message_of([&] { synchronize(device); }), "no error");
}

/// Operations without kernels for a scope.
struct Missing {
  explicit Missing(std::vector<std::string> names) {
    mirror::set_missing_kernels(std::move(names));
  }
  ~Missing() { mirror::set_missing_kernels({}); }
};

TEST(Mirror, OperationsWithoutAKernelRunOnTheHost) {
  const Device device = mirror();
  const Array x = Array::from<float>({3, 1, 2}, {3});
  const auto fn = [](const Tensors& t) { return Tensors{ops::cumsum(t[0] * 2, 0) + 1}; };
  const auto expected = both_modes(fn, {x}, Device::cpu());
  const Missing missing({"cumsum"});
  std::string names;
  const int64_t before = runtime::host_fallbacks()["cumsum"];
  EXPECT_EQ(both_modes(fn, {x}, device, &names), expected);
  EXPECT_EQ(runtime::host_fallbacks()["cumsum"] - before, 4);  // once eagerly, three runs
  EXPECT_NE(names.find("host:cpu"), std::string::npos) << names;
  runtime::allow_host_fallback(false);
  EXPECT_EQ(message_of([&] { both_modes(fn, {x}, device); }),
            "cumsum: the device mirror has no kernel, and running it on the host is rejected");
  runtime::allow_host_fallback(true);
}

TEST(Mirror, OperationsWithoutAKernelAreDecomposed) {
  const Device device = mirror();
  const Array x = Array::from<float>({3, 1, 2, 5}, {2, 2});
  const auto fn = [](const Tensors& t) {
    return Tensors{ops::rms_norm(t[0], AttrValue(int64_t{2}))};
  };
  const auto expected = both_modes(fn, {x}, Device::cpu());
  const Missing missing({"rms_norm"});
  runtime::allow_host_fallback(false);
  const auto found = both_modes(fn, {x}, device);
  runtime::allow_host_fallback(true);
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i)
    for (size_t k = 0; k < found[i].size(); ++k) EXPECT_NEAR(found[i][k], expected[i][k], 1e-6);
}

TEST(Mirror, ParametersAreUpdatedInPlace) {
  const Device device = mirror();
  auto function = std::make_shared<ir::Function>("f");
  {
    ir::Tracer tracer(*function);
    const InterpreterScope scope(tracer);
    const TensorType type{DType::kF32, {Dim(2)}};
    const Tensor w = tracer.input({ir::PortKind::kParameter, "w"}, type);
    const Tensor x = tracer.input({ir::PortKind::kValue, "x"}, type);
    tracer.output({ir::PortKind::kValue, "y"}, ops::sum(w * x));
    tracer.output({ir::PortKind::kParameter, "w"}, w - x);
  }
  const auto executable = runtime::compile(function, {.target = {.device = device}});
  const Array w = Array::from<float>({10, 20}, {2}).to(device);
  for (const float expected : {50.0f, 45.0f, 40.0f}) {
    const Array x = Array::from<float>({1, 2}, {2});
    EXPECT_EQ(executable->run({w, x})[0].number(), expected);
  }
  EXPECT_EQ(numbers(w.on_host()), (std::vector<float>{7, 14}));
  EXPECT_EQ(message_of([&] {
              executable->run({Array::from<float>({1, 2}, {2}), Array::from<float>({1, 2}, {2})});
            }),
            "run: 'w' is on cpu, the plan on mirror");
}

}  // namespace
}  // namespace paddle
