#include "exporter/onnxruntime.h"

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "formats/onnx/model.h"
#include "onnx/graph/session.h"
#include "onnx/graph/value_io.h"

namespace paddle::exporter {
namespace {

/// Places in the table of functions.
enum Place : size_t {
  kGetErrorMessage = 2,
  kCreateEnv = 3,
  kCreateSession = 7,
  kRun = 9,
  kCreateSessionOptions = 10,
  kCreateTensor = 48,
  kCreateTensorWithData = 49,
  kGetTensorData = 51,
  kFillStrings = 52,
  kGetElementType = 60,
  kGetDimensionsCount = 61,
  kGetDimensions = 62,
  kGetTypeAndShape = 65,
  kCreateCpuMemoryInfo = 69,
  kGetDefaultAllocator = 78,
  kReleaseEnv = 92,
  kReleaseStatus = 93,
  kReleaseMemoryInfo = 94,
  kReleaseSession = 95,
  kReleaseValue = 96,
  kReleaseTypeAndShape = 99,
  kReleaseSessionOptions = 100,
};

struct ApiBase {
  void* const* (*get_api)(uint32_t version);
  const char* (*get_version)();
};

/// The functions of the library, which stays open.
class Library {
 public:
  static const Library& get() {
    static const Library library;
    return library;
  }

  /// Calls a function that gives a status.
  template <class... Arguments>
  void call(Place place, Arguments... arguments) const {
    void* const status = reinterpret_cast<void* (*)(Arguments...)>(table_[place])(arguments...);
    if (!status) return;
    const std::string message =
        reinterpret_cast<const char* (*)(void*)>(table_[kGetErrorMessage])(status);
    release(kReleaseStatus, status);
    fail(ErrorCode::kModel, "ONNX Runtime ", version_, ": ", message.substr(0, message.find('\n')));
  }
  void release(Place place, void* object) const {
    reinterpret_cast<void (*)(void*)>(table_[place])(object);
  }

 private:
  Library() {
    const char* const given = std::getenv("PADDLE_ONNXRUNTIME");
    std::vector<std::string> names = {"libonnxruntime.so.1", "libonnxruntime.so"};
    if (given && *given) names = {given};
    void* library = nullptr;
    for (const std::string& name : names)
      if (!library) library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library)
      fail(ErrorCode::kUsage, "--check-with onnxruntime: ", names.back(), " cannot be opened; set ",
           "PADDLE_ONNXRUNTIME to the path of libonnxruntime.so");
    const auto base = reinterpret_cast<const ApiBase* (*)()>(dlsym(library, "OrtGetApiBase"));
    constexpr uint32_t kVersion = 11;  // of 1.11, which has all that is used here
    table_ = base ? base()->get_api(kVersion) : nullptr;
    if (!table_)
      fail(ErrorCode::kUsage, "--check-with onnxruntime: ", names.back(),
           " is not ONNX Runtime 1.11 or later");
    version_ = base()->get_version();
  }

  void* const* table_ = nullptr;
  std::string version_;
};

/// An object of the library.
class Object {
 public:
  explicit Object(Place release) : release_(release) {}
  Object(Object&& other) noexcept : release_(other.release_), object_(other.object_) {
    other.object_ = nullptr;
  }
  Object& operator=(Object&&) = delete;
  ~Object() {
    if (object_) Library::get().release(release_, object_);
  }
  void** out() { return &object_; }
  void* get() const { return object_; }

 private:
  Place release_;
  void* object_ = nullptr;
};

class OnnxRuntimeModel final : public program::Model {
 public:
  OnnxRuntimeModel(const std::string& file, const program::LoadOptions& options)
      : described_(program::load_model(file, options)),
        env_(kReleaseEnv),
        options_(kReleaseSessionOptions),
        memory_(kReleaseMemoryInfo),
        session_(kReleaseSession) {
    inputs_ = described_->inputs();
    outputs_ = described_->outputs();
    name_ = described_->name();
    constexpr int kErrors = 3, kDeviceAllocator = 0, kDefaultMemory = 0;
    const Library& ort = Library::get();
    ort.call(kCreateEnv, kErrors, "paddle", env_.out());
    ort.call(kCreateSessionOptions, options_.out());
    ort.call(kCreateCpuMemoryInfo, kDeviceAllocator, kDefaultMemory, memory_.out());
    ort.call(kCreateSession, env_.get(), file.c_str(), options_.get(), session_.out());
  }

