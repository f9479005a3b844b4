// The table of device functions: what tables of plug-ins may leave out, the CPU's, and what only
// mirror tells: the places of errors. device_contract_test.cc has what all devices promise.

#include "tensor/device_functions.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <thread>

#include "kernels/mirror/address.h"
#include "runtime/execute.h"

namespace paddle {
namespace {

const paddle_device_api& mirror_api() {
  runtime::register_backends();
  return device_api(parse_device("mirror"));
}

std::string rejected(const paddle_device_api& table) {
  try {
    register_device_kind(table);
  } catch (const Error& e) {
    return e.what();
  }
  return "registered";
}

TEST(DeviceTable, FunctionsThatWereAddedMayBeMissing) {
  paddle_device_api table = mirror_api();
  table.name = "shorter";
  table.struct_size = offsetof(paddle_device_api, open);
  const auto kind = register_device_kind(table);
  const Device device{kind, 0};
  table.name = "changed after it was registered";
  EXPECT_EQ(device.text(), "shorter");
  EXPECT_EQ(device_api(device).begin_capture, nullptr);
  EXPECT_FALSE(has_graphs(device));
  EXPECT_EQ(describe_device(device), "");
  const paddle_device_properties facts = device_properties(device);
  EXPECT_STREQ(facts.name, "shorter");
  EXPECT_EQ(facts.alignment, 256u);
  EXPECT_EQ(device_statistics(device).copies_to_device, 0u);
  const Array there = Array::from<float>({1, 2, 3}, {3}).to(device);
  EXPECT_EQ(there.on_host().number(2), 3);
}

TEST(DeviceTable, LongerTablesWork) {
  struct Longer {
    paddle_device_api known;
    void (*unknown[4])();
  } table{mirror_api(), {}};
  table.known.name = "longer";
  table.known.struct_size = sizeof table;
  const Device device{register_device_kind(table.known), 0};
  EXPECT_TRUE(has_graphs(device));
  const Array there = Array::from<float>({1, 2, 3}, {3}).to(device);
  EXPECT_EQ(there.on_host().number(1), 2);
}

TEST(DeviceTable, HostMemoryIsOptional) {
  paddle_device_api table = mirror_api();
  table.name = "no_host_memory";
  table.allocate_host = nullptr;
  table.release_host = nullptr;
  const Device device{register_device_kind(table), 0};
  void* memory = nullptr;
  ASSERT_EQ(device_api(device).allocate_host(100, &memory), 0);
  std::memset(memory, 1, 100);
  EXPECT_EQ(device_api(device).release_host(memory), 0);
}

TEST(DeviceTable, IncompleteTablesAreRejected) {
  paddle_device_api table = mirror_api();
  table.name = "incomplete";
  table.struct_size = offsetof(paddle_device_api, last_error);
  EXPECT_EQ(rejected(table), "the table of a device lacks functions");
  table = mirror_api();
  table.name = "incomplete";
  table.copy = nullptr;
  EXPECT_EQ(rejected(table), "the table of a device lacks functions");
  table = mirror_api();
  table.name = "incomplete";
  table.end_capture = nullptr;
  EXPECT_EQ(rejected(table), "device 'incomplete' has one function of a group but not all");
  table = mirror_api();
  table.name = "incomplete";
  table.version = 2;
  EXPECT_EQ(rejected(table),
            "device 'incomplete' is for version 2 of the device functions, expected 1");
  table = mirror_api();
  EXPECT_EQ(rejected(table), "there is already a device 'mirror'");
}

TEST(DeviceTable, CallersWithShorterStructsGetWhatFits) {
  paddle_device_properties facts;
  std::memset(&facts, 0x55, sizeof facts);
  facts.struct_size = offsetof(paddle_device_properties, architecture);
  ASSERT_EQ(mirror_api().properties(0, &facts), 0);
  EXPECT_STREQ(facts.name, "mirror of the CPU");
  EXPECT_EQ(facts.struct_size, offsetof(paddle_device_properties, architecture));
  EXPECT_EQ(facts.memory, 0x5555555555555555u) << "beyond the caller's struct";
}

TEST(DeviceTable, TheCpuIsADevice) {
  const Device cpu = Device::cpu();
  const paddle_device_api& api = device_api(cpu);
  EXPECT_STREQ(device_properties(cpu).name, "cpu");
  EXPECT_TRUE(device_properties(cpu).flags & PADDLE_DEVICE_HOST_ACCESSIBLE);
  void* memory = nullptr;
  ASSERT_EQ(api.allocate(0, 16, &memory), 0);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % device_properties(cpu).alignment, 0u);
  paddle_stream stream = nullptr;
  ASSERT_EQ(api.create_stream(0, &stream), 0);
  ASSERT_EQ(api.fill(stream, memory, 3, 16), 0);
  uint8_t bytes[16] = {};
  ASSERT_EQ(api.copy(stream, bytes, memory, 16, PADDLE_COPY_TO_HOST), 0);
  EXPECT_EQ(bytes[15], 3) << "the CPU does everything at once";
  EXPECT_EQ(api.destroy_stream(stream), 0);
  EXPECT_EQ(api.release(0, memory), 0);
  ASSERT_EQ(api.allocate(0, SIZE_MAX, &memory), PADDLE_DEVICE);
  EXPECT_NE(std::string(api.last_error()).find("out of memory"), std::string::npos);
}

/// A stream of mirror with memory for a few bytes.
class MirrorStream : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(api.create_stream(0, &stream), 0);
    ASSERT_EQ(api.allocate(0, 64, &memory), 0);
    ASSERT_EQ(api.fill(stream, memory, 0, 64), 0);
    ASSERT_EQ(api.synchronize_stream(stream), 0);
  }
  void TearDown() override {
    api.destroy_stream(stream);
    api.release(0, memory);
  }
  uint8_t first_byte() {
    uint8_t byte = 0;
    EXPECT_EQ(api.copy(stream, &byte, memory, 1, PADDLE_COPY_TO_HOST), 0);
    EXPECT_EQ(api.synchronize_stream(stream), 0);
    return byte;
  }
  /// Queues a kernel that adds one to the first byte.
  void add_one(const std::string& location = "") {
    mirror::launch(
        stream, [byte = static_cast<uint8_t*>(mirror::to_host_address(memory))] { ++*byte; },
        location);
  }

  const paddle_device_api& api = mirror_api();
  paddle_stream stream = nullptr;
  void* memory = nullptr;
};

