// Gives validation data and data to predict what the training data learnt.

#include "data/options.h"

namespace paddle::data {
namespace {

bool has_vocabulary(const CsvField& field) {
  return field.kind == ColumnKind::kCategorical && field.buckets == 0;
}

void apply_to_field(CsvField& field, const Learnt& known) {
  if (field.kind == ColumnKind::kNumeric) {
    if (!field.shift.empty()) return;
    if (known.shift.empty() && field.scaling != Scaling::kNone)
      fail(ErrorCode::kConfig, "field '", field.name,
           "': `scaling` is set, but the training data is not scaled; set it for both or for none");
    field.shift = known.shift;
    field.factor = known.factor;
    field.log = known.log;
  } else if (has_vocabulary(field)) {
    if (known.tokens.empty())
      fail(ErrorCode::kConfig, "field '", field.name,
           "': the training data has no vocabulary for it; use the same `buckets` as there");
    field.vocabulary = known.tokens;
    field.vocabulary_file.clear();
    field.unknown_is_zero = known.unknown_is_zero;
    field.unknown_shares_zero = known.unknown_shares_zero;
  }
}

}  // namespace

void apply_learnt(DatasetOptions& options, const std::vector<Learnt>& learnt) {
  if (auto* csv = std::get_if<CsvFileOptions>(&options.source)) {
    for (CsvField& field : csv->fields)
      if (const Learnt* known = find_learnt(learnt, field.name)) apply_to_field(field, *known);
  } else if (auto* text = std::get_if<TextOptions>(&options.source)) {
    const Learnt* known = find_learnt(learnt, text->token_field);
    if (!known) return;
    text->level = known->bytes ? TextLevel::kBytes : TextLevel::kCharacters;
    text->vocabulary = known->tokens;
    text->vocabulary_file.clear();
  } else if (auto* images = std::get_if<ImageFolderOptions>(&options.source)) {
    const Learnt* known = find_learnt(learnt, images->label_field);
    if (known && images->files.empty()) images->known_classes = known->tokens;
  } else {
    for (const Learnt& each : learnt)
      if (!each.shift.empty() || each.log) options.scales.push_back(each);
  }
}

std::vector<Learnt> stated_learnt(const DatasetOptions& options) {
  std::vector<Learnt> out;
  if (const auto* csv = std::get_if<CsvFileOptions>(&options.source)) {
    for (const CsvField& field : csv->fields) {
      Learnt& each = out.emplace_back();
      each.field = field.name;
      each.shift = field.shift;
      each.factor = field.factor;
      each.log = field.log;
      if (!has_vocabulary(field)) continue;
      each.tokens = field.vocabulary.empty() && !field.vocabulary_file.empty()
                        ? Vocabulary::read(field.vocabulary_file).tokens()
                        : field.vocabulary;
      each.unknown_shares_zero = field.unknown_is_zero;
    }
  } else if (const auto* text = std::get_if<TextOptions>(&options.source)) {
    Learnt& each = out.emplace_back();
    each.field = text->token_field;
    each.bytes = text->level == TextLevel::kBytes;
    if (!each.bytes && !text->vocabulary_file.empty())
      each.tokens = Vocabulary::read(text->vocabulary_file).tokens();
    else
      each.tokens = text->vocabulary;
  }
  return out;
}

}  // namespace paddle::data
