#pragma once
// Speculative decoding by n-grams: drafts the tokens that followed the same few tokens earlier in
// the text, so that one step can check several of them. Which tokens are chosen does not depend on
// the drafts; how many are proposed follows from how often drafts are accepted and from what steps
// of different sizes have taken, so that speculation costs no time where it does not help.

#include <array>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "text/tokenizer.h"

namespace paddle::llm {

/// Drafts for one text.
class Speculation {
 public:
  static constexpr int64_t kMaxDrafts = 7;

  /// Drafts for the tokens after this text, which is that of the last call with more at its end.
  /// At most `most`; none where nothing fits, or for a while after `pause`. Valid as long as the
  /// text is.
  std::span<const tokenizers::TokenId> candidates(std::span<const tokenizers::TokenId> text,
                                                  int64_t most);
  /// The probability that a draft is accepted if those before it are.
  double acceptance() const { return acceptance_; }
  /// The candidates were not worth a step; they are tried again later, since texts change.
  void pause();
  /// Reports how many of the drafts were accepted.
  void report(int64_t drafts, int64_t accepted);

 private:
  static constexpr size_t kOrder = 3;  ///< tokens that a draft follows from
  static uint64_t key_of(std::span<const tokenizers::TokenId> tokens);

  std::unordered_map<uint64_t, size_t> after_;  ///< by the last tokens: where the text went on
  size_t noted_ = 0;                            ///< tokens of the text that are in `after_`
  double acceptance_ = 0.5;                     ///< moving share of accepted drafts
  int64_t pause_ = 0;                           ///< calls without drafts until the next trial
  int64_t next_pause_ = 32;
};

/// Times of steps that generate, by their rows, which a runner pads to powers of two.
class StepTimes {
 public:
  /// The first step of a size makes its plan and is not counted.
  void report(int64_t rows, double seconds);
  /// Of a step with this many rows; 0: not measured.
  double seconds(int64_t rows) const;

 private:
  struct Time {
    bool has_plan = false;
    double seconds = 0;  ///< moving average
  };
  static size_t index_of(int64_t rows);
  std::array<Time, 16> times_;
};

/// A text and its candidates; null for a text without drafts.
struct DraftOffer {
  Speculation* text = nullptr;
  std::span<const tokenizers::TokenId> candidates;
};

/// How many candidates of each text one step checks, so that it gives the most tokens per second; a
/// size that was never measured is tried. Each text has a row of its own besides; the rows are
/// `most_rows` at most. Pauses texts whose candidates are not worth it.
std::vector<int64_t> choose_drafts(const StepTimes& times, std::span<const DraftOffer> offers,
                                   int64_t most_rows);

}  // namespace paddle::llm
