#pragma once
// Which tokens may come next in a text that a grammar constrains.

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "text/grammar/matcher.h"
#include "text/tokenizer.h"

namespace paddle::grammar {

/// The bytes that each token adds to a text, in the order of these bytes. Special tokens add none
/// and are left out.
class TokenTexts {
 public:
  explicit TokenTexts(const tokenizers::Tokenizer& tokenizer);

  struct Entry {
    std::string bytes;
    tokenizers::TokenId token;
    uint32_t shared = 0;  ///< bytes in common with the entry before
  };
  /// Within a text, or as its first token, where some tokenizers leave out a space.
  const std::vector<Entry>& entries(bool first) const { return first ? first_ : inner_; }
  /// The bytes of one token; nullptr if it has none.
  const std::string* find(tokenizers::TokenId token, bool first) const;
  int64_t vocabulary_size() const { return size_; }

 private:
  static void sort(std::vector<Entry>& entries);
  int64_t size_;
  std::vector<Entry> first_, inner_;
  std::vector<int32_t> first_index_, inner_index_;  ///< by token
};

/// A set of tokens.
class TokenSet {
 public:
  explicit TokenSet(int64_t size) : bits_(static_cast<size_t>((size + 63) / 64)), size_(size) {}
  void insert(tokenizers::TokenId token) {
    bits_[static_cast<size_t>(token) / 64] |= uint64_t{1} << (token % 64);
    ++count_;
  }
  bool contains(int64_t token) const {
    return token < size_ && (bits_[static_cast<size_t>(token) / 64] >> (token % 64) & 1) != 0;
  }
  int64_t count() const { return count_; }

 private:
  std::vector<uint64_t> bits_;
  int64_t size_, count_ = 0;
};

/// A grammar over the tokens of one tokenizer. The sets of states are made when they are asked for,
/// and kept. Several threads may use it.
class Constraint {
 public:
  /// kUsage if the grammar has no text that these tokens can write.
  Constraint(Grammar grammar, std::shared_ptr<const TokenTexts> tokens);

  StateId start() const { return matcher_.start(); }
  /// The tokens that may follow; `first`: no token has been written yet.
  std::shared_ptr<const TokenSet> allowed(StateId state, bool first);
  StateId next(StateId state, tokenizers::TokenId token, bool first);
  /// Whether the text may end here.
  bool accepts(StateId state) const;
  /// Whether more text may come.
  bool can_continue(StateId state) const;

 private:
  TokenSet collect(StateId state, bool first);

  mutable std::mutex mutex_;
  Matcher matcher_;
  std::shared_ptr<const TokenTexts> tokens_;
  std::map<std::pair<StateId, bool>, std::shared_ptr<const TokenSet>> sets_;
};

}  // namespace paddle::grammar
