#include "infer/decoder.h"

#include <algorithm>

#include "data/data_config.h"
#include "infer/decoders.h"

namespace paddle::infer {
namespace {

size_t place_of(const std::vector<std::string>& names, const std::string& name, const char* what) {
  const auto at = std::find(names.begin(), names.end(), name);
  if (at == names.end())
    fail(ErrorCode::kModel, "predict: the model has no ", what, " '", name, "'",
         did_you_mean(name, names), "; it has ", join(names, ", "));
  return static_cast<size_t>(at - names.begin());
}

const config::Node* config_of(const program::Model& model) {
  return model.metadata().config ? &*model.metadata().config : nullptr;
}

}  // namespace

void Decoder::write_pictures(const std::string& folder) {
  fail(ErrorCode::kUsage, "--output: the model predicts no pictures, which a folder ('", folder,
       "') is for; expected a name ending in .npz, .csv or .jsonl");
}

std::unique_ptr<Decoder> make_decoder(const program::Model& model,
                                      const std::vector<std::string>& overrides) {
  const auto prediction = program::read_predict(config_of(model), overrides);
  if (!prediction) return nullptr;
  return std::visit([&](const auto& options) { return decoder_for(model, options); }, *prediction);
}

std::vector<std::string> generated_inputs(const program::Model& model) {
  const config::Node* config = config_of(model);
  const auto prediction = config ? program::read_predict(*config) : std::nullopt;
  return prediction ? program::generated_inputs(*prediction) : std::vector<std::string>();
}

size_t output_of(const program::Model& model, const std::string& name) {
  return place_of(model.outputs(), name, "output");
}

size_t input_of(const program::Model& model, const std::string& name) {
  std::vector<std::string> names;
  for (const auto& [input, type] : model.inputs()) names.push_back(input);
  return place_of(names, name, "input");
}

void check_output(const std::string& name, const Array& array, size_t rank, const char* what) {
  if (array.shape.size() != rank || !is_float(array.dtype))
    fail(ErrorCode::kModel, "predict: the output '", name, "' is ", text(array.dtype),
         str(array.shape), ", expected ", what);
}

data::FieldText field_text(const program::Model& model, const std::string& field) {
  const data::Fitted* fitted = data::find_fitted(model.metadata().fitted, field);
  if (!fitted)
    fail(ErrorCode::kModel, "predict: the run has kept no vocabulary of a field '", field, "'");
  return data::FieldText(*fitted);
}

std::vector<std::string> class_names(const program::Model& model, const std::string& field) {
  if (const data::Fitted* fitted = data::find_fitted(model.metadata().fitted, field);
      fitted && !fitted->tokens.empty())
    return fitted->tokens;
  if (const auto run = run_data(model))
    if (const auto* records = std::get_if<data::CsvFileOptions>(&run->train.source))
      for (const data::CsvField& each : records->fields) {
        if (each.name != field || each.values.empty()) continue;
        std::vector<std::string> names;
        for (const auto& [value, name] : each.values) names.push_back(name);
        return names;
      }
  return model.metadata().label_field == field ? model.metadata().classes
                                               : std::vector<std::string>();
}

std::string class_name(const std::vector<std::string>& names, int64_t number) {
  return number < static_cast<int64_t>(names.size()) ? names[static_cast<size_t>(number)]
                                                     : std::to_string(number);
}

int64_t best_class(const Array& scores, int64_t begin, int64_t stride, int64_t classes,
                   int64_t first) {
  int64_t best = std::min(first, classes - 1);
  for (int64_t c = first + 1; c < classes; ++c)
    if (scores.number(begin + c * stride) > scores.number(begin + best * stride)) best = c;
  return best;
}

}  // namespace paddle::infer
