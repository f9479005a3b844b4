// Tokenizers in the metadata of GGUF files: SentencePiece BPE ("llama"), byte-level BPE ("gpt2"),
// WordPiece ("bert") and Unigram ("t5").
#include <algorithm>
#include <set>

#include "base/error.h"
#include "text/gguf_token_type.h"
#include "text/load.h"

namespace paddle::tokenizers {

namespace {

class GgufTokenizer {
 public:
  explicit GgufTokenizer(const formats::gguf::Reader& file) : file_(file) {}

  Tokenizer read() {
    const auto model = file_.text("tokenizer.ggml.model");
    if (!model) file_.reject("the file has no tokenizer (no tokenizer.ggml.model)");
    const auto* tokens = file_.strings("tokenizer.ggml.tokens");
    if (!tokens || tokens->empty()) file_.reject("tokenizer.ggml.tokens is missing or empty");
    if (static_cast<int64_t>(tokens->size()) > kMaxTokenId)
      file_.reject(str("a vocabulary of ", tokens->size(), " tokens"));
    tokens_ = *tokens;
    types_ = file_.integers("tokenizer.ggml.token_type").value_or(formats::gguf::Value::Integers());
    check_length("tokenizer.ggml.token_type", types_.size());
    types_.resize(tokens_.size(), kGgufNormal);
    if (const auto scores = file_.numbers("tokenizer.ggml.scores"))
      check_length("tokenizer.ggml.scores", scores->size());
    const bool word_piece = *model == "bert";
    for (size_t i = 0; i < tokens_.size(); ++i) {
      const auto id = static_cast<TokenId>(i);
      const std::string text = unicode::to_valid_utf8(tokens_[i]);
      const bool special = types_[i] == kGgufControl || types_[i] == kGgufUnknown;
      if (special || types_[i] == kGgufUserDefined)
        builder_.add_token({.content = text, .id = id, .special = special});
      if (special && !word_piece) continue;
      builder_.vocabulary().add(word_piece && !special ? word_piece_text(text) : text, id);
    }
    builder_.tokenizer().beginning = token_id("bos");
    builder_.tokenizer().end = token_id("eos");
    for (const auto& [key, name] :
         {std::pair("unknown", "unk"), std::pair("padding", "pad"), std::pair("seperator", "sep"),
          std::pair("cls", "cls"), std::pair("mask", "mask")})
      if (const auto id = token_id(key))
        builder_.tokenizer().named_tokens[name] =
            unicode::to_valid_utf8(tokens_[static_cast<size_t>(*id)]);
    builder_.tokenizer().chat_template = file_.text("tokenizer.chat_template").value_or("");
    if (*model == "llama")
      read_sentence_piece();
    else if (*model == "gpt2" || *model == "gemma4")
      read_bpe(*model);
    else if (word_piece)
      read_word_piece();
    else if (*model == "t5")
      read_unigram();
    else
      file_.reject("tokenizer model '" + *model +
                   "' is not supported (llama, gpt2, bert and t5 are)");
    return builder_.build();
  }

 private:
  /// A list that is there has an entry for each token.
  void check_length(const char* key, size_t count) const {
    if (count > 0 && count != tokens_.size())
      file_.reject(str(key, " has ", count, " entries, tokenizer.ggml.tokens ", tokens_.size()));
  }
  std::optional<TokenId> token_id(const std::string& name) const {
    const std::string key = "tokenizer.ggml." + name + "_token_id";
    const auto id = file_.integer(key);
    if (id && (*id < 0 || *id >= static_cast<int64_t>(tokens_.size())))
      file_.reject(str(key, " is ", *id, ", outside of the vocabulary of ", tokens_.size()));
    return id ? std::optional(static_cast<TokenId>(*id)) : std::nullopt;
  }
  std::optional<TokenId> unknown_token() const {
    if (const auto id = token_id("unknown")) return id;
    const auto it = std::find(types_.begin(), types_.end(), kGgufUnknown);
    return it == types_.end() ? std::nullopt
                              : std::optional(static_cast<TokenId>(it - types_.begin()));
  }

  /// The tokens around a text, which the file can switch on and off.
  void set_surrounding(bool beginning, bool end) {
    std::vector<TokenId> prefix, suffix;
    const Tokenizer& t = builder_.tokenizer();
    if (file_.boolean("tokenizer.ggml.add_bos_token").value_or(beginning)) {
      if (!t.beginning) file_.reject("add_bos_token without bos_token_id");
      prefix.push_back(*t.beginning);
    }
    if (file_.boolean("tokenizer.ggml.add_eos_token").value_or(end)) {
      if (!t.end) file_.reject("add_eos_token without eos_token_id");
      suffix.push_back(*t.end);
    }
    builder_.set_surrounding(std::move(prefix), std::move(suffix));
  }

  std::vector<float> scores() const {
    const auto list = file_.numbers("tokenizer.ggml.scores");
    std::vector<float> out;
    if (list) out.assign(list->begin(), list->end());
    out.resize(tokens_.size());
    return out;
  }

  void add_space_decoder(bool prefix) {
    builder_.add(replace_decoder(Pattern::literal("▁"), " "));
    builder_.add(byte_fallback_decoder());
    builder_.add(fuse_decoder());
    if (prefix) builder_.add(strip_decoder(" ", 1, 0));
  }

