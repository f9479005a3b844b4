#include "text/gguf_tokenizer_writer.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "text/folder_settings.h"
#include "text/gguf_token_type.h"
#include "text/load.h"

namespace paddle::tokenizers {

namespace {

using formats::gguf::Metadata;

/// The steps of a normalizer or pre-tokenizer, sequences opened.
std::vector<JsonValue> steps_of(const JsonValue& value, const char* list) {
  if (value.is_null()) return {};
  if (value.at("type").text() != "Sequence") return {value};
  std::vector<JsonValue> out;
  for (const JsonValue& item : value.at(list).items())
    for (const JsonValue& step : steps_of(item, list)) out.push_back(step);
  return out;
}

class GgufTokenizerWriter {
 public:
  GgufTokenizerWriter(const JsonValue& file, const Tokenizer& tokenizer, int64_t vocab_size,
                      Metadata& metadata)
      : file_(file), tokenizer_(tokenizer), metadata_(metadata) {
    if (tokenizer.vocabulary_size() > vocab_size)
      file.reject(str("the tokenizer has ", tokenizer.vocabulary_size(), " tokens, the model ",
                      vocab_size));
    tokens_.resize(static_cast<size_t>(vocab_size));
    types_.assign(tokens_.size(), kGgufUnused);
  }

  void write(const std::vector<int64_t>& ends) {
    const JsonValue model = file_.at("model");
    if (model.get("merges").is_null())
      model.reject("GGUF files are written with tokenizers of BPE, which has 'merges'");
    for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"})
      if (!model.get(key).text_or("").empty())
        model.get(key).reject("GGUF files cannot describe it");
    read_tokens(model);
    bool byte_level = false;
    for (const JsonValue& step : steps_of(file_.get("pre_tokenizer"), "pretokenizers"))
      byte_level |= step.at("type").text() == "ByteLevel";
    byte_level ? write_byte_level(model) : write_sentence_piece(model);
    metadata_.add_texts("tokenizer.ggml.tokens", tokens_);
    metadata_.add_integers("tokenizer.ggml.token_type", types_);
    write_use(ends);
  }

 private:
  void read_tokens(const JsonValue& model) {
    for (const auto& [text, id] : model.at("vocab").value().entries) {
      tokens_[static_cast<size_t>(id.integer)] = text;
      types_[static_cast<size_t>(id.integer)] = kGgufNormal;
    }
    for (const AddedToken& token : tokenizer_.added_tokens()) {
      if (token.single_word)
        file_.reject("GGUF files cannot describe the token '" + token.content +
                     "', which is not found inside of words (single_word)");
      tokens_[static_cast<size_t>(token.id)] = token.content;
      types_[static_cast<size_t>(token.id)] = token.special ? kGgufControl : kGgufUserDefined;
    }
    // Models have more words than tokenizers have tokens.
    for (size_t i = 0; i < tokens_.size(); ++i)
      if (types_[i] == kGgufUnused) tokens_[i] = str("[PAD", i, "]");
  }

  /// The two tokens of each merge.
  std::vector<std::pair<std::string, std::string>> merges(const JsonValue& model) const {
    std::vector<std::pair<std::string, std::string>> out;
    for (const Json& item : model.at("merges").value().items) {
      if (item.items.size() == 2) {
        out.emplace_back(item.items[0].text, item.items[1].text);
        continue;
      }
      const size_t space = item.text.find(' ');
      out.emplace_back(item.text.substr(0, space), item.text.substr(space + 1));
    }
    return out;
  }

