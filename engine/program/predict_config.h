#pragma once
// The section `predict:` of a config: what the outputs of the model mean to its user. A trained
// model keeps it, and paddle-infer turns outputs into boxes, texts, tags or pictures by it.

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "config/schema.h"
#include "lang/syntax/program.h"

namespace paddle::program {

/// A tag for each token of a text. Class 0 is padding and unknown tags, which is never chosen.
struct TagPrediction {
  std::string scores;  ///< output [batch, length, tags]
  std::string field;   ///< of the data, whose vocabulary the tags are
  std::string words;   ///< input with the text
};

/// Text whose characters are read from left to right (connectionist temporal classification): the
/// likeliest class of each step, without repetitions and blanks.
struct CtcPrediction {
  std::string scores;  ///< output [batch, steps, classes]
  std::string field;
  int64_t blank = 0;
};

/// Text that is written token by token, by beam search. The model takes the text so far and scores
/// each next token: `scores[:, t]` is for the token after `target[:, :t]`. Token 0 ends the text.
struct SequencePrediction {
  std::string scores;  ///< output [batch, length + 1, tokens], logits
  std::string target;  ///< input with the text so far, and the field of its vocabulary
  int64_t beams = 1;
  int64_t max_length = 0;  ///< tokens; 0: that of the field
};

/// Boxes with a class and a score, without those that overlap a better one of their class.
struct BoxPrediction {
  std::string boxes;   ///< output [batch, n, 4]: left, top, right and bottom in pixels
  std::string scores;  ///< output [batch, n, classes]
  std::string field;   ///< with the names of the classes
  bool is_logits = true;
  double threshold = 0.3;  ///< least score
  double overlap = 0.6;    ///< largest intersection over union with a better box
  int64_t most = 100;      ///< of an image
};

/// A class for each pixel.
struct MaskPrediction {
  std::string scores;  ///< output [batch, classes, height, width]
  std::string field;
};

using Prediction =
    std::variant<TagPrediction, CtcPrediction, SequencePrediction, BoxPrediction, MaskPrediction>;

config::Spec predict_spec();
/// Of a resolved config; nullopt without the section.
std::optional<Prediction> read_predict(const config::Node& config);
/// Reads the section after `overrides`, such as "predict.threshold=0.5". kUsage for overrides of
/// another section and of a config without the section, kConfig for values that do not fit.
std::optional<Prediction> read_predict(const config::Node* config,
                                       const std::vector<std::string>& overrides);
/// Reports names that are not outputs or inputs of the model, or not among the `fields` of the
/// data.
void check_predict(const config::Node& config, const lang::Program& model,
                   const std::vector<std::string>& fields, config::Diagnostics& diagnostics);
/// Inputs of the model that prediction fills in itself.
std::vector<std::string> generated_inputs(const Prediction& prediction);

}  // namespace paddle::program
