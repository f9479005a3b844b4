#pragma once
// The file tuned.yaml of a model or a language model: settings that paddle-tune found, for
// `--tuned` of paddle-infer and paddle-serve. Of a run, tuned.yaml is a config instead.

#include <cstdint>
#include <optional>
#include <string>

#include "config/schema.h"

namespace paddle::tune {

/// The subject that the settings are for, the value of the file's key `subject`.
enum class TunedSubject : uint8_t { kModel, kLanguageModel };

/// Settings that the file states; the others are absent or empty.
struct TunedSettings {
  int threads = 0;  ///< 0: none stated
  // Of a model.
  std::optional<int64_t> batch;  ///< samples of a prediction
  std::string precision;         ///< "float32", "bfloat16" or "float16"
  std::string kernels;           ///< a table of kernel choices, an absolute path
  bool codegen = true, batch_tiling = true, winograd = true;
  std::optional<int64_t> streams;  ///< batches or, of a language model, texts at a time
  // Of a language model.
  std::optional<int64_t> chunk;  ///< tokens of prompts that a step reads
  std::string kv;                ///< "f32", "bf16" or "int8"
};

/// The word for a subject in the file: "model" or "language_model".
const char* word_of(TunedSubject subject);

/// The keys of the file for a subject.
config::Schema tuned_schema(TunedSubject subject);

/// Reads a file for `path`, a model of the kind `subject`. kUsage if there is no such file; kConfig
/// with the place for unknown keys, values of another type or out of their range, and a file for
/// another kind of subject.
TunedSettings read_tuned(const std::string& file, TunedSubject subject, const std::string& path);

}  // namespace paddle::tune
