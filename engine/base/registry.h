#pragma once
// Named things that programs look up and that libraries may add while a program runs: optimizers,
// schedules, kinds of data sets. A registry is safe to use from several threads; what it returns
// stays valid after later changes.
//
//   Registry<OptimizerKind>& kinds = optimizer_kinds();
//   kinds.add({my_optimizer()}, {"my_plugin.so"});
//   if (const auto kind = kinds.find("adam")) …

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace paddle {

/// Entry has a member `name`.
template <class Entry>
class Registry {
 public:
  using Handle = std::shared_ptr<const Entry>;

  /// `what` names an entry in messages: "optimizer". `built_in` are there from the beginning.
  Registry(std::string what, std::vector<Entry> built_in) : what_(std::move(what)) {
    add(std::move(built_in), {});
  }
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  /// Adds all entries, or none: kConfig at `where`, where they are declared, for a name that is
  /// empty or taken.
  void add(std::vector<Entry> entries, const SourceLocation& where) {
    const std::lock_guard lock(mutex_);
    std::vector<Item> items = items_;
    for (Entry& entry : entries) {
      if (entry.name.empty()) throw Error(ErrorCode::kConfig, what_ + " without a name", where);
      if (const Item* other = find_in(items, entry.name)) {
        const std::string place = other->where.text();
        throw Error(ErrorCode::kConfig,
                    str(what_, " '", entry.name, "' is already registered",
                        place.empty() ? " (built in)" : " by " + place),
                    where);
      }
      items.push_back({std::make_shared<const Entry>(std::move(entry)), where});
    }
    items_ = std::move(items);
    ++version_;
  }
  /// Removes entries, as when what registered them is unloaded. Unknown names are ignored.
  void remove(const std::vector<std::string>& names) {
    const std::lock_guard lock(mutex_);
    std::erase_if(items_, [&](const Item& item) {
      return std::find(names.begin(), names.end(), item.entry->name) != names.end();
    });
    ++version_;
  }

  /// Null if there is none of this name.
  Handle find(std::string_view name) const {
    const std::lock_guard lock(mutex_);
    const Item* item = find_in(items_, name);
    return item ? item->entry : nullptr;
  }
  /// All entries in the order of registration.
  std::vector<Handle> all() const {
    const std::lock_guard lock(mutex_);
    std::vector<Handle> out;
    for (const Item& item : items_) out.push_back(item.entry);
    return out;
  }
  std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const Handle& entry : all()) out.push_back(entry->name);
    return out;
  }
  /// Grows with every change: for what is computed from all entries and kept.
  uint64_t version() const {
    const std::lock_guard lock(mutex_);
    return version_;
  }

 private:
  struct Item {
    Handle entry;
    SourceLocation where;  ///< empty for those that are built in
  };
  static const Item* find_in(const std::vector<Item>& items, std::string_view name) {
    const auto at = std::find_if(items.begin(), items.end(),
                                 [&](const Item& item) { return item.entry->name == name; });
    return at == items.end() ? nullptr : &*at;
  }

  std::string what_;
  mutable std::mutex mutex_;
  std::vector<Item> items_;
  uint64_t version_ = 0;
};

}  // namespace paddle
