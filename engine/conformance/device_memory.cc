// Memory of a device: sizes, alignment, exhaustion, release in the order of queued work, leaks.

#include <algorithm>

#include "base/resident_memory.h"
#include "conformance/device_objects.h"
#include "conformance/devices.h"
#include "conformance/passes.h"
#include "tensor/device_functions.h"

namespace paddle::conformance {
namespace {

using Api = paddle_device_api;

constexpr size_t kMebibyte = size_t{1} << 20;
constexpr size_t kAlignment = 256;

std::pair<size_t, size_t> memory_of(const Api& api, int device) {
  size_t available = 0, total = 0;
  must(api, api.memory_info(device, &available, &total), "memory_info");
  return {available, total};
}

std::string check_facts(const Api& api, int count) {
  if (count < 1) return str("device_count is ", count);
  for (int device = 0; device < count; ++device) {
    const auto [available, total] = memory_of(api, device);
    if (total == 0 || available > total)
      return str("memory_info: ", available, " of ", total, " bytes are free");
    if (!api.properties) continue;
    // A caller with an older, shorter struct.
    paddle_device_properties all{}, some{};
    all.struct_size = sizeof all;
    some.struct_size = offsetof(paddle_device_properties, memory);
    some.memory = 77;
    must(api, api.properties(device, &all), "properties");
    must(api, api.properties(device, &some), "properties");
    if (some.memory != 77 || some.struct_size != offsetof(paddle_device_properties, memory))
      return "properties: writes beyond the size of the struct";
    if (all.struct_size != sizeof all) return "properties: changes struct_size";
    if (all.alignment != 0 && (all.alignment & (all.alignment - 1)) != 0)
      return str("properties: the alignment ", all.alignment, " is not a power of two");
  }
  return "";
}

/// Blocks of many sizes, each filled to its last byte: none overlaps another.
std::string check_sizes(const Api& api, int device) {
  const DeviceStream stream(api, device);
  std::vector<DeviceMemory> blocks;
  for (int round = 0; round < 3; ++round)
    for (const size_t bytes : {0, 1, 3, 255, 256, 257, 300, 1000, 4097, 65537, 1048579})
      blocks.emplace_back(api, device, bytes);
  for (size_t i = 0; i < blocks.size(); ++i) {
    const DeviceMemory& block = blocks[i];
    if (block.bytes() > 0 && !block.at()) return "allocate gives a null address";
    if (reinterpret_cast<uintptr_t>(block.at()) % kAlignment != 0)
      return str("allocate: ", block.bytes(), " bytes are not aligned to ", kAlignment);
    const Bytes content = pattern(block.bytes(), i);
    stream.to_device(block.at(), content.data(), content.size());
    stream.synchronize();
  }
  for (size_t i = 0; i < blocks.size(); ++i)
    if (std::string bad = difference(read_back(stream, blocks[i].at(), blocks[i].bytes()),
                                     pattern(blocks[i].bytes(), i));
        !bad.empty())
      return str("allocate: a block of ", blocks[i].bytes(), " bytes shares memory: ", bad);
  return "";
}

/// More than there is: an error with a message, and the device works on.
std::string check_too_much(const Api& api, int device) {
  for (const size_t bytes : {SIZE_MAX, SIZE_MAX / 2, memory_of(api, device).second + kMebibyte}) {
    void* memory = nullptr;
    const int status = api.allocate(device, bytes, &memory);
    if (status == 0) return str("allocate gives ", bytes, " bytes, more than the device has");
    if (status != PADDLE_DEVICE)
      return str("allocate: ", bytes, " bytes: expected the status 6, found ", status);
    if (!api.last_error() || !*api.last_error())
      return str("allocate: ", bytes, " bytes: last_error has no message");
    const DeviceMemory small(api, device, 1000);
    const DeviceStream stream(api, device);
    stream.fill(small.at(), 5, 1000);
    if (read_back(stream, small.at(), 1000) != Bytes(1000, 5))
      return "the device gives wrong bytes after an allocation that failed";
  }
  return "";
}

/// Memory that is released while queued work uses it stays until that work is done.
std::string check_release(const Api& api, int device) {
  const SlowWork slow(api, device);
  for (int round = 0; round < 4; ++round) {
    const size_t bytes = size_t{65536} << round;
    const DeviceStream first(api, device), second(api, device);
    DeviceMemory block(api, device, bytes);
    const DeviceMemory kept(api, device, bytes);
    const Bytes content = pattern(bytes, 7);
    first.to_device(block.at(), content.data(), bytes);
    first.synchronize();
    slow.queue(first);
    first.on_device(kept.at(), block.at(), bytes);
    block.release();
    std::vector<DeviceMemory> others;
    for (int i = 0; i < 4; ++i) {
      others.emplace_back(api, device, bytes);
      second.fill(others.back().at(), 0xAB, bytes);
    }
    second.synchronize();
    first.synchronize();
    if (std::string bad = difference(read_back(first, kept.at(), bytes), content); !bad.empty())
      return "release takes effect before the work that is queued: " + bad;
  }
  return "";
}

/// Bytes of this process that are in memory; 0 where a sanitizer keeps what was released.
uint64_t bytes_in_use() {
#if defined(__SANITIZE_ADDRESS__)
  return 0;
#else
  return resident_bytes();
#endif
}

std::string check_leak(const Api& api, int device, bool quick) {
  const size_t cycles = quick ? 300 : 2000, bytes = kMebibyte;
  const DeviceStream stream(api, device);
  const auto cycle = [&] {
    DeviceMemory block(api, device, bytes);
    stream.fill(block.at(), 1, bytes);
    block.release();
    stream.synchronize();
  };
  for (int i = 0; i < 20; ++i) cycle();
  const uint64_t resident = bytes_in_use();
  const size_t available = memory_of(api, device).first;
  for (size_t i = 0; i < cycles; ++i) cycle();
  const size_t allowed = cycles * bytes / 4;
  const size_t left = memory_of(api, device).first;
  if (left + allowed < available)
    return str("release: ", cycles, " blocks of 1 MiB take ", (available - left) / kMebibyte,
               " MiB of the device that are not given back");
  if (bytes_in_use() > resident + allowed)
    return str("release: ", cycles, " blocks of 1 MiB take ",
               (bytes_in_use() - resident) / kMebibyte, " MiB of the host that are not given back");
  return "";
}

/// Memory is counted for the device that it is on.
std::string check_accounting(const Api& api, int count) {
  if (&api == &device_api(Device::cpu())) return str(kSkip, "other programs use its memory, too");
  for (int device = 0; device < count; ++device) {
    const size_t bytes = 64 * kMebibyte, before = memory_of(api, device).first;
    if (before < 2 * bytes) continue;
    const DeviceMemory block(api, device, bytes);
    const size_t after = memory_of(api, device).first;
    if (after + bytes / 2 > before)
      return str("memory_info of device ", device, ": 64 MiB are allocated, and ",
                 (before - std::min(before, after)) / kMebibyte, " MiB less are free");
  }
  return "";
}

std::string check_devices(const Api& api, int count) {
  if (count < 2) return str(kSkip, "there is one device");
  std::vector<DeviceMemory> blocks;
  for (int device = 0; device < count; ++device) {
    const DeviceStream stream(api, device);
    blocks.emplace_back(api, device, 5000);
    stream.fill(blocks.back().at(), 10 + device, 5000);
    stream.synchronize();
  }
  for (int device = 0; device < count; ++device) {
    const DeviceStream stream(api, device);
    if (read_back(stream, blocks[static_cast<size_t>(device)].at(), 5000) !=
        Bytes(5000, static_cast<uint8_t>(10 + device)))
      return str("memory of device ", device, " is overwritten by that of another");
  }
  return "";
}

std::string check_host(const Api& api, int device) {
  if (!api.allocate_host) return str(kSkip, "it has no host memory of its own");
  const DeviceStream stream(api, device);
  for (const size_t bytes : {1, 4097, 1048576}) {
    void *from = nullptr, *to = nullptr;
    must(api, api.allocate_host(bytes, &from), "allocate_host");
    must(api, api.allocate_host(bytes, &to), "allocate_host");
    if (!from || !to || reinterpret_cast<uintptr_t>(from) % 64 != 0)
      return "allocate_host: the memory is not aligned to 64 bytes";
    const Bytes content = pattern(bytes, 3);
    std::memcpy(from, content.data(), bytes);
    std::memset(to, 0, bytes);
    const DeviceMemory block(api, device, bytes);
    stream.to_device(block.at(), from, bytes);
    stream.to_host(to, block.at(), bytes);
    stream.synchronize();
    const bool same = std::memcmp(from, content.data(), bytes) == 0 &&
                      std::memcmp(to, content.data(), bytes) == 0;
    must(api, api.release_host(from), "release_host");
    must(api, api.release_host(to), "release_host");
    if (!same) return str("copies of ", bytes, " bytes of its host memory give other bytes");
  }
  return "";
}

/// Memory in the order of a stream.
std::string check_pool(const Api& api, int device) {
  if (!api.allocate_queued) return str(kSkip, "it has no allocate_queued");
  const DeviceStream stream(api, device);
  const DeviceMemory kept(api, device, 4 * 1000);
  for (int i = 0; i < 4; ++i) {
    void* block = nullptr;
    must(api, api.allocate_queued(stream.get(), 1000, &block), "allocate_queued");
    stream.fill(block, 20 + i, 1000);
    stream.on_device(kept.at(static_cast<size_t>(i) * 1000), block, 1000);
    must(api, api.release_queued(stream.get(), block), "release_queued");
  }
  const Bytes found = read_back(stream, kept.at(), 4000);
  for (size_t i = 0; i < found.size(); ++i)
    if (found[i] != 20 + i / 1000)
      return "memory of allocate_queued is used again before its work is done";
  if (api.trim_pool) must(api, api.trim_pool(device, 0), "trim_pool");
  return "";
}

std::string check_statistics(const Api& api, int device) {
  if (!api.statistics) return str(kSkip, "it has no statistics");
  const auto counts = [&] {
    paddle_device_statistics out{};
    out.struct_size = sizeof out;
    must(api, api.statistics(device, &out), "statistics");
    return out;
  };
  const DeviceStream stream(api, device);
  const paddle_device_statistics before = counts();
  const DeviceMemory block(api, device, 1000);
  const Bytes content(1000, 1);
  stream.to_device(block.at(), content.data(), 1000);
  stream.on_device(block.at(), block.at(500), 100);
  read_back(stream, block.at(), 700);
  const paddle_device_statistics after = counts();
  if (after.copies_to_device != before.copies_to_device + 1 ||
      after.copies_on_device != before.copies_on_device + 1 ||
      after.copies_to_host != before.copies_to_host + 1 ||
      after.bytes_to_device != before.bytes_to_device + 1000 ||
      after.bytes_to_host != before.bytes_to_host + 700)
    return "statistics: one copy of each kind is not counted as one";
  if (after.waits <= before.waits || after.allocations != before.allocations + 1)
    return "statistics: a wait or an allocation is not counted";
  return "";
}

}  // namespace

std::string check_device_memory(const std::string& name, const std::string& check,
                                const Extent& extent) {
  const Device device = parse_device(name);
  const Api& api = device_api(device);
  const int count = api.device_count();
  if (check == "facts") return check_facts(api, count);
  if (check == "accounting") return check_accounting(api, count);
  if (check == "devices") return check_devices(api, count);
  for (int each = 0; each < std::min(count, 2); ++each) {
    std::string bad;
    if (check == "sizes") bad = check_sizes(api, each);
    if (check == "too_much") bad = check_too_much(api, each);
    if (check == "release") bad = check_release(api, each);
    if (check == "leak") bad = check_leak(api, each, extent.quick);
    if (check == "host") bad = check_host(api, each);
    if (check == "pool") bad = check_pool(api, each);
    if (check == "statistics") bad = check_statistics(api, each);
    if (!bad.empty()) return bad;
  }
  return "";
}

}  // namespace paddle::conformance
