#include "paddle/model.h"

#include <malloc.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <functional>
#include <mutex>
#include <thread>

#include "api/access.h"
#include "api/compile_options.h"
#include "base/files.h"
#include "base/parallel.h"
#include "base/resident_memory.h"
#include "base/scratch_folder.h"
#include "base/text.h"
#include "onnx/graph/value_io.h"
#include "program/model.h"
#include "program/model_units.h"
#include "runtime/execute.h"
#include "sections/sections.h"

namespace paddle::v0 {
namespace {

TensorInfo info_of(const std::string& name, const TensorType& type, const std::string& what) {
  TensorInfo out;
  out.name = name;
  out.dtype = public_dtype(type.dtype, str(what, " '", name, "'"));
  out.ranked = type.ranked;
  for (const Dim& dim : type.shape) {
    out.shape.push_back(dim.constant().value_or(-1));
    out.dims.push_back(dim.text());
  }
  return out;
}

bool fits(const paddle::Array& array, const TensorType& type) {
  if (array.dtype != type.dtype) return false;
  if (!type.ranked) return true;
  if (array.shape.size() != type.shape.size()) return false;
  for (size_t d = 0; d < array.shape.size(); ++d)
    if (type.shape[d].is_constant() && *type.shape[d].constant() != array.shape[d]) return false;
  return true;
}

/// A thread that calls functions one after the other, and all that it was given before it ends.
class Worker {
 public:
  Worker() : thread_([this] { work(); }) {}
  ~Worker() {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  void add(std::function<void()> task) {
    {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    changed_.notify_one();
  }

 private:
  void work() {
    for (;;) {
      std::function<void()> task;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return ends_ || !tasks_.empty(); });
        if (tasks_.empty()) return;
        task = std::move(tasks_.front());
        tasks_.pop_front();
      }
      task();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  bool ends_ = false;
  std::thread thread_;  ///< last: it reads the others
};

/// The file or folder among `files` that is a model.
std::string model_among(const std::map<std::string, std::string_view>& files) {
  std::string found;
  for (const auto& [name, content] : files) {
    const std::filesystem::path path(name);
    if (name.empty() || path.is_absolute() || path.lexically_normal() != path ||
        *path.begin() == "..")
      fail(paddle::ErrorCode::kUsage, "from_memory: '", name, "' is not a name below a folder");
    if (path.filename() == "model.json") {
      const std::string folder = path.parent_path().string();
      return folder.empty() ? "." : folder;
    }
    const bool is_model = name.ends_with(".onnx") || name.ends_with(".yaml");
    if (is_model && (found.empty() || name.ends_with(".onnx"))) found = name;
  }
  if (found.empty())
    fail(paddle::ErrorCode::kUsage,
         "from_memory: none of the files is a model: no .onnx, .yaml or model.json");
  return found;
}

}  // namespace

class Model::Impl {
 public:
  Impl(const std::string& path, const ModelOptions& options) {
    register_sections();  // of the configs that runs keep
    program::LoadOptions load;
    load.weights = options.weights;
    load.function = options.function;
    load.overrides = options.overrides;
    load.seed = options.seed;
    const auto precision = parse_dtype(options.precision);
    if (!precision || (*precision != paddle::DType::kF32 && *precision != paddle::DType::kBF16 &&
                       *precision != paddle::DType::kF16))
      fail(paddle::ErrorCode::kUsage, "precision: expected float32, bfloat16 or float16, found '",
           options.precision, "'");
    load.precision = *precision;
    load.compile.target = target_of(options.device, options.memory);
    load.compile.exact = options.exact;
    leave_out(load.compile, options.leave_out);
    model_ = program::load_model(path, load);
    if (!options.raw) use_units();
    // Types that an array cannot hold are rejected here and not by the first prediction.
    inputs();
  }

  std::unique_ptr<Impl> clone() const {
    const std::lock_guard lock(mutex_);
    auto out = std::unique_ptr<Impl>(new Impl);
    out->model_ = model_->clone();
    if (inputs_) out->use_units();
    return out;
  }

