#include "serve/serve_config.h"

#include <algorithm>
#include <functional>
#include <set>
#include <sstream>

#include "base/error.h"
#include "base/files.h"
#include "config/document.h"

namespace paddle::serve {

namespace {

constexpr int64_t kMostTokens = int64_t{1} << 40;

using config::Node;
using Readers = std::vector<std::pair<std::string, std::function<void(const Node&)>>>;

/// Reads the keys of a map; others are refused.
void read_map(const Node& node, const std::string& what, const Readers& readers) {
  if (!node.is_map())
    throw Error(ErrorCode::kConfig, str(what, " is ", node.describe(), ", expected a map"),
                node.location());
  for (const config::Entry& entry : node.entries) {
    const auto found = std::find_if(readers.begin(), readers.end(), [&](const auto& reader) {
      return reader.first == entry.key.text;
    });
    if (found == readers.end()) {
      std::vector<std::string> names;
      for (const auto& [name, read] : readers) names.push_back(name);
      throw Error(
          ErrorCode::kConfig,
          str(what, ": unknown key '", entry.key.text, "'", did_you_mean(entry.key.text, names)),
          entry.key.location());
    }
    found->second(entry.value);
  }
}

std::function<void(const Node&)> text_to(std::string& out) {
  return [&out](const Node& node) { out = node.as_string(); };
}
std::function<void(const Node&)> integer_to(int64_t& out) {
  return [&out](const Node& node) { out = node.as_int(); };
}
std::function<void(const Node&)> number_to(double& out) {
  return [&out](const Node& node) { out = node.as_double(); };
}

}  // namespace

std::string served_name(const std::string& path) {
  std::string name = path;
  while (name.size() > 1 && name.ends_with('/')) name.pop_back();
  name = name.substr(name.rfind('/') + 1);
  if (name.ends_with(".gguf")) name.resize(name.size() - 5);
  return name;
}

ServeConfig read_serve_config(const std::string& path) {
  ServeConfig out;
  const Node root = config::parse_document(config::read_text_file(path), path);
  const size_t slash = path.rfind('/');
  const auto resolve = [&](std::string& file) {
    if (!file.empty() && slash != std::string::npos) file = join_path(path.substr(0, slash), file);
  };
  const auto read_models = [&](const Node& models) {
    if (!models.is_map())
      throw Error(ErrorCode::kConfig, str("models is ", models.describe(), ", expected a map"),
                  models.location());
    for (const config::Entry& entry : models.entries) {
      ModelEntry model;
      model.name = entry.key.text;
      if (entry.value.is_scalar())
        model.path = entry.value.as_string();
      else
        read_map(entry.value, str("models.", model.name),
                 {{"path", text_to(model.path)},
                  {"kv", text_to(model.kv)},
                  {"activations", text_to(model.activations)},
                  {"weights_as", text_to(model.weights_as)},
                  {"draft", text_to(model.draft)},
                  {"cache", text_to(model.cache)},
                  {"cache_tokens", integer_to(model.cache_tokens)},
                  {"adapter", text_to(model.adapter)},
                  {"context", integer_to(model.context)},
                  {"family", text_to(model.family)}});
      if (model.path.empty())
        throw Error(ErrorCode::kConfig, str("models.", model.name, " has no path"),
                    entry.value.location());
      resolve(model.path);
      resolve(model.family);
      resolve(model.adapter);
      out.models.push_back(std::move(model));
    }
  };
  read_map(root, "the config",
           {{"models", read_models},
            {"listen",
             [&](const Node& node) {
               read_map(node, "listen",
                        {{"host", text_to(out.host)},
                         {"port", integer_to(out.port)},
                         {"keys", text_to(out.keys)}});
               resolve(out.keys);
             }},
            {"limits", [&](const Node& node) {
               read_map(node, "limits",
                        {{"streams", integer_to(out.streams)},
                         {"queue", integer_to(out.queue)},
                         {"step_ms", number_to(out.step_ms)},
                         {"request_s", number_to(out.request_s)}});
             }}});
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
    if (model.cache_tokens < 0 || model.cache_tokens > kMostTokens)
      fail(ErrorCode::kUsage, "cache_tokens of '", model.name, "' is ", model.cache_tokens,
           ", expected 0 to ", kMostTokens);
    if (model.cache_tokens > 0 && model.cache == "plain")
      fail(ErrorCode::kUsage, "cache_tokens of '", model.name,
           "' is for a paged cache; a plain one has --context tokens for each text");
    if (model.context < 0) fail(ErrorCode::kUsage, "the context of '", model.name, "' is negative");
    if (!names.insert(model.name).second)
      fail(ErrorCode::kUsage, "two models are named '", model.name,
           "'; name them in a config (--config)");
  }
}

std::vector<std::string> read_keys(const std::string& path) {
  constexpr size_t kShortest = 8;
  std::vector<std::string> out;
  std::istringstream lines(read_file(path, uint64_t{1} << 20, ErrorCode::kConfig));
  for (std::string line; std::getline(lines, line);) {
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
    if (line.empty()) continue;
    if (line.size() < kShortest)
      fail(ErrorCode::kConfig, path, ": a key has ", line.size(), " characters, expected at least ",
           kShortest);
    out.push_back(line);
  }
  if (out.empty()) fail(ErrorCode::kConfig, path, ": there is no key");
  return out;
}

}  // namespace paddle::serve
