#include "tensor/shared_storage.h"

#include <atomic>
#include <map>

#include "tensor/dlpack.h"

namespace paddle {
namespace {

struct Shared {
  std::weak_ptr<Storage> storage;
  bool writable = false;
};

std::mutex shared_mutex;
std::map<const Storage*, Shared> all_shared;
size_t next_cleanup = 64;
std::atomic<bool> any_writable{false};

void note(const std::shared_ptr<Storage>& storage, bool writable) {
  const std::lock_guard lock(shared_mutex);
  if (all_shared.size() >= next_cleanup) {
    std::erase_if(all_shared, [](const auto& each) { return each.second.storage.expired(); });
    next_cleanup = 2 * all_shared.size() + 64;
  }
  Shared& shared = all_shared[storage.get()];
  const bool is_known = !shared.storage.expired();
  shared = {storage, writable || (is_known && shared.writable)};
  if (writable) any_writable = true;
}

/// The entry of a storage that still exists; null for others. The caller holds the lock.
const Shared* find(const Array& array) {
  const auto it = all_shared.find(array.storage.get());
  return it == all_shared.end() || it->second.storage.expired() ? nullptr : &it->second;
}

}  // namespace

void share(const std::shared_ptr<Storage>& storage) { note(storage, false); }
void share_writable(const std::shared_ptr<Storage>& storage) { note(storage, true); }

bool is_shared(const Array& array) {
  const std::lock_guard lock(shared_mutex);
  return find(array) != nullptr;
}

bool is_shared_writable(const Array& array) {
  if (!any_writable) return false;
  const std::lock_guard lock(shared_mutex);
  const Shared* const shared = find(array);
  return shared && shared->writable;
}

bool is_shared_writable(const Content* content) {
  if (!any_writable || !content) return false;
  const Array* const array = content->concrete();
  return array && is_shared_writable(*array);
}

void copy_elements(const Array& from, const Array& to) {
  ensure(from.dtype == to.dtype && from.shape == to.shape, "copy_elements: types differ");
  const auto item = static_cast<size_t>(item_size(from.dtype));
  const Array packed =
      from.storage == to.storage ? dlpack::own_copy(from) : from.on_host().contiguous();
  const auto* source = static_cast<const std::byte*>(packed.raw());
  if (to.is_contiguous()) {
    std::memcpy(to.raw(), source, static_cast<size_t>(to.size()) * item);
    return;
  }
  if (to.size() == 0) return;
  auto* const target = static_cast<std::byte*>(to.raw());
  Dims index(to.shape.size(), 0);
  int64_t at = 0;  // in elements from the first
  while (true) {
    std::memcpy(target + at * static_cast<int64_t>(item), source, item);
    source += item;
    size_t axis = index.size();
    while (axis > 0 && ++index[axis - 1] == to.shape[axis - 1]) {
      --axis;
      at -= to.strides[axis] * (to.shape[axis] - 1);
      index[axis] = 0;
    }
    if (axis == 0) return;
    at += to.strides[axis - 1];
  }
}

}  // namespace paddle
