#include "train/model_folder.h"

#include <filesystem>
#include <map>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "data/vocabulary.h"
#include "train/checkpoint.h"
#include "train/predict.h"

namespace paddle::train {
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
/// the model's folder says the whole preprocessing. Vocabularies become files beside it.
void state_learnt(const fs::path& folder, Node& document, const data::Fitted& fitted) {
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

}  // namespace

void write_model(const std::string& path, const RunConfig& config, const ParameterStore& kept) {
  ParameterStore store = kept.in_full_precision();
  const fs::path folder(path);
  ensure_directory(path);
  // A model that asks for the values of dims is traced when they are known.
  StaticDims dims;
  auto function =
      trace_prediction(*config.program, config.program->model, store, config.use_float64, &dims);
  write_weights((folder / "model.safetensors").string(), store);
  write_file_atomically((folder / "module.txt").string(),
                        ir::print(prediction_module(function, config.name, store)));
}

void write_metadata(const std::string& path, const RunConfig& config,
                    const std::vector<data::Field>& fields, const data::Dataset& dataset,
                    const FieldUse& use) {
  const fs::path folder(path);
  ensure_directory(path);
  Node document = config.document;
  for (const data::Fitted& fitted : dataset.fitted()) state_learnt(folder, document, fitted);
  write_file_atomically((folder / "config.yaml").string(), config::dump_yaml(document));
  write_file_atomically((folder / "fitted.json").string(), data::learnt_json(dataset.fitted()));
  nlohmann::json metadata = {
      {"version", 1}, {"name", config.name}, {"fields", nlohmann::json::array()}};
  for (const data::Field& f : fields) {
    nlohmann::json field = {{"name", f.name}, {"dtype", text(f.dtype)}, {"shape", f.shape}};
    const int64_t classes = f.name == use.label ? use.classes : f.class_count;
    if (classes > 0) field["class_count"] = classes;
    if (!f.classes.empty()) field["classes"] = f.classes;
    metadata["fields"].push_back(field);
  }
  if (!use.label.empty()) metadata["label"] = use.label;
  if (use.ignored) metadata["ignore_index"] = *use.ignored;
  if (!use.scored_output.empty() && use.scores != Scores::kUnknown) {
    static const std::map<Scores, const char*> kNames = {
        {Scores::kLogits, "logits"},
        {Scores::kProbabilities, "probabilities"},
        {Scores::kLogProbabilities, "log_probabilities"}};
    metadata["scores"] = {{"output", use.scored_output}, {"kind", kNames.at(use.scores)}};
  }
  for (const TargetUse& target : use.targets)
    metadata["targets"].push_back({{"field", target.field}, {"output", target.output}});
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

}  // namespace paddle::train
