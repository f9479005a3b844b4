// The contract of all devices, on mirror and on cuda with the stand-in for its driver: pools,
// copies between devices, clocks, pinned memory, and recorded copies and fills.

#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>

#include "base/files.h"
#include "runtime/execute.h"
#include "tensor/device_functions.h"

namespace paddle {
namespace {

/// The folder of the stand-in for the driver, which is named before any test asks for a device; ""
/// where it is not built.
const std::string& stand_in() {
  static const std::string folder = [] {
    const char* const programs = std::getenv("PADDLE_BIN");
    std::string fake = str(programs ? programs : "", "/../fake_cuda");
    if (!programs || !file_exists(fake + "/libcuda.so.1")) return std::string();
    setenv("PADDLE_CUDA_LIBRARIES", fake.c_str(), 1);
    return fake;
  }();
  return folder;
}
[[maybe_unused]] const bool is_named = !stand_in().empty();

class DeviceContract : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (std::string(GetParam()) == "cuda" && stand_in().empty()) GTEST_SKIP() << "no stand-in";
    runtime::register_backends();
    device = parse_device(GetParam());
    api = &device_api(device);
    ASSERT_EQ(api->create_stream(0, &stream), 0);
    ASSERT_EQ(api->allocate(0, 64, &memory), 0);
    ASSERT_EQ(api->fill(stream, memory, 1, 64), 0);
    ASSERT_EQ(api->synchronize_stream(stream), 0);
  }
  void TearDown() override {
    if (!stream) return;
    api->destroy_stream(stream);
    api->release(0, memory);
  }
  uint8_t first_byte(paddle_stream on) {
    uint8_t byte = 0;
    EXPECT_EQ(api->copy(on, &byte, memory, 1, PADDLE_COPY_TO_HOST), 0);
    EXPECT_EQ(api->synchronize_stream(on), 0);
    return byte;
  }
  uint8_t first_byte() { return first_byte(stream); }

  Device device;
  const paddle_device_api* api = nullptr;
  paddle_stream stream = nullptr;
  void* memory = nullptr;
};

TEST_P(DeviceContract, FactsAreThere) {
  const paddle_device_properties facts = device_properties(device);
  EXPECT_STRNE(facts.name, "");
  EXPECT_GT(facts.memory, size_t{1} << 20);
  EXPECT_GT(facts.compute_units, 0u);
  EXPECT_EQ(facts.alignment, 256u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % facts.alignment, 0u);
  EXPECT_EQ(device_of_dlpack(facts.dlpack_type, 1), (Device{device.kind, 1}));
}

TEST_P(DeviceContract, CopiesAreCounted) {
  const paddle_device_statistics before = device_statistics(device);
  first_byte();
  ASSERT_EQ(api->copy(stream, memory, "abc", 3, PADDLE_COPY_TO_DEVICE), 0);
  EXPECT_EQ(first_byte(), 'a');
  const paddle_device_statistics after = device_statistics(device);
  EXPECT_EQ(after.copies_to_host - before.copies_to_host, 2u);
  EXPECT_EQ(after.bytes_to_device - before.bytes_to_device, 3u);
  EXPECT_EQ(after.waits - before.waits, 2u);
  EXPECT_EQ(api->copy(stream, memory, memory, 1, 9), PADDLE_USAGE);
}

