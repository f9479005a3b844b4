// Metrics of sequences of numbers, such as tokens: edits, and BLEU.

#include "metrics/classification.h"
#include "metrics/text_scores.h"

namespace paddle::metrics {
namespace {

class SequenceMetric : public Metric {
 public:
  explicit SequenceMetric(const MetricSpec& spec)
      : name_(spec.name), padding_(Settings(spec).integer("padding").value_or(0)) {}
  void update(const std::vector<Array>& operands, int64_t /*samples*/) override {
    if (operands[0].shape.size() != 2 || operands[1].shape.size() != 2 ||
        operands[0].shape[0] != operands[1].shape[0])
      fail(ErrorCode::kData, name_, ": expected two arrays [batch, length] of numbers, found ",
           str(operands[0].shape), " and ", str(operands[1].shape));
    for (int64_t row = 0; row < operands[0].shape[0]; ++row)
      add(sequence(operands[0], row), sequence(operands[1], row));
  }

 protected:
  virtual void add(const std::vector<double>& found, const std::vector<double>& label) = 0;

 private:
  std::vector<double> sequence(const Array& array, int64_t row) const {
    std::vector<double> out;
    for (int64_t i = 0; i < array.shape[1]; ++i) {
      const double number = array.number(row * array.shape[1] + i);
      if (number != static_cast<double>(padding_) && number >= 0) out.push_back(number);
    }
    return out;
  }
  std::string name_;
  int64_t padding_;
};

/// Edits that turn sequences of predicted numbers into those of the labels, over the length of the
/// labels: the error rate of words or characters, whatever the numbers stand for.
class EditRate final : public SequenceMetric {
 public:
  using SequenceMetric::SequenceMetric;
  double result() const override {
    const int64_t length = state_.count(0, kLength);
    return length > 0 ? static_cast<double>(state_.count(0, kEdits)) / static_cast<double>(length)
                      : kNaN;
  }

 private:
  enum Entry : size_t { kEdits, kLength };

  void add(const std::vector<double>& found, const std::vector<double>& label) override {
    state_.count(0, kEdits) += static_cast<int64_t>(distance(found, label));
    state_.count(0, kLength) += static_cast<int64_t>(label.size());
  }
  static size_t distance(const std::vector<double>& a, const std::vector<double>& b) {
    std::vector<size_t> row(b.size() + 1);
    for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
    for (size_t i = 1; i <= a.size(); ++i) {
      size_t diagonal = std::exchange(row[0], i);
      for (size_t j = 1; j <= b.size(); ++j) {
        const size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
        diagonal = row[j];
        row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
      }
    }
    return row[b.size()];
  }
};

/// BLEU of the whole data with one reference for each sequence, from counts of n-grams.
class Bleu final : public SequenceMetric {
 public:
  using SequenceMetric::SequenceMetric;
  double result() const override { return score_of(state_); }

 private:
  void add(const std::vector<double>& found, const std::vector<double>& label) override {
    std::vector<std::string> tokens, reference;
    for (const double number : found) tokens.push_back(format_double(number));
    for (const double number : label) reference.push_back(format_double(number));
    BleuCounts counts;
    counts.add(tokens, {reference});
    note_counts(counts, state_);
  }
};

/// The groups of counts in a state.
enum BleuGroup : size_t { kCorrect, kTotal, kLengths };

}  // namespace

void note_counts(const BleuCounts& counts, MetricState& state) {
  for (size_t n = 0; n < kBleuOrder; ++n) {
    state.count(kCorrect, n) += counts.correct[n];
    state.count(kTotal, n) += counts.total[n];
  }
  state.count(kLengths, 0) += counts.length;
  state.count(kLengths, 1) += counts.reference_length;
}

double score_of(const MetricState& state) {
  if (state.count(kLengths, 1) == 0) return kNaN;
  BleuCounts counts;
  for (size_t n = 0; n < kBleuOrder; ++n) {
    counts.correct[n] = state.count(kCorrect, n);
    counts.total[n] = state.count(kTotal, n);
  }
  counts.length = state.count(kLengths, 0);
  counts.reference_length = state.count(kLengths, 1);
  return counts.score().score;
}

std::unique_ptr<Metric> make_sequence(const MetricSpec& spec) {
  if (spec.name == "edit_rate") return std::make_unique<EditRate>(spec);
  if (spec.name == "bleu") return std::make_unique<Bleu>(spec);
  return nullptr;
}

}  // namespace paddle::metrics
