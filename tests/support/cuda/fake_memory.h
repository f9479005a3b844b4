#pragma once
// The memory of a GPU that the stand-in for the driver emulates: pages that the host cannot access
// but while work runs.

#include <dlfcn.h>
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

/// A function of the address sanitizer, if the program has it, that says which bytes kernels may
/// access.
using MarkMemory = void (*)(const volatile void*, size_t);
inline MarkMemory memory_marker(bool accessible) {
  static const auto poison =
      reinterpret_cast<MarkMemory>(dlsym(RTLD_DEFAULT, "__asan_poison_memory_region"));
  static const auto unpoison =
      reinterpret_cast<MarkMemory>(dlsym(RTLD_DEFAULT, "__asan_unpoison_memory_region"));
  return accessible ? unpoison : poison;
}
inline void mark_memory(uintptr_t at, size_t bytes, bool accessible) {
  if (const MarkMemory mark = memory_marker(accessible))
    mark(reinterpret_cast<const void*>(at), bytes);
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
    // With the address sanitizer there is a gap between blocks.
    const size_t asked = bytes, gap = memory_marker(false) ? 4096 : 0;
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
      if (used + bytes + gap > reserved()) return 0;
      out = reinterpret_cast<uintptr_t>(base + used);
      used += bytes + gap;
      mark_memory(out + bytes, gap, false);
    }
    live[out] = bytes;
    allocated += bytes;
    mark_memory(out, bytes, false);
    mark_memory(out, asked, true);
    return out;
  }
  bool release(uintptr_t memory) {
    const auto it = live.find(memory);
    if (it == live.end()) return false;
    allocated -= it->second;
    free.emplace(it->second, memory);
    mark_memory(memory, it->second, false);
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
