#include "text/bpe_trainer.h"

#include <algorithm>
#include <array>
#include <queue>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "text/byte_alphabet.h"
#include "text/sections.h"
#include "text/steps.h"
#include "text/unicode.h"

namespace paddle::tokenizers {

namespace {

/// Longer runs without a boundary are cut, so that no word costs more than others by far.
constexpr size_t kMaxWordLength = 1024;
/// Bytes of an entry of the table of words besides the word.
constexpr size_t kWordOverhead = 64;

/// The ids of the 256 bytes in the order of their characters, and the texts of these.
struct ByteIds {
  std::array<TokenId, 256> ids = {};
  std::vector<std::string> characters;
};
ByteIds number_bytes(TokenId first) {
  std::vector<std::pair<uint32_t, size_t>> order;
  for (size_t b = 0; b < 256; ++b)
    order.emplace_back(utf8_character(byte_character(static_cast<unsigned char>(b)), 0).code, b);
  std::sort(order.begin(), order.end());
  ByteIds out;
  for (size_t i = 0; i < order.size(); ++i) {
    out.ids[order[i].second] = first + static_cast<TokenId>(i);
    out.characters.push_back(byte_character(static_cast<unsigned char>(order[i].second)));
  }
  return out;
}

/// The words as ids, and where each pair of neighbors occurs.
class PairTable {
 public:
  void add_word(std::span<const TokenId> ids, int64_t count) {
    const auto word = static_cast<uint32_t>(words_.size());
    words_.push_back(
        {static_cast<uint32_t>(ids_.size()), static_cast<uint32_t>(ids.size()), count});
    ids_.insert(ids_.end(), ids.begin(), ids.end());
    for (size_t i = 0; i + 1 < ids.size(); ++i) change(pair_key(ids[i], ids[i + 1]), word, count);
    changed_.clear();
  }
  void fill_queue() {
    for (const auto& [key, pair] : pairs_) queue_.push({pair.count, key});
  }
  /// The most frequent pair, of those the one with the lowest ids. False if none occurs `least`
  /// times.
  bool next(int64_t least, uint64_t& key) {
    while (!queue_.empty()) {
      const Candidate top = queue_.top();
      queue_.pop();
      const auto it = pairs_.find(top.key);
      const int64_t count = it == pairs_.end() ? 0 : it->second.count;
      if (count == top.count) {
        if (count < std::max<int64_t>(least, 1)) return false;
        key = top.key;
        return true;
      }
      if (count > 0) queue_.push({count, top.key});
    }
    return false;
  }
  /// Replaces the pair by `merged` in all words.
  void merge(uint64_t key, TokenId merged) {
    const auto found = pairs_.find(key);
    const std::vector<uint32_t> places = std::move(found->second.words);
    changed_.clear();
    const auto left = static_cast<TokenId>(key >> 32);
    const auto right = static_cast<TokenId>(key & 0xffffffffU);
    for (const uint32_t word : places) merge_in(word, left, right, merged);
    pairs_.erase(key);
    std::sort(changed_.begin(), changed_.end());
    changed_.erase(std::unique(changed_.begin(), changed_.end()), changed_.end());
    for (const uint64_t each : changed_)
      if (const auto it = pairs_.find(each); it != pairs_.end() && it->second.count > 0)
        queue_.push({it->second.count, each});
  }

 private:
  struct Word {
    uint32_t begin, length;
    int64_t count;
  };
  struct Pair {
    int64_t count = 0;
    std::vector<uint32_t> words = {};  ///< in which it occurs or occurred
  };
  struct Candidate {
    int64_t count;
    uint64_t key;
    bool operator<(const Candidate& other) const {
      return count != other.count ? count < other.count : key > other.key;
    }
  };

