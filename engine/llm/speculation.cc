#include "llm/speculation.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

namespace paddle::llm {
namespace {

/// Weight of the newest measurement in moving averages.
constexpr double kNewest = 0.15;
/// Calls until drafts are tried again after they have not paid; twice as many each further time.
constexpr int64_t kFirstPause = 32, kMaxPause = 512;
/// A draft that is right less often is not worth its part of the attention.
constexpr double kMinChance = 0.05;
/// A size of steps that was never measured needs a plan of its own: it is tried where it promises
/// this multiple of the tokens of a step without drafts.
constexpr double kMinTrialGain = 1.2;
/// Below this, a text whose drafts are not chosen is paused even if those of others are.
constexpr double kLowChance = 0.3;

/// Adds the most probable drafts to `counts` until there are `rows` rows; returns how many tokens
/// the step gives on average.
double fill(std::span<const DraftOffer> offers, int64_t rows, std::vector<int64_t>& counts) {
  std::vector<double> chance(offers.size());  // that the next draft of each text is right
  for (size_t i = 0; i < offers.size(); ++i)
    chance[i] = offers[i].text ? offers[i].text->acceptance() : 0;
  auto tokens = static_cast<double>(offers.size());
  for (auto used = static_cast<int64_t>(offers.size()); used < rows; ++used) {
    size_t best = offers.size();
    for (size_t i = 0; i < offers.size(); ++i)
      if (counts[i] < std::ssize(offers[i].candidates) && chance[i] >= kMinChance &&
          (best == offers.size() || chance[i] > chance[best]))
        best = i;
    if (best == offers.size()) break;
    tokens += chance[best];
    chance[best] *= offers[best].text->acceptance();
    ++counts[best];
  }
  return tokens;
}

}  // namespace

// --- drafts ---

uint64_t Speculation::key_of(std::span<const tokenizers::TokenId> tokens) {
  uint64_t key = 0xcbf29ce484222325u;
  for (const tokenizers::TokenId token : tokens)
    key = (key ^ static_cast<uint64_t>(token)) * 0x100000001b3u;
  return key;
}

std::span<const tokenizers::TokenId> Speculation::candidates(
    std::span<const tokenizers::TokenId> text, int64_t most) {
  if (text.size() < noted_) {
    after_.clear();
    noted_ = 0;
  }
  // The tokens at the very end have nothing after them yet.
  for (size_t i = std::max(noted_, kOrder); i < text.size(); ++i)
    after_[key_of(text.subspan(i - kOrder, kOrder))] = i;
  noted_ = text.size();
  if (text.size() < kOrder) return {};
  if (pause_ > 0) {
    --pause_;
    return {};
  }
  const auto found = after_.find(key_of(text.last(kOrder)));
  if (found == after_.end()) return {};
  const auto after = text.subspan(found->second);
  most = std::clamp<int64_t>(most, 0, kMaxDrafts);
  return after.first(std::min(after.size(), static_cast<size_t>(most)));
}

void Speculation::pause() {
  pause_ = next_pause_;
  next_pause_ = std::min(2 * next_pause_, kMaxPause);
  acceptance_ = std::max(acceptance_, 0.5);
}

void Speculation::report(int64_t drafts, int64_t accepted) {
  for (int64_t i = 0; i < std::min(drafts, accepted + 1); ++i)
    acceptance_ += kNewest * ((i < accepted ? 1.0 : 0.0) - acceptance_);
  if (drafts > 0 && accepted == drafts) next_pause_ = kFirstPause;
}

// --- times ---

size_t StepTimes::index_of(int64_t rows) {
  return static_cast<size_t>(std::bit_width(static_cast<uint64_t>(std::max<int64_t>(1, rows) - 1)));
}

void StepTimes::report(int64_t rows, double seconds) {
  const size_t at = index_of(rows);
  if (at >= times_.size() || !std::exchange(times_[at].has_plan, true)) return;
  double& average = times_[at].seconds;
  average = average == 0 || seconds < average ? seconds : average + kNewest * (seconds - average);
}

double StepTimes::seconds(int64_t rows) const {
  const size_t at = index_of(rows);
  return at < times_.size() ? times_[at].seconds : 0;
}

std::vector<int64_t> choose_drafts(const StepTimes& times, std::span<const DraftOffer> offers,
                                   int64_t most_rows) {
  const auto texts = static_cast<int64_t>(offers.size());
  std::vector<int64_t> best(offers.size(), 0);
  const double alone = times.seconds(texts);
  if (alone == 0) return best;  // the first steps measure how long they take without drafts
  int64_t most = texts;
  for (const DraftOffer& offer : offers) most += std::ssize(offer.candidates);
  most = std::min(most, most_rows);
  double best_rate = static_cast<double>(texts) / alone;
  // Steps of the sizes to which rows are padded; the last one is not full.
  const auto smallest = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(texts)));
  for (int64_t rows = smallest; rows / 2 < most; rows *= 2) {
    std::vector<int64_t> counts(offers.size(), 0);
    const double tokens = fill(offers, std::min(rows, most), counts);
    const double seconds = times.seconds(rows);
    if (seconds == 0) {
      if (tokens < kMinTrialGain * static_cast<double>(texts)) continue;
      return counts;
    }
    if (tokens / seconds > best_rate) {
      best_rate = tokens / seconds;
      best = std::move(counts);
    }
  }
  const bool none = std::all_of(best.begin(), best.end(), [](int64_t count) { return count == 0; });
  for (size_t i = 0; i < offers.size(); ++i)
    if (best[i] == 0 && !offers[i].candidates.empty() &&
        (none || offers[i].text->acceptance() < kLowChance))
      offers[i].text->pause();
  return best;
}

}  // namespace paddle::llm
