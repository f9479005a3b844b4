#include "decoding/beam_search.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "decoding/sampling.h"

namespace paddle::decoding {

BeamSearch::BeamSearch(const SearchOptions& options, std::vector<Tokens> start)
    : options_(options),
      sequences_(std::move(start)),
      log_probabilities_(sequences_.size(), 0.0F),
      parent_rows_(sequences_.size()),
      samples_(static_cast<size_t>(options.batch)) {
  // All beams of a sample start equal: without this, each candidate would appear num_beams times.
  for (size_t r = 0; r < log_probabilities_.size(); ++r)
    if (r % static_cast<size_t>(options.num_beams) != 0) log_probabilities_[r] = -1e9F;
  std::iota(parent_rows_.begin(), parent_rows_.end(), int64_t{0});
}

void BeamSearch::add_hypothesis(Sample& sample, const Tokens& tokens, float log_probability) const {
  const float score =
      log_probability / std::pow(static_cast<float>(tokens.size()), options_.length_penalty);
  auto& best = sample.finished;
  const bool full = static_cast<int64_t>(best.size()) == options_.num_beams;
  if (full && !(score > best.back().score)) return;
  if (full) best.pop_back();
  const auto at =
      std::find_if(best.begin(), best.end(), [&](const Hypothesis& h) { return h.score < score; });
  best.insert(at, {score, tokens});
}

bool BeamSearch::is_done(const Sample& sample, float best, int64_t length) const {
  if (static_cast<int64_t>(sample.finished.size()) < options_.num_beams) return false;
  if (options_.early_stopping) return true;
  return sample.finished.back().score >=
         best / std::pow(static_cast<float>(length), options_.length_penalty);
}

void BeamSearch::advance(std::span<float> scores) {
  const auto beams = static_cast<size_t>(options_.num_beams);
  const auto vocabulary = static_cast<size_t>(options_.vocabulary_size);
  for (size_t i = 0; i < scores.size(); ++i) scores[i] += log_probabilities_[i / vocabulary];
  const int64_t before = length();
  std::vector<Tokens> next(sequences_.size());
  std::vector<float> sums(log_probabilities_.size());
  for (size_t s = 0; s < samples_.size(); ++s) {
    Sample& sample = samples_[s];
    size_t row = s * beams;
    const size_t last = row + beams;
    if (!sample.done) {
      const std::span<const float> sample_scores =
          scores.subspan(row * vocabulary, beams * vocabulary);
      std::vector<size_t> order(sample_scores.size());
      std::iota(order.begin(), order.end(), size_t{0});
      const size_t candidates = std::min(2 * beams, order.size());
      std::partial_sort(order.begin(), order.begin() + static_cast<int64_t>(candidates),
                        order.end(), [&](size_t a, size_t b) {
                          const float x = sort_key(sample_scores[a]),
                                      y = sort_key(sample_scores[b]);
                          return x != y ? x > y : a < b;
                        });
      for (size_t i = 0; i < candidates && row < last; ++i) {
        const size_t parent = s * beams + order[i] / vocabulary;
        const auto token = static_cast<int32_t>(order[i] % vocabulary);
        const float sum = sample_scores[order[i]];
        if (token == options_.eos_token) {
          if (i < beams) add_hypothesis(sample, sequences_[parent], sum);
          continue;
        }
        next[row] = sequences_[parent];
        next[row].push_back(token);
        sums[row] = sum;
        parent_rows_[row++] = static_cast<int64_t>(parent);
      }
      sample.done = is_done(sample, sample_scores[order[0]], before);
    }
    for (; row < last; ++row) {  // the sample is done
      next[row] = sequences_[row];
      next[row].push_back(options_.pad_token);
      parent_rows_[row] = static_cast<int64_t>(row);
    }
  }
  sequences_ = std::move(next);
  log_probabilities_ = std::move(sums);
}

bool BeamSearch::done() const {
  return std::all_of(samples_.begin(), samples_.end(), [](const Sample& s) { return s.done; });
}

BeamSearch::Results BeamSearch::results() {
  Results out;
  const auto beams = static_cast<size_t>(options_.num_beams);
  out.sequences.assign(
      static_cast<size_t>(options_.batch * options_.num_return_sequences * options_.max_length),
      options_.pad_token);
  auto at = out.sequences.begin();
  for (size_t s = 0; s < samples_.size(); ++s) {
    for (size_t r = s * beams; r < (s + 1) * beams && !samples_[s].done; ++r)
      add_hypothesis(samples_[s], sequences_[r], log_probabilities_[r]);
    for (size_t i = 0; i < static_cast<size_t>(options_.num_return_sequences); ++i) {
      const Hypothesis& h = samples_[s].finished[i];
      std::copy(h.tokens.begin(), h.tokens.end(), at);
      out.scores.push_back(h.score);
      at += options_.max_length;
    }
  }
  return out;
}

}  // namespace paddle::decoding
