#include "text/tokenizer.h"

#include <algorithm>

#include "base/error.h"

namespace paddle::tokenizers {

namespace {

/// Memory for the work on a text, whatever the tokenizer's file says: much more than the steps of
/// any published tokenizer take.
constexpr uint64_t kMinBytes = uint64_t{64} << 20, kBytesOfByte = 512, kBytesOfToken = 1024;
uint64_t budget_of(uint64_t count, uint64_t bytes_each) { return kMinBytes + count * bytes_each; }

bool is_word_character(uint32_t code) {
  return code == '_' || unicode::is_letter(code) || unicode::is_number(code) ||
         unicode::is_mark(code);
}

/// Whether the character that ends at `i`, or begins there, is one of a word.
bool word_before(std::string_view text, size_t i) {
  if (i == 0) return false;
  do --i;
  while (i > 0 && (static_cast<unsigned char>(text[i]) & 0xc0) == 0x80);
  return is_word_character(utf8_character(text, i).code);
}
bool word_after(std::string_view text, size_t i) {
  return i < text.size() && is_word_character(utf8_character(text, i).code);
}

size_t space_before(std::string_view text, size_t end) {
  while (end > 0) {
    size_t begin = end - 1;
    while (begin > 0 && (static_cast<unsigned char>(text[begin]) & 0xc0) == 0x80) --begin;
    if (!unicode::is_white_space(utf8_character(text, begin).code)) break;
    end = begin;
  }
  return end;
}
size_t space_after(std::string_view text, size_t begin) {
  while (begin < text.size()) {
    const Utf8Character c = utf8_character(text, begin);
    if (c.length == 0 || !unicode::is_white_space(c.code)) break;
    begin += c.length;
  }
  return begin;
}

/// Words of a long text repeat: their ids are copied from the first time.
void encode_pieces(const TokenModel& model, const Pieces& pieces, TextBudget& budget,
                   std::vector<TokenId>& ids) {
  constexpr size_t kFew = 32;
  constexpr uint64_t kModelBytes = 64;  // that a model takes for each byte of a piece
  const auto encode = [&](const Piece& piece) {
    budget.charge(piece.text.size(), kModelBytes);
    model.encode(piece.text, ids);
  };
  std::unordered_map<std::string_view, std::pair<size_t, size_t>> known;
  for (const Piece& piece : pieces) {
    if (piece.text.empty()) continue;
    if (pieces.size() < kFew) {
      encode(piece);
      continue;
    }
    const auto [it, added] = known.try_emplace(piece.text, ids.size(), 0);
    if (added) {
      encode(piece);
      it->second.second = ids.size();
      continue;
    }
    const auto [begin, end] = it->second;
    for (size_t i = begin; i < end; ++i) ids.push_back(ids[i]);
  }
}

}  // namespace

const std::string* Tokenizer::token(TokenId id) const {
  const std::string* added = added_vocabulary_.token(id);
  return added ? added : vocabulary_->token(id);
}

std::optional<TokenId> Tokenizer::find(std::string_view token) const {
  const auto added = added_vocabulary_.find(token);
  return added ? added : vocabulary_->find(token);
}

bool Tokenizer::is_special(TokenId id) const {
  return id >= 0 && static_cast<size_t>(id) < special_.size() && special_[static_cast<size_t>(id)];
}

void Tokenizer::find_added(const PrefixIndex& index, std::string_view text, bool special,
                           const std::function<void(std::string_view, bool)>& other,
                           std::vector<TokenId>& ids) const {
  size_t copied = 0;
  for (size_t i = 0; i < text.size() && !index.empty();) {
    const auto found = index.longest_prefix(text.substr(i));
    if (!found) {
      ++i;
      continue;
    }
    const AddedToken& token = added_[static_cast<size_t>(found->second)];
    size_t begin = i, end = i + found->first;
    i = end;
    if (token.special && !special) continue;
    if (token.single_word && (word_before(text, begin) || word_after(text, end))) continue;
    if (token.left_strip) begin = std::max(space_before(text, begin), copied);
    begin = std::max(begin, copied);
    if (token.right_strip) i = end = space_after(text, end);
    if (begin > copied) other(text.substr(copied, begin - copied), copied == 0);
    ids.push_back(token.id);
    copied = end;
  }
  if (copied < text.size()) other(text.substr(copied), copied == 0);
}

void Tokenizer::encode_section(std::string_view text, bool begins_text, bool special,
                               TextBudget& budget, std::vector<TokenId>& ids) const {
  std::string normalized(text);
  for (const Normalizer& step : normalizers_) step(normalized, budget);
  find_added(
      normalized_added_, normalized, special,
      [&](std::string_view part, bool first) {
        Pieces pieces = {{std::string(part), begins_text && first}};
        for (const PreTokenizer& step : pre_tokenizers_) step(pieces, budget);
        encode_pieces(*model_, pieces, budget, ids);
      },
      ids);
}

std::vector<TokenId> Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  const std::string valid = unicode::to_valid_utf8(text);
  const bool special = options.special || options.parse_special;
  TextBudget budget("encoding this text", budget_of(text.size(), kBytesOfByte));
  std::vector<TokenId> ids;
  if (options.special) ids = prefix_;
  find_added(
      raw_added_, valid, special,
      [&](std::string_view part, bool first) { encode_section(part, first, special, budget, ids); },
      ids);
  if (options.special) ids.insert(ids.end(), suffix_.begin(), suffix_.end());
  return ids;
}

