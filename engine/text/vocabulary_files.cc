// Tokenizers whose vocabulary is in separate files, vocab.json with merges.txt or vocab.txt.
// They are read as the tokenizer.json that transformers makes of them.
#include <algorithm>
#include <sstream>

#include "base/error.h"
#include "base/files.h"
#include "text/folder_settings.h"

namespace paddle::tokenizers {

namespace {

constexpr uint64_t kMaxFileBytes = uint64_t{256} << 20;

Json text_json(std::string text) {
  Json out;
  out.kind = Json::Kind::kString;
  out.text = std::move(text);
  return out;
}

Json integer_json(int64_t integer) {
  Json out;
  out.kind = Json::Kind::kInteger;
  out.integer = integer;
  out.number = static_cast<double>(integer);
  return out;
}

Json boolean_json(bool boolean) {
  Json out;
  out.kind = Json::Kind::kBoolean;
  out.boolean = boolean;
  return out;
}

Json list_of(std::vector<Json> items) {
  Json out;
  out.kind = Json::Kind::kArray;
  out.items = std::move(items);
  return out;
}

using Entries = std::vector<std::pair<std::string, Json>>;
Json object_of(Entries entries) {
  Json out;
  out.kind = Json::Kind::kObject;
  out.entries = std::move(entries);
  return out;
}

/// The lines of a text without their ends.
std::vector<std::string> lines_of_file(const std::string& path) {
  std::istringstream text(read_file(path, kMaxFileBytes, ErrorCode::kModel));
  std::vector<std::string> out;
  for (std::string line; std::getline(text, line);) {
    if (line.ends_with('\r')) line.pop_back();
    out.push_back(std::move(line));
  }
  return out;
}

/// The tree of a tokenizer.json.
class Tree {
 public:
  Tree(FolderSettings& settings, Json vocabulary, std::map<std::string, std::string> defaults)
      : settings_(settings), vocabulary_(std::move(vocabulary)) {
    settings.special.merge(defaults);
    for (const auto& [text, id] : vocabulary_.entries) ids_.emplace(text, id.integer);
    for (const AddedToken& token : settings.added) ids_.insert_or_assign(token.content, token.id);
  }

  const std::string& special(const std::string& name) const { return settings_.special.at(name); }
  const Json& vocabulary() const { return vocabulary_; }
  void set(const char* key, Json value) { entries_.emplace_back(key, std::move(value)); }
  void parse(const char* key, const char* text) { set(key, parse_json(text, key)); }
  /// The tokens of these names before and after a text; those without an id are left out.
  void surround(const std::vector<std::string>& before, const std::vector<std::string>& behind) {
    std::vector<Json> single;
    Entries tokens;
    const auto add = [&](const std::vector<std::string>& names) {
      for (const std::string& name : names) {
        const auto token = settings_.special.find(name);
        if (token == settings_.special.end() || !ids_.contains(token->second)) continue;
        single.push_back(
            object_of({{"SpecialToken", object_of({{"id", text_json(token->second)}})}}));
        tokens.emplace_back(token->second,
                            object_of({{"ids", list_of({integer_json(ids_.at(token->second))})}}));
      }
    };
    add(before);
    single.push_back(object_of({{"Sequence", object_of({{"id", text_json("A")}})}}));
    add(behind);
    set("post_processor", object_of({{"type", text_json("TemplateProcessing")},
                                     {"single", list_of(std::move(single))},
                                     {"special_tokens", object_of(std::move(tokens))}}));
  }
  Json finish() {
    add_tokens();
    return object_of(std::move(entries_));
  }

 private:
  /// Special tokens of the vocabulary are found in the text even if no file lists them.
  void add_tokens() {
    std::vector<Json> added;
    std::vector<std::string> listed;
    const auto add = [&](const AddedToken& token) {
      if (std::find(listed.begin(), listed.end(), token.content) != listed.end()) return;
      listed.push_back(token.content);
      added.push_back(object_of({{"content", text_json(token.content)},
                                 {"id", integer_json(token.id)},
                                 {"special", boolean_json(token.special)},
                                 {"normalized", boolean_json(token.normalized)},
                                 {"single_word", boolean_json(token.single_word)},
                                 {"lstrip", boolean_json(token.left_strip)},
                                 {"rstrip", boolean_json(token.right_strip)}}));
    };
    for (const AddedToken& token : settings_.added) add(token);
    const auto add_special = [&](const std::string& text) {
      if (const auto id = ids_.find(text); id != ids_.end())
        add({.content = text, .id = static_cast<TokenId>(id->second), .special = true});
    };
    for (const auto& [name, text] : settings_.special) add_special(text);
    for (const std::string& text : settings_.additional_special) add_special(text);
    set("added_tokens", list_of(std::move(added)));
  }

  const FolderSettings& settings_;
  Json vocabulary_;
  std::map<std::string, int64_t> ids_;
  Entries entries_;
};

constexpr const char* kQwen2Pieces = R"({"type": "Sequence", "pretokenizers": [
  {"type": "Split", "behavior": "Isolated", "invert": false, "pattern": {"Regex":
   "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"}},
  {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}]})";

