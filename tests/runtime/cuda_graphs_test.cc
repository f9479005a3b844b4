// Recorded kernels, on the stand-in for an NVIDIA GPU.

#include <gtest/gtest.h>

#include <vector>

#include "ops/core/kernel.h"
#include "support/cuda/stand_in.h"
#include "tensor/device_functions.h"

namespace paddle {
namespace {

TEST(CudaGraphs, OutliveTheStreamThatRecordedThem) {
  const auto device = cuda_stand_in();
  if (!device) GTEST_SKIP() << "no stand-ins";
  const paddle_device_api& api = device_api(*device);
  // Several blocks sum it and count, in memory of the stream, which of them is the last.
  constexpr int64_t kSize = 40000;
  const Op& op = get_op("sum");
  const Attrs attrs{op.defaults, {}};
  const Layout x = Layout::contiguous(DType::kF32, {kSize}),
               sum = Layout::contiguous(DType::kF32, {});
  const auto kernel = prepare_kernel({op, attrs, {&x, 1}, {&sum, 1}, {.device = *device}});
  ASSERT_NE(kernel, nullptr);
  paddle_stream recording = nullptr, stream = nullptr;
  ASSERT_EQ(api.create_stream(0, &recording), 0);
  ASSERT_EQ(api.create_stream(0, &stream), 0);
  std::vector<void*> blocks;
  const auto allocate = [&](size_t bytes) {
    EXPECT_EQ(api.allocate(0, bytes, &blocks.emplace_back()), 0);
    return blocks.back();
  };
  void* const operand = allocate(kSize * sizeof(float));
  void* const result = allocate(sizeof(float));
  void* const scratch = allocate(kernel->scratch_bytes());
  const std::vector<float> ones(kSize, 1.0f);
  const auto run = [&](paddle_stream on) {
    kernel->run({.scratch = static_cast<std::byte*>(scratch), .stream = on}, &operand, &result);
  };
  const auto read = [&] {
    float value = 0;
    EXPECT_EQ(api.copy(stream, &value, result, sizeof value, PADDLE_COPY_TO_HOST), 0);
    EXPECT_EQ(api.synchronize_stream(stream), 0);
    return value;
  };
  ASSERT_EQ(api.copy(stream, operand, ones.data(), kSize * sizeof(float), PADDLE_COPY_TO_DEVICE),
            0);
  run(stream);  // loads the kernel
  EXPECT_EQ(read(), kSize);
  ASSERT_EQ(api.begin_capture(recording), 0);
  run(recording);
  paddle_graph graph = nullptr;
  ASSERT_EQ(api.end_capture(recording, &graph), 0);
  ASSERT_EQ(api.destroy_stream(recording), 0);
  // Released memory is handed out again.
  for (size_t bytes = 256; bytes <= 8192; bytes += 256)
    ASSERT_EQ(api.fill(stream, allocate(bytes), 0xff, bytes), 0);
  ASSERT_EQ(api.fill(stream, result, 0, sizeof(float)), 0);
  ASSERT_EQ(api.launch_graph(graph, stream), 0);
  EXPECT_EQ(read(), kSize);
  ASSERT_EQ(api.destroy_graph(graph), 0);
  for (void* const block : blocks) EXPECT_EQ(api.release(0, block), 0);
  ASSERT_EQ(api.destroy_stream(stream), 0);
}

}  // namespace
}  // namespace paddle
