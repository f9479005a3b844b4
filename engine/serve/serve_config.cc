#include "serve/serve_config.h"

#include <algorithm>
#include <set>
#include <sstream>

#include "base/error.h"
#include "base/files.h"
#include "config/overrides.h"
#include "config/sections.h"
#include "formats/gguf/reader.h"
#include "serve/serve_section.h"

namespace paddle::serve {

namespace {

constexpr int64_t kMaxTokens = int64_t{1} << 40;
constexpr double kMaxBatch = 65'536, kMaxBatchWait = 10;

/// kUsage for the first setting that is given.
void check_not_given(const ModelEntry& entry, const char* what,
                     std::initializer_list<std::pair<const char*, bool>> settings) {
  for (const auto& [name, given] : settings)
    if (given)
      fail(ErrorCode::kUsage, "'", entry.name, "' ", what, ", on which '", name,
           "' has no effect; leave it out, or set it only for the other models (--config)");
}

}  // namespace

using config::Section;

std::string served_name(const std::string& path) {
  std::string path_of_run = path;
  while (path_of_run.size() > 1 && path_of_run.ends_with('/')) path_of_run.pop_back();
  std::string name = path_of_run.substr(path_of_run.rfind('/') + 1);
  // A run is known by its folder, not by that of its model or its newest checkpoint.
  for (const char* inner : {"model", "latest", "checkpoints"}) {
    const size_t slash = path_of_run.rfind('/');
    if (name != inner || slash == path_of_run.npos) continue;
    path_of_run.resize(slash);
    name = path_of_run.substr(path_of_run.rfind('/') + 1);
  }
  if (name.ends_with(".gguf")) return formats::gguf::without_part(name.substr(0, name.size() - 5));
  for (const std::string_view ending : {".onnx", ".pdmodel", ".json"})
    if (name.size() > ending.size() && name.ends_with(ending))
      name.resize(name.size() - ending.size());
  // A model file may have a variant: lenet.yaml:wide.
  if (const size_t yaml = name.find(".yaml"); yaml != name.npos && yaml > 0) name.erase(yaml, 5);
  return name;
}

ServeConfig read_serve_config(const std::string& path) {
  config::Diagnostics diagnostics;
  config::Node document = config::read_extended(path, diagnostics);
  config::resolve_references(document, diagnostics);
  diagnostics.raise();
  // A config that other tools read, too, has these keys in a section.
  config::Node* const section = document.find("serve");
  config::Node& root = section ? *section : document;
  const config::Schema schema = serve_schema();
  const auto is_known = [&](const config::Entry& entry) { return schema.find(entry.key.text); };
  const bool is_own = !section && (!root.is_map() || root.entries.empty() ||
                                   std::any_of(root.entries.begin(), root.entries.end(), is_known));
  if (!is_own) config::check_other_keys(document, {"serve"}, diagnostics);
  diagnostics.raise();
  if (!section && !is_own)
    throw Error(ErrorCode::kConfig,
                "expected models, listen and limits, or a section 'serve' with them, found '" +
                    root.entries[0].key.text + "'",
                root.location());
  schema.resolve(root, section ? "serve" : "", diagnostics);
  diagnostics.raise();
  ServeConfig out;
  const auto take_text = [](const Section& from, const char* key, std::string& to) {
    if (from.has(key)) to = from.text(key);
  };
  const auto take_path = [](const Section& from, const char* key, std::string& to) {
    if (from.has(key)) to = config::resolve_path(from.at(key));
  };
  const auto take_integer = [](const Section& from, const char* key, int64_t& to) {
    if (from.has(key)) to = from.integer(key);
  };
  const Section s(root);
  if (s.has("models"))
    for (const config::Entry& entry : s.at("models").entries) {
      ModelEntry& model = out.models.emplace_back();
      model.name = entry.key.text;
      if (!entry.value.is_map()) {
        model.path = config::resolve_path(entry.value);
        continue;
      }
      const Section m(entry.value);
      take_path(m, "path", model.path);
      take_text(m, "kv", model.kv);
      take_text(m, "activations", model.activations);
      take_text(m, "weights_as", model.weights_as);
      take_text(m, "draft", model.draft);
      take_text(m, "cache", model.cache);
      take_integer(m, "cache_tokens", model.cache_tokens);
      take_path(m, "adapter", model.adapter);
      take_integer(m, "context", model.context);
      take_integer(m, "chunk", model.chunk);
      take_path(m, "family", model.family);
      take_path(m, "weights", model.weights);
      take_text(m, "function", model.function);
      take_text(m, "precision", model.precision);
      take_integer(m, "max_batch", model.max_batch);
      if (m.has("follow")) model.follow = m.boolean("follow");
      if (m.has("batch_wait")) model.batch_wait = m.seconds("batch_wait");
      if (m.has("params"))
        for (const config::Entry& param : m.at("params").entries)
          model.params.push_back(str("params.", param.key.text, "=", param.value.as_string()));
    }
  if (s.has("listen")) {
    const Section listen = s.section("listen");
    take_text(listen, "host", out.host);
    take_integer(listen, "port", out.port);
    take_path(listen, "keys", out.keys);
  }
  if (s.has("limits")) {
    const Section limits = s.section("limits");
    take_integer(limits, "streams", out.streams);
    take_integer(limits, "queue", out.queue);
    take_integer(limits, "max_batch", out.max_batch);
    if (limits.has("batch_wait")) out.batch_wait = limits.seconds("batch_wait");
    if (limits.has("step_ms")) out.step_ms = limits.real("step_ms");
    if (limits.has("request_s")) out.request_s = limits.real("request_s");
    if (limits.has("step_time")) out.step_ms = 1000 * limits.seconds("step_time");
    if (limits.has("request_time")) out.request_s = limits.seconds("request_time");
  }
  return out;
}

void check_serve_config(const ServeConfig& config) {
  const auto check = [](const char* name, double value, double low, double high) {
    if (!(value >= low && value <= high))
      fail(ErrorCode::kUsage, name, " is ", value, ", expected ", low, " to ", high);
  };
  check("port", static_cast<double>(config.port), 0, 65535);
  check("streams", static_cast<double>(config.streams), 1, 128);
  check("queue", static_cast<double>(config.queue), 0, 100'000);
  check("step_ms", config.step_ms, 1, 60'000);
  check("request_s", config.request_s, 0.001, 1e6);
  check("max_batch", static_cast<double>(config.max_batch), 1, kMaxBatch);
  check("batch_wait", config.batch_wait, 0, kMaxBatchWait);
  if (config.models.empty()) fail(ErrorCode::kUsage, "no model is given (see paddle-serve --help)");
  std::set<std::string> names;
  for (const ModelEntry& model : config.models) {
    llm::cache_type(model.kv);
    llm::activations(model.activations);
    llm::weight_type(model.weights_as);
    if (model.draft != "ngram" && model.draft != "none")
      fail(ErrorCode::kUsage, "the draft of '", model.name, "' is '", model.draft,
           "', expected ngram or none");
    if (model.cache != "plain" && model.cache != "paged")
      fail(ErrorCode::kUsage, "the cache of '", model.name, "' is '", model.cache,
           "', expected plain or paged");
    if (model.cache_tokens < 0 || model.cache_tokens > kMaxTokens)
      fail(ErrorCode::kUsage, "cache_tokens of '", model.name, "' is ", model.cache_tokens,
           ", expected 0 to ", kMaxTokens);
    if (model.cache_tokens > 0 && model.cache == "plain")
      fail(ErrorCode::kUsage, "cache_tokens of '", model.name,
           "' is for a paged cache; a plain one has --context tokens for each sequence");
    if (model.chunk < 0 || model.chunk > llm::Runner::kMaxRows)
      fail(ErrorCode::kUsage, "the chunk of '", model.name, "' is ", model.chunk,
           ", expected 0 to ", llm::Runner::kMaxRows);
    if (model.context < 0) fail(ErrorCode::kUsage, "the context of '", model.name, "' is negative");
    if (!names.insert(model.name).second)
      fail(ErrorCode::kUsage, "two models are named '", model.name,
           "'; name them in a config (--config)");
  }
}

void check_no_language_settings(const ModelEntry& entry, const char* what) {
  const ModelEntry standard;
  check_not_given(entry, what,
                  {{"adapter", entry.adapter != standard.adapter},
                   {"kv", entry.kv != standard.kv},
                   {"cache", entry.cache != standard.cache},
                   {"cache_tokens", entry.cache_tokens != standard.cache_tokens},
                   {"chunk", entry.chunk != standard.chunk},
                   {"context", entry.context != standard.context},
                   {"activations", entry.activations != standard.activations},
                   {"weights_as", entry.weights_as != standard.weights_as},
                   {"draft", entry.draft != standard.draft}});
}

void check_no_predict_settings(const ModelEntry& entry) {
  const ModelEntry standard;
  check_not_given(entry, "is a language model",
                  {{"weights", entry.weights != standard.weights},
                   {"function", entry.function != standard.function},
                   {"precision", entry.precision != standard.precision},
                   {"params", !entry.params.empty()},
                   {"max_batch", entry.max_batch != standard.max_batch},
                   {"follow", entry.follow},
                   {"batch_wait", entry.batch_wait.has_value()}});
}

std::vector<std::string> read_keys(const std::string& path) {
  constexpr size_t kMinKeyLength = 8;
  std::vector<std::string> out;
  std::istringstream lines(read_file(path, uint64_t{1} << 20, ErrorCode::kConfig));
  for (std::string line; std::getline(lines, line);) {
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
    if (line.empty()) continue;
    if (line.size() < kMinKeyLength)
      fail(ErrorCode::kConfig, path, ": a key has ", line.size(), " characters, expected at least ",
           kMinKeyLength);
    out.push_back(line);
  }
  if (out.empty()) fail(ErrorCode::kConfig, path, ": there is no key");
  return out;
}

}  // namespace paddle::serve