  const std::string& name() const { return model_->name(); }
  const std::vector<std::string>& classes() const { return model_->metadata().classes; }
  int64_t parameter_count() const { return model_->parameter_count(); }

  std::vector<TensorInfo> inputs() const {
    const std::lock_guard lock(mutex_);
    std::vector<TensorInfo> out;
    for (const auto& [name, type] : model_->inputs()) out.push_back(info_of(name, type, "input"));
    return out;
  }

  std::vector<TensorInfo> outputs() const {
    const std::lock_guard lock(mutex_);
    std::vector<TensorInfo> out;
    for (const auto& [name, type] : model_->declared_outputs())
      out.push_back(info_of(name, type, "output"));
    return out;
  }

  std::vector<Array> predict(const std::vector<Array>& inputs) {
    const std::lock_guard lock(mutex_);
    return run(inputs);
  }

  std::map<std::string, Array> predict(const std::map<std::string, Array>& inputs) {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> names;
    std::vector<Array> ordered;
    for (const auto& [name, type] : model_->inputs()) {
      names.push_back(name);
      const auto it = inputs.find(name);
      if (it == inputs.end())
        fail(paddle::ErrorCode::kData, "predict: the input '", name, "' ", type, " is missing");
      ordered.push_back(it->second);
    }
    for (const auto& [name, array] : inputs)
      if (std::find(names.begin(), names.end(), name) == names.end())
        fail(paddle::ErrorCode::kData, "predict: the model has no input '", name, "'",
             did_you_mean(name, names));
    std::map<std::string, Array> out;
    std::vector<Array> results = run(ordered);
    for (size_t i = 0; i < results.size(); ++i)
      out.emplace(model_->outputs()[i], std::move(results[i]));
    return out;
  }

  std::future<std::vector<Array>> predict_async(std::vector<Array> inputs) {
    auto task = std::make_shared<std::packaged_task<std::vector<Array>()>>(
        [this, inputs = std::move(inputs)] { return translated([&] { return predict(inputs); }); });
    auto out = task->get_future();
    {
      const std::lock_guard lock(worker_mutex_);
      if (!worker_) worker_ = std::make_unique<Worker>();
    }
    worker_->add([task] { (*task)(); });
    return out;
  }

  void reset() {
    const std::lock_guard lock(mutex_);
    model_->reset();
  }

 private:
  Impl() = default;

  void use_units() {
    inputs_.emplace(*model_);
    outputs_.emplace(*model_);
  }

  std::vector<Array> run(const std::vector<Array>& inputs) {
    const auto& wanted = model_->inputs();
    if (inputs.size() != wanted.size())
      fail(paddle::ErrorCode::kData, "predict: the model takes ", wanted.size(), " inputs, ",
           inputs.size(), " are given");
    std::vector<paddle::Array> arrays;
    for (const Array& input : inputs) arrays.push_back(Access::engine(input));
    if (inputs_ && are_raw(arrays)) arrays = prepared(arrays);
    for (size_t i = 0; i < inputs.size(); ++i) {
      const auto& [name, type] = wanted[i];
      paddle::Array& array = arrays[i];
      if (array.dtype != type.dtype && onnx::needs_cast(array.dtype, type.dtype))
        array = onnx::cast_provided(array, type.dtype, str("predict: input '", name, "'"));
      if (!fits(array, type))
        fail(paddle::ErrorCode::kData, "predict: input '", name, "' is ", paddle::text(array.dtype),
             str(array.shape), ", expected ", type);
    }
    std::vector<Array> out;
    // The engine's results are overwritten by the next prediction, so the caller gets copies.
    const std::vector<paddle::Array>& results = model_->run(arrays);
    for (const paddle::Array& result : outputs_ ? outputs_->restored(results) : results) {
      const DType held =
          public_dtype(result.dtype, str("output '", model_->outputs()[out.size()], "'"));
      out.push_back(Access::handle(engine_dtype(held) == result.dtype
                                       ? runtime::copied(result)
                                       : runtime::cast_array(result, engine_dtype(held))));
    }
    return out;
  }

