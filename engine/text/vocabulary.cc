#include "text/vocabulary.h"

#include <algorithm>

#include "base/error.h"
#include "text/unicode.h"

namespace paddle::tokenizers {

void Vocabulary::add(std::string_view text, int64_t id) {
  if (id < 0 || id > kMaxTokenId)
    fail(ErrorCode::kModel, "token '", unicode::beginning(text), "' has id ", id, "; ids are 0 to ",
         kMaxTokenId);
  const auto i = static_cast<size_t>(id);
  if (i >= tokens_.size()) {
    tokens_.resize(i + 1);
    used_.resize(i + 1);
  }
  tokens_[i] = text;
  used_[i] = true;
  ids_.emplace(text, static_cast<TokenId>(id));
}

std::optional<TokenId> Vocabulary::find(std::string_view text) const {
  const auto it = ids_.find(text);
  return it == ids_.end() ? std::nullopt : std::optional(it->second);
}

const std::string* Vocabulary::token(int64_t id) const {
  return id >= 0 && id < size() && used_[static_cast<size_t>(id)]
             ? &tokens_[static_cast<size_t>(id)]
             : nullptr;
}

PrefixIndex::PrefixIndex(std::vector<std::pair<std::string, int32_t>> texts)
    : texts_(std::move(texts)), first_byte_(257) {
  std::erase_if(texts_, [](const auto& entry) { return entry.first.empty(); });
  std::stable_sort(texts_.begin(), texts_.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  texts_.erase(std::unique(texts_.begin(), texts_.end(),
                           [](const auto& a, const auto& b) { return a.first == b.first; }),
               texts_.end());
  for (const auto& [text, value] : texts_) ++first_byte_[static_cast<unsigned char>(text[0]) + 1U];
  for (size_t b = 0; b < 256; ++b) first_byte_[b + 1] += first_byte_[b];
}

void PrefixIndex::narrow(size_t& low, size_t& high, size_t depth, unsigned char byte) const {
  const auto begin = texts_.begin();
  const auto byte_of = [depth](const auto& entry) {
    return static_cast<unsigned char>(entry.first[depth]);
  };
  const auto first = std::partition_point(begin + static_cast<ptrdiff_t>(low),
                                          begin + static_cast<ptrdiff_t>(high),
                                          [&](const auto& e) { return byte_of(e) < byte; });
  const auto last = std::partition_point(first, begin + static_cast<ptrdiff_t>(high),
                                         [&](const auto& e) { return byte_of(e) == byte; });
  low = static_cast<size_t>(first - begin);
  high = static_cast<size_t>(last - begin);
}

std::optional<std::pair<size_t, int32_t>> PrefixIndex::longest_prefix(std::string_view text) const {
  std::optional<std::pair<size_t, int32_t>> longest;
  for_each_prefix(text, [&](size_t length, int32_t value) { longest = {length, value}; });
  return longest;
}

}  // namespace paddle::tokenizers
