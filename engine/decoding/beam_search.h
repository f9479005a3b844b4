#pragma once
// Beam search over a batch of samples (Wu et al., "Google's Neural Machine Translation System",
// 2016), with the length penalty length^p.

#include <span>
#include <vector>

#include "decoding/search_options.h"

namespace paddle::decoding {

class BeamSearch {
 public:
  /// `start`: batch * num_beams sequences of equal length. Keeps a reference to `options`.
  BeamSearch(const SearchOptions& options, std::vector<Tokens> start);

  const std::vector<Tokens>& sequences() const { return sequences_; }
  int64_t length() const { return static_cast<int64_t>(sequences_[0].size()); }
  /// Adds the accumulated score of each row to the log probabilities `scores` [rows, vocabulary]
  /// and extends the best beams by one token.
  void advance(std::span<float> scores);
  /// For each row, the row that it extended in the last `advance`. Caches must be reordered by it.
  const std::vector<int64_t>& parent_rows() const { return parent_rows_; }
  bool done() const;

  struct Results {
    Tokens sequences;           ///< [batch, num_return_sequences, max_length], padded
    std::vector<float> scores;  ///< [batch, num_return_sequences]
  };
  Results results();

 private:
  struct Hypothesis {
    float score;
    Tokens tokens;
  };
  struct Sample {
    std::vector<Hypothesis> finished;  ///< best first, at most `num_beams`
    bool done = false;
  };
  void add_hypothesis(Sample& sample, const Tokens& tokens, float log_probability) const;
  bool is_done(const Sample& sample, float best, int64_t length) const;

  const SearchOptions& options_;
  std::vector<Tokens> sequences_;
  std::vector<float> log_probabilities_;  ///< accumulated, by row
  std::vector<int64_t> parent_rows_;
  std::vector<Sample> samples_;
};

}  // namespace paddle::decoding
