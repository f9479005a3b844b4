// tokenizer.json of Hugging Face's `tokenizers`: every step as the file says, and nothing that the
// file does not say.
#include <algorithm>

#include "base/base64.h"
#include "base/error.h"
#include "text/byte_alphabet.h"
#include "text/load.h"

namespace paddle::tokenizers {

namespace {

constexpr int kMaxSteps = 256;  // nested sequences included

/// Text of Base64, as the precompiled tables are written.
std::string decoded_table(const JsonValue& value) {
  auto bytes = from_base64(value.text());
  if (!bytes) value.reject("not Base64");
  return std::move(*bytes);
}

/// {"String": …} or {"Regex": …}.
Pattern read_pattern(const JsonValue& value) {
  if (value.is_string()) return Pattern::literal(value.text());
  const JsonValue regex = value.get("Regex");
  try {
    return regex.is_null() ? Pattern::literal(value.at("String").text()) : Pattern(regex.text());
  } catch (const Error& e) {
    if (regex.is_null()) throw;
    regex.reject(e.message());
  }
}

SplitBehavior read_behavior(const JsonValue& value) {
  const std::string text = value.text_or("Isolated");
  if (text == "Removed") return SplitBehavior::kRemoved;
  if (text == "Isolated") return SplitBehavior::kIsolated;
  if (text == "MergedWithPrevious") return SplitBehavior::kMergedWithPrevious;
  if (text == "MergedWithNext") return SplitBehavior::kMergedWithNext;
  if (text == "Contiguous") return SplitBehavior::kContiguous;
  value.reject("unknown behavior '" + text + "'");
}

PrependScheme read_scheme(const JsonValue& step) {
  const JsonValue value = step.get("prepend_scheme");
  const std::string text =
      value.text_or(step.get("add_prefix_space").boolean_or(true) ? "always" : "never");
  if (text == "always") return PrependScheme::kAlways;
  if (text == "first") return PrependScheme::kFirst;
  if (text == "never") return PrependScheme::kNever;
  value.reject("unknown scheme '" + text + "'");
}

class Reader {
 public:
  explicit Reader(const JsonValue& file) : file_(file) {}

  Tokenizer read() {
    read_normalizer(file_.get("normalizer"));
    read_pre_tokenizer(file_.get("pre_tokenizer"));
    read_added_tokens(file_.get("added_tokens"));
    read_model(file_.at("model"));
    read_decoder(file_.get("decoder"));
    read_post_processor(file_.get("post_processor"));
    builder_.set_surrounding(std::move(prefix_), std::move(suffix_));
    return builder_.build();
  }

 private:
  /// Calls `read` for each step of a Sequence, whose list has one of these names, or for the step.
  template <class Read>
  void each_step(const JsonValue& step, const char* list, Read&& read) {
    if (step.is_null()) return;
    if (++steps_ > kMaxSteps) step.reject(str("more than ", kMaxSteps, " steps"));
    const std::string& type = step.at("type").text();
    if (type == "Sequence")
      for (const JsonValue& item : step.at(list).items()) each_step(item, list, read);
    else
      read(type, step);
  }

  [[noreturn]] static void unknown(const JsonValue& step) {
    step.at("type").reject("'" + step.at("type").text() + "' is not supported");
  }

