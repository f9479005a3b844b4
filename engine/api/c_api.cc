// The C interface, on top of the C++ one. Handles are looked up in tables of what is open, so that
// a pointer that was closed or never opened is an error and not a crash.

#include "paddle/paddle_c.h"

#include <map>
#include <mutex>

#include "base/text.h"
#include "paddle/error.h"
#include "paddle/model.h"
#include "paddle/version.h"

using paddle::str;
using paddle::v0::Array;
using paddle::v0::DType;
using paddle::v0::Error;
using paddle::v0::Model;
using paddle::v0::TensorInfo;

struct paddle_model {
  explicit paddle_model(const char* path)
      : model(path), inputs(model.inputs()), outputs(model.outputs()) {}
  Model model;
  std::vector<TensorInfo> inputs, outputs;
};

struct paddle_result {
  std::vector<Array> arrays;
};

namespace {

/// An error of the caller.
struct BadCall {
  std::string why;
};

std::string& last_error() {
  thread_local std::string text;
  return text;
}

paddle_status failed(paddle_status status, const char* what) noexcept {
  try {
    last_error() = what;
  } catch (...) {
    last_error().clear();  // no memory even for the message
  }
  return status;
}

/// Calls `body`, which throws, and gives the status.
template <class Body>
paddle_status guarded(const char* function, Body&& body) noexcept {
  try {
    body();
    return PADDLE_OK;
  } catch (const BadCall& e) {
    try {
      return failed(PADDLE_USAGE, str(function, ": ", e.why).c_str());
    } catch (...) {
      return failed(PADDLE_USAGE, function);
    }
  } catch (const Error& e) {
    return failed(static_cast<paddle_status>(e.code()), e.what());
  } catch (const std::bad_alloc&) {
    return failed(PADDLE_DEVICE, "out of memory");
  } catch (const std::exception& e) {
    return failed(PADDLE_INTERNAL, e.what());
  } catch (...) {
    return failed(PADDLE_INTERNAL, "unknown exception");
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

std::shared_ptr<paddle_model> opened(paddle_model* model) {
  return Handles<paddle_model>::all().get(model, "model");
}
std::shared_ptr<paddle_result> opened(paddle_result* result) {
  return Handles<paddle_result>::all().get(result, "result");
}

template <class T>
T& required(T* pointer, const char* name) {
  if (!pointer) throw BadCall{str("'", name, "' is a null pointer")};
  return *pointer;
}

void describe(const std::vector<TensorInfo>& tensors, size_t index, paddle_tensor_info* info) {
  required(info, "info");
  if (index >= tensors.size()) throw BadCall{str("index ", index, " of ", tensors.size())};
  const TensorInfo& t = tensors[index];
  *info = {t.name.c_str(), static_cast<paddle_dtype>(t.dtype),
           t.ranked ? static_cast<int32_t>(t.shape.size()) : -1, t.shape.data()};
}

/// A copy: the engine may keep its inputs, and the caller's memory ends with the call.
Array input_array(const paddle_array& from, size_t index) {
  constexpr int32_t kMaxRank = 64;
  const auto refuse = [&](const std::string& why) {
    throw BadCall{str("input ", index, ": ", why)};
  };
  if (from.dtype < PADDLE_BOOL || from.dtype > PADDLE_FLOAT64)
    refuse(str("unknown dtype ", from.dtype));
  if (from.rank < 0 || from.rank > kMaxRank)
    refuse(str("rank ", from.rank, ", expected 0 to ", kMaxRank));
  if (from.rank > 0 && !from.shape) refuse("'shape' is a null pointer");
  const auto dtype = static_cast<DType>(from.dtype);
  std::vector<int64_t> shape(from.shape, from.shape + from.rank);
  size_t bytes = paddle::v0::dtype_size(dtype);
  for (const int64_t size : shape) {
    if (size < 0) refuse(str("size ", size));
    if (__builtin_mul_overflow(bytes, static_cast<size_t>(size), &bytes))
      refuse("the shape is beyond the address space");
  }
  if (bytes != from.bytes)
    refuse(str("the shape takes ", bytes, " bytes, 'bytes' is ", from.bytes));
  if (bytes > 0 && !from.data) refuse("'data' is a null pointer");
  if (dtype == DType::kBool)
    for (size_t i = 0; i < bytes; ++i)
      if (static_cast<const unsigned char*>(from.data)[i] > 1)
        refuse(str("element ", i, " of a bool array is neither 0 nor 1"));
  return Array::copy(dtype, std::move(shape), from.data);
}

}  // namespace

extern "C" {

const char* paddle_version(void) { return paddle::v0::version(); }
const char* paddle_last_error(void) { return last_error().c_str(); }

paddle_status paddle_model_open(const char* path, paddle_model** model) {
  return guarded(__func__, [&] {
    required(model, "model") = nullptr;
    required(path, "path");
    *model = Handles<paddle_model>::all().add(std::make_shared<paddle_model>(path));
  });
}

paddle_status paddle_model_close(paddle_model* model) {
  return guarded(__func__, [&] {
    if (model) Handles<paddle_model>::all().remove(model, "model");
  });
}

paddle_status paddle_model_input_count(paddle_model* model, size_t* count) {
  return guarded(__func__, [&] { required(count, "count") = opened(model)->inputs.size(); });
}

paddle_status paddle_model_output_count(paddle_model* model, size_t* count) {
  return guarded(__func__, [&] { required(count, "count") = opened(model)->outputs.size(); });
}

paddle_status paddle_model_input(paddle_model* model, size_t index, paddle_tensor_info* info) {
  return guarded(__func__, [&] { describe(opened(model)->inputs, index, info); });
}

paddle_status paddle_model_output(paddle_model* model, size_t index, paddle_tensor_info* info) {
  return guarded(__func__, [&] { describe(opened(model)->outputs, index, info); });
}

paddle_status paddle_model_run(paddle_model* model, const paddle_array* inputs, size_t count,
                               paddle_result** result) {
  return guarded(__func__, [&] {
    required(result, "result") = nullptr;
    const auto held = opened(model);
    if (count > 0) required(inputs, "inputs");
    if (count != held->inputs.size())
      throw BadCall{str("the model takes ", held->inputs.size(), " inputs, ", count, " are given")};
    std::vector<Array> arrays;
    for (size_t i = 0; i < count; ++i) arrays.push_back(input_array(inputs[i], i));
    auto made = std::make_shared<paddle_result>();
    made->arrays = held->model.predict(arrays);
    *result = Handles<paddle_result>::all().add(std::move(made));
  });
}

paddle_status paddle_result_count(paddle_result* result, size_t* count) {
  return guarded(__func__, [&] { required(count, "count") = opened(result)->arrays.size(); });
}

paddle_status paddle_result_get(paddle_result* result, size_t index, paddle_array* array) {
  return guarded(__func__, [&] {
    const auto held = opened(result);
    required(array, "array");
    if (index >= held->arrays.size())
      throw BadCall{str("index ", index, " of ", held->arrays.size())};
    const Array& from = held->arrays[index];
    *array = {static_cast<paddle_dtype>(from.dtype()), static_cast<int32_t>(from.shape().size()),
              from.shape().data(), from.raw(), from.bytes()};
  });
}

paddle_status paddle_result_free(paddle_result* result) {
  return guarded(__func__, [&] {
    if (result) Handles<paddle_result>::all().remove(result, "result");
  });
}

}  // extern "C"
