#include "train/model_config.h"

#include "base/files.h"
#include "base/text.h"
#include "model/config_schema.h"
#include "model/overrides.h"
#include "train/onnx_program.h"

namespace paddle::train {
namespace {

/// Moves `params.*` into overrides of the model's params.
std::vector<model::Override> model_overrides(const model::Node& document) {
  std::vector<model::Override> out;
  const model::Node* params = document.find("params");
  if (!params || !params->is_map()) return out;
  for (const model::Entry& e : params->entries) {
    model::Override o;
    o.text = "params." + e.key.text;
    o.path = {"params", e.key.text};
    o.value = e.value;
    out.push_back(std::move(o));
  }
  return out;
}

/// `model: {onnx: FILE, inputs: {name: name in the file}, outputs: {…}}`.
const model::Schema& onnx_schema() {
  static const model::Schema schema = [] {
    model::Schema s;
    s.add("onnx", model::Spec::path().required().doc("an ONNX file"));
    s.add("inputs", model::Spec::map_of(model::Spec::text())
                        .fallback("{}")
                        .doc("fields of the data by the names of the file's inputs"));
    s.add("outputs", model::Spec::map_of(model::Spec::text())
                         .fallback("{}")
                         .doc("names for the loss by the names of the file's outputs"));
    return s;
  }();
  return schema;
}

bool is_onnx_map(const model::Node& node) { return node.is_map() && node.find("onnx"); }

std::shared_ptr<const model::Program> read_onnx(const model::Node& document,
                                                const std::string& path, const model::Node& at,
                                                const OnnxNames& names) {
  if (!file_exists(path) || is_directory(path))
    throw Error(ErrorCode::kConfig, "'model': there is no file " + path, at.place());
  if (const model::Node* params = document.find("params"); params && !params->is_null())
    throw Error(ErrorCode::kConfig, "'params': an ONNX model has none", params->place());
  return read_onnx_program(path, names);
}

std::map<std::string, std::string> names_in(const model::Node& map) {
  std::map<std::string, std::string> out;
  for (const model::Entry& e : map.entries) out[e.key.text] = e.value.text;
  return out;
}

}  // namespace

void place_model(model::Node& document, model::Diagnostics& diagnostics) {
  model::Node* m = document.find("model");
  if (!m) return;
  if (is_onnx_map(*m)) {
    onnx_schema().resolve(*m, "model", diagnostics);
    m = m->find("onnx");
  } else if (m->is_map()) {
    return;
  }
  if (!m->is_scalar())
    diagnostics.add(ErrorCode::kConfig,
                    "'model': expected a model file or a map, found " + m->describe(), m->place());
  else if (trim(m->text).empty())
    diagnostics.add(ErrorCode::kConfig, "'model': an empty path", m->place());
  else
    m->text = model::resolve_path(*m);
}

std::shared_ptr<const model::Program> read_model(const model::Node& document) {
  const model::Node& m = *document.find("model");
  if (is_onnx_map(m)) {
    const model::Node& file = *m.find("onnx");
    return read_onnx(document, model::resolve_path(file), file,
                     {names_in(*m.find("inputs")), names_in(*m.find("outputs"))});
  }
  model::ProgramOptions options;
  options.overrides = model_overrides(document);
  if (m.is_map()) return model::read_program(m, options);
  const auto [file, variant] = model::split_variant(model::resolve_path(m));
  if (file.ends_with(".onnx")) return read_onnx(document, file, m, {});
  if (!file_exists(file) || is_directory(file))
    throw Error(ErrorCode::kConfig, "'model': there is no file " + file, m.place());
  options.variant = variant;
  return model::read_program(file, options);
}

}  // namespace paddle::train