  void write_byte_level(const JsonValue& model) {
    for (const JsonValue& step : steps_of(file_.get("normalizer"), "normalizers"))
      // As in other programs' files: texts are expected to be composed.
      if (step.at("type").text() != "NFC") step.at("type").reject("GGUF files cannot describe it");
    std::vector<std::string> patterns;
    for (const JsonValue& step : steps_of(file_.get("pre_tokenizer"), "pretokenizers")) {
      const std::string& type = step.at("type").text();
      if (type == "Split" && step.get("behavior").text_or("Isolated") == "Isolated" &&
          !step.get("invert").boolean_or(false) && step.at("pattern").get("Regex").is_string()) {
        patterns.push_back(step.at("pattern").at("Regex").text());
      } else if (type == "Digits" && step.get("individual_digits").boolean_or(false)) {
        patterns.emplace_back("\\p{N}");
      } else if (type == "ByteLevel") {
        if (step.get("add_prefix_space").boolean_or(true))
          step.get("add_prefix_space").reject("GGUF files cannot describe a space in front");
        if (step.get("use_regex").boolean_or(true)) patterns.push_back(gguf_patterns("gpt-2")[0]);
      } else {
        step.at("type").reject("GGUF files cannot describe it");
      }
    }
    const std::string pre = find_gguf_pre(patterns, model.get("ignore_merges").boolean_or(false));
    if (pre.empty())
      file_.at("pre_tokenizer").reject("no matching pre-tokenizer in GGUF (tokenizer.ggml.pre)");
    metadata_.add_text("tokenizer.ggml.model", "gpt2");
    metadata_.add_text("tokenizer.ggml.pre", pre);
    std::vector<std::string> lines;
    for (const auto& [first, second] : merges(model)) lines.push_back(first + " " + second);
    metadata_.add_texts("tokenizer.ggml.merges", lines);
  }

  /// A space in front of texts; rejects other steps than those of SentencePiece.
  bool space_in_front() const {
    bool escapes = false, prefix = false;
    for (const JsonValue& step : steps_of(file_.get("normalizer"), "normalizers")) {
      const std::string& type = step.at("type").text();
      if (type == "Prepend" && step.at("prepend").text() == "▁")
        prefix = true;
      else if (type == "Replace" && step.at("content").text() == "▁" &&
               step.at("pattern").get("String").text_or("") == " ")
        escapes = true;
      else
        step.at("type").reject("GGUF files cannot describe it");
    }
    for (const JsonValue& step : steps_of(file_.get("pre_tokenizer"), "pretokenizers")) {
      const std::string& type = step.at("type").text();
      if (type == "Metaspace") {
        escapes = true;
        prefix |= step.get("prepend_scheme")
                      .text_or(step.get("add_prefix_space").boolean_or(true) ? "always"
                                                                             : "never") != "never";
      } else if (type != "Split" || !escapes) {
        // A split at spaces changes nothing once they are part of words.
        step.at("type").reject("GGUF files cannot describe it");
      }
    }
    if (!escapes) file_.reject("GGUF files cannot describe BPE without bytes or U+2581 for spaces");
    return prefix;
  }

  /// Scores take the place of merges: each token's is the rank of its merges, which must stand
  /// together.
  void write_sentence_piece(const JsonValue& model) {
    if (!model.get("byte_fallback").boolean_or(false))
      model.reject("GGUF files cannot describe BPE without bytes for unknown characters");
    const bool prefix = space_in_front();
    std::unordered_map<std::string, size_t> first, last;
    size_t rank = 0;
    for (const auto& [left, right] : merges(model)) {
      const std::string whole = left + right;
      if (const auto before = last.find(whole); before != last.end() && before->second + 1 < rank)
        model.at("merges").reject(
            "the merges of '" + whole +
            "' do not follow each other, which GGUF's scores cannot describe");
      first.emplace(whole, rank);
      last[whole] = rank++;
    }
    std::vector<float> scores(tokens_.size());
    for (size_t i = 0; i < tokens_.size(); ++i) {
      const auto found = first.find(tokens_[i]);
      scores[i] = found != first.end() ? -static_cast<float>(found->second) : -1e6F;
      if (types_[i] == kGgufNormal && tokens_[i].size() == 6 && tokens_[i].starts_with("<0x") &&
          tokens_[i].ends_with(">"))
        types_[i] = kGgufByte;
    }
    if (const JsonValue unknown = model.get("unk_token"); !unknown.is_null())
      if (const auto id = tokenizer_.find(unknown.text())) {
        types_[static_cast<size_t>(*id)] = kGgufUnknown;
        metadata_.add_integer("tokenizer.ggml.unknown_token_id", static_cast<uint32_t>(*id));
      }
    metadata_.add_text("tokenizer.ggml.model", "llama");
    metadata_.add_text("tokenizer.ggml.pre", "default");
    metadata_.add_boolean("tokenizer.ggml.add_space_prefix", prefix);
    metadata_.add_numbers("tokenizer.ggml.scores", scores);
  }

