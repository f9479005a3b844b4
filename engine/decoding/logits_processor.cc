#include "decoding/logits_processor.h"

#include <cmath>
#include <limits>

namespace paddle::decoding {
namespace {

constexpr float kForbidden = std::numeric_limits<float>::lowest();

std::span<float> row_of(std::span<float> scores, size_t row, int64_t vocabulary) {
  const auto width = static_cast<size_t>(vocabulary);
  return scores.subspan(row * width, width);
}

bool is_in(int64_t token, std::span<const float> row) {
  return token >= 0 && token < static_cast<int64_t>(row.size());
}

void forbid(std::span<float> row, int64_t token) {
  if (is_in(token, row)) row[static_cast<size_t>(token)] = kForbidden;
}

/// Forbids the tokens [begin, end).
void forbid(std::span<float> row, int64_t begin, int64_t end) {
  const auto size = static_cast<int64_t>(row.size());
  for (int64_t t = std::clamp<int64_t>(begin, 0, size); t < std::min(end, size); ++t)
    row[static_cast<size_t>(t)] = kForbidden;
}

void forbid_where_zero(std::span<float> row, const int32_t* mask) {
  for (size_t t = 0; t < row.size(); ++t)
    if (mask[t] == 0) row[t] = kForbidden;
}

/// Keskar et al., "CTRL: A Conditional Transformer Language Model for Controllable Generation",
/// 2019, section 4.1.
void penalize_repeated(std::span<float> row, Tokens tokens, float penalty) {
  std::sort(tokens.begin(), tokens.end());
  tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
  for (const int32_t t : tokens) {
    if (!is_in(t, row)) continue;
    float& score = row[static_cast<size_t>(t)];
    score = score < 0 ? score * penalty : score / penalty;
  }
}

/// Forbids text (tokens before `first_timestamp`) if a timestamp is more probable, in sum, than the
/// most probable text token.
void forbid_text(std::span<float> row, int64_t first_timestamp) {
  const auto at =
      row.begin() + std::clamp<int64_t>(first_timestamp, 0, static_cast<int64_t>(row.size()));
  if (at == row.begin() || at == row.end()) return;
  const float most = *std::max_element(at, row.end());
  double sum = 0;
  for (auto x = at; x != row.end(); ++x) sum += std::exp(static_cast<double>(*x - most));
  if (most + std::log(sum) > *std::max_element(row.begin(), at)) forbid(row, 0, first_timestamp);
}

/// Timestamps come in pairs and never decrease (Radford et al., "Robust Speech Recognition via
/// Large-Scale Weak Supervision", 2022).
void apply_timestamps(std::span<float> row, const Tokens& tokens, const TimestampTokens& special,
                      int32_t eos_token) {
  constexpr int64_t kMaxInitialTimestamp = 50;  // 1 s in steps of 20 ms
  const auto size = static_cast<int64_t>(row.size());
  const auto is_timestamp = [&](int32_t t) { return t >= special.first_timestamp; };
  const auto first_timestamp = std::find_if(tokens.begin(), tokens.end(), is_timestamp);
  const bool at_start = first_timestamp == tokens.end() || first_timestamp + 1 == tokens.end();
  forbid(row, special.no_timestamps);
  forbid(row, special.start_of_lm);
  if (!at_start)
    for (const int32_t t : {special.start_of_transcript, special.translate, special.transcribe})
      forbid(row, t);
  const bool last_is_timestamp = !tokens.empty() && is_timestamp(tokens.back());
  const bool previous_is_timestamp = at_start || is_timestamp(tokens[tokens.size() - 2]);
  if (last_is_timestamp && previous_is_timestamp) forbid(row, special.first_timestamp, size);
  if (last_is_timestamp && !previous_is_timestamp) forbid(row, 0, eos_token);
  const auto latest = std::find_if(tokens.rbegin(), tokens.rend(), is_timestamp);
  if (latest != tokens.rend())
    forbid(row, special.first_timestamp,
           *latest + (last_is_timestamp && !previous_is_timestamp ? 0 : 1));
  if (at_start) forbid(row, special.first_timestamp + kMaxInitialTimestamp + 1, size);
  forbid_text(row, special.first_timestamp);
}

}  // namespace

void process_logits(const SearchOptions& options, const std::vector<Tokens>& sequences,
                    int64_t step, std::span<float> scores) {
  for (size_t r = 0; r < sequences.size(); ++r) {
    const std::span<float> row = row_of(scores, r, options.vocabulary_size);
    const size_t sample = r / static_cast<size_t>(options.num_beams) * row.size();
    if (options.repetition_penalty != 1)
      penalize_repeated(row, sequences[r], options.repetition_penalty);
    if (options.no_repeat_ngram_size > 0)
      for_each_repeated_ngram_token(std::span(sequences[r]), options.no_repeat_ngram_size,
                                    [&](int32_t token) { forbid(row, token); });
    if (!options.vocabulary_mask.empty()) forbid_where_zero(row, options.vocabulary_mask.data());
    if (!options.prefix_vocabulary_mask.empty() && step == 0)
      forbid_where_zero(row, options.prefix_vocabulary_mask.data() + sample);
    if (static_cast<int64_t>(sequences[r].size()) < options.min_length)
      forbid(row, options.eos_token);
    if (options.temperature > 0 && options.temperature != 1)
      for (float& score : row) score /= options.temperature;
    if (!options.presence_mask.empty())
      for (size_t t = 0; t < row.size(); ++t)
        row[t] -= static_cast<float>(options.presence_mask[sample + t]) * options.presence_penalty;
    if (options.timestamps)
      apply_timestamps(row, sequences[r], *options.timestamps, options.eos_token);
  }
}

}  // namespace paddle::decoding
