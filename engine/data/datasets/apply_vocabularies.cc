// Gives validation data and data to predict what the training data fitted.

#include "data/options.h"

namespace paddle::data {
namespace {

bool has_vocabulary(const CsvField& field) {
  return field.kind == ColumnKind::kMultiLabel ||
         (field.kind == ColumnKind::kCategorical && field.buckets == 0);
}

void apply_to_field(CsvField& field, const Fitted& known) {
  if (field.kind == ColumnKind::kNumeric) {
    if (!field.shift.empty()) return;
    if (known.shift.empty() && field.scaling != Scaling::kNone)
      fail(ErrorCode::kConfig, "field '", field.name,
           "': `scaling` is set, but the training data is not scaled; set it for both or for none");
    field.shift = known.shift;
    field.factor = known.factor;
    field.log = known.log;
  } else if (field.kind == ColumnKind::kText && known.tokenizer) {
    field.tokenizer = {{}, known.tokenizer};
    field.special_tokens = known.special_tokens;
    field.max_length = known.max_length;
    field.lowercase = false;
    field.vocabulary.clear();
    field.vocabulary_file.clear();
  } else if (field.kind == ColumnKind::kText) {
    field.tokenizer = {};
    if (known.token_kind.empty())
      fail(ErrorCode::kConfig, "field '", field.name,
           "': the training data has no text of that name");
    field.vocabulary = known.tokens;
    field.vocabulary_file.clear();
    field.tokens = parse_token_kind(known.token_kind).value_or(TokenKind::kWords);
    field.lowercase = known.lowercase;
    field.max_length = known.max_length;
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

void apply_fitted(DatasetOptions& options, const std::vector<Fitted>& fitted) {
  if (auto* csv = std::get_if<CsvFileOptions>(&options.source)) {
    for (CsvField& field : csv->fields)
      if (const Fitted* known = find_fitted(fitted, field.name)) apply_to_field(field, *known);
  } else if (auto* text = std::get_if<TextOptions>(&options.source)) {
    const Fitted* known = find_fitted(fitted, text->token_field);
    if (!known) return;
    text->level = known->bytes ? TextLevel::kBytes : TextLevel::kCharacters;
    text->vocabulary = known->tokens;
    text->vocabulary_file.clear();
    text->tokenizer = {{}, known->tokenizer};
  } else if (auto* tokens = std::get_if<TokensOptions>(&options.source)) {
    const Fitted* known = find_fitted(fitted, tokens->windows.token_field);
    if (known && known->tokenizer) tokens->tokenizer = {{}, known->tokenizer};
  } else if (auto* chat = std::get_if<ChatOptions>(&options.source)) {
    const Fitted* known = find_fitted(fitted, "tokens");
    if (known && known->tokenizer) chat->tokenizer = {{}, known->tokenizer};
  } else if (auto* images = std::get_if<ImageFolderOptions>(&options.source)) {
    const Fitted* known = find_fitted(fitted, images->label_field);
    if (known && images->files.empty()) images->known_classes = known->tokens;
  } else if (auto* series = std::get_if<SeriesOptions>(&options.source)) {
    const Fitted* known = find_fitted(fitted, "past");
    if (!known || !series->shift.empty()) return;
    if (known->shift.empty() && series->scaling != Scaling::kNone)
      fail(ErrorCode::kConfig, "series: `scaling` is set, but the training data is not scaled");
    series->shift = known->shift;
    series->factor = known->factor;
  } else if (auto* mixture = std::get_if<MixtureOptions>(&options.source)) {
    for (auto& [name, source] : mixture->sources) {
      DatasetOptions own = *source;
      apply_fitted(own, fitted);
      source = std::make_shared<const DatasetOptions>(std::move(own));
    }
  } else if (auto* boxes = std::get_if<BoxOptions>(&options.source)) {
    if (const Fitted* known = find_fitted(fitted, boxes->label_field))
      boxes->known_classes = known->tokens;
  } else {
    for (const Fitted& each : fitted)
      if (!each.shift.empty() || each.log) options.scales.push_back(each);
  }
}

void choose_packing(DatasetOptions& options, bool takes_segments) {
  const auto reject = [&](bool shared, const char* what, const char* instead) {
    if (shared && !takes_segments)
      fail(ErrorCode::kConfig, kind_of(options), ": ", what, " share samples, and the model has ",
           "no input `segments` to keep them apart; ", instead);
  };
  if (auto* chat = std::get_if<ChatOptions>(&options.source)) {
    reject(chat->pack.value_or(false), "records", "remove `pack: true` or give the model one");
    if (!chat->pack) chat->pack = takes_segments;
  } else if (const auto* text = std::get_if<TextOptions>(&options.source)) {
    reject(text->documents != TextDocuments::kNone, "documents",
           "remove `documents` or give the model one");
  } else if (const auto* tokens = std::get_if<TokensOptions>(&options.source)) {
    reject(!tokens->end_token.empty(), "documents", "remove `end_token` or give the model one");
  } else if (auto* mixture = std::get_if<MixtureOptions>(&options.source)) {
    for (auto& [name, source] : mixture->sources) {
      DatasetOptions own = *source;
      choose_packing(own, takes_segments);
      source = std::make_shared<const DatasetOptions>(std::move(own));
    }
  }
}

std::vector<Fitted> stated_fitted(const DatasetOptions& options) {
  std::vector<Fitted> out;
  if (const auto* csv = std::get_if<CsvFileOptions>(&options.source)) {
    for (const CsvField& field : csv->fields) {
      Fitted& each = out.emplace_back();
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
    Fitted& each = out.emplace_back();
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
