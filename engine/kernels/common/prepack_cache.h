#pragma once
// Shares prepacked constants between kernels: kernels for other shapes of the same weights use the
// same packed copy, which is freed with the last of them.

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "base/files.h"
#include "tensor/array_pool.h"

namespace paddle::cpu {

/// `Key` holds everything the packed form depends on besides the constant. A constant outlives its
/// kernels, so its address identifies its contents.
template <class Key>
class PrepackCache {
 public:
  /// The packed form of the constant of `bytes` bytes at `data`: a cached one, or `packed_bytes`
  /// bytes filled by `pack(std::byte*)`.
  template <class Pack>
  std::shared_ptr<Storage> get(const void* data, size_t bytes, const Key& key, size_t packed_bytes,
                               Pack&& pack) {
    const std::lock_guard lock(mutex_);
    std::vector<Entry>& entries = table_[data];
    std::erase_if(entries, [](const Entry& k) { return k.storage.expired(); });
    for (const Entry& k : entries)
      if (k.key == key)
        if (auto storage = k.storage.lock()) return storage;
    auto storage = pool_.allocate(packed_bytes);
    pack(storage->data());
    entries.push_back({key, storage});
    forget_mapped(data, bytes);
    return storage;
  }

 private:
  struct Entry {
    Key key;
    std::weak_ptr<Storage> storage;
  };
  std::mutex mutex_;
  std::map<const void*, std::vector<Entry>> table_;
  ArrayPool pool_{ArrayPool::Writers::kAll};
};

}  // namespace paddle::cpu