  bool are_raw(const std::vector<paddle::Array>& arrays) const {
    return inputs_->are_raw([&](const std::string& name) -> std::optional<paddle::DType> {
      for (size_t i = 0; i < arrays.size(); ++i)
        if (model_->inputs()[i].first == name) return arrays[i].dtype;
      return std::nullopt;
    });
  }

  std::vector<paddle::Array> prepared(const std::vector<paddle::Array>& arrays) const {
    for (size_t i = 0; i < arrays.size(); ++i) {
      const std::string& name = model_->inputs()[i].first;
      if (arrays[i].shape.empty() || arrays[i].shape[0] != arrays[0].shape[0] ||
          arrays[i].shape[0] == 0)
        fail(paddle::ErrorCode::kData, "predict: input '", name, "' is ",
             paddle::text(arrays[i].dtype), str(arrays[i].shape),
             ", expected a first axis of at least one row, as long for all inputs");
    }
    try {
      return inputs_->prepared(arrays);
    } catch (const paddle::Error& error) {  // of arrays that the transforms do not suit
      if (error.code() != paddle::ErrorCode::kConfig) throw;
      fail(paddle::ErrorCode::kData, "predict: ", error.message());
    }
  }

  mutable std::mutex mutex_;
  std::unique_ptr<program::Model> model_;
  std::optional<program::InputUnits> inputs_;  ///< none: arrays are as the model takes them
  std::optional<program::OutputUnits> outputs_;
  std::mutex worker_mutex_;
  std::unique_ptr<Worker> worker_;  ///< of predict_async; last, so that it ends first
};

Model::Model(const std::string& path, const ModelOptions& options)
    : impl_(translated([&] { return std::make_unique<Impl>(path, options); })) {}
Model::Model(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Model Model::from_memory(const std::map<std::string, std::string_view>& files,
                         const ModelOptions& options) {
  return Model(translated([&] {
    const std::string name = model_among(files);
    const ScratchFolder folder;
    for (const auto& [file, content] : files) {
      const std::string path = folder.path() + "/" + file;
      ensure_directory(std::filesystem::path(path).parent_path().string());
      write_file_atomically(path, content);
    }
    ModelOptions inside = options;
    if (!inside.weights.empty() && files.contains(inside.weights))
      inside.weights = folder.path() + "/" + inside.weights;
    return std::make_unique<Impl>(
        std::filesystem::path(folder.path() + "/" + name).lexically_normal().string(), inside);
  }));
}
Model::~Model() = default;
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(Model&&) noexcept = default;

const std::string& Model::name() const { return impl_->name(); }
const std::vector<std::string>& Model::classes() const { return impl_->classes(); }
int64_t Model::parameter_count() const { return impl_->parameter_count(); }
std::vector<TensorInfo> Model::inputs() const {
  return translated([&] { return impl_->inputs(); });
}
std::vector<TensorInfo> Model::outputs() const {
  return translated([&] { return impl_->outputs(); });
}
std::vector<Array> Model::predict(const std::vector<Array>& inputs) {
  return translated([&] { return impl_->predict(inputs); });
}
std::map<std::string, Array> Model::predict(const std::map<std::string, Array>& inputs) {
  return translated([&] { return impl_->predict(inputs); });
}
std::future<std::vector<Array>> Model::predict_async(std::vector<Array> inputs) {
  return translated([&] { return impl_->predict_async(std::move(inputs)); });
}
Model Model::clone() const {
  return Model(translated([&] { return impl_->clone(); }));
}
void Model::reset() {
  translated([&] { impl_->reset(); });
}

void set_threads(int threads) {
  if (threads < 1 || threads > 1024)
    throw UsageError(ErrorCode::kUsage, str("set_threads: expected 1 to 1024, found ", threads));
  set_thread_count(threads);
}
int threads() { return thread_count(); }

MemoryUsage memory_usage() { return {resident_bytes(), peak_resident_bytes()}; }
void release_memory() { malloc_trim(0); }

std::vector<std::string> devices() {
  return translated([] {
    runtime::register_backends();
    return device_kinds();
  });
}

}  // namespace paddle::v0
