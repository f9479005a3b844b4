#pragma once
// A bounded list of values, the most recently used first: compiled functions by what they were
// traced for, plans by the shapes of their inputs. Lookups compare one by one, as such lists are
// short and their keys are not hashed.

#include <cstddef>
#include <list>
#include <utility>

namespace paddle {

template <typename T>
class RecentList {
 public:
  /// The first value that fits, which becomes the most recent one; null if none does.
  template <typename Fits>
  T* find(const Fits& fits) {
    for (auto it = values_.begin(); it != values_.end(); ++it) {
      if (!fits(*it)) continue;
      if (it != values_.begin()) values_.splice(values_.begin(), values_, it);
      return &values_.front();
    }
    return nullptr;
  }
  /// Adds a value as the most recent one. Of more than `max` values the oldest is dropped.
  T& add(T value, size_t max) {
    values_.push_front(std::move(value));
    if (values_.size() > max) values_.pop_back();
    return values_.front();
  }
  /// Adds a value as the oldest one: to copy a list in its order.
  T& add_oldest(T value) { return values_.emplace_back(std::move(value)); }

  bool empty() const { return values_.empty(); }
  size_t size() const { return values_.size(); }
  T& front() { return values_.front(); }
  const T& front() const { return values_.front(); }
  auto begin() { return values_.begin(); }
  auto end() { return values_.end(); }
  auto rbegin() { return values_.rbegin(); }  ///< the oldest
  auto rend() { return values_.rend(); }
  auto begin() const { return values_.begin(); }
  auto end() const { return values_.end(); }

 private:
  std::list<T> values_;
};

}  // namespace paddle
