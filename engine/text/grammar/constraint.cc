#include "text/grammar/constraint.h"

#include <algorithm>

#include "base/error.h"
#include "text/token_bytes.h"

namespace paddle::grammar {

namespace {

using tokenizers::TokenId;
using tokenizers::Tokenizer;

/// Bytes of sets that are kept.
constexpr size_t kMaxSetBytes = size_t{64} << 20;

}  // namespace

TokenTexts::TokenTexts(const Tokenizer& tokenizer)
    : size_(tokenizer.vocabulary_size()),
      first_index_(static_cast<size_t>(size_), -1),
      inner_index_(static_cast<size_t>(size_), -1) {
  const tokenizers::TokenBytes bytes(tokenizer);
  for (TokenId token = 0; token < static_cast<TokenId>(size_); ++token) {
    if (tokenizer.is_special(token)) continue;
    if (std::string inner = bytes.of(token); !inner.empty()) inner_.push_back({inner, token, 0});
    if (std::string alone = bytes.of(token, true); !alone.empty())
      first_.push_back({alone, token, 0});
  }
  sort(first_);
  sort(inner_);
  for (size_t i = 0; i < first_.size(); ++i)
    first_index_[static_cast<size_t>(first_[i].token)] = static_cast<int32_t>(i);
  for (size_t i = 0; i < inner_.size(); ++i)
    inner_index_[static_cast<size_t>(inner_[i].token)] = static_cast<int32_t>(i);
}

void TokenTexts::sort(std::vector<Entry>& entries) {
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return a.bytes != b.bytes ? a.bytes < b.bytes : a.token < b.token;
  });
  for (size_t i = 1; i < entries.size(); ++i) {
    const std::string &a = entries[i - 1].bytes, &b = entries[i].bytes;
    const auto shared = std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin();
    entries[i].shared = static_cast<uint32_t>(shared);
  }
}

const std::string* TokenTexts::find(TokenId token, bool first) const {
  const auto& index = first ? first_index_ : inner_index_;
  if (token < 0 || static_cast<size_t>(token) >= index.size()) return nullptr;
  const int32_t i = index[static_cast<size_t>(token)];
  return i < 0 ? nullptr : &entries(first)[static_cast<size_t>(i)].bytes;
}

Constraint::Constraint(Grammar grammar, std::shared_ptr<const TokenTexts> tokens)
    : matcher_(std::move(grammar)), tokens_(std::move(tokens)) {
  if (matcher_.start() == kNoState ||
      (!matcher_.accepts(matcher_.start()) && allowed(matcher_.start(), true)->count() == 0 &&
       allowed(matcher_.start(), false)->count() == 0))
    fail(ErrorCode::kUsage, "the grammar has no text that the model's tokens can write");
}

TokenSet Constraint::collect(StateId state, bool first) {
  TokenSet out(tokens_->vocabulary_size());
  // The states after each byte of the entry; those of the bytes in common with the next one stay.
  std::vector<StateId> states = {state};
  size_t good = 0;  // bytes of the last entry that the grammar has
  for (const TokenTexts::Entry& entry : tokens_->entries(first)) {
    // The entry shares bytes that the grammar rejected.
    if (entry.shared > good) continue;
    states.resize(entry.shared + size_t{1});
    good = entry.shared;
    while (good < entry.bytes.size()) {
      const StateId next = matcher_.next(states.back(), static_cast<uint8_t>(entry.bytes[good]));
      if (next == kNoState) break;
      states.push_back(next);
      ++good;
    }
    if (good == entry.bytes.size()) out.insert(entry.token);
  }
  return out;
}

std::shared_ptr<const TokenSet> Constraint::allowed(StateId state, bool first) {
  const std::lock_guard lock(mutex_);
  const auto found = sets_.find({state, first});
  if (found != sets_.end()) return found->second;
  const size_t bytes = static_cast<size_t>(tokens_->vocabulary_size()) / 8 + 64;
  if ((sets_.size() + 1) * bytes > kMaxSetBytes) sets_.clear();
  const auto set = std::make_shared<const TokenSet>(collect(state, first));
  sets_[{state, first}] = set;
  return set;
}

StateId Constraint::next(StateId state, TokenId token, bool first) {
  const std::string* const bytes = tokens_->find(token, first);
  if (!bytes) return kNoState;
  const std::lock_guard lock(mutex_);
  for (const char c : *bytes) state = matcher_.next(state, static_cast<uint8_t>(c));
  return state;
}

bool Constraint::accepts(StateId state) const {
  const std::lock_guard lock(mutex_);
  return state != kNoState && matcher_.accepts(state);
}

bool Constraint::can_continue(StateId state) const {
  const std::lock_guard lock(mutex_);
  return state != kNoState && matcher_.can_continue(state);
}

}  // namespace paddle::grammar
