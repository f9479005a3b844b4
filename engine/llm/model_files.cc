#include "llm/model_files.h"

#include <algorithm>

#include "base/files.h"
#include "base/text.h"
#include "text/json_value.h"

namespace paddle::llm {

namespace {

void add_tensor_names(ModelFiles& files) {
  std::vector<jinja::Value> names;
  for (const convert::StoredTensor& tensor : files.weights->tensors())
    names.emplace_back(tensor.name);
  files.variables.set("tensors", jinja::Value::list(std::move(names)));
}

ModelFiles open_folder(const std::string& path) {
  ModelFiles out;
  out.kind = "huggingface";
  out.config = path + "/config.json";
  Json config = read_json_file(out.config, uint64_t{16} << 20);
  // A model of text and images keeps what describes its text part, a model of its own, in one key.
  if (const Json* const text = config.find("text_config"); text && text->find("model_type"))
    config = Json(*text);
  out.type = JsonValue(config, out.config).at("model_type").text();
  for (const auto& [key, value] : config.entries) {
    out.variables.set(key, jinja::from_json(value));
    out.keys.push_back(key);
  }
  out.weights = convert::open_source(path, convert::Format::kFolder);
  add_tensor_names(out);
  const JsonValue keys(config, out.config);
  for (const char* key : {"n_positions", "max_position_embeddings"}) {
    const JsonValue context = keys.get(key);
    out.context = context.integer_or(out.context);
    if (out.context < 1) context.reject("a context of no tokens");
  }
  const std::string generation = path + "/generation_config.json";
  if (!file_exists(generation)) return out;
  const Json content = read_json_file(generation, uint64_t{1} << 20);
  const JsonValue end = JsonValue(content, generation).get("eos_token_id");
  if (end.is_array()) {
    for (const JsonValue& token : end.items()) out.end_tokens.push_back(token.integer());
  } else if (!end.is_null()) {
    out.end_tokens.push_back(end.integer());
  }
  return out;
}

jinja::Value value_of(const formats::gguf::Value& value) {
  if (const auto* n = std::get_if<int64_t>(&value.value)) return *n;
  if (const auto* n = std::get_if<uint64_t>(&value.value)) {
    if (*n > uint64_t{INT64_MAX}) return jinja::BigInteger{std::to_string(*n)};
    return static_cast<int64_t>(*n);
  }
  if (const auto* d = std::get_if<double>(&value.value)) return *d;
  if (const auto* b = std::get_if<bool>(&value.value)) return *b;
  if (const auto* t = std::get_if<std::string_view>(&value.value)) return std::string(*t);
  return value.describe();
}

ModelFiles open_gguf(const std::string& path) {
  ModelFiles out;
  out.kind = "gguf";
  out.config = path;
  out.gguf = std::make_shared<const formats::gguf::Reader>(formats::gguf::Reader::open(path));
  const formats::gguf::Reader& file = *out.gguf;
  out.type = file.text("general.architecture").value_or("");
  out.context = file.integer(out.type + ".context_length").value_or(out.context);
  if (out.context < 1) file.reject(out.type + ".context_length is not a number of tokens");
  const std::string prefix = out.type + ".";
  for (const auto& [key, value] : file.metadata()) {
    if (!key.starts_with(prefix)) continue;
    std::string name = key.substr(prefix.size());
    std::replace(name.begin(), name.end(), '.', '_');
    out.variables.set(name, value_of(value));
    out.spellings[name] = key;
    out.keys.push_back(name);
  }
  if (const auto* tokens = file.strings("tokenizer.ggml.tokens"))
    out.variables.set("tokens", static_cast<int64_t>(tokens->size()));
  out.variables.set("architecture", out.type);
  out.variables.set("token_types", file.integer("tokenizer.ggml.token_type_count").value_or(2));
  for (const char* key : {"tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"})
    if (const auto token = file.integer(key)) out.end_tokens.push_back(*token);
  out.weights = convert::gguf_source(out.gguf);
  add_tensor_names(out);
  return out;
}

}  // namespace

std::string ModelFiles::spelled(const std::string& variable) const {
  if (const auto found = spellings.find(variable); found != spellings.end()) return found->second;
  if (kind != "gguf") return variable;
  // A key that is not there: those of GGUF have these sections.
  for (const char* section : {"attention", "rope_scaling", "rope"}) {
    std::string name = section;
    if (!variable.starts_with(name + "_")) continue;
    std::replace(name.begin(), name.end(), '_', '.');
    return str(type, ".", name, ".", variable.substr(name.size() + 1));
  }
  return type + "." + variable;
}

ModelFiles open_model_files(const std::string& path) {
  return is_directory(path) ? open_folder(path) : open_gguf(path);
}

}  // namespace paddle::llm
