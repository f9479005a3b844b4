#pragma once
// Constants in the forms that kernels read them in, for as long as a kernel holds them: kernels for
// other shapes of the same weights share them.

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "base/files.h"
#include "tensor/array_pool.h"

namespace paddle::cpu {

/// `Key` says all that a packed form depends on beside the constant. The constant lives at least
/// as long as its kernels, so that an address stands for one content.
template <class Key>
class PrepackCache {
 public:
  /// The constant of `bytes` bytes at `data` in this form: what is known, or `packed_bytes` filled
  /// by `pack(std::byte*)`.
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
  ArrayPool pool_;
};

}  // namespace paddle::cpu
