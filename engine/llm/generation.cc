#include "llm/generation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "base/error.h"

namespace paddle::llm {

void GenerateOptions::check() const {
  sampling.check();
  const decoding::StopFilter checked(stops);
  if (length < 0) fail(ErrorCode::kUsage, "length is ", length, ", expected at least 0");
  const auto check_penalty = [](const char* name, double value) {
    if (!(value >= -2 && value <= 2))
      fail(ErrorCode::kUsage, name, " is ", value, ", expected -2 to 2");
  };
  check_penalty("presence_penalty", presence_penalty);
  check_penalty("frequency_penalty", frequency_penalty);
}

GeneratedToken score_token(std::span<const float> logits, tokenizers::TokenId token, int64_t top) {
  GeneratedToken out;
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float x : logits) sum += std::exp(x - largest);
  const double shift = largest + std::log(sum);
  out.score = {token, logits[static_cast<size_t>(token)] - shift};
  std::vector<size_t> order(logits.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto count = std::min(order.size(), static_cast<size_t>(top));
  std::partial_sort(
      order.begin(), order.begin() + static_cast<ptrdiff_t>(count), order.end(),
      [&](size_t a, size_t b) { return logits[a] != logits[b] ? logits[a] > logits[b] : a < b; });
  for (size_t i = 0; i < count; ++i)
    out.top.push_back({static_cast<tokenizers::TokenId>(order[i]), logits[order[i]] - shift});
  return out;
}

Generation::Generation(const tokenizers::Tokenizer& tokenizer,
                       std::vector<tokenizers::TokenId> prompt, GenerateOptions options,
                       std::vector<int64_t> ends, int64_t context)
    : tokenizer_(tokenizer),
      tokens_(std::move(prompt)),
      prompt_(tokens_.size()),
      options_(std::move(options)),
      ends_(std::move(ends)),
      context_(context),
      filter_(options_.stops),
      stream_(tokenizer),
      random_(options_.seed, stream_of("generate")) {
  options_.check();
  stream_.begin_after(tokens_);
  begins_text_ = stream_.at_beginning();
  if (tokenizer.end) ends_.push_back(*tokenizer.end);
  if (options_.constraint) state_ = options_.constraint->start();
  if (options_.length == 0 || static_cast<int64_t>(tokens_.size()) >= context) end_ = End::kLength;
}

/// Penalties, biases, and the constraint.
void Generation::adjust(std::vector<double>& logits) {
  decoding::penalize_repetitions(std::span(logits), tokens_, options_.sampling.repetition_penalty);
  if (options_.presence_penalty != 0 || options_.frequency_penalty != 0) {
    std::map<tokenizers::TokenId, double> counts;
    for (size_t i = prompt_; i < tokens_.size(); ++i) ++counts[tokens_[i]];
    for (const auto& [token, count] : counts)
      logits[static_cast<size_t>(token)] -=
          options_.presence_penalty + options_.frequency_penalty * count;
  }
  for (const auto& [token, bias] : options_.logit_bias)
    if (static_cast<size_t>(token) < logits.size()) logits[static_cast<size_t>(token)] += bias;
  if (options_.constraint) constrain(logits);
}

/// Leaves only the tokens with which the text stays one of the grammar.
void Generation::constrain(std::vector<double>& logits) {
  constexpr double kNever = -std::numeric_limits<double>::infinity();
  grammar::Constraint& constraint = *options_.constraint;
  const auto allowed = constraint.allowed(state_, begins_text_);
  const bool may_end = constraint.accepts(state_) && !ends_.empty();
  std::vector<std::pair<size_t, double>> ends;
  for (const int64_t token : ends_)
    if (const auto at = static_cast<size_t>(token); token >= 0 && at < logits.size())
      ends.emplace_back(at, may_end ? logits[at] : kNever);
  for (size_t i = 0; i < logits.size(); ++i)
    if (!allowed->contains(static_cast<int64_t>(i))) logits[i] = kNever;
  for (const auto& [token, logit] : ends) logits[token] = logit;
  if (allowed->count() == 0 && !may_end)
    fail(ErrorCode::kUsage, "the grammar continues with text that the model's tokens cannot write");
}

std::string Generation::stop(End end) {
  end_ = end;
  return filter_.add(stream_.finish()) + filter_.finish();
}

std::string Generation::next(std::span<const float> logits) {
  ensure(end_ == End::kNone, "next: the text has ended");
  if (std::any_of(logits.begin(), logits.end(), [](float x) { return std::isnan(x); }))
    fail(ErrorCode::kModel, "the model's logits are NaN; its weights are not usable");
  std::vector<double> adjusted(logits.begin(), logits.end());
  adjust(adjusted);
  const auto token = static_cast<tokenizers::TokenId>(decoding::sample_token(
      adjusted, options_.sampling, random_.uniform(static_cast<uint64_t>(generated()))));
  last_.reset();
  if (std::find(ends_.begin(), ends_.end(), token) != ends_.end()) return stop(End::kStop);
  if (options_.logprobs >= 0)
    last_ = score_token(logits, token, options_.logprobs);
  else
    last_ = GeneratedToken{{token, 0}, {}};
  if (options_.constraint) state_ = options_.constraint->next(state_, token, begins_text_);
  tokens_.push_back(token);
  begins_text_ = begins_text_ && tokenizer_.is_special(token);
  std::string text;
  // Vocabularies of weights are padded.
  if (tokenizer_.token(token)) text = filter_.add(stream_.add(token));
  const auto complete = [&] {
    return options_.constraint && options_.constraint->accepts(state_) &&
           !options_.constraint->can_continue(state_);
  };
  if (filter_.is_stopped())
    end_ = End::kStop;
  else if (complete())
    text += stop(End::kStop);
  else if (generated() == options_.length || static_cast<int64_t>(tokens_.size()) >= context_)
    text += stop(End::kLength);
  return text;
}

}  // namespace paddle::llm
