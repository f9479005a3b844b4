#include "llm/speculation.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace paddle::llm {
namespace {

/// Weight of the newest measurement in moving averages.
constexpr double kNewest = 0.15;
/// Steps until guesses are tried again after they have not paid.
constexpr int64_t kPause = 32;

}  // namespace

uint64_t Speculation::key_of(std::span<const tokenizers::TokenId> tokens) {
  uint64_t key = 0xcbf29ce484222325u;
  for (const tokenizers::TokenId token : tokens)
    key = (key ^ static_cast<uint64_t>(token)) * 0x100000001b3u;
  return key;
}

size_t Speculation::index_of(int64_t guesses) {
  const auto* const size = std::lower_bound(kSizes.begin(), kSizes.end(), guesses);
  return guesses == 0 ? 0 : static_cast<size_t>(size - kSizes.begin()) + 1;
}

std::vector<tokenizers::TokenId> Speculation::guess(std::span<const tokenizers::TokenId> text,
                                                    int64_t most) {
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
  const auto candidates = text.subspan(found->second);
  most = std::min(most, static_cast<int64_t>(candidates.size()));
  // The number of guesses with the most tokens per second: 1 + p + p² + … of a step.
  int64_t best = 0;
  double best_rate = seconds_[0] > 0 ? 1 / seconds_[0] : 0;
  for (const int64_t size : kSizes) {
    if (size > most) break;
    const double seconds = seconds_[index_of(size)];
    if (seconds == 0) {  // not measured yet
      best = size;
      break;
    }
    const double tokens = (1 - std::pow(right_, size + 1)) / std::max(1 - right_, 1e-6);
    if (tokens / seconds > best_rate) {
      best_rate = tokens / seconds;
      best = size;
    }
  }
  if (best == 0 && most >= kSizes[0]) {
    // Another trial later, since texts change.
    pause_ = kPause;
    right_ = std::max(right_, 0.5);
  }
  const auto guesses = candidates.first(static_cast<size_t>(best));
  return {guesses.begin(), guesses.end()};
}

void Speculation::report(int64_t guesses, int64_t right, double seconds) {
  const size_t at = index_of(guesses);
  if (at < seconds_.size() && std::exchange(has_plan_[at], true)) {
    double& average = seconds_[at];
    average = average == 0 || seconds < average ? seconds : average + kNewest * (seconds - average);
  }
  for (int64_t i = 0; i < std::min(guesses, right + 1); ++i)
    right_ += kNewest * ((i < right ? 1.0 : 0.0) - right_);
}

}  // namespace paddle::llm
