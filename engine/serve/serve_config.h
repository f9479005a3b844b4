#pragma once
// The settings of a server, from serve.yaml and the command line.

#include <optional>
#include <string>
#include <vector>

#include "llm/language_model.h"
#include "tensor/device.h"

namespace paddle::serve {

struct ModelEntry {
  std::string name = {}, path = {};
  std::string kv = "f32", activations = "int16", weights_as = "as-is", draft = "ngram";
  std::string cache = "paged";
  int64_t context = 0;       ///< 0: the model's
  int64_t cache_tokens = 0;  ///< of a paged cache, in all; 0: as RunnerOptions
  int64_t chunk = 0;         ///< tokens of prompts that a step reads at most; 0: kMaxRows
  std::string family = {};
  std::string adapter = {};  ///< a folder of PEFT

  // Of models for predictions, which are not language models.
  std::string weights = {};               ///< safetensors, of a model file
  std::string function = "model";         ///< that is served
  std::string precision = "float32";      ///< of products
  std::vector<std::string> params = {};   ///< "params.x=value", of a model file
  int64_t max_batch = 0;                  ///< rows of a batch; 0: that of the config
  std::optional<double> batch_wait = {};  ///< seconds; none: that of the config
  bool follow = false;                    ///< `path` is a store, whose versions are taken

  /// Whether both have the same weights in memory, with other adapters.
  bool shares_weights(const ModelEntry& other) const {
    return path == other.path && family == other.family && activations == other.activations &&
           weights_as == other.weights_as;
  }
};

struct ServeConfig {
  std::vector<ModelEntry> models;
  std::string host = "127.0.0.1";
  int64_t port = 8080;
  std::string keys;  ///< a file with one API key a line; empty: none is asked for
  int64_t streams = 8, queue = 64;
  double step_ms = 60, request_s = 600;
  int64_t max_batch = 64;  ///< rows of a batch to which predictions are joined
  double batch_wait = 0;   ///< seconds that a prediction may wait for others
  Device device = {};      ///< of models for predictions; a serve.yaml does not say it
};

/// The name under which a model is served unless the config gives one: of its file or folder.
std::string served_name(const std::string& path);

/// Reads a config over the defaults: a serve.yaml, or the section `serve:` of a config that other
/// tools read as well. kConfig with the place for unknown keys and values out of their range. Paths
/// are relative to the file.
ServeConfig read_serve_config(const std::string& path);

/// kUsage for values out of their range, two models of one name, or no model.
void check_serve_config(const ServeConfig& config);

/// kUsage for settings that have no effect on a model for predictions, and the other way round on a
/// language model. `what`: "is an encoder", "is not a language model".
void check_no_language_settings(const ModelEntry& entry, const char* what);
void check_no_predict_settings(const ModelEntry& entry);

/// Lines of a file of keys, without empty ones. kConfig if there is none, or one is too short to be
/// a secret.
std::vector<std::string> read_keys(const std::string& path);

}  // namespace paddle::serve
