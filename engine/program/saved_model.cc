#include "program/saved_model.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "data/vocabulary.h"
#include "program/checkpoint.h"
#include "program/model_store.h"
#include "program/prediction.h"
#include "program/served_tables.h"

namespace paddle::program {
namespace {

namespace fs = std::filesystem;
using config::Node;

Node list_of(const std::vector<double>& numbers, const Node& like) {
  Node list;
  list.kind = Node::Kind::kSequence;
  list.source = like.source;
  for (const double x : numbers)
    list.items.push_back(config::make_scalar(format_double(x), like.source));
  return list;
}

/// Puts what the training data taught into the config's field of that name, so that the config in
/// the model's folder says the whole preprocessing. Vocabularies become files next to it.
void write_fitted_into(const fs::path& folder, Node& document, const data::Fitted& fitted) {
  Node* data = document.find("data");
  Node* train = data ? data->find("train") : nullptr;
  Node* fields = train ? train->find("fields") : nullptr;
  if (!fields) return;
  for (Node& field : fields->items) {
    const Node* name = field.find("name");
    if (!name || name->text != fitted.field) continue;
    if (!fitted.shift.empty()) {
      field.set("shift", list_of(fitted.shift, field));
      field.set("factor", list_of(fitted.factor, field));
    }
    const Node* buckets = field.find("buckets");
    if (!fitted.tokens.empty() && buckets && buckets->text == "0") {
      const std::string file =
          "vocabulary_" + std::to_string(&field - fields->items.data()) + ".json";
      write_file_atomically((folder / file).string(), data::Vocabulary(fitted.tokens).json());
      field.set("vocabulary_file", config::make_scalar(file, field.source));
      field.erase("vocabulary");
    }
  }
}

/// Of the folder. In version 2 the module may have further functions over the same weights, names
/// and placements of values, and scopes of states.
constexpr int kVersion = 2;

/// The functions besides the prediction that compute on its parameters and states: others have
/// untrained weights. States of sequences that the prediction lacks are added to the
/// store, with what sequences start with.
std::vector<std::shared_ptr<ir::Function>> further_functions(
    const lang::Program& program, bool use_float64, ParameterStore& store,
    const quant::FakeQuantization* quantization, TableHost& tables) {
  std::vector<std::shared_ptr<ir::Function>> out;
  for (const lang::EntryPoint& entry : program.functions) {
    if (entry.name == kPrediction) continue;
    ParameterStore own = store;  // arrays are shared
    own.initializes_random = false;
    StaticDims dims;
    std::shared_ptr<ir::Function> function;
    try {
      function = trace_prediction(program, entry, own, use_float64, &dims, quantization, nullptr,
                                  {}, &tables);
    } catch (const Error&) {
      // Some operations, such as those on caches, have no form in float64.
      if (!use_float64) throw;
    }
    if (!function || own.parameters.size() != store.parameters.size()) continue;
    if (std::any_of(own.states.begin(), own.states.end(), [&](const auto& state) {
          return !store.states.contains(state.first) && !own.sequence_starts.contains(state.first);
        }))
      continue;
    store.states.insert(own.states.begin(), own.states.end());
    store.sequence_starts.insert(own.sequence_starts.begin(), own.sequence_starts.end());
    store.state_initializers.insert(own.state_initializers.begin(), own.state_initializers.end());
    function->name = entry.name;
    out.push_back(std::move(function));
  }
  return out;
}

Scores scores_of(const std::string& kind) {
  return kind == "logits"              ? Scores::kLogits
         : kind == "probabilities"     ? Scores::kProbabilities
         : kind == "log_probabilities" ? Scores::kLogProbabilities
                                       : Scores::kUnknown;
}

UnitKind unit_kind_of(const std::string& name) {
  for (const UnitKind kind : {UnitKind::kDifference, UnitKind::kVariance, UnitKind::kLogDifference,
                              UnitKind::kLogVariance})
    if (name == name_of(kind)) return kind;
  return UnitKind::kValue;
}

/// The field of class numbers: that of the loss, or for losses that were written by hand the last
/// one that is not an input.
std::string class_field(const std::vector<data::Field>& fields, const FieldUse& use) {
  if (!use.label.empty() || !use.targets.empty()) return use.label;
  std::string out;
  for (const data::Field& f : fields)
    if (f.class_count > 0 && f.max_length == 0 &&
        std::find(use.inputs.begin(), use.inputs.end(), f.name) == use.inputs.end())
      out = f.name;
  return out;
}

/// Labels, targets and units as model.json has them.
void read_targets(const nlohmann::json& json, ModelMetadata& m) {
  const std::string label = json.value("label", "");
  // Files of older versions do not say what the target is.
  const bool is_old = !json.contains("target") && !json.contains("targets");
  for (const auto& field : json.at("fields")) {
    if (!field.contains("class_count")) continue;
    if (label.empty() ? !is_old : field.at("name") != label) continue;
    m.class_count = field.at("class_count").get<int64_t>();
    m.label_field = field.at("name").get<std::string>();
    if (field.contains("classes")) m.classes = field.at("classes").get<std::vector<std::string>>();
  }
  if (json.contains("targets"))
    for (const auto& target : json.at("targets"))
      m.targets.push_back(
          {target.at("field").get<std::string>(), target.at("output").get<std::string>()});
  if (json.contains("units"))
    for (const auto& unit : json.at("units"))
      m.units.push_back({unit.at("output").get<std::string>(), unit.at("field").get<std::string>(),
                         unit_kind_of(unit.at("kind").get<std::string>()),
                         unit.value("at", int64_t{-1}), unit.value("column", int64_t{-1})});
  else
    for (const TargetUse& target : m.targets)
      if (!target.output.empty()) m.units.push_back({target.output, target.field});
  if (!m.label_field.empty()) return;
  m.label_field = json.value("target", m.targets.size() == 1 ? m.targets[0].field : "");
  if (!json.value("multi_label", false)) return;
  m.is_multi_label = true;
  for (const auto& field : json.at("fields"))
    if (field.at("name") == m.label_field && field.contains("classes"))
      m.classes = field.at("classes").get<std::vector<std::string>>();
}

}  // namespace

std::string find_model_folder(const std::string& path) {
  if (is_store(path)) return (fs::path(path) / current_version(path)).string();
  if (file_exists((fs::path(path) / "module.txt").string())) return path;
  for (const char* inside : {"model", "checkpoints/latest", "latest"}) {
    const fs::path candidate = fs::path(path) / inside;
    if (file_exists((candidate / "module.txt").string())) return candidate.string();
  }
  fail(ErrorCode::kUsage, path, ": is not a model folder (it has no module.txt)");
}

ModelMetadata read_metadata(const std::string& path) {
  const fs::path folder(path);
  ModelMetadata m;
  if (file_exists((folder / "config.yaml").string())) {
    config::Diagnostics diagnostics;
    m.config = config::read_document((folder / "config.yaml").string(), diagnostics);
    diagnostics.raise();
  }
  if (const std::string fitted = (folder / "fitted.json").string(); file_exists(fitted))
    m.fitted = data::read_fitted(fitted);
  const std::string file = (folder / "model.json").string();
  if (file_exists((folder / "vocabulary.json").string()))
    m.vocabulary = data::Vocabulary::read((folder / "vocabulary.json").string());
  if (!file_exists(file)) return m;
  const auto json =
      nlohmann::json::parse(read_file(file, 1 << 24, ErrorCode::kModel), nullptr, false);
  try {
    if (const int version = json.at("version").get<int>(); version < 1 || version > kVersion)
      fail(ErrorCode::kModel, file, ": needs a newer version of this program");
    read_targets(json, m);
    if (json.contains("ignore_index")) m.ignore_index = json.at("ignore_index").get<int64_t>();
    if (json.contains("scores")) {
      m.scored_output = json.at("scores").at("output").get<std::string>();
      m.scores = scores_of(json.at("scores").at("kind").get<std::string>());
    }
    if (json.value("vocabulary_level", "") == "bytes") m.vocabulary = data::Vocabulary::bytes();
  } catch (const nlohmann::json::exception&) {
    fail(ErrorCode::kModel, file, ": is damaged");
  }
  return m;
}

void write_model(const std::string& path, const std::string& name, const lang::Program& program,
                 bool use_float64, const ParameterStore& kept,
                 const quant::FakeQuantization* quantization, const std::string& weights) {
  ParameterStore store = kept.in_full_precision();
  const fs::path folder(path);
  ensure_directory(path);
  // A model that asks for the values of dims is traced when they are known.
  StaticDims dims;
  ServedTables tables = large_tables(store, kInlineTables);
  auto function = trace_prediction(program, program.model, store, use_float64, &dims, quantization,
                                   nullptr, {}, &tables);
  std::vector<std::shared_ptr<ir::Function>> others;
  if (function) others = further_functions(program, use_float64, store, quantization, tables);
  const std::string file = (folder / "model.safetensors").string();
  if (weights.empty()) {
    write_weights(file, store);
  } else {
    std::error_code error;
    fs::copy_file(weights, file, fs::copy_options::overwrite_existing, error);
    if (error) fail(ErrorCode::kDevice, "cannot write '", file, "': ", error.message());
  }
  ir::Module module = prediction_module(function, name, store);
  module.functions.insert(module.functions.end(), others.begin(), others.end());
  write_file_atomically((folder / "module.txt").string(), ir::print(module));
}

void write_folder(const std::string& folder, const std::string& source_folder,
                  const std::string& name, const std::shared_ptr<ir::Function>& function,
                  const std::function<Array(const std::string&)>& weight) {
  ensure_directory(folder);
  ParameterStore store;
  for (const ir::Port& port : function->inputs) {
    if (port.kind == ir::PortKind::kParameter)
      store.parameters[port.name] = {weight(port.name), ""};
    if (port.kind == ir::PortKind::kState) store.states[port.name] = weight(port.name);
  }
  write_weights(folder + "/model.safetensors", store);
  write_file_atomically(folder + "/module.txt",
                        ir::print(prediction_module(function, name, store)));
  const fs::path inference = fs::path(source_folder) / "inference";
  const fs::path from = fs::exists(inference) ? inference : fs::path(source_folder);
  for (const auto& each : fs::directory_iterator(from)) {
    const std::string file = each.path().filename().string();
    // state.json is that of a run.
    const bool metadata =
        file == "config.yaml" || (file.ends_with(".json") && file != "state.json");
    if (metadata && each.is_regular_file())
      write_file_atomically(folder + "/" + file,
                            read_file(each.path().string(), uint64_t{1} << 30, ErrorCode::kModel));
  }
}

void write_metadata(const std::string& path, const std::string& name, const config::Node& config,
                    const std::vector<data::Field>& fields, const data::Dataset& dataset,
                    const FieldUse& use) {
  const fs::path folder(path);
  ensure_directory(path);
  Node document = config;
  for (const data::Fitted& fitted : dataset.fitted()) write_fitted_into(folder, document, fitted);
  write_file_atomically((folder / "config.yaml").string(), config::dump_yaml(document));
  data::write_fitted(path, dataset.fitted());
  nlohmann::json metadata = {
      {"version", kVersion}, {"name", name}, {"fields", nlohmann::json::array()}};
  for (const data::Field& f : fields) {
    nlohmann::json field = {{"name", f.name}, {"dtype", text(f.dtype)}, {"shape", f.shape}};
    const int64_t classes = f.name == use.label ? use.classes : f.class_count;
    if (classes > 0) field["class_count"] = classes;
    if (!f.classes.empty()) field["classes"] = f.classes;
    metadata["fields"].push_back(field);
  }
  const std::string label = class_field(fields, use);
  if (!label.empty()) metadata["label"] = label;
  metadata["target"] = !label.empty()            ? label
                       : use.targets.size() == 1 ? use.targets[0].field
                                                 : std::string();
  const auto target = std::find_if(fields.begin(), fields.end(), [&](const data::Field& f) {
    return label.empty() && f.name == metadata["target"];
  });
  // Classes of which any may hold: the field has a place for each.
  if (target != fields.end() && target->class_count == 0 && !target->classes.empty())
    metadata["multi_label"] = true;
  if (use.ignored) metadata["ignore_index"] = *use.ignored;
  if (!use.scored_output.empty() && use.scores != Scores::kUnknown) {
    static const std::map<Scores, const char*> kNames = {
        {Scores::kLogits, "logits"},
        {Scores::kProbabilities, "probabilities"},
        {Scores::kLogProbabilities, "log_probabilities"}};
    metadata["scores"] = {{"output", use.scored_output}, {"kind", kNames.at(use.scores)}};
  }
  for (const TargetUse& each : use.targets)
    metadata["targets"].push_back({{"field", each.field}, {"output", each.output}});
  metadata["units"] = nlohmann::json::array();
  for (const OutputUnit& unit : use.units) {
    nlohmann::json line = {
        {"output", unit.output}, {"field", unit.field}, {"kind", name_of(unit.kind)}};
    if (unit.at >= 0) line["at"] = unit.at;
    if (unit.column >= 0) line["column"] = unit.column;
    metadata["units"].push_back(std::move(line));
  }
  for (size_t i = 0; i < dataset.fields().size(); ++i)
    if (const data::Vocabulary* v = dataset.vocabulary(static_cast<int64_t>(i))) {
      write_file_atomically((folder / "vocabulary.json").string(), v->json());
      metadata["vocabulary_field"] = dataset.fields()[i].name;
      metadata["vocabulary_level"] = v->is_bytes() ? "bytes" : "characters";
      break;
    }
  write_file_atomically(
      (folder / "model.json").string(),
      metadata.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

}  // namespace paddle::program
