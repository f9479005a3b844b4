#include "program/model_config.h"

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "base/files.h"
#include "base/text.h"
#include "config/overrides.h"
#include "config/schema.h"
#include "ops/core/op.h"
#include "paddle_program/register.h"
#include "program/onnx_program.h"
#include "program/saved_model.h"

namespace paddle::program {
namespace {

/// The entries of `params:` as overrides of a model's params.
std::vector<config::Override> model_overrides(const config::Node* params) {
  std::vector<config::Override> out;
  if (!params || !params->is_map()) return out;
  for (const config::Entry& e : params->entries) {
    config::Override o;
    o.text = "params." + e.key.text;
    o.path = {"params", e.key.text};
    o.value = e.value;
    out.push_back(std::move(o));
  }
  return out;
}

/// The key of a graph's file in a map: `onnx`, or `program` for one that PaddlePaddle saved; null
/// if the node is no such map.
const char* graph_key(const config::Node& node) {
  for (const char* key : {"onnx", "program"})
    if (node.is_map() && node.find(key)) return key;
  return nullptr;
}

/// `model: {onnx: FILE, inputs: {name: name in the file}, outputs: {…}}`.
config::Schema graph_schema(const std::string& key) {
  config::Schema s;
  s.add(key, config::Spec::path().required().doc(key == "onnx" ? "an ONNX file"
                                                               : "a program of PaddlePaddle"));
  s.add("inputs", config::Spec::map_of(config::Spec::text())
                      .fallback("{}")
                      .doc("inputs of the file by field of the data: {image: input.1}"));
  s.add("outputs",
        config::Spec::map_of(config::Spec::text())
            .fallback("{}")
            .doc("outputs of the file, or values inside of its graph, by their name in the "
                 "loss: {logits: '495'}"));
  return s;
}

std::shared_ptr<const lang::Program> read_onnx(const config::Node* params, const std::string& path,
                                               const config::Node& at, const std::string& key,
                                               const OnnxNames& names) {
  if (!file_exists(path) || is_directory(path))
    throw Error(ErrorCode::kConfig, "'" + key + "': no such file: " + path, at.location());
  if (params && !params->is_null())
    throw Error(ErrorCode::kConfig, "'params': an ONNX model has none", params->location());
  return read_onnx_program(path, names);
}

std::map<std::string, std::string> names_in(const config::Node& map) {
  std::map<std::string, std::string> out;
  for (const config::Entry& e : map.entries) out[e.key.text] = e.value.text;
  return out;
}

/// `NAME: {file: FILE, weights: FILE, frozen: true}` of `models:`.
const config::Schema& model_entry_schema() {
  static const config::Schema schema = [] {
    config::Schema s;
    s.add("file",
          config::Spec::any().required().doc("a model file[:variant], or a model in place"));
    s.add("weights", config::Spec::path().doc("initial weights: safetensors, or a model folder"));
    s.add("frozen", config::Spec::boolean().fallback("false").doc("no updates"));
    s.add("params", config::Spec::any().doc("values for the model's params"));
    return s;
  }();
  return schema;
}

bool is_model_entry(const config::Node& node) { return node.is_map() && node.find("file"); }

/// Makes a model's path absolute, and checks its form.
void resolve_model(config::Node& node, const std::string& key, config::Diagnostics& diagnostics) {
  config::Node* m = &node;
  if (const char* const file = graph_key(*m)) {
    graph_schema(file).resolve(*m, key, diagnostics);
    m = m->find(file);
  } else if (m->is_map()) {
    return;
  }
  if (!m->is_scalar())
    diagnostics.add(ErrorCode::kConfig,
                    "'" + key + "': expected a model file or a map, found " + m->describe(),
                    m->location());
  else if (trim(m->text).empty())
    diagnostics.add(ErrorCode::kConfig, "'" + key + "': an empty path", m->location());
  else
    m->text = config::resolve_path(*m);
}

std::shared_ptr<const lang::Program> read_model(const config::Node& m, const config::Node* params,
                                                const std::string& key) {
  if (const char* const name = graph_key(m)) {
    const config::Node& file = *m.find(name);
    return read_onnx(params, config::resolve_path(file), file, key,
                     {names_in(*m.find("inputs")), names_in(*m.find("outputs"))});
  }
  lang::ProgramOptions options;
  options.overrides = model_overrides(params);
  if (m.is_map()) return lang::read_program(m, options);
  const auto [file, variant] = lang::split_variant(config::resolve_path(m));
  if (paddle_program::is_graph_file(file)) return read_onnx(params, file, m, key, {});
  if (!file_exists(file) || is_directory(file))
    throw Error(ErrorCode::kConfig, "'" + key + "': no such file: " + file, m.location());
  options.variant = variant;
  return lang::read_program(file, options);
}

/// The weights that an entry names: a safetensors file, or the one of a model folder or run.
std::string weights_file(const config::Node& entry) {
  const config::Node* node = entry.find("weights");
  if (!node || node->is_null()) return "";
  const std::string path = config::resolve_path(*node);
  if (is_directory(path))
    return (std::filesystem::path(find_model_folder(path)) / "model.safetensors").string();
  if (!file_exists(path))
    throw Error(ErrorCode::kConfig, "'weights': no such file: " + path, node->location());
  return path;
}

/// Rejects a name that a step could not call.
void check_model_name(const config::Node& key) {
  const std::string& name = key.text;
  static const std::vector<std::string> kReserved = {"model", "update", "no_grad",  "grad",
                                                     "vjp",   "jvp",    "jacobian", "hessian"};
  const bool identifier = !name.empty() && !std::isdigit(static_cast<unsigned char>(name[0])) &&
                          std::all_of(name.begin(), name.end(),
                                      [](unsigned char c) { return std::isalnum(c) || c == '_'; });
  if (!identifier)
    throw Error(ErrorCode::kConfig,
                "models: expected a name of letters, digits and '_', found '" + name + "'",
                key.location());
  if (std::find(kReserved.begin(), kReserved.end(), name) != kReserved.end() || find_op(name) ||
      lang::is_builtin(name))
    throw Error(ErrorCode::kConfig, "models: '" + name + "' is a function of the language",
                key.location());
}

}  // namespace

void resolve_model_paths(config::Node& document, config::Diagnostics& diagnostics) {
  if (config::Node* model = document.find("model")) resolve_model(*model, "model", diagnostics);
  config::Node* models = document.find("models");
  if (!models) return;
  if (!models->is_map() || models->entries.empty()) {
    diagnostics.add(ErrorCode::kConfig,
                    "'models': expected a map of models by name, found " + models->describe(),
                    models->location());
    return;
  }
  for (config::Entry& e : models->entries) {
    const std::string key = "models." + e.key.text;
    if (!is_model_entry(e.value)) {
      resolve_model(e.value, key, diagnostics);
      continue;
    }
    model_entry_schema().resolve(e.value, key, diagnostics);
    resolve_model(*e.value.find("file"), key + ".file", diagnostics);
  }
}

std::vector<NamedModel> read_models(const config::Node& document) {
  const auto find = [&](const char* key) {
    const config::Node* node = document.find(key);
    return node && !node->is_null() ? node : nullptr;
  };
  const config::Node *model = find("model"), *models = find("models");
  if (!model && !models)
    throw Error(ErrorCode::kConfig, "the config has no 'model'", document.location());
  const config::Node* exported = find("export");
  if (model) {
    if (exported)
      throw Error(ErrorCode::kConfig, "'export': is for configs with several 'models'",
                  exported->location());
    return {{"", read_model(*model, document.find("params"), "model")}};
  }
  if (const config::Node* params = find("params"))
    throw Error(ErrorCode::kConfig,
                "'params': with 'models', each has its own: models: {NAME: {file: …, params: …}}",
                params->location());
  std::vector<NamedModel> out;
  std::vector<std::string> names;
  for (const config::Entry& e : models->entries) {
    check_model_name(e.key);
    names.push_back(e.key.text);
    NamedModel& each = out.emplace_back();
    each.name = e.key.text;
    const std::string key = "models." + each.name;
    if (!is_model_entry(e.value)) {
      each.program = read_model(e.value, nullptr, key);
      continue;
    }
    each.program = read_model(*e.value.find("file"), e.value.find("params"), key + ".file");
    each.weights = weights_file(e.value);
    each.frozen = config::Section(e.value).boolean("frozen");
  }
  if (!exported) return out;
  const auto first = std::find(names.begin(), names.end(), exported->text);
  if (first == names.end())
    throw Error(ErrorCode::kConfig,
                "'export': there is no model '" + exported->text + "'" +
                    did_you_mean(exported->text, names),
                exported->location());
  const auto at = out.begin() + (first - names.begin());
  std::rotate(out.begin(), at, at + 1);
  return out;
}

}  // namespace paddle::program
