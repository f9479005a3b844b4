#include "llm/language_model.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/files.h"
#include "config/document.h"
#include "convert/rules.h"
#include "convert/source.h"
#include "formats/gguf/reader.h"
#include "text/jinja/template.h"
#include "text/json_value.h"

namespace paddle::llm {

namespace {

using config::Node;

/// The content of a model's files, in the terms of `sources`.
struct ModelFiles {
  std::string kind;               ///< the key of `sources`: huggingface or gguf
  std::string config;             ///< the file of the keys, for errors
  std::string type;               ///< model_type, or GGUF's architecture
  jinja::Dict variables;          ///< keys and their values
  std::vector<std::string> keys;  ///< those that a family must know
  std::shared_ptr<convert::Source> weights;
  int64_t context = 2048;
  std::vector<int64_t> end_tokens;
};

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
  const Json config = read_json_file(out.config, uint64_t{16} << 20);
  out.type = JsonValue(config, out.config).at("model_type").text();
  for (const auto& [key, value] : config.entries) {
    out.variables.set(key, jinja::from_json(value));
    out.keys.push_back(key);
  }
  out.weights = convert::open_source(path, convert::Format::kFolder);
  add_tensor_names(out);
  const JsonValue keys(config, out.config);
  out.context = keys.get("max_position_embeddings").integer_or(out.context);
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
  if (const auto* n = std::get_if<uint64_t>(&value.value)) return static_cast<int64_t>(*n);
  if (const auto* d = std::get_if<double>(&value.value)) return *d;
  if (const auto* b = std::get_if<bool>(&value.value)) return *b;
  if (const auto* t = std::get_if<std::string_view>(&value.value)) return std::string(*t);
  return value.describe();
}

ModelFiles open_gguf(const std::string& path) {
  ModelFiles out;
  out.kind = "gguf";
  out.config = path;
  const auto file = formats::gguf::Reader::open(path);
  out.type = file.text("general.architecture").value_or("");
  out.context = file.integer(out.type + ".context_length").value_or(out.context);
  const std::string prefix = out.type + ".";
  for (const auto& [key, value] : file.metadata()) {
    if (!key.starts_with(prefix)) continue;
    std::string name = key.substr(prefix.size());
    std::replace(name.begin(), name.end(), '.', '_');
    out.variables.set(name, value_of(value));
    out.keys.push_back(name);
  }
  if (const auto* tokens = file.strings("tokenizer.ggml.tokens"))
    out.variables.set("tokens", static_cast<int64_t>(tokens->size()));
  out.variables.set("architecture", out.type);
  out.weights = convert::open_source(path, convert::Format::kGguf);
  add_tensor_names(out);
  return out;
}

/// The section `sources.<kind>` of a model file, if it is for this type of model.
const Node* find_section(const Node& root, const ModelFiles& files) {
  const Node* sources = root.find("sources");
  const Node* section = sources ? sources->find(files.kind) : nullptr;
  const Node* types = section ? section->find("types") : nullptr;
  if (!types) return nullptr;
  const auto matches = [&](const Node& type) { return type.text == files.type; };
  return std::any_of(types->items.begin(), types->items.end(), matches) ? section : nullptr;
}

Node read_family(const std::string& path) {
  return config::parse_document(config::read_text_file(path), path);
}

/// Folders with the families that come with the programs: installed, or in the source tree.
std::string find_family(const ModelFiles& files) {
  const std::string self = program_path();
  const std::string bin = self.substr(0, self.rfind('/'));
  for (const char* place : {"/../share/paddle/models/llm", "/../../models/llm"}) {
    const std::string folder = bin + place;
    if (!is_directory(folder)) continue;
    for (const std::string& name : list_directory(folder))
      if (name.ends_with(".yaml") && !name.ends_with(".rules.yaml") &&
          find_section(read_family(folder + "/" + name), files))
        return folder + "/" + name;
  }
  fail(ErrorCode::kModel, files.config, ": there is no model family for the type '", files.type,
       "'; name a model file with --family");
}

/// Names in an expression.
std::set<std::string> names_of(const std::string& expression) {
  std::set<std::string> out;
  std::string name;
  for (const char c : expression + " ") {
    const bool part =
        c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (part) {
      name += c;
    } else if (!name.empty()) {
      out.insert(std::exchange(name, ""));
    }
  }
  return out;
}

std::string evaluate(const Node& expression, const jinja::Value& variables) {
  try {
    return jinja::Template("{{ (" + expression.as_string() + ") | tojson }}", "").render(variables);
  } catch (const Error& e) {
    throw Error(ErrorCode::kConfig, "'" + expression.as_string() + "': " + e.message(),
                expression.location());
  }
}

/// The params of the family, as overrides; every key of the model's files must have been read.
std::vector<std::string> read_params(const Node& section, const ModelFiles& files) {
  const jinja::Value variables = std::make_shared<const jinja::Dict>(files.variables);
  std::vector<std::string> out;
  std::set<std::string> known = {"model_type"};
  const auto read = [&](const Node& expression) {
    known.merge(names_of(expression.as_string()));
    return evaluate(expression, variables);
  };
  if (const Node* params = section.find("params"))
    for (const config::Entry& entry : params->entries) {
      const std::string value = read(entry.value);
      if (value == "null")
        fail(ErrorCode::kModel, files.config, ": no value for the param '", entry.key.text, "' (",
             entry.value.text, ")");
      out.push_back("params." + entry.key.text + "=" + value);
    }
  if (const Node* require = section.find("require"))
    for (const Node& condition : require->items)
      if (read(condition) != "true")
        fail(ErrorCode::kModel, files.config, ": models of type '", files.type,
             "' are supported only where ", condition.text);
  if (const Node* unread = section.find("unread"))
    for (const Node& key : unread->items) known.insert(key.text);
  for (const std::string& key : files.keys)
    if (!known.contains(key))
      fail(ErrorCode::kModel, files.config, ": the family does not know the key '", key,
           "', which may change the model; list it in `unread` of its `sources` if it does not");
  return out;
}

/// Serves the weights by the family's names, and knows which were asked for.
class Weights {
 public:
  Weights(std::shared_ptr<convert::Source> source, const std::string& rules, std::string file)
      : source_(std::move(source)), file_(std::move(file)) {
    convert::Rules by = convert::Rules::read(rules);
    for (size_t i = 0; i < source_->tensors().size(); ++i) {
      const auto outcome = by.apply(source_->tensors()[i].name);
      if (!outcome.dropped) index_[outcome.name] = {i, outcome.transposed, false};
    }
  }