  void read_normalizer(const JsonValue& value) {
    each_step(value, "normalizers", [&](const std::string& type, const JsonValue& step) {
      if (type == "BertNormalizer") {
        BertNormalizerOptions options;
        options.clean_text = step.get("clean_text").boolean_or(true);
        options.handle_chinese_chars = step.get("handle_chinese_chars").boolean_or(true);
        options.lowercase = step.get("lowercase").boolean_or(true);
        options.strip_accents = step.get("strip_accents").boolean_or(options.lowercase);
        builder_.add(bert_normalizer(options));
      } else if (type == "NFC") {
        builder_.add(unicode_normalizer(unicode::Form::kNfc));
      } else if (type == "NFD") {
        builder_.add(unicode_normalizer(unicode::Form::kNfd));
      } else if (type == "NFKC") {
        builder_.add(unicode_normalizer(unicode::Form::kNfkc));
      } else if (type == "NFKD") {
        builder_.add(unicode_normalizer(unicode::Form::kNfkd));
      } else if (type == "Lowercase") {
        builder_.add(lowercase_normalizer());
      } else if (type == "Strip") {
        builder_.add(strip_normalizer(step.get("strip_left").boolean_or(true),
                                      step.get("strip_right").boolean_or(true)));
      } else if (type == "StripAccents") {
        builder_.add(strip_accents_normalizer());
      } else if (type == "Nmt") {
        builder_.add(nmt_normalizer());
      } else if (type == "Precompiled") {
        builder_.add(precompiled_normalizer(decoded_table(step.at("precompiled_charsmap")), false));
      } else if (type == "Replace") {
        builder_.add(
            replace_normalizer(read_pattern(step.at("pattern")), step.at("content").text()));
      } else if (type == "Prepend") {
        builder_.add(prepend_normalizer(step.at("prepend").text()));
      } else if (type == "ByteLevel") {
        builder_.add(byte_level_normalizer());
      } else {
        unknown(step);
      }
    });
  }

  void read_pre_tokenizer(const JsonValue& value) {
    each_step(value, "pretokenizers", [&](const std::string& type, const JsonValue& step) {
      if (type == "BertPreTokenizer") {
        builder_.add(bert_pre_tokenizer());
      } else if (type == "ByteLevel") {
        builder_.add(byte_level_pre_tokenizer(step.get("add_prefix_space").boolean_or(true),
                                              step.get("use_regex").boolean_or(true)));
      } else if (type == "Whitespace") {
        builder_.add(whitespace_pre_tokenizer());
      } else if (type == "WhitespaceSplit") {
        builder_.add(character_pre_tokenizer(unicode::is_white_space, SplitBehavior::kRemoved));
      } else if (type == "Metaspace") {
        builder_.add(metaspace_pre_tokenizer(step.get("replacement").text_or("▁"),
                                             read_scheme(step),
                                             step.get("split").boolean_or(true)));
      } else if (type == "Split") {
        builder_.add(split_pre_tokenizer(read_pattern(step.at("pattern")),
                                         read_behavior(step.get("behavior")),
                                         step.get("invert").boolean_or(false)));
      } else if (type == "Punctuation") {
        builder_.add(punctuation_pre_tokenizer(read_behavior(step.get("behavior"))));
      } else if (type == "Digits") {
        builder_.add(character_pre_tokenizer(unicode::is_number,
                                             step.get("individual_digits").boolean_or(false)
                                                 ? SplitBehavior::kIsolated
                                                 : SplitBehavior::kContiguous));
      } else if (type == "CharDelimiterSplit") {
        builder_.add(split_pre_tokenizer(Pattern::literal(step.at("delimiter").text()),
                                         SplitBehavior::kRemoved, false));
      } else if (type == "FixedLength") {
        const int64_t length = step.get("length").integer_or(5);
        if (length < 1) step.get("length").reject("expected a length of at least 1");
        builder_.add(fixed_length_pre_tokenizer(static_cast<size_t>(length)));
      } else {
        unknown(step);
      }
    });
  }

  void read_added_tokens(const JsonValue& value) {
    if (value.is_null()) return;
    for (const JsonValue& item : value.items()) {
      AddedToken token;
      token.content = item.at("content").text();
      token.id = token_id(item.at("id"));
      token.special = item.get("special").boolean_or(false);
      token.normalized = item.get("normalized").boolean_or(!token.special);
      token.single_word = item.get("single_word").boolean_or(false);
      token.left_strip = item.get("lstrip").boolean_or(false);
      token.right_strip = item.get("rstrip").boolean_or(false);
      added_.add(token.content, token.id);
      builder_.add_token(std::move(token));
    }
  }

  static TokenId token_id(const JsonValue& value) {
    const int64_t id = value.integer();
    if (id < 0 || id > kMaxTokenId) value.reject(str("expected an id from 0 to ", kMaxTokenId));
    return static_cast<TokenId>(id);
  }

