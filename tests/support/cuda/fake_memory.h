#pragma once
// The memory of a GPU that the stand-in for the driver emulates: pages that the host cannot access
// but while work runs.

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>

namespace {

/// The variable PADDLE_FAKE_CUDA_<name>.
long long setting(const char* name, long long otherwise) {
  const char* const text = std::getenv((std::string("PADDLE_FAKE_CUDA_") + name).c_str());
  return text && *text ? std::atoll(text) : otherwise;
}

struct Memory {
  std::byte* base = nullptr;
  size_t used = 0;  ///< bytes from the base on that were ever handed out
  size_t allocated = 0;
  std::map<uintptr_t, size_t> live;
  std::multimap<size_t, uintptr_t> free;

  size_t limit() const { return static_cast<size_t>(setting("MEMORY", 1ll << 30)); }
  /// Addresses; blocks are used again for their own size only.
  size_t reserved() const { return 2 * limit(); }
  uintptr_t allocate(size_t bytes) {
    bytes = (bytes + 511) / 512 * 512;
    if (bytes == 0 || allocated + bytes > limit()) return 0;
    if (!base) {
      void* const pages =
          mmap(nullptr, reserved(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (pages == MAP_FAILED) return 0;
      base = static_cast<std::byte*>(pages);
    }
    uintptr_t out = 0;
    if (const auto it = free.lower_bound(bytes); it != free.end() && it->first == bytes) {
      out = it->second;
      free.erase(it);
    } else {
      if (used + bytes > reserved()) return 0;
      out = reinterpret_cast<uintptr_t>(base + used);
      used += bytes;
    }
    live[out] = bytes;
    allocated += bytes;
    return out;
  }
  bool release(uintptr_t memory) {
    const auto it = live.find(memory);
    if (it == live.end()) return false;
    allocated -= it->second;
    free.emplace(it->second, memory);
    live.erase(it);
    return true;
  }
  /// Whether these bytes are within one allocation.
  bool holds(uintptr_t at, size_t bytes) const {
    auto it = live.upper_bound(at);
    if (it == live.begin()) return false;
    --it;
    return at + bytes <= it->first + it->second;
  }
  void protect(int flags) const {
    if (base) mprotect(base, (used + 4095) / 4096 * 4096, flags);
  }
};

}  // namespace