std::string Tokenizer::decode(std::span<const TokenId> ids, bool special) const {
  TextBudget budget("decoding these tokens", budget_of(ids.size(), kBytesOfToken));
  std::vector<std::string> tokens;
  for (const TokenId id : ids) {
    const std::string* text = token(id);
    if (text == nullptr)
      fail(ErrorCode::kData, "id ", id, " is not in the vocabulary of ", vocabulary_size(),
           " tokens");
    if (!special && is_special(id)) continue;
    budget.charge(text->size() + sizeof(std::string));
    tokens.push_back(*text);
  }
  for (const Decoder& step : decoders_) step(tokens, budget);
  std::string out;
  for (const std::string& text : tokens) out += text;
  return unicode::to_valid_utf8(out);
}

void TokenizerBuilder::set_surrounding(std::vector<TokenId> prefix, std::vector<TokenId> suffix) {
  tokenizer_.prefix_ = std::move(prefix);
  tokenizer_.suffix_ = std::move(suffix);
}

Tokenizer TokenizerBuilder::build() {
  Tokenizer& t = tokenizer_;
  std::vector<std::pair<std::string, int32_t>> raw, normalized;
  uint64_t bytes = 0;
  for (const AddedToken& token : t.added_) bytes += token.content.size();
  TextBudget budget("normalizing the added tokens", budget_of(bytes, kBytesOfByte));
  for (size_t i = 0; i < t.added_.size(); ++i) {
    const AddedToken& token = t.added_[i];
    t.added_vocabulary_.add(token.content, token.id);
    if (token.special) {
      if (static_cast<size_t>(token.id) >= t.special_.size())
        t.special_.resize(static_cast<size_t>(token.id) + 1);
      t.special_[static_cast<size_t>(token.id)] = true;
    }
    std::string content = token.content;
    if (token.normalized && !token.verbatim)
      for (const Normalizer& step : t.normalizers_) step(content, budget);
    (token.normalized ? normalized : raw).emplace_back(content, static_cast<int32_t>(i));
  }
  t.raw_added_ = PrefixIndex(std::move(raw));
  t.normalized_added_ = PrefixIndex(std::move(normalized));
  t.size_ = std::max(t.vocabulary_->size(), t.added_vocabulary_.size());
  if (t.decoders_.empty()) t.decoders_.push_back(space_decoder());
  return std::move(tokenizer_);
}

void StreamDecoder::begin_after(std::span<const TokenId> ids) {
  ids_.clear();
  for (const TokenId id : ids)
    if (tokenizer_.token(id)) ids_.push_back(id);
  ids_.erase(ids_.begin(), ids_.begin() + static_cast<ptrdiff_t>(context_begin()));
  shown_ = ids_.size();
}

bool StreamDecoder::at_beginning() const {
  return std::none_of(ids_.begin(), ids_.end(), [&](TokenId id) { return has_text(id); });
}

/// Where the context of further tokens begins: decoders treat the first token of a text
/// differently, so one with text belongs to it.
size_t StreamDecoder::context_begin() const {
  constexpr size_t kContext = 8;
  size_t begin = ids_.size();
  bool any = false;
  while (begin > 0 && (!any || ids_.size() - begin < kContext)) any |= has_text(ids_[--begin]);
  return begin;
}

std::string StreamDecoder::flush(bool all) {
  const std::string before = tokenizer_.decode(std::span(ids_).first(shown_), special_);
  const std::string after = tokenizer_.decode(ids_, special_);
  size_t same = static_cast<size_t>(
      std::mismatch(before.begin(), before.end(), after.begin(), after.end()).first -
      before.begin());
  // The token may complete a character that the ids before it began.
  while (same > 0 && same < after.size() &&
         (static_cast<unsigned char>(after[same]) & 0xc0) == 0x80)
    --same;
  if (after.size() <= same) return "";
  if (!all && after.ends_with("\ufffd")) return "";  // may be a character that is not complete
  std::string text = after.substr(same);
  constexpr size_t kMaxLength = 32;
  if (ids_.size() > kMaxLength)
    ids_.erase(ids_.begin(), ids_.begin() + static_cast<ptrdiff_t>(context_begin()));
  shown_ = ids_.size();
  return text;
}

std::string StreamDecoder::add(TokenId id) {
  ids_.push_back(id);
  return flush(false);
}

std::string StreamDecoder::finish() { return flush(true); }

}  // namespace paddle::tokenizers