  void change(uint64_t key, uint32_t word, int64_t count) {
    Pair& pair = pairs_[key];
    pair.count += count;
    if (count < 0) return;
    if (pair.words.empty() || pair.words.back() != word) pair.words.push_back(word);
    changed_.push_back(key);
  }
  void merge_in(uint32_t word, TokenId left, TokenId right, TokenId merged) {
    Word& w = words_[word];
    TokenId* const ids = ids_.data() + w.begin;
    uint32_t to = 0;
    for (uint32_t from = 0; from < w.length; ++from, ++to) {
      if (ids[from] != left || from + 1 == w.length || ids[from + 1] != right) {
        ids[to] = ids[from];
        continue;
      }
      if (to > 0) {
        change(pair_key(ids[to - 1], left), word, -w.count);
        change(pair_key(ids[to - 1], merged), word, w.count);
      }
      ++from;
      ids[to] = merged;
      if (from + 1 < w.length) {
        change(pair_key(right, ids[from + 1]), word, -w.count);
        change(pair_key(merged, ids[from + 1]), word, w.count);
      }
    }
    w.length = to;
  }

  std::vector<TokenId> ids_;
  std::vector<Word> words_;
  std::unordered_map<uint64_t, Pair> pairs_;
  std::priority_queue<Candidate> queue_;
  std::vector<uint64_t> changed_;
};

}  // namespace

BpeTrainer::BpeTrainer(BpeTrainingOptions options) : options_(std::move(options)) {
  const auto& special = options_.special_tokens;
  const int64_t least = static_cast<int64_t>(special.size()) + 256;
  if (options_.vocabulary_size < least || options_.vocabulary_size > kMaxTokenId + 1)
    fail(ErrorCode::kUsage, "the vocabulary size is ", options_.vocabulary_size, ", expected ",
         least, " (256 bytes and ", special.size(), " special tokens) to ", kMaxTokenId + 1);
  for (size_t i = 0; i < special.size(); ++i) {
    if (special[i].empty() || unicode::to_valid_utf8(special[i]) != special[i])
      fail(ErrorCode::kUsage, "a special token is empty or not UTF-8");
    if (std::find(special.begin(), special.begin() + static_cast<ptrdiff_t>(i), special[i]) !=
        special.begin() + static_cast<ptrdiff_t>(i))
      fail(ErrorCode::kUsage, "the special token '", special[i], "' is given twice");
  }
}

void BpeTrainer::add(std::string_view text) {
  while (!text.empty()) {
    const size_t length = section_length(text);
    const std::string section = unicode::to_valid_utf8(text.substr(0, length));
    std::vector<size_t> next(options_.special_tokens.size());  // where each is found from `at` on
    for (size_t i = 0; i < next.size(); ++i) next[i] = section.find(options_.special_tokens[i]);
    for (size_t at = 0; at < section.size();) {
      size_t end = section.size(), skipped = 0;
      for (size_t i = 0; i < next.size(); ++i) {
        if (next[i] < at) next[i] = section.find(options_.special_tokens[i], at);
        if (next[i] < end) end = next[i], skipped = options_.special_tokens[i].size();
      }
      add_section(std::string_view(section).substr(at, end - at));
      at = end + skipped;
    }
    text.remove_prefix(length);
  }
}

void BpeTrainer::add_section(std::string_view section) {
  size_t copied = 0;
  gpt2_pattern().for_each_match(section, [&](size_t begin, size_t end) {
    count(section.substr(copied, begin - copied));
    count(section.substr(begin, end - begin));
    copied = end;
  });
  count(section.substr(copied));
}

void BpeTrainer::count(std::string_view word) {
  while (word.size() > kMaxWordLength) {
    const size_t length = unicode::beginning(word, kMaxWordLength).size();
    count(word.substr(0, length));
    word.remove_prefix(length);
  }
  if (word.empty()) return;
  const auto it = words_.find(word);
  if (it != words_.end()) {
    ++it->second;
    return;
  }
  words_.emplace(word, 1);
  word_bytes_ += word.size() + kWordOverhead;
  if (word_bytes_ > options_.max_word_bytes) drop_rare_words();
}

void BpeTrainer::drop_rare_words() {
  while (word_bytes_ > options_.max_word_bytes / 2 && !words_.empty()) {
    ++rare_;
    for (auto it = words_.begin(); it != words_.end();) {
      if (it->second > rare_) {
        ++it;
        continue;
      }
      word_bytes_ -= it->first.size() + kWordOverhead;
      ++dropped_;
      it = words_.erase(it);
    }
  }
}

TrainedBpe BpeTrainer::train() const {
  TrainedBpe out;
  out.special_tokens = options_.special_tokens.size();
  out.distinct_words = static_cast<int64_t>(words_.size());
  out.dropped_words = dropped_;
  out.tokens = options_.special_tokens;
  const ByteIds alphabet = number_bytes(static_cast<TokenId>(out.tokens.size()));
  out.tokens.insert(out.tokens.end(), alphabet.characters.begin(), alphabet.characters.end());
  std::unordered_map<std::string, TokenId> known;
  for (size_t i = 0; i < out.tokens.size(); ++i)
    known.emplace(out.tokens[i], static_cast<TokenId>(i));
  PairTable table;
  std::vector<TokenId> ids;
  for (const auto& [word, count] : words_) {
    ids.clear();
    for (const char c : word) ids.push_back(alphabet.ids[static_cast<unsigned char>(c)]);
    table.add_word(ids, count);
  }
  table.fill_queue();
  uint64_t key = 0;
  while (static_cast<int64_t>(out.tokens.size()) < options_.vocabulary_size &&
         table.next(options_.min_count, key)) {
    const auto left = static_cast<TokenId>(key >> 32);
    const auto right = static_cast<TokenId>(key & 0xffffffffU);
    std::string text =
        out.tokens[static_cast<size_t>(left)] + out.tokens[static_cast<size_t>(right)];
    // A text that two pairs make is one token.
    const auto [it, added] = known.emplace(text, static_cast<TokenId>(out.tokens.size()));
    if (added) out.tokens.push_back(std::move(text));
    out.merges.emplace_back(left, right);
    table.merge(key, it->second);
  }
  return out;
}

std::string tokenizer_json(const TrainedBpe& trained) {
  const auto quoted = [](const std::string& text) { return nlohmann::json(text).dump(); };
  std::string out = "{\n  \"version\": \"1.0\",\n  \"truncation\": null,\n  \"padding\": null,\n";
  out += "  \"added_tokens\": [";
  for (size_t i = 0; i < trained.special_tokens; ++i)
    out += str(i > 0 ? ",\n" : "\n", R"(    {"id": )", i, R"(, "content": )",
               quoted(trained.tokens[i]),
               R"(, "single_word": false, "lstrip": false, "rstrip": false, )"
               R"("normalized": false, "special": true})");
  out += trained.special_tokens > 0 ? "\n  ],\n" : "],\n";
  constexpr char kStep[] =
      R"({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true})";
  out += str("  \"normalizer\": null,\n  \"pre_tokenizer\": ", kStep,
             ",\n  \"post_processor\": null,\n  \"decoder\": ", kStep, ",\n");
  out += R"(  "model": {
    "type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
    "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "ignore_merges": false,
    "vocab": {)";
  for (size_t i = 0; i < trained.tokens.size(); ++i)
    out += str(i > 0 ? ",\n" : "\n", "      ", quoted(trained.tokens[i]), ": ", i);
  out += "\n    },\n    \"merges\": [";
  for (size_t i = 0; i < trained.merges.size(); ++i)
    out += str(i > 0 ? ",\n" : "\n", "      ",
               quoted(trained.tokens[static_cast<size_t>(trained.merges[i].first)] + " " +
                      trained.tokens[static_cast<size_t>(trained.merges[i].second)]));
  return out + "\n    ]\n  }\n}\n";
}

}  // namespace paddle::tokenizers