TEST_P(DeviceContract, RecordedWorkIsRepeated) {
  void* other = nullptr;
  ASSERT_EQ(api->allocate(0, 64, &other), 0);
  paddle_graph graph = nullptr;
  const paddle_device_statistics before = device_statistics(device);
  ASSERT_EQ(api->begin_capture(stream), 0);
  ASSERT_EQ(api->copy(stream, other, memory, 64, PADDLE_COPY_ON_DEVICE), 0);
  ASSERT_EQ(api->fill(stream, memory, 7, 64), 0);
  ASSERT_EQ(api->end_capture(stream, &graph), 0);
  EXPECT_EQ(device_statistics(device).copies_on_device, before.copies_on_device);
  EXPECT_EQ(first_byte(), 1) << "recording runs nothing";
  ASSERT_EQ(api->launch_graph(graph, stream), 0);
  ASSERT_EQ(api->launch_graph(graph, stream), 0);
  EXPECT_EQ(first_byte(), 7);
  uint8_t copied = 0;
  ASSERT_EQ(api->copy(stream, &copied, other, 1, PADDLE_COPY_TO_HOST), 0);
  ASSERT_EQ(api->synchronize_stream(stream), 0);
  EXPECT_EQ(copied, 7) << "by the second launch";
  const paddle_device_statistics after = device_statistics(device);
  EXPECT_EQ(after.copies_on_device - before.copies_on_device, 2u);
  EXPECT_EQ(after.graph_launches - before.graph_launches, 2u);
  ASSERT_EQ(api->fill(stream, memory, 3, 64), 0);
  ASSERT_EQ(api->launch_graph(graph, stream), 0);
  ASSERT_EQ(api->destroy_graph(graph), 0) << "after the launch that is queued";
  EXPECT_EQ(first_byte(), 7);
  api->release(0, other);
}

TEST_P(DeviceContract, WrongCallsSpoilARecord) {
  paddle_event event = nullptr;
  ASSERT_EQ(api->create_event(0, &event), 0);
  const auto call = [&](const std::string& name) {
    void* unused = nullptr;
    if (name == "synchronize_stream") return api->synchronize_stream(stream);
    if (name == "record_event") return api->record_event(event, stream);
    if (name == "wait_event") return api->wait_event(stream, event);
    if (name == "synchronize_event") return api->synchronize_event(event);
    if (name == "allocate") return api->allocate(0, 8, &unused);
    return api->begin_capture(stream);
  };
  for (const std::string name : {"synchronize_stream", "record_event", "wait_event",
                                 "synchronize_event", "allocate", "begin_capture"}) {
    paddle_graph graph = nullptr;
    ASSERT_EQ(api->begin_capture(stream), 0) << name;
    ASSERT_EQ(api->fill(stream, memory, 9, 64), 0);
    const std::string message = str(GetParam(), ": ", name, " while work is recorded");
    EXPECT_EQ(call(name), PADDLE_USAGE);
    EXPECT_EQ(api->last_error(), message);
    EXPECT_EQ(api->end_capture(stream, &graph), PADDLE_USAGE);
    EXPECT_EQ(api->last_error(), message);
    EXPECT_EQ(graph, nullptr);
    EXPECT_EQ(first_byte(), 1) << "nothing of it runs";
  }
  api->destroy_event(event);
}

TEST_P(DeviceContract, OtherThreadsAllocateAndReleaseWhileOneRecords) {
  paddle_graph graph = nullptr;
  void* before = nullptr;
  ASSERT_EQ(api->allocate(0, 64, &before), 0);
  ASSERT_EQ(api->begin_capture(stream), 0);
  ASSERT_EQ(api->fill(stream, memory, 5, 64), 0);
  std::thread([&] {
    void* other = nullptr;
    EXPECT_EQ(api->allocate(0, 64, &other), 0);
    EXPECT_EQ(api->release(0, other), 0);
  }).join();
  EXPECT_EQ(api->release(0, before), 0) << "as arrays are, at any time";
  ASSERT_EQ(api->end_capture(stream, &graph), 0) << api->last_error();
  ASSERT_EQ(api->launch_graph(graph, stream), 0);
  EXPECT_EQ(first_byte(), 5);
  EXPECT_EQ(api->destroy_graph(graph), 0);
}

