// Errors of a device, and whole modules that it computes.

#include <thread>

#include "conformance/device_objects.h"
#include "conformance/devices.h"
#include "conformance/modules.h"
#include "conformance/passes.h"
#include "inspect/compare.h"
#include "ir/tracer.h"
#include "ops/core/call.h"
#include "ops/core/kernel.h"
#include "runtime/compile.h"
#include "tensor/device_functions.h"

namespace paddle::conformance {
namespace {

using Api = paddle_device_api;

/// A wrong call: a status, and a message.
std::string check_arguments(const Api& api) {
  const DeviceStream stream(api, 0);
  const DeviceMemory memory(api, 0, 100);
  Bytes host(10, 1);
  for (const int kind : {-1, 3, 99}) {
    const int status = api.copy(stream.get(), memory.at(), host.data(), host.size(), kind);
    if (status == 0) return str("copy: the kind ", kind, " is accepted");
    if (status != PADDLE_USAGE)
      return str("copy: the kind ", kind, ": expected the status 2, found ", status);
    if (!api.last_error() || !*api.last_error()) return "last_error has no message";
    if (!api.last_error_location()) return "last_error_location is null";
  }
  stream.fill(memory.at(), 9, 100);
  return read_back(stream, memory.at(), 100) == Bytes(100, 9)
             ? ""
             : "the device gives wrong bytes after a wrong call";
}

/// Messages are those of the thread.
std::string check_threads(const Api& api) {
  void* memory = nullptr;
  if (api.allocate(0, SIZE_MAX / 2, &memory) == 0) return "allocate gives more than there is";
  const std::string mine = api.last_error();
  std::string theirs;
  std::thread([&] {
    const DeviceStream stream(api, 0);
    const DeviceMemory block(api, 0, 10);
    (void)api.copy(stream.get(), block.at(), block.at(), 1, 99);
    theirs = api.last_error();
  }).join();
  if (mine == theirs) return "an unknown kind of copy has the message of a full memory: " + theirs;
  return api.last_error() == mine
             ? ""
             : str("last_error gives the message of another thread: ", api.last_error());
}

constexpr const char* kPlace = "check.py:3:5";

/// Rows of a table by numbers, at a place of a model.
std::shared_ptr<runtime::Executable> lookup(Device device) {
  auto function = std::make_shared<ir::Function>("check");
  {
    ir::Tracer tracer(*function);
    const InterpreterScope scope(tracer);
    const ir::LocationScope location(kPlace);
    const Tensor x = tracer.input({ir::PortKind::kValue, "x"}, {DType::kI64, {Dim(2)}});
    const Op& op = get_op("embedding");
    const Tensor table(Array::from<float>({1, 2, 3, 4}, {2, 2}));
    tracer.output({ir::PortKind::kValue, "y"}, call_single(op, {x, table}, default_attrs(op)));
  }
  return runtime::compile(function, {.target = {.device = device}});
}

std::string error_of(runtime::Executable& executable, int64_t index) {
  try {
    executable.run({Array::from<int64_t>({0, index}, {2})});
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

/// An index out of range, which only the kernel sees.
std::string check_kernel_error(Device device, const std::string& check) {
  const std::vector<DType> dtypes = {DType::kI64, DType::kF32};
  if (!has_kernel(get_op("embedding"), {.device = device}, dtypes))
    return str(kSkip, "it has no kernel that can fail: embedding of int64 and float32");
  const auto executable = lookup(device);
  const std::string error = error_of(*executable, 9);
  if (check == "kernel") {
    if (error.empty()) return "embedding: an index out of range is accepted";
    if (!error.starts_with(str(kPlace, ": ")))
      return str("embedding: an error without the place of its operation, ", kPlace, ": ", error);
    return "";
  }
  if (check == "once") {
    try {
      synchronize(device);
    } catch (const Error& e) {
      return str("an error of a kernel is reported twice: ", e.what());
    }
    return "";
  }
  const std::vector<Array>& results = executable->run({Array::from<int64_t>({1, 0}, {2})});
  const std::string bad = inspect::difference(inspect::own_copy(results[0]),
                                              Array::from<float>({3, 4, 1, 2}, {2, 2}), {});
  return bad.empty() ? bad : "embedding after an error: " + bad;
}

/// Modules on the device against the CPU.
std::string check_modules(Device device, const std::string& check, const Extent& extent) {
  const size_t share = extent.quick ? 4 : 1;
  const std::vector<Example> examples = check == "gradients"
                                            ? chain_gradients(40 / share, extent.seed)
                                        : check == "unusual" ? unusual_functions()
                                                             : chains(80 / share, extent.seed);
  for (size_t i = 0; i < examples.size(); ++i)
    for (const inspect::Mode mode : {inspect::Mode::kCompiled, inspect::Mode::kEager}) {
      if (mode == inspect::Mode::kEager && i % 4 != 0) continue;
      const auto at = [&](const std::string& bad) {
        return str("module ", i, ", ", inspect::text(mode), ": ", bad);
      };
      try {
        const auto found = inspect::run(mode, examples[i].function, examples[i].inputs, device);
        const auto expected = inspect::run(device.is_cpu() ? inspect::Mode::kEager : mode,
                                           examples[i].function, examples[i].inputs);
        for (size_t r = 0; r < expected.size(); ++r)
          if (expected[r])
            if (std::string bad = inspect::difference(*found[r], *expected[r], {1e-4, 2e-5});
                !bad.empty())
              return at(str("result ", r, " differs from that of the CPU: ", bad));
      } catch (const Error& e) {
        return at(e.what());
      }
    }
  return "";
}

std::unique_ptr<runtime::Executable> compiled(const Example& example, Device device) {
  const auto function = std::make_shared<ir::Function>("check");
  {
    ir::Tracer tracer(*function);
    const InterpreterScope scope(tracer);
    Tensors inputs;
    for (size_t i = 0; i < example.inputs.size(); ++i)
      inputs.push_back(tracer.input({ir::PortKind::kValue, str("x", i)},
                                    {example.inputs[i].dtype, to_shape(example.inputs[i].shape)}));
    size_t results = 0;
    for (const Tensor& t : example.function(inputs))
      tracer.output({ir::PortKind::kValue, str("y", results++)}, t);
  }
  return runtime::compile(function, {.target = {.device = device}});
}

std::vector<Array> results_of_run(runtime::Executable& executable, const Example& example) {
  std::vector<Array> out;
  for (const Array& each : executable.run(example.inputs)) out.push_back(inspect::own_copy(each));
  return out;
}

std::string compare_bits(const std::vector<Array>& found, const std::vector<Array>& expected) {
  for (size_t i = 0; i < expected.size(); ++i)
    if (std::memcmp(found[i].raw(), expected[i].raw(),
                    static_cast<size_t>(storage_bytes(found[i].dtype, found[i].size()))) != 0)
      return str("result ", i, " has other bits");
  return "";
}

/// Three plans in three threads at a time.
std::string check_at_once(Device device, const Extent& extent) {
  constexpr size_t kPlans = 3;
  const std::vector<Example> examples = chains(kPlans, extent.seed);
  std::vector<std::string> wrong(kPlans);
  std::vector<std::unique_ptr<runtime::Executable>> executables;
  std::vector<std::vector<Array>> expected;
  for (const Example& each : examples) {
    executables.push_back(compiled(each, device));
    expected.push_back(results_of_run(*executables.back(), each));
  }
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kPlans; ++i)
    threads.emplace_back([&, i] {
      try {
        for (int run = 0; run < (extent.quick ? 10 : 100) && wrong[i].empty(); ++run) {
          const std::vector<Array> found = results_of_run(*executables[i], examples[i]);
          for (size_t r = 0; r < found.size() && wrong[i].empty(); ++r)
            wrong[i] = inspect::difference(found[r], expected[i][r], {1e-5, 1e-6});
        }
      } catch (const std::exception& e) {
        wrong[i] = e.what();
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& bad : wrong)
    if (!bad.empty()) return "three plans at a time: " + bad;
  return "";
}

/// After some runs nothing is allocated.
std::string check_steady(Device device, const Api& api, const Extent& extent) {
  const Example example = chains(1, extent.seed)[0];
  const auto executable = compiled(example, device);
  for (int run = 0; run < 5; ++run) executable->run(example.inputs);
  const auto free_memory = [&] {
    size_t available = 0, total = 0;
    must(api, api.memory_info(device.index, &available, &total), "memory_info");
    return available;
  };
  // That of the CPU is shared with other programs.
  const size_t before = device.is_cpu() ? 0 : free_memory();
  const uint64_t allocations = device_statistics(device).allocations;
  const int runs = extent.quick ? 50 : 500;
  for (int run = 0; run < runs; ++run) executable->run(example.inputs);
  if (const uint64_t now = device_statistics(device).allocations; now != allocations)
    return str(runs, " runs of one plan allocate ", now - allocations, " times");
  constexpr size_t kNoise = size_t{1} << 20;  // other programs may use the device
  if (!device.is_cpu() && free_memory() + kNoise < before)
    return str(runs, " runs of one plan take ", before - free_memory(), " bytes of the device");
  return "";
}

/// The same bits again, with other work between.
std::string check_repeated(Device device, const Extent& extent) {
  if (!(device_properties(device).flags & PADDLE_DEVICE_REPEATABLE))
    return str(kSkip, "it does not state that it is repeatable (PADDLE_DEVICE_REPEATABLE)");
  const std::vector<Example> examples = chains(extent.quick ? 8 : 40, extent.seed);
  std::vector<std::unique_ptr<runtime::Executable>> executables;
  std::vector<std::vector<Array>> expected;
  for (const Example& each : examples) {
    executables.push_back(compiled(each, device));
    expected.push_back(results_of_run(*executables.back(), each));
  }
  for (int round = 0; round < 3; ++round)
    for (size_t i = examples.size(); i-- > 0;)
      if (std::string bad = compare_bits(results_of_run(*executables[i], examples[i]), expected[i]);
          !bad.empty())
        return str("module ", i, ": ", bad, " in run ", round + 2);
  return "";
}

/// An array that is larger than the memory: an error of the device, which works on.
std::string check_full_memory(Device device, const Api& api, const Extent& extent) {
  if (device.is_cpu()) return str(kSkip, "the host gives more memory than it has");
  size_t available = 0, total = 0;
  must(api, api.memory_info(device.index, &available, &total), "memory_info");
  try {
    (void)Array::empty(DType::kF32, {static_cast<int64_t>(total)}, device);
    return str("an array of ", total, " numbers of 4 bytes fits into ", total, " bytes");
  } catch (const Error& e) {
    if (e.code() != ErrorCode::kDevice)
      return str("a full memory gives the status ", static_cast<int>(e.code()), ": ", e.what());
  }
  const Example example = chains(1, extent.seed)[0];
  const auto found = inspect::run(inspect::Mode::kEager, example.function, example.inputs, device);
  const auto expected = inspect::run(inspect::Mode::kEager, example.function, example.inputs);
  const std::string bad = inspect::difference(*found[0], *expected[0], {1e-4, 2e-5});
  return bad.empty() ? "" : "after an allocation that failed: " + bad;
}

/// Runs that are started one after another, on inputs that change: copies and kernels of two
/// streams that must not overtake each other.
std::string check_started(Device device, const Extent& extent) {
  const auto function = std::make_shared<ir::Function>("check");
  constexpr int64_t kWidth = 64;
  {
    ir::Tracer tracer(*function);
    const InterpreterScope scope(tracer);
    const TensorType type{DType::kF32, {kWidth, kWidth}};
    const Tensor x = tracer.input({ir::PortKind::kValue, "x"}, type);
    const Tensor state = tracer.input({ir::PortKind::kState, "s"}, type);
    const auto call = [](const char* name, Tensors operands) {
      const Op& op = get_op(name);
      operands.resize(op.operands().size());
      return call_single(op, std::move(operands), default_attrs(op));
    };
    const Tensor half(Array::from<float>({0.5F}, {}));
    const Tensor next = call("add", {call("multiply", {state, half}), x});
    tracer.output({ir::PortKind::kValue, "y"}, call("relu", {next}));
    tracer.output({ir::PortKind::kState, "s"}, next);
  }
  const auto executable = runtime::compile(function, {.target = {.device = device}});
  const Array state = Array::zeros(DType::kF32, {kWidth, kWidth}).to(device);
  std::vector<std::shared_ptr<runtime::OutputCopies>> started;
  float expected = 0;
  std::vector<float> wanted;
  for (int run = 0; run < (extent.quick ? 20 : 200); ++run) {
    Array x = Array::empty(DType::kF32, {kWidth, kWidth});
    std::fill_n(x.data<float>(), x.size(), static_cast<float>(run));
    started.push_back(executable->start({x, state}));
    expected = expected * 0.5F + static_cast<float>(run);
    wanted.push_back(expected);
    if (run > 0) {
      const Array& y = started[started.size() - 2]->wait()[0];
      for (int64_t i = 0; i < y.size(); ++i)
        if (y.data<float>()[i] != wanted[wanted.size() - 2])
          return str("run ", run - 1, " of those that are started one after another gives ",
                     y.data<float>()[i], ", expected ", wanted[wanted.size() - 2]);
    }
  }
  started.back()->wait();
  synchronize(device);
  return "";
}

}  // namespace

std::string check_device_plans(const std::string& name, const std::string& check,
                               const Extent& extent) {
  const Device device = parse_device(name);
  const Api& api = device_api(device);
  if (check == "arguments") return check_arguments(api);
  if (check == "threads") return check_threads(api);
  if (check == "kernel" || check == "once" || check == "after_kernel")
    return check_kernel_error(device, check);
  if (check == "streams") return check_started(device, extent);
  if (check == "at_once") return check_at_once(device, extent);
  if (check == "steady") return check_steady(device, api, extent);
  if (check == "repeated") return check_repeated(device, extent);
  if (check == "full_memory") return check_full_memory(device, api, extent);
  return check_modules(device, check, extent);
}

}  // namespace paddle::conformance