  int64_t parameter_count() const override { return described_->parameter_count(); }
  double flops(const std::vector<Array>& inputs) override { return described_->flops(inputs); }

  const std::vector<Array>& run(const std::vector<Array>& inputs) override {
    return run_values(onnx::to_values(inputs));
  }

  const std::vector<Array>& run_values(const onnx::Values& inputs) {
    const Library& ort = Library::get();
    std::vector<Array> packed;
    std::vector<Object> values, results;
    std::vector<const char*> input_names, output_names;
    std::vector<void*> given, found(outputs_.size(), nullptr);
    for (size_t i = 0; i < inputs.size(); ++i) {
      Object& value = values.emplace_back(kReleaseValue);
      if (inputs[i].kind() == onnx::Value::Kind::kStrings)
        create_texts(inputs[i].strings(), value);
      else
        create_view(packed.emplace_back(inputs[i].tensor().array().contiguous()), value);
      given.push_back(value.get());
      input_names.push_back(inputs_[i].first.c_str());
    }
    for (const std::string& name : outputs_) output_names.push_back(name.c_str());
    ort.call(kRun, session_.get(), static_cast<void*>(nullptr), input_names.data(), given.data(),
             given.size(), output_names.data(), output_names.size(), found.data());
    for (void* value : found) *results.emplace_back(kReleaseValue).out() = value;
    arrays_.clear();
    for (const Object& value : results) arrays_.push_back(copied(value.get()));
    return arrays_;
  }

 private:
  void create_view(const Array& array, Object& value) const {
    Library::get().call(kCreateTensorWithData, memory_.get(), array.raw(),
                        static_cast<size_t>(storage_bytes(array.dtype, array.size())),
                        array.shape.data(), array.shape.size(),
                        static_cast<int>(formats::onnx::number_of_dtype(array.dtype)), value.out());
  }
  static void create_texts(const onnx::StringArray& texts, Object& value) {
    const Library& ort = Library::get();
    void* allocator = nullptr;  // belongs to the library
    ort.call(kGetDefaultAllocator, &allocator);
    ort.call(kCreateTensor, allocator, texts.shape.data(), texts.shape.size(),
             static_cast<int>(formats::onnx::number_of_dtype(DType::kString)), value.out());
    std::vector<const char*> items;
    for (const std::string& item : texts.items) items.push_back(item.c_str());
    ort.call(kFillStrings, value.get(), items.data(), items.size());
  }
  static Array copied(void* value) {
    const Library& ort = Library::get();
    Object type(kReleaseTypeAndShape);
    ort.call(kGetTypeAndShape, value, type.out());
    int number = 0;
    size_t rank = 0;
    ort.call(kGetElementType, type.get(), &number);
    ort.call(kGetDimensionsCount, type.get(), &rank);
    Dims shape(rank);
    ort.call(kGetDimensions, type.get(), shape.data(), rank);
    const auto dtype = formats::onnx::dtype_of_number(number);
    if (!dtype || *dtype == DType::kString)
      fail(ErrorCode::kModel, "ONNX Runtime gives a value of a type that is not read");
    void* data = nullptr;
    ort.call(kGetTensorData, value, &data);
    Array out = Array::empty(*dtype, shape);
    if (const auto bytes = static_cast<size_t>(storage_bytes(*dtype, out.size())); bytes > 0)
      std::memcpy(out.raw(), data, bytes);
    return out;
  }

  std::unique_ptr<program::Model> described_;
  Object env_, options_, memory_, session_;
  std::vector<Array> arrays_;
};

}  // namespace

std::unique_ptr<program::Model> open_with_onnxruntime(const std::string& file,
                                                      const program::LoadOptions& options) {
  return std::make_unique<OnnxRuntimeModel>(file, options);
}

std::vector<Array> run_values(program::Model& model, const onnx::Values& inputs) {
  if (auto* const peer = dynamic_cast<OnnxRuntimeModel*>(&model)) return peer->run_values(inputs);
  std::vector<Array> out;
  if (onnx::Session* const session = model.onnx()) {
    for (auto& [name, array] : onnx::plain_arrays(*session, session->run(inputs)))
      out.push_back(array);
    return out;
  }
  for (const onnx::Value& value : inputs) out.push_back(value.tensor().array());
  return model.run(out);
}

std::unique_ptr<program::Model> open_exported(const ExportJob& job, const std::string& file,
                                              const program::LoadOptions& options) {
  if (job.check_with_onnxruntime) return open_with_onnxruntime(file, options);
  return program::load_model(file, options);
}

}  // namespace paddle::exporter