Json read_vocabulary_file(const std::string& path) {
  Json vocabulary = read_json_file(path);
  const JsonValue value(vocabulary, path);
  if (!value.is_object()) value.reject("expected an object of tokens and ids");
  for (const auto& [text, id] : vocabulary.entries)
    if (id.kind != Json::Kind::kInteger || id.integer < 0 || id.integer > kMaxTokenId)
      value.reject(str("the id of '", text, "' is not an integer from 0 to ", kMaxTokenId));
  return vocabulary;
}

std::vector<Json> read_merges_file(const std::string& path) {
  std::vector<Json> merges;
  int64_t number = 0;
  for (std::string& line : lines_of_file(path)) {
    ++number;
    if (line.empty() || line.starts_with("#version")) continue;
    const size_t space = line.find(' ');
    if (space == line.npos || line.find(' ', space + 1) != line.npos)
      fail(ErrorCode::kModel, path, ":", number, ": expected two tokens with a space in between");
    merges.push_back(text_json(std::move(line)));
  }
  return merges;
}

}  // namespace

Json bpe_of_files(FolderSettings& settings) {
  const std::string& kind = settings.tokenizer_class;
  const bool roberta = kind == "RobertaTokenizer", qwen2 = kind == "Qwen2Tokenizer";
  if (!roberta && !qwen2 && !kind.empty() && kind != "GPT2Tokenizer")
    fail(ErrorCode::kModel, settings.folder, ": the tokenizer is a ", kind,
         "; with vocab.json and merges.txt, GPT2Tokenizer, RobertaTokenizer and Qwen2Tokenizer "
         "are supported, and every kind with tokenizer.json");
  std::map<std::string, std::string> defaults;
  if (roberta)
    defaults = {{"bos", "<s>"},   {"eos", "</s>"},  {"sep", "</s>"},   {"cls", "<s>"},
                {"unk", "<unk>"}, {"pad", "<pad>"}, {"mask", "<mask>"}};
  else if (qwen2)
    defaults = {{"eos", "<|endoftext|>"}, {"pad", "<|endoftext|>"}, {"unk", "<|endoftext|>"}};
  else
    defaults = {{"bos", "<|endoftext|>"}, {"eos", "<|endoftext|>"}, {"unk", "<|endoftext|>"}};
  Tree tree(settings, read_vocabulary_file(settings.folder + "/vocab.json"), std::move(defaults));
  if (qwen2) {
    tree.parse("normalizer", R"({"type": "NFC"})");
    tree.parse("pre_tokenizer", kQwen2Pieces);
  } else {
    const bool prefix = settings.add_prefix_space.value_or(false);
    tree.set("pre_tokenizer", object_of({{"type", text_json("ByteLevel")},
                                         {"add_prefix_space", boolean_json(prefix)}}));
  }
  tree.set("model",
           object_of({{"type", text_json("BPE")},
                      {"vocab", tree.vocabulary()},
                      {"merges", list_of(read_merges_file(settings.folder + "/merges.txt"))}}));
  tree.parse("decoder", R"({"type": "ByteLevel"})");
  if (roberta) {
    tree.surround({"cls"}, {"sep"});
  } else {
    std::vector<std::string> before, behind;
    if (settings.add_bos.value_or(false)) before = {"bos"};
    if (settings.add_eos.value_or(false)) behind = {"eos"};
    tree.surround(before, behind);
  }
  return tree.finish();
}

Json word_piece_of_file(FolderSettings& settings) {
  const std::string& kind = settings.tokenizer_class;
  const auto kinds = {"", "BertTokenizer", "DistilBertTokenizer", "ElectraTokenizer"};
  if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end())
    fail(ErrorCode::kModel, settings.folder, ": the tokenizer is a ", kind,
         "; with vocab.txt, BertTokenizer, DistilBertTokenizer and ElectraTokenizer are supported, "
         "and every kind with tokenizer.json");
  Entries tokens;
  for (std::string& line : lines_of_file(settings.folder + "/vocab.txt")) {
    const auto id = static_cast<int64_t>(tokens.size());
    if (id > kMaxTokenId)
      fail(ErrorCode::kModel, settings.folder, "/vocab.txt: more than ", kMaxTokenId, " lines");
    tokens.emplace_back(std::move(line), integer_json(id));
  }
  Tree tree(
      settings, object_of(std::move(tokens)),
      {{"unk", "[UNK]"}, {"sep", "[SEP]"}, {"pad", "[PAD]"}, {"cls", "[CLS]"}, {"mask", "[MASK]"}});
  const bool lowercase = settings.lowercase.value_or(true);
  tree.set(
      "normalizer",
      object_of({{"type", text_json("BertNormalizer")},
                 {"lowercase", boolean_json(lowercase)},
                 {"strip_accents", boolean_json(settings.strip_accents.value_or(lowercase))},
                 {"handle_chinese_chars", boolean_json(settings.split_chinese.value_or(true))}}));
  tree.parse("pre_tokenizer", R"({"type": "BertPreTokenizer"})");
  tree.set("model", object_of({{"type", text_json("WordPiece")},
                               {"unk_token", text_json(tree.special("unk"))},
                               {"vocab", tree.vocabulary()}}));
  tree.parse("decoder", R"({"type": "WordPiece", "prefix": "##", "cleanup": true})");
  tree.surround({"cls"}, {"sep"});
  return tree.finish();
}

}  // namespace paddle::tokenizers
