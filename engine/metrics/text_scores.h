#pragma once
// Scores of texts against references: BLEU as sacreBLEU computes it, and error rates of words and
// characters. Texts are UTF-8 and detokenized.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "metrics/metric_state.h"

namespace paddle::metrics {

struct BleuScore {
  double score = 0;                ///< 0 … 100
  std::vector<double> precisions;  ///< of n-grams of 1 to 4 tokens, 0 … 100
  double brevity_penalty = 1;
  int64_t length = 0, reference_length = 0;  ///< in tokens
};

inline constexpr size_t kBleuOrder = 4;
/// Counts that add up to BLEU over sentences of tokens.
struct BleuCounts {
  std::array<int64_t, kBleuOrder> correct = {}, total = {};  ///< n-grams of 1 to 4 tokens
  int64_t length = 0, reference_length = 0;                  ///< in tokens

  void add(const std::vector<std::string>& tokens,
           const std::vector<std::vector<std::string>>& references);
  BleuScore score() const;  ///< with exponential smoothing
};

/// Counts of BLEU in the state of a metric: adds some, and the score of all of them (NaN without
/// tokens in the references).
void note_counts(const BleuCounts& counts, MetricState& state);
double score_of(const MetricState& state);

/// BLEU of a whole corpus (Papineni et al., 2002) with mteval's tokens (13a) and exponential
/// smoothing: sacreBLEU's defaults. `references` holds one list for each set of references, as
/// long as `texts`. kData for lists of other lengths.
BleuScore bleu(const std::vector<std::string>& texts,
               const std::vector<std::vector<std::string>>& references);
/// The settings of `bleu` as sacreBLEU writes them.
std::string bleu_signature(size_t references);
/// Tokens of mteval-v13a.
std::vector<std::string> tokens_13a(std::string_view text);

struct ErrorRate {
  int64_t edits = 0;    ///< insertions, deletions and substitutions
  int64_t length = 0;   ///< of the references
  double rate() const;  ///< NaN without references
};
/// Edits of words (what blanks separate), or of characters, over the length of the references.
/// kData for lists of different lengths.
ErrorRate word_errors(const std::vector<std::string>& texts,
                      const std::vector<std::string>& references);
ErrorRate character_errors(const std::vector<std::string>& texts,
                           const std::vector<std::string>& references);

/// Insertions, deletions and substitutions that turn `a` into `b`.
int64_t edit_distance(const std::vector<std::string_view>& a,
                      const std::vector<std::string_view>& b);

}  // namespace paddle::metrics