  void read_sentence_piece() {
    const bool prefix = file_.boolean("tokenizer.ggml.add_space_prefix").value_or(true);
    builder_.add(escape_spaces_normalizer(prefix));
    ScoreBpeOptions options;
    options.unknown = unknown_token();
    options.byte_fallback = true;
    for (const int64_t type : types_) options.unused.push_back(type == kGgufUnused);
    builder_.set_model(make_score_bpe(builder_.vocabulary(), scores(), std::move(options)));
    add_space_decoder(prefix);
    set_surrounding(builder_.tokenizer().beginning.has_value(), false);
  }

  void read_bpe(const std::string& model) {
    const std::string pre =
        model == "gemma4" ? "gemma4" : file_.text("tokenizer.ggml.pre").value_or("");
    if (pre.empty())
      file_.reject(
          "tokenizer.ggml.pre is missing, so it is not known how text is cut; use the "
          "model's tokenizer.json instead");
    const bool of_characters = pre == "gemma4" || pre == "sarvam-moe";
    if (of_characters) builder_.add(replace_normalizer(Pattern::literal(" "), "▁"));
    for (const std::string& pattern : gguf_patterns(pre))
      builder_.add(split_pre_tokenizer(Pattern(pattern), SplitBehavior::kIsolated, false));
    if (!of_characters) builder_.add(byte_level_pre_tokenizer(false, false));

    const auto* list = file_.strings("tokenizer.ggml.merges");
    if (!list) file_.reject("tokenizer.ggml.merges is missing");
    std::vector<Merge> merges;
    for (const std::string_view text : *list) {
      const size_t space = text.find(' ', 1);
      if (space == text.npos)
        file_.reject("merge '" + unicode::to_valid_utf8(unicode::beginning(text)) +
                     "': expected two tokens with a space in between");
      merges.emplace_back(text.substr(0, space), text.substr(space + 1));
    }
    static const std::set<std::string> with_beginning = {
        "llama3",   "llama-v3", "llama-bpe",    "falcon3", "falcon-h1", "pixtral",
        "midm-2.0", "lfm2",     "jina-v5-nano", "tekken",  "gemma4"};
    // A byte that no token writes is left out, as other tools do: the unknown token of such files
    // is often that of the end.
    const auto unknown = of_characters ? unknown_token() : std::nullopt;
    builder_.set_model(make_bpe(builder_.vocabulary(), std::move(merges),
                                {.unknown = unknown,
                                 .byte_fallback = of_characters,
                                 .ignore_merges = gguf_ignores_merges(pre),
                                 .skip_missing = true}));
    if (of_characters)
      add_space_decoder(false);
    else
      builder_.add(byte_level_decoder());
    set_surrounding(builder_.tokenizer().beginning && with_beginning.contains(pre), false);
  }

  /// GGUF marks tokens that begin a word with U+2581; Hugging Face marks the others with "##".
  static std::string word_piece_text(const std::string& text) {
    constexpr std::string_view kMark = "▁";
    return text.starts_with(kMark) ? text.substr(kMark.size()) : "##" + text;
  }

  void read_word_piece() {
    builder_.add(bert_normalizer({}));
    builder_.add(bert_pre_tokenizer());
    auto unknown = unknown_token();
    if (!unknown) unknown = builder_.vocabulary().find("[UNK]");
    if (!unknown) file_.reject("the vocabulary has no [UNK]");
    builder_.set_model(make_word_piece(builder_.vocabulary(), *unknown, "##", 100));
    builder_.add(word_piece_decoder("##", false));
    std::vector<TokenId> prefix, suffix;
    auto first = token_id("cls");
    if (!first) first = builder_.tokenizer().beginning;
    if (first) prefix.push_back(*first);
    auto last = token_id("seperator");  // as the format spells it
    if (!last) last = builder_.tokenizer().end;
    if (last) suffix.push_back(*last);
    builder_.set_surrounding(std::move(prefix), std::move(suffix));
  }

  void read_unigram() {
    if (const auto map = file_.integers("tokenizer.ggml.precompiled_charsmap"))
      builder_.add(precompiled_normalizer(std::string(map->begin(), map->end()), true));
    if (file_.boolean("tokenizer.ggml.remove_extra_whitespaces").value_or(false))
      builder_.add(squeeze_spaces_normalizer());
    const bool prefix = file_.boolean("tokenizer.ggml.add_space_prefix").value_or(true);
    builder_.add(escape_spaces_normalizer(prefix));
    const std::vector<float> values = scores();
    std::vector<std::pair<std::string, double>> pieces;
    for (size_t i = 0; i < tokens_.size(); ++i) {
      const bool searched = types_[i] == kGgufNormal || types_[i] == kGgufUserDefined;
      pieces.emplace_back(searched ? unicode::to_valid_utf8(tokens_[i]) : "",
                          static_cast<double>(values[i]));
    }
    builder_.set_model(make_unigram(std::move(pieces),
                                    {.unknown = unknown_token(), .single_precision = true},
                                    builder_.vocabulary()));
    add_space_decoder(prefix);
    set_surrounding(false, builder_.tokenizer().end.has_value());
  }

  const formats::gguf::Reader& file_;
  TokenizerBuilder builder_;
  formats::gguf::Value::Strings tokens_;
  std::vector<int64_t> types_;
};

}  // namespace

Tokenizer read_gguf_tokenizer(const formats::gguf::Reader& file) {
  return GgufTokenizer(file).read();
}

}  // namespace paddle::tokenizers
