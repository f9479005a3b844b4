#pragma once
// The decoders of make_decoder, and what they share.

#include "data/field_text.h"
#include "infer/decoder.h"

namespace paddle::infer {

std::unique_ptr<Decoder> decoder_for(const program::Model& model,
                                     const program::TagPrediction& options);
std::unique_ptr<Decoder> decoder_for(const program::Model& model,
                                     const program::CtcPrediction& options);
std::unique_ptr<Decoder> decoder_for(const program::Model& model,
                                     const program::SequencePrediction& options);
std::unique_ptr<Decoder> decoder_for(const program::Model& model,
                                     const program::BoxPrediction& options);
std::unique_ptr<Decoder> decoder_for(const program::Model& model,
                                     const program::MaskPrediction& options);

/// The number of an output. kModel if there is none of that name.
size_t output_of(const program::Model& model, const std::string& name);
size_t input_of(const program::Model& model, const std::string& name);
/// kModel if an output has another rank or type than `what` says.
void check_output(const std::string& name, const Array& array, size_t rank, const char* what);
/// The text of a field of the training data. kModel if the run kept none.
data::FieldText field_text(const program::Model& model, const std::string& field);
/// Names of the classes of a field, by number; empty if they have none.
std::vector<std::string> class_names(const program::Model& model, const std::string& field);
/// The name of a class, or its number.
std::string class_name(const std::vector<std::string>& names, int64_t number);

/// The class with the highest score of those from `first` on; that of class c is at
/// begin + c * stride.
int64_t best_class(const Array& scores, int64_t begin, int64_t stride, int64_t classes,
                   int64_t first = 0);

}  // namespace paddle::infer
