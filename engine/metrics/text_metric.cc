// Metrics of texts: error rates of words and characters, and BLEU.

#include "metrics/classification.h"
#include "metrics/text_scores.h"

namespace paddle::metrics {
namespace {

/// Edits that turn texts into their references, over the length of the references.
class TextErrorRate final : public TextMetric {
 public:
  using Errors = ErrorRate (*)(const std::vector<std::string>&, const std::vector<std::string>&);
  explicit TextErrorRate(Errors errors) : errors_(errors) {}
  void add(const std::string& text, const std::string& reference) override {
    const ErrorRate found = errors_({text}, {reference});
    state_.count(0, kEdits) += found.edits;
    state_.count(0, kLength) += found.length;
  }
  double result() const override {
    return ErrorRate{state_.count(0, kEdits), state_.count(0, kLength)}.rate();
  }

 private:
  enum Entry : size_t { kEdits, kLength };
  Errors errors_;
};

/// BLEU of the whole data with one reference for each text.
class TextBleu final : public TextMetric {
 public:
  void add(const std::string& text, const std::string& reference) override {
    BleuCounts counts;
    counts.add(tokens_13a(text), {tokens_13a(reference)});
    note_counts(counts, state_);
  }
  double result() const override { return score_of(state_); }
};

}  // namespace

void TextMetric::update(const std::vector<Array>& /*operands*/, int64_t /*samples*/) {
  fail(ErrorCode::kInternal, "a text metric expects strings, found tokens");
}

std::unique_ptr<Metric> make_text(const MetricSpec& spec) {
  if (spec.name == "wer") return std::make_unique<TextErrorRate>(&word_errors);
  if (spec.name == "cer") return std::make_unique<TextErrorRate>(&character_errors);
  if (spec.name == "sacrebleu") return std::make_unique<TextBleu>();
  return nullptr;
}

}  // namespace paddle::metrics