  std::optional<TokenId> find(const std::string& text) {
    const auto id = builder_.vocabulary().find(text);
    return id ? id : added_.find(text);
  }
  /// The id of a token that a key names, if it is given.
  std::optional<TokenId> named_token(const JsonValue& value) {
    if (value.is_null()) return std::nullopt;
    const auto id = find(value.text());
    if (!id) value.reject("'" + value.text() + "' is not in the vocabulary");
    return id;
  }

  void read_vocabulary(const JsonValue& value) {
    if (!value.is_object()) value.reject("expected an object of tokens and ids");
    for (const auto& [text, id] : value.value().entries) {
      if (id.kind != Json::Kind::kInteger || id.integer < 0 || id.integer > kMaxTokenId)
        value.reject(str("the id of '", text, "' is not an integer from 0 to ", kMaxTokenId));
      builder_.vocabulary().add(text, id.integer);
    }
  }

  void read_model(const JsonValue& model) {
    // Old files have no type; their keys show it.
    const std::string type =
        model.get("type").text_or(!model.get("merges").is_null()                     ? "BPE"
                                  : model.at("vocab").is_array()                     ? "Unigram"
                                  : model.get("continuing_subword_prefix").is_null() ? "WordLevel"
                                                                                     : "WordPiece");
    if (type == "BPE") return read_bpe(model);
    if (type == "Unigram") return read_unigram(model);
    if (type != "WordPiece" && type != "WordLevel")
      model.get("type").reject("'" + type + "' is not supported");
    read_vocabulary(model.at("vocab"));
    if (type == "WordLevel") {
      builder_.set_model(
          make_word_level(builder_.vocabulary(), find(model.get("unk_token").text_or("[UNK]"))));
      return;
    }
    const auto unknown = find(model.get("unk_token").text_or("[UNK]"));
    if (!unknown) model.reject("the unknown token is not in the vocabulary");
    const int64_t characters = model.get("max_input_chars_per_word").integer_or(100);
    builder_.set_model(make_word_piece(builder_.vocabulary(), *unknown,
                                       model.get("continuing_subword_prefix").text_or("##"),
                                       static_cast<size_t>(std::max<int64_t>(characters, 0))));
  }

  void read_bpe(const JsonValue& model) {
    read_vocabulary(model.at("vocab"));
    std::vector<Merge> merges;
    const JsonValue list = model.at("merges");
    if (!list.is_array()) list.reject("expected a list");
    merges.reserve(list.value().items.size());
    for (const Json& item : list.value().items) {
      const auto is_text = [](const Json& part) { return part.kind == Json::Kind::kString; };
      if (item.items.size() == 2 && is_text(item.items[0]) && is_text(item.items[1])) {
        merges.emplace_back(item.items[0].text, item.items[1].text);
        continue;
      }
      const size_t space = item.text.find(' ');
      if (space == item.text.npos || item.text.find(' ', space + 1) != item.text.npos)
        list.reject(str("item ", merges.size(),
                        ": expected two tokens with a space in between, or a list of two"));
      merges.emplace_back(item.text.substr(0, space), item.text.substr(space + 1));
    }
    BpeOptions options;
    const JsonValue dropout = model.get("dropout");
    if (!dropout.is_null() && dropout.number() != 0)
      dropout.reject("random segmentation (dropout) is not supported; remove it");
    options.unknown = named_token(model.get("unk_token"));
    options.continuing_prefix = model.get("continuing_subword_prefix").text_or("");
    options.end_suffix = model.get("end_of_word_suffix").text_or("");
    options.fuse_unknown = model.get("fuse_unk").boolean_or(false);
    options.byte_fallback = model.get("byte_fallback").boolean_or(false);
    options.ignore_merges = model.get("ignore_merges").boolean_or(false);
    try {
      builder_.set_model(make_bpe(builder_.vocabulary(), std::move(merges), options));
    } catch (const Error& e) {
      model.reject(e.message());
    }
  }

