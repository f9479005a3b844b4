#pragma once
// Helpers shared by the functions of the C interface. Errors become statuses, and handles are
// looked up in tables of open ones, so that a closed or unknown pointer is an error and not a
// crash.

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "base/text.h"
#include "paddle/error.h"
#include "paddle/paddle_c.h"

namespace paddle::c_api {

/// An error of the caller.
struct BadCall {
  std::string why;
};

/// Of this thread.
std::string& last_error();
/// Stores the message; returns `status`.
paddle_status failed(paddle_status status, const char* what) noexcept;
/// The status of the exception that is being handled, in the function `function`.
paddle_status status_of_exception(const char* function) noexcept;

/// Calls `body`, which throws, and gives the status.
template <class Body>
paddle_status guarded(const char* function, Body&& body) noexcept {
  try {
    body();
    return PADDLE_OK;
  } catch (...) {
    return status_of_exception(function);
  }
}

/// Open handles. A call holds its object by a shared pointer, so that closing it meanwhile is safe.
template <class T>
class Handles {
 public:
  T* add(std::shared_ptr<T> object) {
    const std::lock_guard lock(mutex_);
    T* const key = object.get();
    open_[key] = std::move(object);
    return key;
  }
  std::shared_ptr<T> get(T* handle, const char* what) {
    const std::lock_guard lock(mutex_);
    const auto it = open_.find(handle);
    if (it == open_.end()) throw BadCall{str("the ", what, " is not open")};
    return it->second;
  }
  void remove(T* handle, const char* what) {
    std::shared_ptr<T> last = get(handle, what);  // destroyed outside of the lock
    const std::lock_guard lock(mutex_);
    open_.erase(handle);
  }
  static Handles& all() {
    static Handles& handles = *new Handles;  // never destroyed: programs may close late
    return handles;
  }

 private:
  std::mutex mutex_;
  std::map<T*, std::shared_ptr<T>> open_;
};

template <class T>
T& required(T* pointer, const char* name) {
  if (!pointer) throw BadCall{str("'", name, "' is a null pointer")};
  return *pointer;
}

/// A structure of options as this version of the library knows it: fields that the caller does not
/// know are zero. Fields that only the caller knows must be.
template <class T>
T known_fields(const T* given) {
  T out{};
  if (!given) return out;
  if (given->struct_size < sizeof(size_t) || given->struct_size > 4096)
    throw BadCall{str("struct_size is ", given->struct_size, ", expected sizeof the structure")};
  std::memcpy(&out, given, std::min(given->struct_size, sizeof out));
  const auto* const bytes = reinterpret_cast<const unsigned char*>(given);
  for (size_t i = sizeof out; i < given->struct_size; ++i)
    if (bytes[i] != 0) throw BadCall{"an option is set that this version of the library lacks"};
  return out;
}

inline std::string text_or(const char* text, const std::string& otherwise) {
  return text && *text ? text : otherwise;
}

}  // namespace paddle::c_api
