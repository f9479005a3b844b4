#include "program/model_config.h"

#include "base/files.h"
#include "base/text.h"
#include "config/overrides.h"
#include "config/schema.h"
#include "program/onnx_program.h"

namespace paddle::program {
namespace {

/// Moves `params.*` into overrides of the model's params.
std::vector<config::Override> model_overrides(const config::Node& document) {
  std::vector<config::Override> out;
  const config::Node* params = document.find("params");
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

/// `model: {onnx: FILE, inputs: {name: name in the file}, outputs: {…}}`.
const config::Schema& onnx_schema() {
  static const config::Schema schema = [] {
    config::Schema s;
    s.add("onnx", config::Spec::path().required().doc("an ONNX file"));
    s.add("inputs", config::Spec::map_of(config::Spec::text())
                        .fallback("{}")
                        .doc("fields of the data by the names of the file's inputs"));
    s.add("outputs", config::Spec::map_of(config::Spec::text())
                         .fallback("{}")
                         .doc("names for the loss by the names of the file's outputs"));
    return s;
  }();
  return schema;
}

bool is_onnx_map(const config::Node& node) { return node.is_map() && node.find("onnx"); }

std::shared_ptr<const lang::Program> read_onnx(const config::Node& document,
                                               const std::string& path, const config::Node& at,
                                               const OnnxNames& names) {
  if (!file_exists(path) || is_directory(path))
    throw Error(ErrorCode::kConfig, "'model': no such file: " + path, at.location());
  if (const config::Node* params = document.find("params"); params && !params->is_null())
    throw Error(ErrorCode::kConfig, "'params': an ONNX model has none", params->location());
  return read_onnx_program(path, names);
}

std::map<std::string, std::string> names_in(const config::Node& map) {
  std::map<std::string, std::string> out;
  for (const config::Entry& e : map.entries) out[e.key.text] = e.value.text;
  return out;
}

}  // namespace

void resolve_model_path(config::Node& document, config::Diagnostics& diagnostics) {
  config::Node* m = document.find("model");
  if (!m) return;
  if (is_onnx_map(*m)) {
    onnx_schema().resolve(*m, "model", diagnostics);
    m = m->find("onnx");
  } else if (m->is_map()) {
    return;
  }
  if (!m->is_scalar())
    diagnostics.add(ErrorCode::kConfig,
                    "'model': expected a model file or a map, found " + m->describe(),
                    m->location());
  else if (trim(m->text).empty())
    diagnostics.add(ErrorCode::kConfig, "'model': an empty path", m->location());
  else
    m->text = config::resolve_path(*m);
}

std::shared_ptr<const lang::Program> read_model(const config::Node& document) {
  const config::Node* found = document.find("model");
  if (!found) throw Error(ErrorCode::kConfig, "the config has no 'model'", document.location());
  const config::Node& m = *found;
  if (is_onnx_map(m)) {
    const config::Node& file = *m.find("onnx");
    return read_onnx(document, config::resolve_path(file), file,
                     {names_in(*m.find("inputs")), names_in(*m.find("outputs"))});
  }
  lang::ProgramOptions options;
  options.overrides = model_overrides(document);
  if (m.is_map()) return lang::read_program(m, options);
  const auto [file, variant] = lang::split_variant(config::resolve_path(m));
  if (file.ends_with(".onnx")) return read_onnx(document, file, m, {});
  if (!file_exists(file) || is_directory(file))
    throw Error(ErrorCode::kConfig, "'model': no such file: " + file, m.location());
  options.variant = variant;
  return lang::read_program(file, options);
}

}  // namespace paddle::program
