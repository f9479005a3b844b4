// SentencePiece's .model files (ModelProto): unigram and BPE models with their normalizer.
// Format: https://github.com/google/sentencepiece/blob/master/src/sentencepiece_model.proto
#include <algorithm>
#include <bit>

#include "base/error.h"
#include "formats/protobuf.h"
#include "text/folder_settings.h"
#include "text/load.h"

namespace paddle::tokenizers {

namespace {

using formats::ProtobufReader;

enum PieceType : uint64_t { kNormal = 1, kUnknown, kControl, kUserDefined, kUnused, kByte };
enum ModelType : uint64_t { kUnigram = 1, kBpe, kWord, kCharacter };

struct Model {
  std::vector<std::string_view> pieces;
  std::vector<float> scores;
  std::vector<uint64_t> types;
  uint64_t model_type = kUnigram;
  bool has_trainer_spec = false;
  bool byte_fallback = false, space_as_suffix = false;
  std::string unknown_surface = " \u2047 ";  ///< the text that an unknown piece decodes to
  std::string_view charsmap;
  bool dummy_prefix = true, remove_extra_spaces = true, escape_spaces = true;
};

void read_piece(ProtobufReader reader, Model& model) {
  std::string_view text;
  float score = 0;
  uint64_t type = kNormal;
  for (ProtobufReader::Field f; reader.next(f);) {
    if (f.number == 1) text = f.bytes;
    if (f.number == 2) score = std::bit_cast<float>(static_cast<uint32_t>(f.integer));
    if (f.number == 3) type = f.integer;
  }
  model.pieces.push_back(text);
  model.scores.push_back(score);
  model.types.push_back(type);
}

Model parse(std::string_view content, const std::string& name) {
  Model model;
  const ProtobufReader::Reject reject = [&](size_t at) {
    fail(ErrorCode::kModel, name, ": not a SentencePiece model (byte ", at, ")");
  };
  ProtobufReader reader(content, reject);
  for (ProtobufReader::Field f; reader.next(f);) {
    ProtobufReader inner = reader.message(f);
    if (f.number == 1) read_piece(inner, model);
    model.has_trainer_spec |= f.number == 2;
    if (f.number == 2)
      for (ProtobufReader::Field g; inner.next(g);) {
        if (g.number == 3) model.model_type = g.integer;
        if (g.number == 24) model.space_as_suffix = g.integer != 0;
        if (g.number == 44) model.unknown_surface = unicode::to_valid_utf8(g.bytes);
        if (g.number == 35) model.byte_fallback = g.integer != 0;
      }
    if (f.number == 3)
      for (ProtobufReader::Field g; inner.next(g);) {
        if (g.number == 2) model.charsmap = g.bytes;
        if (g.number == 3) model.dummy_prefix = g.integer != 0;
        if (g.number == 4) model.remove_extra_spaces = g.integer != 0;
        if (g.number == 5) model.escape_spaces = g.integer != 0;
      }
  }
  if (model.pieces.empty() || !model.has_trainer_spec)
    fail(ErrorCode::kModel, name, ": not a SentencePiece model: it has no ",
         model.pieces.empty() ? "pieces" : "trainer_spec, as if the file were cut");
  return model;
}

/// The added tokens of a folder by id. They are searched in the raw text.
std::map<TokenId, AddedToken> added_tokens(const FolderSettings* settings) {
  std::map<TokenId, AddedToken> out;
  if (settings)
    for (AddedToken token : settings->added) {
      token.normalized = false;
      out.emplace(token.id, std::move(token));
    }
  return out;
}

/// The tokens around a text of a folder's tokenizer.
void surround(TokenizerBuilder& builder, const FolderSettings& settings,
              const std::map<std::string, TokenId>& ids) {
  Tokenizer& t = builder.tokenizer();
  const auto set = [&](const char* name, std::optional<TokenId>& token) {
    const auto text = settings.special.find(name);
    if (text == settings.special.end()) return;
    const auto id = ids.find(text->second);
    token = id == ids.end() ? std::nullopt : std::optional(id->second);
  };
  set("bos", t.beginning);
  set("eos", t.end);
  std::vector<TokenId> prefix, suffix;
  if (settings.add_bos.value_or(true) && t.beginning) prefix.push_back(*t.beginning);
  if (settings.add_eos.value_or(false) && t.end) suffix.push_back(*t.end);
  builder.set_surrounding(std::move(prefix), std::move(suffix));
}

}  // namespace

Tokenizer read_sentence_piece(std::string_view content, const std::string& name,
                              const FolderSettings* settings) {
  const Model model = parse(content, name);
  if (model.model_type != kUnigram && model.model_type != kBpe)
    fail(ErrorCode::kModel, name, ": model type ", model.model_type,
         "; unigram (1) and BPE (2) are supported");
  if (model.space_as_suffix || !model.escape_spaces)
    fail(ErrorCode::kModel, name,
         ": spaces at the ends of words (treat_whitespace_as_suffix) and "
         "unescaped spaces are not supported");

  TokenizerBuilder builder;
  std::vector<std::pair<std::string, double>> unigram_pieces;
  std::string unknown;
  std::map<TokenId, AddedToken> listed_tokens = added_tokens(settings);
  std::map<std::string, TokenId> ids;
  ScoreBpeOptions bpe;
  bpe.byte_fallback = model.byte_fallback;
  for (size_t i = 0; i < model.pieces.size(); ++i) {
    const std::string text = unicode::to_valid_utf8(model.pieces[i]);
    const auto id = static_cast<TokenId>(i);
    const uint64_t type = model.types[i];
    ids.emplace(text, id);
    const auto listed = listed_tokens.extract(id);
    if (listed)
      builder.add_token(std::move(listed.mapped()));
    else if (type == kUnknown && settings && settings->is_special(text))
      builder.add_token({.content = text, .id = id, .special = true});
    if (type == kControl || type == kUserDefined) {
      // User-defined pieces are searched in the normalized text.
      const bool user = type == kUserDefined;
      if (!listed)
        builder.add_token(
            {.content = text, .id = id, .special = !user, .normalized = user, .verbatim = true});
      if (text == "<s>") builder.tokenizer().beginning = id;
      if (text == "</s>") builder.tokenizer().end = id;
    } else {
      builder.vocabulary().add(text, id);
    }
    if (type == kUnknown) {
      bpe.unknown = id;
      unknown = text;
    }
    // Pieces that are not searched keep their index with an empty text.
    const bool searched = type == kNormal;
    unigram_pieces.emplace_back(searched ? text : "", static_cast<double>(model.scores[i]));
    bpe.unused.push_back(type == kUnused || type == kUnknown);
  }
  for (auto& [id, token] : listed_tokens) {
    ids.emplace(token.content, id);
    builder.add_token(std::move(token));
  }
  if (settings) surround(builder, *settings, ids);
  if (!model.charsmap.empty()) builder.add(precompiled_normalizer(model.charsmap, true));
  if (model.remove_extra_spaces) builder.add(squeeze_spaces_normalizer());
  // The space in front: of each part between added tokens, or (`legacy: false`) of the text only.
  const bool prefix =
      settings ? settings->add_prefix_space.value_or(model.dummy_prefix) : model.dummy_prefix;
  const bool once = prefix && settings && !settings->legacy.value_or(true);
  builder.add(escape_spaces_normalizer(prefix && !once));
  if (once) builder.add(metaspace_pre_tokenizer("▁", PrependScheme::kFirst, false));
  if (model.model_type == kUnigram) {
    // The penalty of unknown characters refers to the lowest score of a normal piece.
    double lowest = 0;
    bool any = false;
    for (size_t i = 0; i < model.types.size(); ++i)
      if (model.types[i] == kNormal) {
        lowest = any ? std::min(lowest, unigram_pieces[i].second) : unigram_pieces[i].second;
        any = true;
      }
    for (size_t i = 0; i < model.types.size(); ++i)
      if (model.types[i] != kNormal)
        unigram_pieces[i].second = std::max(unigram_pieces[i].second, lowest);
    builder.set_model(make_unigram(
        std::move(unigram_pieces),
        {.unknown = bpe.unknown, .byte_fallback = model.byte_fallback, .single_precision = true},
        builder.vocabulary()));
  } else {
    builder.set_model(make_score_bpe(builder.vocabulary(), model.scores, std::move(bpe)));
  }
  if (prefix || model.remove_extra_spaces)
    builder.add(leading_space_decoder(model.remove_extra_spaces));
  if (!unknown.empty()) builder.add(rename_decoder(unknown, model.unknown_surface));
  builder.add(replace_decoder(Pattern::literal("▁"), " "));
  builder.add(byte_fallback_decoder());
  builder.add(fuse_decoder());
  return builder.build();
}

}  // namespace paddle::tokenizers
