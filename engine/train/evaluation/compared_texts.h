#pragma once
// The texts that a metric of texts compares: those of tokens that a model gives, and those that the
// data has for the same samples.

#include <span>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/field_text.h"
#include "tensor/tensor.h"

namespace paddle::train {

class ComparedTexts {
 public:
  /// `field`: of `dataset`, which must outlive this object. Tokens that are negative or `padding`
  /// are left out. kConfig for a field whose samples are not texts.
  ComparedTexts(const data::Dataset& dataset, const std::string& field, int64_t padding);

  /// Of tokens [samples, length]; kData for other shapes.
  std::vector<std::string> of_tokens(const Array& tokens) const;
  /// The texts in the files of the samples of these numbers, in the form of decoded tokens
  /// (data::FieldText::normalized): tokens that are unknown or beyond `max_length` are part of it.
  std::vector<std::string> references(std::span<const int64_t> indices) const;

 private:
  const data::Dataset& dataset_;
  std::string field_;
  data::FieldText text_;
  int64_t padding_;
};

}  // namespace paddle::train
