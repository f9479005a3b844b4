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

/// `Form` says all that a packed form depends on beside the constant. The constant lives at least
/// as long as its kernels, so that an address stands for one content.
template <class Form>
class PackedConstants {
 public:
  /// The constant of `bytes` bytes at `data` in this form: what is known, or `packed_bytes` filled
  /// by `pack(std::byte*)`.
  template <class Pack>
  std::shared_ptr<Storage> get(const void* data, size_t bytes, const Form& form,
                               size_t packed_bytes, Pack&& pack) {
    const std::lock_guard lock(mutex_);
    std::vector<Known>& known = table_[data];
    std::erase_if(known, [](const Known& k) { return k.storage.expired(); });
    for (const Known& k : known)
      if (k.form == form)
        if (auto storage = k.storage.lock()) return storage;
    auto storage = pool_.allocate(packed_bytes);
    pack(storage->data());
    known.push_back({form, storage});
    forget_mapped(data, bytes);
    return storage;
  }

 private:
  struct Known {
    Form form;
    std::weak_ptr<Storage> storage;
  };
  std::mutex mutex_;
  std::map<const void*, std::vector<Known>> table_;
  ArrayPool pool_;
};

}  // namespace paddle::cpu
