#include "onnx/token_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace paddle::onnx {
namespace {

constexpr float kNever = std::numeric_limits<float>::lowest();

std::span<float> row_of(std::span<float> scores, size_t row, int64_t vocabulary) {
  const auto width = static_cast<size_t>(vocabulary);
  return scores.subspan(row * width, width);
}

bool in(int64_t token, std::span<const float> row) {
  return token >= 0 && token < static_cast<int64_t>(row.size());
}

void forbid(std::span<float> row, int64_t token) {
  if (in(token, row)) row[static_cast<size_t>(token)] = kNever;
}

/// Tokens from `begin` to before `end`.
void forbid(std::span<float> row, int64_t begin, int64_t end) {
  const auto size = static_cast<int64_t>(row.size());
  for (int64_t t = std::clamp<int64_t>(begin, 0, size); t < std::min(end, size); ++t)
    row[static_cast<size_t>(t)] = kNever;
}

void forbid_where_zero(std::span<float> row, const int32_t* mask) {
  for (size_t t = 0; t < row.size(); ++t)
    if (mask[t] == 0) row[t] = kNever;
}

/// Tokens of the sequence become less probable.
void penalize_repeated(std::span<float> row, Tokens tokens, float penalty) {
  std::sort(tokens.begin(), tokens.end());
  tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
  for (const int32_t t : tokens) {
    if (!in(t, row)) continue;
    float& score = row[static_cast<size_t>(t)];
    score = score < 0 ? score * penalty : score / penalty;
  }
}

/// Tokens before `first` where all others together are more probable than each of these.
void forbid_text(std::span<float> row, int64_t first) {
  const auto at = row.begin() + std::clamp<int64_t>(first, 0, static_cast<int64_t>(row.size()));
  if (at == row.begin() || at == row.end()) return;
  const float most = *std::max_element(at, row.end());
  double sum = 0;
  for (auto x = at; x != row.end(); ++x) sum += std::exp(static_cast<double>(*x - most));
  if (most + std::log(sum) > *std::max_element(row.begin(), at)) forbid(row, 0, first);
}

/// Times come in pairs and do not go back (Radford et al., "Robust Speech Recognition via
/// Large-Scale Weak Supervision", 2022).
void apply_timestamps(std::span<float> row, const Tokens& tokens, const TimestampTokens& special,
                      int32_t end) {
  constexpr int64_t kLatestFirst = 50;  // of the first time, in steps of 20 ms
  const auto size = static_cast<int64_t>(row.size());
  const auto is_time = [&](int32_t t) { return t >= special.first; };
  const auto first_time = std::find_if(tokens.begin(), tokens.end(), is_time);
  const bool none_before = first_time == tokens.end() || first_time + 1 == tokens.end();
  forbid(row, special.none);
  forbid(row, special.start_of_lm);
  if (!none_before)
    for (const int32_t t : {special.start, special.translate, special.transcribe}) forbid(row, t);
  const bool last = !tokens.empty() && is_time(tokens.back());
  const bool before_last = none_before || is_time(tokens[tokens.size() - 2]);
  if (last && before_last) forbid(row, special.first, size);
  if (last && !before_last) forbid(row, 0, end);
  const auto latest = std::find_if(tokens.rbegin(), tokens.rend(), is_time);
  if (latest != tokens.rend()) forbid(row, special.first, *latest + (last && !before_last ? 0 : 1));
  if (none_before) forbid(row, special.first + kLatestFirst + 1, size);
  forbid_text(row, special.first);
}

/// A number that can be ordered: NaN is less than all others.
float rank(float score) {
  return std::isnan(score) ? -std::numeric_limits<float>::infinity() : score;
}

}  // namespace

