#pragma once
// Searches for the tokens of sequences, one after the other: the rules that scores go through,
// beams, and chance. What gives the scores stands in microsoft_search.cc.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <vector>

namespace paddle::onnx {

using Tokens = std::vector<int32_t>;

/// The tokens by which a transcription tells times.
struct TimestampTokens {
  int32_t start, translate, transcribe, start_of_lm, none, first;  ///< `first` is the time 0
};

struct SearchOptions {
  int64_t batch = 0;
  int64_t beams = 1;     ///< rows of each sample
  int64_t returned = 1;  ///< the best of them, at most `beams`
  int64_t min_length = 0, max_length = 0;
  int64_t vocabulary = 0;
  int32_t end = -1, pad = -1;
  float length_penalty = 1, repetition_penalty = 1, presence_penalty = 0, temperature = 1;
  int64_t unrepeated = 0;  ///< runs of so many tokens stand in a sequence once; 0 for no such rule
  bool early_stopping = false;
  Tokens allowed;        ///< [vocabulary]: 0 for tokens that are never taken; may be empty
  Tokens allowed_first;  ///< [batch, vocabulary]: 0 for tokens that are not the first one taken
  Tokens present;        ///< [batch, vocabulary]: what `presence_penalty` is multiplied by
  std::optional<TimestampTokens> timestamps;

  int64_t rows() const { return batch * beams; }
};

/// Changes scores [rows, vocabulary] for what follows these sequences, which are equally long;
/// steps count from 0.
void apply_rules(const SearchOptions& options, const std::vector<Tokens>& sequences, int64_t step,
                 std::span<float> scores);

/// Calls `found(token)` for what would make a run of `n` tokens stand in the sequence a second
/// time.
template <class Token, class Found>
void for_each_repeating(std::span<const Token> sequence, int64_t n, Found&& found) {
  const auto size = static_cast<int64_t>(sequence.size());
  if (n > size) return;
  const auto last = sequence.end() - (n - 1);
  for (auto at = sequence.begin(); sequence.end() - at >= n; ++at)
    if (std::equal(last, sequence.end(), at)) found(at[n - 1]);
}

/// For each row the place of the greatest score, the first one of equal ones.
Tokens best_tokens(std::span<const float> scores, int64_t vocabulary);

/// Chance: tokens by their probabilities, without the least probable ones.
class Sampler {
 public:
  struct Options {
    float top_p = 0, filter_value = -1e20F;
    int64_t min_kept = 0;
    bool keeps_first = false;  ///< those are kept that lie behind no more than top_p
    uint32_t seed = 0;
  };
  explicit Sampler(const Options& options) : options_(options), generator_(options.seed) {}
  /// One token for each row; `scores` of those that are left out become the filter value.
  Tokens draw(std::span<float> scores, int64_t vocabulary);

 private:
  void filter(std::span<float> row) const;

  Options options_;
  std::default_random_engine generator_;
};

/// The best sequences of each sample, some at a time (beam search as in "Google's neural machine
/// translation system", Wu et al. 2016, with the length penalty length^p).
class Beams {
 public:
  /// `start`: batch * beams equally long sequences.
  Beams(const SearchOptions& options, std::vector<Tokens> start);

  const std::vector<Tokens>& sequences() const { return sequences_; }
  int64_t length() const { return static_cast<int64_t>(sequences_[0].size()); }
  /// Adds the score of each row so far to `scores` [rows, vocabulary], and takes the best.
  void advance(std::span<float> scores);
  /// The row that each row goes on from since the last `advance`.
  const std::vector<int64_t>& origins() const { return origins_; }
  bool done() const;

  struct Results {
    Tokens sequences;           ///< [batch, returned, max_length], filled up with `pad`
    std::vector<float> scores;  ///< [batch, returned]
  };
  Results results();

 private:
  struct Hypothesis {
    float score;
    Tokens tokens;
  };
  /// Finished sequences of one sample, the best first, at most `beams`.
  struct Sample {
    std::vector<Hypothesis> finished;
    bool done = false;
  };
  void add(Sample& sample, const Tokens& tokens, float sum) const;
  bool is_done(const Sample& sample, float best, int64_t length) const;

  const SearchOptions& options_;
  std::vector<Tokens> sequences_;
  std::vector<float> sums_;  ///< of the logarithms of probabilities, by row
  std::vector<int64_t> origins_;
  std::vector<Sample> samples_;
};

}  // namespace paddle::onnx
