// The C interface for prediction, on top of the C++ one.

#include <vector>

#include "api/c_handles.h"
#include "paddle/model.h"
#include "paddle/version.h"

using paddle::str;
using paddle::c_api::BadCall;
using paddle::c_api::guarded;
using paddle::c_api::Handles;
using paddle::c_api::known_fields;
using paddle::c_api::last_error;
using paddle::c_api::required;
using paddle::c_api::text_or;
using paddle::v0::Array;
using paddle::v0::DType;
using paddle::v0::Model;
using paddle::v0::ModelOptions;
using paddle::v0::TensorInfo;

struct paddle_model {
  explicit paddle_model(Model given)
      : model(std::move(given)), inputs(model.inputs()), outputs(model.outputs()) {}
  Model model;
  std::vector<TensorInfo> inputs, outputs;
};

struct paddle_result {
  std::vector<Array> arrays;
  std::vector<std::string> names;
};

namespace {

std::shared_ptr<paddle_model> opened(paddle_model* model) {
  return Handles<paddle_model>::all().get(model, "model");
}
std::shared_ptr<paddle_result> opened(paddle_result* result) {
  return Handles<paddle_result>::all().get(result, "result");
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
  const auto reject = [&](const std::string& why) {
    throw BadCall{str("array ", index, ": ", why)};
  };
  if (from.dtype < PADDLE_BOOL || from.dtype > PADDLE_COMPLEX128)
    reject(str("unknown dtype ", from.dtype));
  if (from.rank < 0 || from.rank > kMaxRank)
    reject(str("rank ", from.rank, ", expected 0 to ", kMaxRank));
  if (from.rank > 0 && !from.shape) reject("'shape' is a null pointer");
  const auto dtype = static_cast<DType>(from.dtype);
  std::vector<int64_t> shape(from.shape, from.shape + from.rank);
  size_t bytes = paddle::v0::dtype_size(dtype);
  for (const int64_t size : shape) {
    if (size < 0) reject(str("size ", size));
    if (__builtin_mul_overflow(bytes, static_cast<size_t>(size), &bytes))
      reject("the shape is beyond the address space");
  }
  if (bytes != from.bytes)
    reject(str("the shape takes ", bytes, " bytes, 'bytes' is ", from.bytes));
  if (bytes > 0 && !from.data) reject("'data' is a null pointer");
  if (dtype == DType::kBool)
    for (size_t i = 0; i < bytes; ++i)
      if (static_cast<const unsigned char*>(from.data)[i] > 1)
        reject(str("element ", i, " of a bool array is neither 0 nor 1"));
  return Array::copy(dtype, std::move(shape), from.data);
}

ModelOptions options_of(const paddle_model_options* options) {
  const paddle_model_options given = known_fields(options);
  ModelOptions out;
  out.weights = text_or(given.weights, "");
  out.function = text_or(given.function, out.function);
  if (given.override_count > 0) required(given.overrides, "overrides");
  for (size_t i = 0; i < given.override_count; ++i)
    out.overrides.emplace_back(&required(given.overrides[i], "overrides[i]"));
  out.seed = given.seed;
  out.raw = given.raw != 0;
  out.precision = text_or(given.precision, out.precision);
  out.device = text_or(given.device, out.device);
  out.memory = given.memory;
  if (given.leave_out_count > 0) required(given.leave_out, "leave_out");
  for (size_t i = 0; i < given.leave_out_count; ++i)
    out.leave_out.emplace_back(&required(given.leave_out[i], "leave_out[i]"));
  out.exact = given.exact != 0;
  return out;
}

}  // namespace

extern "C" {

const char* paddle_version(void) { return paddle::v0::version(); }
const char* paddle_last_error(void) { return last_error().c_str(); }

paddle_status paddle_model_open(const char* path, paddle_model** model) {
  return guarded(__func__, [&] {
    required(model, "model") = nullptr;
    required(path, "path");
    *model = Handles<paddle_model>::all().add(std::make_shared<paddle_model>(Model(path)));
  });
}

paddle_status paddle_model_open_with(const char* path, const paddle_model_options* options,
                                     paddle_model** model) {
  return guarded(__func__, [&] {
    required(model, "model") = nullptr;
    required(path, "path");
    const ModelOptions given = options_of(options);
    *model = Handles<paddle_model>::all().add(std::make_shared<paddle_model>(Model(path, given)));
  });
}

paddle_status paddle_model_open_memory(const paddle_file* files, size_t count,
                                       const paddle_model_options* options, paddle_model** model) {
  return guarded(__func__, [&] {
    required(model, "model") = nullptr;
    if (count > 0) required(files, "files");
    std::map<std::string, std::string_view> named;
    for (size_t i = 0; i < count; ++i) {
      const paddle_file& file = files[i];
      if (file.bytes > 0) required(static_cast<const char*>(file.data), "data");
      named[&required(file.name, "name")] = {static_cast<const char*>(file.data), file.bytes};
    }
    const ModelOptions given = options_of(options);
    *model = Handles<paddle_model>::all().add(
        std::make_shared<paddle_model>(Model::from_memory(named, given)));
  });
}

paddle_status paddle_model_clone(paddle_model* model, paddle_model** clone) {
  return guarded(__func__, [&] {
    required(clone, "clone") = nullptr;
    const auto held = opened(model);
    *clone = Handles<paddle_model>::all().add(std::make_shared<paddle_model>(held->model.clone()));
  });
}

paddle_status paddle_set_threads(int32_t threads) {
  return guarded(__func__, [&] { paddle::v0::set_threads(threads); });
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
    for (const TensorInfo& output : held->outputs) made->names.push_back(output.name);
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

paddle_status paddle_result_name(paddle_result* result, size_t index, const char** name) {
  return guarded(__func__, [&] {
    const auto held = opened(result);
    required(name, "name");
    if (index >= held->names.size())
      throw BadCall{str("index ", index, " of ", held->names.size())};
    *name = held->names[index].c_str();
  });
}

paddle_status paddle_arrays_load(const char* path, paddle_result** result) {
  return guarded(__func__, [&] {
    required(result, "result") = nullptr;
    auto made = std::make_shared<paddle_result>();
    for (auto& [name, array] : paddle::v0::load_arrays(&required(path, "path"))) {
      made->names.push_back(name);
      made->arrays.push_back(std::move(array));
    }
    *result = Handles<paddle_result>::all().add(std::move(made));
  });
}

paddle_status paddle_arrays_save(const char* path, const char* const* names,
                                 const paddle_array* arrays, size_t count) {
  return guarded(__func__, [&] {
    required(path, "path");
    if (count > 0) required(names, "names"), required(arrays, "arrays");
    std::map<std::string, Array> named;
    for (size_t i = 0; i < count; ++i)
      if (!named.emplace(&required(names[i], "names[i]"), input_array(arrays[i], i)).second)
        throw BadCall{str("two arrays are named '", names[i], "'")};
    paddle::v0::save_arrays(path, named);
  });
}

paddle_status paddle_memory_usage(uint64_t* resident, uint64_t* peak) {
  return guarded(__func__, [&] {
    const paddle::v0::MemoryUsage usage = paddle::v0::memory_usage();
    if (resident) *resident = usage.resident;
    if (peak) *peak = usage.peak;
  });
}

paddle_status paddle_release_memory(void) {
  return guarded(__func__, [&] { paddle::v0::release_memory(); });
}

paddle_status paddle_result_free(paddle_result* result) {
  return guarded(__func__, [&] {
    if (result) Handles<paddle_result>::all().remove(result, "result");
  });
}

}  // extern "C"