TEST_F(MirrorStream, CountsWhatItDoes) {
  const Device device = parse_device("mirror");
  const paddle_device_statistics before = device_statistics(device);
  add_one();
  first_byte();
  ASSERT_EQ(api.copy(stream, memory, "abcd", 4, PADDLE_COPY_TO_DEVICE), 0);
  ASSERT_EQ(api.synchronize_stream(stream), 0);
  const paddle_device_statistics after = device_statistics(device);
  EXPECT_EQ(after.launches - before.launches, 1u);
  EXPECT_EQ(after.copies_to_host - before.copies_to_host, 1u);
  EXPECT_EQ(after.bytes_to_host - before.bytes_to_host, 1u);
  EXPECT_EQ(after.copies_to_device - before.copies_to_device, 1u);
  EXPECT_EQ(after.bytes_to_device - before.bytes_to_device, 4u);
  EXPECT_EQ(after.waits - before.waits, 2u);
  EXPECT_EQ(api.copy(stream, memory, memory, 4, 7), PADDLE_USAGE);
}

TEST_F(MirrorStream, RecordsAndRepeats) {
  const Device device = parse_device("mirror");
  ASSERT_EQ(api.begin_capture(stream), 0);
  add_one();
  add_one();
  paddle_graph graph = nullptr;
  ASSERT_EQ(api.end_capture(stream, &graph), 0);
  EXPECT_EQ(first_byte(), 0) << "recording runs nothing";
  const uint64_t launches = device_statistics(device).graph_launches;
  for (int i = 0; i < 3; ++i) ASSERT_EQ(api.launch_graph(graph, stream), 0);
  ASSERT_EQ(api.destroy_graph(graph), 0) << "what is queued still runs";
  EXPECT_EQ(first_byte(), 6);
  EXPECT_EQ(device_statistics(device).graph_launches - launches, 3u);
}