  Array read(const std::string& name, const Dims& shape) {
    const auto it = index_.find(name);
    if (it == index_.end()) fail(ErrorCode::kModel, file_, ": there is no weight for '", name, "'");
    it->second.used = true;
    Array value = source_->read(it->second.index);
    if (it->second.transposed) {
      std::reverse(value.shape.begin(), value.shape.end());
      std::reverse(value.strides.begin(), value.strides.end());
    }
    if (value.shape != shape)
      fail(ErrorCode::kModel, file_, ": '", source_->tensors()[it->second.index].name, "' is ",
           str(value.shape), ", the model needs ", str(shape));
    return value.contiguous().cast(DType::kF32);
  }
  void check_all_used() const {
    for (const auto& [name, entry] : index_)
      if (!entry.used)
        fail(ErrorCode::kModel, file_, ": the model does not use the weight '",
             source_->tensors()[entry.index].name, "'");
  }

 private:
  struct Entry {
    size_t index = 0;
    bool transposed = false, used = false;
  };
  std::shared_ptr<convert::Source> source_;
  std::string file_;
  std::map<std::string, Entry> index_;
};

}  // namespace

bool is_language_model(const std::string& path) {
  if (!is_directory(path)) return formats::gguf::is_gguf(path);
  return file_exists(path + "/config.json") && !file_exists(path + "/module.txt");
}

LanguageModel open_language_model(const std::string& path, const std::string& family,
                                  program::LoadOptions options) {
  if (!options.weights.empty())
    fail(ErrorCode::kUsage, "--weights belongs to model files; ", path, " has its own weights");
  const ModelFiles files = is_directory(path) ? open_folder(path) : open_gguf(path);
  const std::string file = family.empty() ? find_family(files) : family;
  const Node root = read_family(file);
  const Node* section = find_section(root, files);
  if (!section)
    fail(ErrorCode::kModel, file, ": has no `sources` for ", files.kind, " models of type '",
         files.type, "'");
  const Node* rules = section->find("weights");
  if (!rules)
    throw Error(ErrorCode::kConfig, "expected 'weights', a file of rules", section->location());
  std::vector<std::string> overrides = read_params(*section, files);
  overrides.insert(overrides.end(), options.overrides.begin(), options.overrides.end());
  options.overrides = std::move(overrides);
  const auto weights = std::make_shared<Weights>(
      files.weights, join_path(file.substr(0, file.rfind('/')), rules->as_string()), path);
  options.preset = [weights](const std::string& name, const Dims& shape, DType) {
    return std::optional(weights->read(name, shape));
  };
  LanguageModel out;
  out.model = program::load_model(file, options);
  weights->check_all_used();
  out.context = files.context;
  out.end_tokens = files.end_tokens;
  return out;
}

}  // namespace paddle::llm