TEST_P(DeviceContract, PoolsFollowTheOrderOfAStream) {
  void* block = nullptr;
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(api->allocate_queued(stream, 64, &block), 0);
    ASSERT_EQ(api->fill(stream, block, 10 + i, 64), 0);
    ASSERT_EQ(api->copy(stream, memory, block, 64, PADDLE_COPY_ON_DEVICE), 0);
    ASSERT_EQ(api->release_queued(stream, block), 0);
  }
  EXPECT_EQ(first_byte(), 12);
  EXPECT_EQ(api->trim_pool(0, 0), 0) << api->last_error();
  paddle_graph graph = nullptr;
  ASSERT_EQ(api->begin_capture(stream), 0);
  ASSERT_EQ(api->allocate_queued(stream, 64, &block), 0) << api->last_error();
  ASSERT_EQ(api->fill(stream, block, 20, 64), 0);
  ASSERT_EQ(api->copy(stream, memory, block, 64, PADDLE_COPY_ON_DEVICE), 0);
  ASSERT_EQ(api->release_queued(stream, block), 0);
  ASSERT_EQ(api->end_capture(stream, &graph), 0) << api->last_error();
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(api->fill(stream, memory, 0, 64), 0);
    ASSERT_EQ(api->launch_graph(graph, stream), 0);
    EXPECT_EQ(first_byte(), 20);
  }
  EXPECT_EQ(api->destroy_graph(graph), 0);
}

TEST_P(DeviceContract, EventsHaveAClock) {
  paddle_event begin = nullptr, end = nullptr, plain = nullptr;
  ASSERT_EQ(api->create_timing_event(0, &begin), 0);
  ASSERT_EQ(api->create_timing_event(0, &end), 0);
  ASSERT_EQ(api->create_event(0, &plain), 0);
  ASSERT_EQ(api->record_event(begin, stream), 0);
  ASSERT_EQ(api->fill(stream, memory, 2, 64), 0);
  ASSERT_EQ(api->record_event(end, stream), 0);
  int reached = -1;
  double seconds = -1;
  ASSERT_EQ(api->query_event(end, &reached), 0);
  EXPECT_EQ(reached, 0) << "nothing runs before a wait";
  EXPECT_EQ(api->elapsed(begin, end, &seconds), PADDLE_USAGE);
  ASSERT_EQ(api->synchronize_event(end), 0);
  ASSERT_EQ(api->query_event(end, &reached), 0);
  EXPECT_EQ(reached, 1);
  ASSERT_EQ(api->elapsed(begin, end, &seconds), 0) << api->last_error();
  EXPECT_GT(seconds, 0);
  EXPECT_EQ(api->elapsed(begin, plain, &seconds), PADDLE_USAGE);
  for (const paddle_event event : {begin, end, plain}) EXPECT_EQ(api->destroy_event(event), 0);
}

TEST_P(DeviceContract, CopiesBetweenDevices) {
  void* other = nullptr;
  paddle_stream there = nullptr;
  int can_access = 0;
  ASSERT_EQ(api->allocate(1, 64, &other), 0);
  ASSERT_EQ(api->create_stream(1, &there), 0);
  ASSERT_EQ(api->can_access_peer(0, 1, &can_access), 0);
  EXPECT_EQ(can_access, 1);
  ASSERT_EQ(api->copy_peer(stream, other, 1, memory, 0, 64), 0) << api->last_error();
  ASSERT_EQ(api->fill(stream, memory, 0, 64), 0);
  ASSERT_EQ(api->synchronize_stream(stream), 0);
  ASSERT_EQ(api->copy_peer(there, memory, 0, other, 1, 64), 0) << "on a stream of the source";
  ASSERT_EQ(api->synchronize_stream(there), 0);
  EXPECT_EQ(first_byte(), 1);
  EXPECT_NE(api->copy_peer(stream, other, 0, memory, 0, 64), 0) << "not its device";
  api->destroy_stream(there);
  api->release(1, other);
}

TEST_P(DeviceContract, MemoryOfTheCallerIsPinned) {
  std::vector<uint8_t> bytes(4096, 8);
  ASSERT_EQ(api->pin_host(bytes.data(), bytes.size()), 0) << api->last_error();
  ASSERT_EQ(api->copy(stream, memory, bytes.data(), 64, PADDLE_COPY_TO_DEVICE), 0);
  EXPECT_EQ(first_byte(), 8);
  EXPECT_EQ(api->unpin_host(bytes.data()), 0);
}

INSTANTIATE_TEST_SUITE_P(Devices, DeviceContract, testing::Values("mirror", "cuda"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace paddle