void apply_rules(const SearchOptions& options, const std::vector<Tokens>& sequences, int64_t step,
                 std::span<float> scores) {
  for (size_t r = 0; r < sequences.size(); ++r) {
    const std::span<float> row = row_of(scores, r, options.vocabulary);
    const size_t sample = r / static_cast<size_t>(options.beams) * row.size();
    if (options.repetition_penalty != 1)
      penalize_repeated(row, sequences[r], options.repetition_penalty);
    if (options.unrepeated > 0)
      for_each_repeating(std::span(sequences[r]), options.unrepeated,
                         [&](int32_t token) { forbid(row, token); });
    if (!options.allowed.empty()) forbid_where_zero(row, options.allowed.data());
    if (!options.allowed_first.empty() && step == 0)
      forbid_where_zero(row, options.allowed_first.data() + sample);
    if (static_cast<int64_t>(sequences[r].size()) < options.min_length) forbid(row, options.end);
    if (options.temperature > 0 && options.temperature != 1)
      for (float& score : row) score /= options.temperature;
    if (!options.present.empty())
      for (size_t t = 0; t < row.size(); ++t)
        row[t] -= static_cast<float>(options.present[sample + t]) * options.presence_penalty;
    if (options.timestamps) apply_timestamps(row, sequences[r], *options.timestamps, options.end);
  }
}

Tokens best_tokens(std::span<const float> scores, int64_t vocabulary) {
  Tokens out;
  for (size_t at = 0; at < scores.size(); at += static_cast<size_t>(vocabulary)) {
    const auto row = scores.subspan(at, static_cast<size_t>(vocabulary));
    const auto best = std::max_element(row.begin(), row.end(),
                                       [](float a, float b) { return rank(a) < rank(b); });
    out.push_back(static_cast<int32_t>(best - row.begin()));
  }
  return out;
}

void Sampler::filter(std::span<float> row) const {
  std::vector<size_t> order(row.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return options_.keeps_first ? rank(row[a]) > rank(row[b]) : rank(row[a]) < rank(row[b]);
  });
  const float most = row[options_.keeps_first ? order.front() : order.back()];
  double sum = 0;
  for (const float x : row) sum += std::exp(static_cast<double>(x - most));
  std::vector<float> shares;
  for (const size_t t : order)
    shares.push_back(static_cast<float>(std::exp(static_cast<double>(row[t] - most)) / sum));
  float before = 0;
  const size_t kept = std::min(row.size(), static_cast<size_t>(options_.min_kept));
  for (size_t i = 0; i < row.size(); ++i) {
    if (options_.keeps_first) {
      if (i > 0 && before > options_.top_p) row[order[i]] = options_.filter_value;
      before += shares[i];
    } else {
      before += shares[i];
      const bool is_kept = i > 0 && i >= row.size() - kept;
      if (!is_kept && before <= 1 - options_.top_p) row[order[i]] = options_.filter_value;
    }
  }
}

Tokens Sampler::draw(std::span<float> scores, int64_t vocabulary) {
  Tokens out;
  std::uniform_real_distribution<double> uniform;
  for (size_t r = 0; r * static_cast<size_t>(vocabulary) < scores.size(); ++r) {
    const std::span<float> row = row_of(scores, r, vocabulary);
    filter(row);
    const float most = rank(*std::max_element(row.begin(), row.end(),
                                              [](float a, float b) { return rank(a) < rank(b); }));
    std::vector<double> sums;
    double sum = 0;
    for (const float x : row) {
      if (std::isfinite(x)) sum += std::exp(static_cast<double>(x) - static_cast<double>(most));
      sums.push_back(sum);
    }
    const auto found = std::upper_bound(sums.begin(), sums.end(), uniform(generator_) * sum);
    out.push_back(static_cast<int32_t>(std::min<int64_t>(found - sums.begin(), vocabulary - 1)));
  }
  return out;
}

Beams::Beams(const SearchOptions& options, std::vector<Tokens> start)
    : options_(options),
      sequences_(std::move(start)),
      sums_(sequences_.size(), 0.0F),
      origins_(sequences_.size()),
      samples_(static_cast<size_t>(options.batch)) {
  // The rows of a sample are equal at first: only one of them counts.
  for (size_t r = 0; r < sums_.size(); ++r)
    if (r % static_cast<size_t>(options.beams) != 0) sums_[r] = -1e9F;
  std::iota(origins_.begin(), origins_.end(), int64_t{0});
}

