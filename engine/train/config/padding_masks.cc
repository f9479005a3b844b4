#include "train/config/padding_masks.h"

#include <algorithm>

#include "base/text.h"
#include "program/model_config.h"

namespace paddle::train {
namespace {

bool is_recurrent(const lang::CallSite& site) {
  return site.callee == "lstm" || site.callee == "gru" || site.callee == "simple_rnn";
}

bool has_recurrent_layers(const lang::Program& program) {
  return std::ranges::any_of(program.model.code.sites, is_recurrent) ||
         std::ranges::any_of(program.blocks, [](const auto& block) {
           return std::ranges::any_of(block->code.sites, is_recurrent);
         });
}

bool has_input(const lang::Program& program, const std::string& name) {
  return std::ranges::any_of(program.model.inputs,
                             [&](const lang::Input& input) { return input.name.text == name; });
}

/// "bool[batch, length]" for the declared type "int64[batch, length]", or "" for other types.
std::string mask_type(const std::string& declared) {
  const size_t open = declared.find('['), close = declared.rfind(']');
  if (open == std::string::npos || close == std::string::npos || close < open) return "";
  const std::vector<std::string> dims = split(declared.substr(open + 1, close - open - 1), ',');
  if (dims.size() < 2) return "";
  return str("bool[", trim(dims[0]), ", ", trim(dims[1]), "]");
}

}  // namespace

void add_padding_masks(RunConfig& config, config::Diagnostics& diagnostics) {
  const auto* records = std::get_if<data::CsvFileOptions>(&config.data.train.source);
  if (!records || config.models.size() != 1 || !config.models[0].program) return;
  const lang::Program& program = *config.models[0].program;
  if (!has_recurrent_layers(program)) return;
  config::Node* const model = config.document.find("model");
  config::Node* const inputs = model && model->is_map() ? model->find("inputs") : nullptr;
  bool changed = false;
  for (const data::CsvField& field : records->fields) {
    const std::string mask = field.name + "_mask";
    const bool is_padded = field.kind == data::ColumnKind::kText ||
                           field.kind == data::ColumnKind::kAudio ||
                           field.kind == data::ColumnKind::kKeys;
    if (!is_padded || !has_input(program, field.name) || has_input(program, mask)) continue;
    const config::Node* const declared =
        inputs && inputs->is_map() ? inputs->find(field.name) : nullptr;
    const std::string type = declared && declared->is_scalar() ? mask_type(declared->text) : "";
    if (type.empty()) {
      diagnostics.warn(str("recurrent layers read the padding of '", field.name,
                           "': give the model the input ", mask, ", bool [batch, length]"),
                       model ? model->location() : SourceLocation{config.file, 0, 0});
      continue;
    }
    inputs->set(mask, config::make_scalar(type, inputs->source));
    changed = true;
  }
  if (changed) config.models = program::read_models(config.document);
}

}  // namespace paddle::train
