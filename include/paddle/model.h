#pragma once
// Model: a trained model, ready to predict.
//
//   paddle::Model model("runs/digits/model");
//   paddle::Array logits = model.predict({image})[0];
//
// Threads may share a Model: predictions on it run one at a time, each with all threads of the
// process. For predictions at the same time, give each thread a clone, which shares the weights.

#include <cstdint>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "paddle/array.h"
#include "paddle/config.h"

namespace paddle::v0 {

/// An input or output as known before a prediction.
struct TensorInfo {
  std::string name;
  DType dtype = DType::kFloat32;
  bool ranked = true;             ///< false: any number of axes, and `shape` is empty
  std::vector<int64_t> shape;     ///< -1 for sizes that the inputs decide
  std::vector<std::string> dims;  ///< per axis: its size or what it is called, "batch"
};

struct ModelOptions {
  std::string weights;                 ///< safetensors file, for model files in YAML
  std::string function = "model";      ///< entry of a model file
  std::vector<std::string> overrides;  ///< "params.width=32", for model files
  uint64_t seed = 0;                   ///< of random weights, where a model file gets none
  /// Arrays as the model itself takes and gives them. Otherwise those of a trained model are in the
  /// units of its data files, as paddle-infer reads and writes them: scaled columns are scaled, the
  /// transforms of the run are applied to arrays of raw data (of a run on arrays, or of another
  /// type than the model's input), and predictions of a scaled field are scaled back.
  bool raw = false;
  /// "float32", "bfloat16" or "float16": the type in which products, convolutions and attention
  /// compute. Not for ONNX files and for models that are quantized or in float64.
  std::string precision = "float32";
  std::string device = "cpu";  ///< that computes, one of `devices()`; with a number: "cuda:1"
  uint64_t memory = 0;  ///< bytes that a prediction may need; DeviceError if it needs more. 0: what
                        ///< the device has
  /// Optimizations that are left out, to compare: "fusion", "layout", "rewrites", "batch_tiling",
  /// "codegen", "winograd", and passes of the compiler such as "fold_batch_norm".
  std::vector<std::string> leave_out;
  /// The bits of computing operation by operation: no optimization that rounds otherwise.
  bool exact = false;
};

/// The kinds of devices that this library can compute on: "cpu" and others, whether or not this
/// machine has one.
PADDLE_API std::vector<std::string> devices();

class PADDLE_API Model {
 public:
  /// Opens a run folder, its `model/` folder, a checkpoint, an ONNX file (`.onnx`), or a model file
  /// (`file.yaml[:variant]`). UsageError if there is nothing at `path`, ModelError if it is
  /// damaged, ConfigError if a model file is wrong.
  explicit Model(const std::string& path, const ModelOptions& options = {});
  /// Opens a model whose files are in memory, by their names: {{"net.onnx", bytes}}, the files of a
  /// `model/` folder, or a model file and its weights. The bytes are read during the call only.
  /// Errors as above; UsageError unless one of the files is a model.
  static Model from_memory(const std::map<std::string, std::string_view>& files,
                           const ModelOptions& options = {});
  ~Model();
  Model(Model&&) noexcept;
  Model& operator=(Model&&) noexcept;

  const std::string& name() const;
  /// In the order of `predict`.
  std::vector<TensorInfo> inputs() const;
  std::vector<TensorInfo> outputs() const;
  int64_t parameter_count() const;
  /// Class names of a classifier trained on named classes, else empty.
  const std::vector<std::string>& classes() const;

  /// One array for each input, in order; one for each output comes back and is the caller's. Both
  /// are in the units of the data files (see ModelOptions::raw). DataError if number, types or
  /// shapes do not fit.
  std::vector<Array> predict(const std::vector<Array>& inputs);
  /// The same by name. DataError for unknown and missing names.
  std::map<std::string, Array> predict(const std::map<std::string, Array>& inputs);
  /// The same on a thread of the model, which takes its predictions one after the other. Errors
  /// come out of the future. The destructor completes the predictions that were asked for.
  std::future<std::vector<Array>> predict_async(std::vector<Array> inputs);
  /// Another Model with the same weights in memory, but plans, results and states of its own, so
  /// that two threads can predict at the same time. UsageError for models that cannot be shared,
  /// such as those that carry states from one prediction to the next.
  Model clone() const;
  /// Forgets what recurrent states a model carries from one prediction to the next.
  void reset();

 private:
  class Impl;
  explicit Model(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Threads that all computations of this process use; at first the cores it may use. Not while
/// another thread computes. UsageError unless 1 to 1024.
PADDLE_API void set_threads(int threads);
PADDLE_API int threads();

/// Memory of this process in bytes.
struct MemoryUsage {
  uint64_t resident = 0;  ///< in memory now
  uint64_t peak = 0;      ///< the most that was, so far
};
/// As the system counts it: the caller's own memory included.
PADDLE_API MemoryUsage memory_usage();
/// Gives free memory that is kept for reuse back to the system.
PADDLE_API void release_memory();

}  // namespace paddle::v0
