#include "train/evaluation/compared_texts.h"

#include "base/error.h"

namespace paddle::train {
namespace {

data::FieldText text_of(const data::Dataset& dataset, const std::string& field) {
  const std::vector<data::Fitted> fitted = dataset.fitted();
  const data::Fitted* found = data::find_fitted(fitted, field);
  const bool is_text = found && (found->tokenizer || !found->token_kind.empty());
  if (!is_text || (dataset.size() > 0 && !dataset.key_of(0, field)))
    fail(ErrorCode::kConfig, "the field '", field, "' of the data has no texts to compare with");
  return data::FieldText(*found);
}

}  // namespace

ComparedTexts::ComparedTexts(const data::Dataset& dataset, const std::string& field,
                             int64_t padding)
    : dataset_(dataset), field_(field), text_(text_of(dataset, field)), padding_(padding) {}

std::vector<std::string> ComparedTexts::of_tokens(const Array& tokens) const {
  if (tokens.shape.size() != 2)
    fail(ErrorCode::kData, "expected tokens [batch, length], found ", str(tokens.shape));
  std::vector<std::string> out;
  std::vector<int64_t> ids;
  for (int64_t row = 0; row < tokens.shape[0]; ++row) {
    ids.clear();
    for (int64_t i = 0; i < tokens.shape[1]; ++i) {
      const auto id = static_cast<int64_t>(tokens.number(row * tokens.shape[1] + i));
      if (id >= 0 && id != padding_) ids.push_back(id);
    }
    out.push_back(text_.decode(ids));
  }
  return out;
}

std::vector<std::string> ComparedTexts::references(std::span<const int64_t> indices) const {
  std::vector<std::string> out;
  for (const int64_t index : indices)
    out.push_back(text_.normalized(dataset_.key_of(index, field_).value_or("")));
  return out;
}

}  // namespace paddle::train
