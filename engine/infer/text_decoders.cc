// Tags of words, and texts that a model reads step by step.

#include <algorithm>

#include <nlohmann/json.hpp>

#include "data/tokens.h"
#include "infer/beam_search.h"
#include "infer/decoders.h"

namespace paddle::infer {
namespace {

std::string dumped(const nlohmann::ordered_json& object) {
  return object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Decoded text_of(const std::string& text) {
  Decoded out;
  out.json = dumped({{"text", text}});
  out.cells = {{text}};
  out.text = text;
  return out;
}

class TagDecoder final : public Decoder {
 public:
  TagDecoder(const program::Model& model, const program::TagPrediction& options)
      : options_(options),
        output_(output_of(model, options.scores)),
        input_(input_of(model, options.words)),
        words_(field_text(model, options.words)),
        tags_(field_text(model, options.field)) {
    const data::Fitted* words = data::find_fitted(model.metadata().fitted, options.words);
    if (!words->tokenizer) kind_ = data::parse_token_kind(words->token_kind);
    length_ = words->max_length;
  }
  std::vector<Decoded> decode(program::Model& model, const InputBatch& batch) override {
    const Array scores = model.run(batch.inputs)[output_].contiguous();
    check_output(options_.scores, scores, 3, "scores [batch, length, tags]");
    std::vector<Decoded> out;
    for (int64_t row = 0; row < batch.rows; ++row) {
      const std::vector<std::string> words = words_in(batch, row);
      std::vector<std::string> tags;
      std::string shown;
      for (size_t i = 0; i < words.size() && static_cast<int64_t>(i) < scores.shape[1]; ++i) {
        const int64_t begin = (row * scores.shape[1] + static_cast<int64_t>(i)) * scores.shape[2];
        tags.push_back(tags_.token(best_class(scores, begin, 1, scores.shape[2], 1)));
        shown += (i > 0 ? " " : "") + words[i] + "/" + tags.back();
      }
      Decoded& decoded = out.emplace_back();
      decoded.json = dumped({{"words", words}, {"tags", tags}});
      decoded.cells = {{join(words, " "), join(tags, " ")}};
      decoded.text = shown;
    }
    return out;
  }
  std::vector<std::string> columns() const override { return {"words", "tags"}; }
  std::string text_field() const override { return options_.words; }
  std::string label_field() const override { return options_.field; }
  bool label_is_list() const override { return true; }

 private:
  /// As the file spells them; from an array, as the vocabulary does.
  std::vector<std::string> words_in(const InputBatch& batch, int64_t row) const {
    std::vector<std::string> out;
    if (kind_ && batch.texts.size() == static_cast<size_t>(batch.rows)) {
      for (const std::string_view word :
           data::split_tokens(batch.texts[static_cast<size_t>(row)], *kind_, length_))
        out.emplace_back(word);
      return out;
    }
    const Array ids = batch.inputs[input_].contiguous();
    const int64_t length = ids.shape[1];
    int64_t end = length;
    while (end > 0 && ids.integer(row * length + end - 1) == 0) --end;
    for (int64_t i = 0; i < end; ++i) out.push_back(words_.token(ids.integer(row * length + i)));
    return out;
  }

  program::TagPrediction options_;
  size_t output_, input_;
  data::FieldText words_, tags_;
  std::optional<data::TokenKind> kind_;
  int64_t length_ = 0;
};

class CtcDecoder final : public Decoder {
 public:
  CtcDecoder(const program::Model& model, const program::CtcPrediction& options)
      : options_(options),
        output_(output_of(model, options.scores)),
        text_(field_text(model, options.field)) {}
  std::vector<Decoded> decode(program::Model& model, const InputBatch& batch) override {
    const Array scores = model.run(batch.inputs)[output_].contiguous();
    check_output(options_.scores, scores, 3, "scores [batch, steps, classes]");
    std::vector<Decoded> out;
    for (int64_t row = 0; row < batch.rows; ++row) {
      std::vector<int64_t> ids;
      int64_t before = options_.blank;
      for (int64_t step = 0; step < scores.shape[1]; ++step) {
        const int64_t begin = (row * scores.shape[1] + step) * scores.shape[2];
        const int64_t best = best_class(scores, begin, 1, scores.shape[2]);
        if (best != before && best != options_.blank) ids.push_back(best);
        before = best;
      }
      out.push_back(text_of(text_.decode(ids)));
    }
    return out;
  }
  std::vector<std::string> columns() const override { return {"text"}; }
  std::string label_field() const override { return options_.field; }

 private:
  program::CtcPrediction options_;
  size_t output_;
  data::FieldText text_;
};

class SequenceDecoder final : public Decoder {
 public:
  SequenceDecoder(const program::Model& model, const program::SequencePrediction& options)
      : output_(output_of(model, options.scores)),
        target_(options.target),
        text_(field_text(model, options.target)) {
    search_.target = input_of(model, options.target);
    search_.scores = output_;
    search_.beams = options.beams;
    search_.max_length = options.max_length;
    if (search_.max_length == 0)
      search_.max_length = data::find_fitted(model.metadata().fitted, options.target)->max_length;
  }
  std::vector<Decoded> decode(program::Model& model, const InputBatch& batch) override {
    std::vector<Decoded> out;
    for (const SearchResult& found : beam_search(
             [&](const auto& inputs) -> const auto& { return model.run(inputs); }, batch.inputs,
             search_)) {
      const std::string text = text_.decode(found.tokens);
      Decoded& decoded = out.emplace_back(text_of(text));
      decoded.json = dumped({{"text", text}, {"score", found.score}});
      decoded.cells[0].push_back(format_double(found.score));
    }
    return out;
  }
  std::vector<std::string> columns() const override { return {"text", "score"}; }
  std::string label_field() const override { return target_; }

 private:
  size_t output_;
  std::string target_;
  data::FieldText text_;
  SearchOptions search_;
};

}  // namespace

std::unique_ptr<Decoder> decoder_for(const program::Model& model,
                                     const program::TagPrediction& options) {
  return std::make_unique<TagDecoder>(model, options);
}
std::unique_ptr<Decoder> decoder_for(const program::Model& model,
                                     const program::CtcPrediction& options) {
  return std::make_unique<CtcDecoder>(model, options);
}
std::unique_ptr<Decoder> decoder_for(const program::Model& model,
                                     const program::SequencePrediction& options) {
  return std::make_unique<SequenceDecoder>(model, options);
}

}  // namespace paddle::infer