TEST_F(MirrorStream, WrongCallsSpoilARecord) {
  paddle_event event = nullptr;
  paddle_graph graph = nullptr;
  ASSERT_EQ(api.create_event(0, &event), 0);
  const auto call = [&](const std::string& name) {
    void* unused = nullptr;
    if (name == "synchronize_stream") return api.synchronize_stream(stream);
    if (name == "record_event") return api.record_event(event, stream);
    if (name == "wait_event") return api.wait_event(stream, event);
    if (name == "synchronize_event") return api.synchronize_event(event);
    if (name == "allocate") return api.allocate(0, 8, &unused);
    return api.begin_capture(stream);
  };
  for (const std::string name : {"synchronize_stream", "record_event", "wait_event",
                                 "synchronize_event", "allocate", "begin_capture"}) {
    ASSERT_EQ(api.begin_capture(stream), 0);
    add_one("model.yaml:7:3");
    EXPECT_EQ(call(name), PADDLE_USAGE);
    const std::string message = "mirror: " + name + " while work is recorded";
    EXPECT_EQ(api.last_error(), message);
    EXPECT_STREQ(api.last_error_location(), "model.yaml:7:3");
    EXPECT_EQ(api.end_capture(stream, &graph), PADDLE_USAGE);
    EXPECT_EQ(api.last_error(), message);
    EXPECT_EQ(graph, nullptr);
    EXPECT_EQ(first_byte(), 0) << "nothing of a spoiled record runs";
  }
  EXPECT_EQ(api.end_capture(stream, &graph), PADDLE_USAGE);
  EXPECT_STREQ(api.last_error(), "mirror: end_capture without begin_capture on this thread");
  api.destroy_event(event);
}

TEST_F(MirrorStream, OtherThreadsMayAllocateWhileOneRecords) {
  ASSERT_EQ(api.begin_capture(stream), 0);
  add_one();
  int allocated = -1, waited = -1;
  std::thread([&] {
    void* other = nullptr;
    allocated = api.allocate(0, 8, &other);
    api.release(0, other);
  }).join();
  paddle_graph graph = nullptr;
  EXPECT_EQ(allocated, 0);
  ASSERT_EQ(api.end_capture(stream, &graph), 0);
  api.destroy_graph(graph);
  ASSERT_EQ(api.begin_capture(stream), 0);
  std::thread([&] { waited = api.synchronize_stream(stream); }).join();
  EXPECT_EQ(waited, PADDLE_USAGE) << "the stream that is recorded";
  EXPECT_EQ(api.end_capture(stream, &graph), PADDLE_USAGE);
}

TEST_F(MirrorStream, ErrorsOfRecordedKernelsHaveTheirLocation) {
  ASSERT_EQ(api.begin_capture(stream), 0);
  mirror::launch(
      stream, [] { fail(ErrorCode::kData, "a bad index"); }, "model.yaml:7:3");
  add_one("model.yaml:8:3");
  paddle_graph graph = nullptr;
  ASSERT_EQ(api.end_capture(stream, &graph), 0);
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(api.launch_graph(graph, stream), 0);
    EXPECT_EQ(api.synchronize_stream(stream), PADDLE_DATA);
    EXPECT_STREQ(api.last_error(), "a bad index");
    EXPECT_STREQ(api.last_error_location(), "model.yaml:7:3");
  }
  EXPECT_EQ(first_byte(), 2) << "the kernels after it ran";
  api.destroy_graph(graph);
}

TEST_F(MirrorStream, CopiesBetweenDevices) {
  void* other = nullptr;
  ASSERT_EQ(api.allocate(1, 64, &other), 0);
  int can_access = 0;
  ASSERT_EQ(api.can_access_peer(0, 1, &can_access), 0);
  EXPECT_EQ(can_access, 1);
  add_one();
  ASSERT_EQ(api.copy_peer(stream, other, 1, memory, 0, 64), 0);
  ASSERT_EQ(api.fill(stream, memory, 0, 64), 0);
  ASSERT_EQ(api.copy_peer(stream, memory, 0, other, 1, 64), 0);
  EXPECT_EQ(first_byte(), 1);
  EXPECT_EQ(api.copy_peer(stream, other, 0, memory, 0, 64), PADDLE_USAGE);
  EXPECT_STREQ(api.last_error(), "mirror: copy_peer: the memory is not that of the device");
  EXPECT_EQ(api.copy_peer(stream, other, 1, memory, 0, 65), PADDLE_USAGE);
  api.release(1, other);
}

}  // namespace
}  // namespace paddle