void Beams::add(Sample& sample, const Tokens& tokens, float sum) const {
  const float score = sum / std::pow(static_cast<float>(tokens.size()), options_.length_penalty);
  auto& best = sample.finished;
  const bool full = static_cast<int64_t>(best.size()) == options_.beams;
  if (full && !(score > best.back().score)) return;
  if (full) best.pop_back();
  const auto at =
      std::find_if(best.begin(), best.end(), [&](const Hypothesis& h) { return h.score < score; });
  best.insert(at, {score, tokens});
}

bool Beams::is_done(const Sample& sample, float best, int64_t length) const {
  if (static_cast<int64_t>(sample.finished.size()) < options_.beams) return false;
  if (options_.early_stopping) return true;
  return sample.finished.back().score >=
         best / std::pow(static_cast<float>(length), options_.length_penalty);
}

void Beams::advance(std::span<float> scores) {
  const auto beams = static_cast<size_t>(options_.beams);
  const auto words = static_cast<size_t>(options_.vocabulary);
  for (size_t i = 0; i < scores.size(); ++i) scores[i] += sums_[i / words];
  const int64_t before = length();
  std::vector<Tokens> next(sequences_.size());
  std::vector<float> sums(sums_.size());
  for (size_t s = 0; s < samples_.size(); ++s) {
    Sample& sample = samples_[s];
    size_t row = s * beams;
    const size_t last = row + beams;
    if (!sample.done) {
      const std::span<const float> own = scores.subspan(row * words, beams * words);
      std::vector<size_t> order(own.size());
      std::iota(order.begin(), order.end(), size_t{0});
      const size_t candidates = std::min(2 * beams, order.size());
      std::partial_sort(order.begin(), order.begin() + static_cast<int64_t>(candidates),
                        order.end(), [&](size_t a, size_t b) {
                          const float x = rank(own[a]), y = rank(own[b]);
                          return x != y ? x > y : a < b;
                        });
      for (size_t i = 0; i < candidates && row < last; ++i) {
        const size_t from = s * beams + order[i] / words;
        const auto token = static_cast<int32_t>(order[i] % words);
        const float sum = own[order[i]];
        if (token == options_.end) {
          if (i < beams) add(sample, sequences_[from], sum);
          continue;
        }
        next[row] = sequences_[from];
        next[row].push_back(token);
        sums[row] = sum;
        origins_[row++] = static_cast<int64_t>(from);
      }
      sample.done = is_done(sample, own[order[0]], before);
    }
    for (; row < last; ++row) {  // of a sample that is done
      next[row] = sequences_[row];
      next[row].push_back(options_.pad);
      origins_[row] = static_cast<int64_t>(row);
    }
  }
  sequences_ = std::move(next);
  sums_ = std::move(sums);
}

bool Beams::done() const {
  return std::all_of(samples_.begin(), samples_.end(), [](const Sample& s) { return s.done; });
}

Beams::Results Beams::results() {
  Results out;
  const auto beams = static_cast<size_t>(options_.beams);
  out.sequences.assign(
      static_cast<size_t>(options_.batch * options_.returned * options_.max_length), options_.pad);
  auto at = out.sequences.begin();
  for (size_t s = 0; s < samples_.size(); ++s) {
    for (size_t r = s * beams; r < (s + 1) * beams && !samples_[s].done; ++r)
      add(samples_[s], sequences_[r], sums_[r]);
    for (size_t i = 0; i < static_cast<size_t>(options_.returned); ++i) {
      const Hypothesis& h = samples_[s].finished[i];
      std::copy(h.tokens.begin(), h.tokens.end(), at);
      out.scores.push_back(h.score);
      at += options_.max_length;
    }
  }
  return out;
}

}  // namespace paddle::onnx
