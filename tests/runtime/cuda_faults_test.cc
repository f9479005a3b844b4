// Errors of a driver at each of its calls while a program is compiled and run, on the stand-in for
// the driver: an error is reported or does not matter, and nothing that was created stays.

#include <dlfcn.h>
#include <gtest/gtest.h>

#include "ir/tracer.h"
#include "ops/core/call.h"
#include "ops/generated/ops.h"
#include "runtime/compile.h"
#include "support/cuda/fake_driver.h"
#include "support/cuda/stand_in.h"
#include "tensor/device_functions.h"

namespace paddle {
namespace {

class CudaFaults : public testing::Test {
 protected:
  void SetUp() override {
    const auto found = cuda_stand_in();
    if (!found) GTEST_SKIP() << "no stand-ins";
    device = *found;
    const std::string folder = cuda_stand_ins();
    device_properties(device);  // opens the library
    void* const library = dlopen((folder + "/libcuda.so.1").c_str(), RTLD_NOW | RTLD_NOLOAD);
    ASSERT_NE(library, nullptr);
    plant = reinterpret_cast<decltype(&fake_cuda_plant)>(dlsym(library, "fake_cuda_plant"));
    calls = reinterpret_cast<decltype(&fake_cuda_calls)>(dlsym(library, "fake_cuda_calls"));
    objects = reinterpret_cast<decltype(&fake_cuda_objects)>(dlsym(library, "fake_cuda_objects"));
    ASSERT_TRUE(plant && calls && objects);
  }

  /// Compiles a layer with the gradient of its weight, runs it three times, so that its work is
  /// recorded, and returns the last sum.
  float run() const {
    auto function = std::make_shared<ir::Function>("f");
    {
      ir::Tracer tracer(*function);
      const InterpreterScope scope(tracer);
      const Tensor x = tracer.input({ir::PortKind::kValue, "x"}, {DType::kF32, {3, 4}});
      const Tensor w = tracer.input({ir::PortKind::kValue, "w"}, {DType::kF32, {4, 2}});
      tracer.output({ir::PortKind::kValue, "y"}, ops::sum(ops::softmax(ops::matmul(x, w), -1)));
      tracer.output({ir::PortKind::kValue, "z"}, ops::exp(x));
    }
    const auto executable = runtime::compile(
        function, {.graphs = compiler::GraphMode::kOn, .target = {.device = device}});
    float out = 0;
    for (int i = 0; i < 3; ++i)
      out =
          executable->run({Array::zeros(DType::kF32, {3, 4}), Array::zeros(DType::kF32, {4, 2})})[0]
              .data<float>()[0];
    return out;
  }

  /// Counts what is alive once nothing that the process may use again is kept.
  FakeCudaObjects alive() const {
    plant("", 0, false);
    EXPECT_EQ(device_api(device).trim_pool(device.index, 0), 0);
    FakeCudaObjects out;
    objects(&out);
    return out;
  }

  Device device;
  decltype(&fake_cuda_plant) plant = nullptr;
  decltype(&fake_cuda_calls) calls = nullptr;
  decltype(&fake_cuda_objects) objects = nullptr;
};

std::string text(const FakeCudaObjects& o) {
  return str(o.blocks, " blocks, ", o.host_blocks, " host blocks, ", o.streams, " streams, ",
             o.events, " events, ", o.graphs, " graphs, ", o.modules, " modules");
}

TEST_F(CudaFaults, NothingIsLeftAfterAnErrorAtAnyCall) {
  // Calls that create something, or queue work. One that destroys and fails keeps its object.
  const char* const kCalls[] = {"cuMemAlloc_v2",        "cuMemHostAlloc",
                                "cuMemGetInfo_v2",      "cuMemcpyHtoDAsync_v2",
                                "cuMemcpyDtoHAsync_v2", "cuMemsetD8Async",
                                "cuStreamCreate",       "cuStreamSynchronize",
                                "cuStreamWaitEvent",    "cuEventCreate",
                                "cuEventRecord",        "cuEventQuery",
                                "cuEventSynchronize",   "cuStreamBeginCapture_v2",
                                "cuStreamEndCapture",   "cuGraphInstantiateWithFlags",
                                "cuGraphLaunch",        "cuModuleGetFunction",
                                "cuLaunchKernel"};
  const float expected = run();
  EXPECT_EQ(expected, 3);
  run();
  const FakeCudaObjects before = alive();
  int faults = 0, errors = 0;
  for (const char* const call : kCalls) {
    const uint64_t first = calls(call);
    run();
    const uint64_t count = calls(call) - first;
    for (uint64_t n = 0; n < count; ++n) {
      plant(call, n, false);
      try {
        EXPECT_EQ(run(), expected) << call << " " << n;
      } catch (const Error& e) {
        EXPECT_EQ(e.code(), ErrorCode::kDevice) << call << " " << n << ": " << e.what();
        EXPECT_EQ(std::string(e.what()).find('\n'), std::string::npos) << e.what();
        ++errors;
      }
      const FakeCudaObjects after = alive();
      EXPECT_EQ(after, before) << call << " " << n << ": " << text(after) << ", before "
                               << text(before);
      ++faults;
    }
  }
  EXPECT_GE(faults, 30);
  EXPECT_GE(errors, faults / 2);
}

TEST_F(CudaFaults, NothingIsLeftWhereMemoryEndsAtAnyAllocation) {
  run();
  const FakeCudaObjects before = alive();
  int errors = 0;
  for (const char* const call : {"cuMemAlloc_v2", "cuMemHostAlloc"}) {
    for (uint64_t n = 0;; ++n) {
      const uint64_t first = calls(call);
      plant(call, n, true);
      bool failed = false;
      try {
        run();
      } catch (const Error& e) {
        failed = true;
        EXPECT_EQ(e.code(), ErrorCode::kDevice) << call << " " << n << ": " << e.what();
        EXPECT_NE(std::string(e.what()).find("memory"), std::string::npos) << e.what();
        EXPECT_EQ(std::string(e.what()).find('\n'), std::string::npos) << e.what();
      }
      const bool reached = calls(call) - first > n;
      EXPECT_EQ(failed, reached) << call << " " << n;
      errors += failed ? 1 : 0;
      const FakeCudaObjects after = alive();
      EXPECT_EQ(after, before) << call << " " << n << ": " << text(after) << ", before "
                               << text(before);
      if (!reached) break;
    }
  }
  EXPECT_GE(errors, 4);
}

}  // namespace
}  // namespace paddle