  /// The tokens around a text, those with a name, and the chat template.
  void write_use(const std::vector<int64_t>& ends) {
    std::optional<TokenId> beginning = tokenizer_.beginning, end = tokenizer_.end;
    const auto surrounds = [&](const std::vector<TokenId>& tokens, std::optional<TokenId>& named,
                               const char* where) {
      if (tokens.empty()) return false;
      if (!named) named = tokens[0];
      if (tokens.size() > 1 || tokens[0] != *named)
        file_.reject(
            str("the tokenizer puts other tokens ", where, " a text than GGUF files can name"));
      return true;
    };
    const bool before = surrounds(tokenizer_.beginning_tokens(), beginning, "before"),
               after = surrounds(tokenizer_.end_tokens(), end, "after");
    // Answers can have several ends, for which GGUF has keys of their own.
    const char* const more[] = {"tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"};
    size_t others = 0;
    for (const int64_t token : ends) {
      if (token < 0 || token >= static_cast<int64_t>(tokens_.size())) continue;
      if (!end)
        end = static_cast<TokenId>(token);
      else if (token != *end && others < std::size(more))
        metadata_.add_integer(more[others++], static_cast<uint32_t>(token));
    }
    if (beginning)
      metadata_.add_integer("tokenizer.ggml.bos_token_id", static_cast<uint32_t>(*beginning));
    if (end) metadata_.add_integer("tokenizer.ggml.eos_token_id", static_cast<uint32_t>(*end));
    if (const auto pad = tokenizer_.named_tokens.find("pad"); pad != tokenizer_.named_tokens.end())
      if (const auto id = tokenizer_.find(pad->second))
        metadata_.add_integer("tokenizer.ggml.padding_token_id", static_cast<uint32_t>(*id));
    metadata_.add_boolean("tokenizer.ggml.add_bos_token", before);
    metadata_.add_boolean("tokenizer.ggml.add_eos_token", after);
    if (!tokenizer_.chat_template.empty())
      metadata_.add_text("tokenizer.chat_template", tokenizer_.chat_template);
  }

  JsonValue file_;
  const Tokenizer& tokenizer_;
  Metadata& metadata_;
  std::vector<std::string> tokens_;
  std::vector<int32_t> types_;
};

}  // namespace

bool add_gguf_tokenizer(const std::string& folder, int64_t vocab_size,
                        const std::vector<int64_t>& ends, Metadata& metadata,
                        std::vector<std::string>& notes) {
  if (std::vector<std::string> files = tokenizer_files(folder);
      std::none_of(files.begin(), files.end(), [](const std::string& name) {
        return name.starts_with("tokenizer.") || name == "tekken.json" ||
               name.starts_with("vocab.");
      }))
    return false;
  const std::string path = folder + "/tokenizer.json", vocabulary = folder + "/vocab.json";
  FolderSettings settings = read_folder_settings(folder);
  if (!file_exists(path) && !(file_exists(vocabulary) && file_exists(folder + "/merges.txt")))
    fail(ErrorCode::kModel, folder,
         ": GGUF files are written with the tokenizer of tokenizer.json, or of vocab.json and "
         "merges.txt, and the folder has neither");
  const Tokenizer tokenizer = load_tokenizer(folder);
  const bool is_file = file_exists(path);
  const Json content = is_file ? read_json_file(path) : bpe_of_files(settings);
  GgufTokenizerWriter(JsonValue(content, is_file ? path : vocabulary), tokenizer, vocab_size,
                      metadata)
      .write(ends);
  for (const AddedToken& token : tokenizer.added_tokens())
    if (token.left_strip || token.right_strip) {
      notes.push_back(folder + ": tokens such as '" + token.content +
                      "' take the whitespace next to them, which GGUF files cannot describe");
      break;
    }
  return true;
}

}  // namespace paddle::tokenizers