  void read_unigram(const JsonValue& model) {
    std::vector<std::pair<std::string, double>> pieces;
    for (const JsonValue& item : model.at("vocab").items()) {
      const auto pair = item.items();
      if (pair.size() != 2) item.reject("expected a token and its score");
      builder_.vocabulary().add(pair[0].text(), static_cast<int64_t>(pieces.size()));
      pieces.emplace_back(pair[0].text(), pair[1].number());
    }
    UnigramOptions options;
    if (const JsonValue unknown = model.get("unk_id"); !unknown.is_null()) {
      options.unknown = token_id(unknown);
      if (static_cast<size_t>(*options.unknown) >= pieces.size())
        unknown.reject("is not in the vocabulary");
    }
    options.byte_fallback = model.get("byte_fallback").boolean_or(false);
    builder_.set_model(make_unigram(std::move(pieces), options, builder_.vocabulary()));
  }

  void read_decoder(const JsonValue& value) {
    each_step(value, "decoders", [&](const std::string& type, const JsonValue& step) {
      if (type == "ByteLevel") {
        builder_.add(byte_level_decoder());
      } else if (type == "WordPiece") {
        builder_.add(word_piece_decoder(step.get("prefix").text_or("##"),
                                        step.get("cleanup").boolean_or(true)));
      } else if (type == "Metaspace") {
        builder_.add(metaspace_decoder(step.get("replacement").text_or("▁"), read_scheme(step)));
      } else if (type == "BPEDecoder") {
        builder_.add(bpe_decoder(step.get("suffix").text_or("</w>")));
      } else if (type == "CTC") {
        builder_.add(ctc_decoder(step.get("pad_token").text_or("<pad>"),
                                 step.get("word_delimiter_token").text_or("|"),
                                 step.get("cleanup").boolean_or(true)));
      } else if (type == "Replace") {
        builder_.add(replace_decoder(read_pattern(step.at("pattern")), step.at("content").text()));
      } else if (type == "ByteFallback") {
        builder_.add(byte_fallback_decoder());
      } else if (type == "Fuse") {
        builder_.add(fuse_decoder());
      } else if (type == "Strip") {
        const int64_t start = step.get("start").integer_or(0),
                      stop = step.get("stop").integer_or(0);
        builder_.add(strip_decoder(step.at("content").text(),
                                   static_cast<size_t>(std::max<int64_t>(start, 0)),
                                   static_cast<size_t>(std::max<int64_t>(stop, 0))));
      } else {
        unknown(step);
      }
    });
  }

  void read_post_processor(const JsonValue& value) {
    each_step(value, "processors", [&](const std::string& type, const JsonValue& step) {
      if (type == "BertProcessing" || type == "RobertaProcessing") {
        const auto token = [&](const char* key) {
          const auto pair = step.at(key).items();
          if (pair.size() != 2) step.at(key).reject("expected a token and its id");
          return token_id(pair[1]);
        };
        prefix_.insert(prefix_.begin(), token("cls"));
        suffix_.push_back(token("sep"));
      } else if (type == "TemplateProcessing") {
        read_template(step);
      } else if (type != "ByteLevel") {  // that only trims offsets
        unknown(step);
      }
    });
  }

  void read_template(const JsonValue& step) {
    std::vector<TokenId> before, after;
    bool behind = false;
    for (const JsonValue& item : step.at("single").items()) {
      if (!item.get("Sequence").is_null()) {
        if (behind) item.reject("a second sequence in the template of a single text");
        behind = true;
        continue;
      }
      const std::string& name = item.at("SpecialToken").at("id").text();
      for (const JsonValue& id : step.at("special_tokens").at(name).at("ids").items())
        (behind ? after : before).push_back(token_id(id));
    }
    prefix_.insert(prefix_.begin(), before.begin(), before.end());
    suffix_.insert(suffix_.end(), after.begin(), after.end());
  }

  JsonValue file_;
  TokenizerBuilder builder_;
  Vocabulary added_;
  std::vector<TokenId> prefix_, suffix_;
  int steps_ = 0;
};

}  // namespace

Tokenizer read_tokenizer_json(const Json& content, const std::string& name) {
  return Reader(JsonValue(content, name)).read();
}

}  // namespace paddle::tokenizers
