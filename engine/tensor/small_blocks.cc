#include "tensor/small_blocks.h"

#include <array>
#include <bit>
#include <cstdlib>

#include "base/error.h"
#include "base/text.h"

namespace paddle {
namespace {

constexpr size_t kBlockAlignment = 64;
constexpr int kClasses = std::bit_width(kMaxPooled / kBlockAlignment);  ///< sizes of 64, 128, …
constexpr size_t kMaxKept = size_t{256} << 10;                          ///< bytes of one class

// Sanitizers find errors at blocks that were released, so there none is kept.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kKeep = false;
#else
constexpr bool kKeep = true;
#endif

constexpr int class_of(size_t bytes) {
  return bytes <= kBlockAlignment ? 0
                                  : static_cast<int>(std::bit_width((bytes - 1) / kBlockAlignment));
}
constexpr size_t size_of(int size_class) { return kBlockAlignment << size_class; }

/// A block that is not in use holds the list of those after it.
struct Free {
  Free* next;
};

struct Lists {
  std::array<Free*, kClasses> first{};
  std::array<size_t, kClasses> kept{};
  bool closed = false;
};
thread_local constinit Lists lists;

/// Frees the blocks of a thread when it ends; later ones are not kept.
struct Closing {
  Closing() = default;
  ~Closing() {
    lists.closed = true;
    for (Free*& list : lists.first)
      while (list) {
        Free* const block = list;
        list = block->next;
        std::free(block);
      }
  }
  Closing(const Closing&) = delete;
  Closing& operator=(const Closing&) = delete;
  void begin() const {}
};
thread_local const Closing closing;

}  // namespace

std::byte* take_block(size_t bytes) {
  const int size_class = class_of(bytes);
  const auto at = static_cast<size_t>(size_class);
  if (Free* const block = lists.first[at]) {
    lists.first[at] = block->next;
    lists.kept[at] -= size_of(size_class);
    return reinterpret_cast<std::byte*>(block);
  }
  void* const data = std::aligned_alloc(kBlockAlignment, size_of(size_class));
  if (!data) fail(ErrorCode::kDevice, "out of memory: cannot allocate ", human_bytes(bytes));
  return static_cast<std::byte*>(data);
}

void release_block(std::byte* data, size_t bytes) {
  if (!data) return;
  if (kKeep && bytes <= kMaxPooled && !lists.closed) {
    const int size_class = class_of(bytes);
    const auto at = static_cast<size_t>(size_class);
    if (lists.kept[at] + size_of(size_class) <= kMaxKept) {
      closing.begin();
      lists.first[at] = new (data) Free{lists.first[at]};
      lists.kept[at] += size_of(size_class);
      return;
    }
  }
  std::free(data);
}

}  // namespace paddle
