// Windows of text: its characters, bytes, or the subwords of a tokenizer.

#include <algorithm>
#include <mutex>
#include <set>

#include "base/files.h"
#include "data/datasets/sources.h"
#include "data/datasets/token_windows.h"
#include "data/sources/record_source.h"
#include "formats/compressed/compressed.h"
#include "text/json_lines.h"
#include "text/sections.h"
#include "text/token_file.h"

namespace paddle::data {
namespace {

TokenRow row_of_characters(const std::vector<std::string>& paths, const Vocabulary& vocabulary) {
  TokenRow::Builder out(vocabulary.size());
  for (const std::string& path : paths) {
    const auto file = formats::open_data_file(path);
    const std::string_view text = file->view();
    int line = 1, column = 1;
    for (size_t at = 0; at < text.size();) {
      const std::string_view character = text.substr(at, character_length(text, at));
      const auto id = vocabulary.find(character);
      if (!id)
        throw Error(ErrorCode::kData,
                    str("character '", printable(character), "' is not in the vocabulary of ",
                        vocabulary.size(), " characters"),
                    {path, line, column});
      out.add(*id);
      ++column;
      if (character == "\n") ++line, column = 1;
      at += character.size();
    }
  }
  return std::move(out).build(paths[0]);
}

TokenRow row_of_subwords(const TextOptions& options, const std::vector<std::string>& paths,
                         const TextTokenizer& tokenizer, std::optional<int64_t> end) {
  TokenRow::Builder out(tokenizer.size());
  const auto add = [&](std::string_view text) {
    tokenizers::encode_sections(tokenizer.tokenizer(), text, {},
                                [&](std::span<const tokenizers::TokenId> ids) {
                                  for (const tokenizers::TokenId id : ids) out.add(id);
                                });
    if (end) out.add(*end);
  };
  for (const std::string& path : paths) {
    const auto file = formats::open_data_file(path);
    if (options.documents == TextDocuments::kRecords)
      for_each_json_text(file->view(), path, options.key, add);
    else
      add(file->view());
  }
  return std::move(out).build(paths[0]);
}

/// The row of a text in subwords. Parts of one text share it: encoding takes its time.
std::shared_ptr<const TokenRow> shared_row(const TextOptions& options,
                                           const std::vector<std::string>& paths,
                                           const TextTokenizerPtr& tokenizer,
                                           std::optional<int64_t> end) {
  struct Encoded {
    std::string name;
    std::weak_ptr<const TextTokenizer> tokenizer;
    std::weak_ptr<const TokenRow> row;
  };
  static std::mutex mutex;
  static std::vector<Encoded> known;
  std::string name =
      str(static_cast<int>(options.documents), '\0', options.key, '\0', end.value_or(-1));
  for (const std::string& path : paths) name += str('\0', path, '\0', file_size(path));
  const std::lock_guard lock(mutex);
  std::erase_if(known, [](const Encoded& each) { return each.row.expired(); });
  for (const Encoded& each : known)
    if (each.name == name && each.tokenizer.lock() == tokenizer)
      if (auto row = each.row.lock()) return row;
  auto row = std::make_shared<const TokenRow>(row_of_subwords(options, paths, *tokenizer, end));
  known.push_back({std::move(name), tokenizer, row});
  return row;
}

/// The id of the token after each document, if there are documents.
std::optional<int64_t> end_token_of(const TextOptions& options, const TextTokenizer& tokenizer) {
  if (options.documents == TextDocuments::kNone) return std::nullopt;
  const auto& own = tokenizer.tokenizer();
  const auto id =
      options.end_token.empty() ? tokenizers::end_of_document(own) : own.find(options.end_token);
  if (!id && options.end_token.empty())
    fail(ErrorCode::kConfig, "text: the tokenizer does not say which token ends a document; name ",
         "it with `end_token`");
  if (!id)
    fail(ErrorCode::kConfig, "text: the end token '", options.end_token,
         "' is not in the vocabulary of ", tokenizer.path());
  return *id;
}

WindowOptions windows_of(const TextOptions& o, std::optional<int64_t> end) {
  return {o.context, o.windows, o.samples, o.stride, o.token_field, o.target_field, end};
}

Vocabulary characters_of_files(const std::vector<std::string>& paths) {
  std::set<std::string, std::less<>> all;  // UTF-8 sorts as its code points do
  for (const std::string& path : paths) {
    const auto file = formats::open_data_file(path);
    const Vocabulary own = Vocabulary::characters_of(file->view(), path);
    all.insert(own.tokens().begin(), own.tokens().end());
  }
  return Vocabulary({all.begin(), all.end()});
}

class CharacterDataset final : public WindowDataset {
 public:
  CharacterDataset(const TextOptions& options, const std::vector<std::string>& paths,
                   Vocabulary vocabulary, const DatasetOptions& part)
      : WindowDataset("text", paths, windows_of(options, std::nullopt), row_of(paths, vocabulary),
                      part),
        token_field_(options.token_field),
        vocabulary_(std::move(vocabulary)) {}
  const Vocabulary* vocabulary(int64_t) const override { return &vocabulary_; }
  std::vector<Fitted> fitted() const override {
    Fitted fitted;
    fitted.field = token_field_;
    fitted.bytes = vocabulary_.is_bytes();
    if (!fitted.bytes) fitted.tokens = vocabulary_.tokens();
    return {fitted};
  }
  std::vector<std::pair<std::string, std::string>> facts() const override {
    auto out = WindowDataset::facts();
    out.emplace_back("vocabulary",
                     str(vocabulary_.size(), vocabulary_.is_bytes() ? " bytes" : " characters"));
    return out;
  }

 private:
  static std::shared_ptr<const TokenRow> row_of(const std::vector<std::string>& paths,
                                                const Vocabulary& vocabulary) {
    return std::make_shared<const TokenRow>(vocabulary.is_bytes()
                                                ? TokenRow::of_files(paths, 1, 256)
                                                : row_of_characters(paths, vocabulary));
  }
  std::string token_field_;
  Vocabulary vocabulary_;
};

/// Windows of tokens that a tokenizer made, now or before.
class SubwordDataset final : public WindowDataset {
 public:
  SubwordDataset(std::string kind, const std::vector<std::string>& paths,
                 const WindowOptions& windows, std::shared_ptr<const TokenRow> row,
                 TextTokenizerPtr tokenizer, const DatasetOptions& part)
      : WindowDataset(std::move(kind), paths, windows, std::move(row), part),
        token_field_(windows.token_field),
        vocabulary_size_(fields()[0].class_count),
        tokenizer_(std::move(tokenizer)) {}
  std::vector<Fitted> fitted() const override {
    if (!tokenizer_) return {};
    Fitted fitted;
    fitted.field = token_field_;
    fitted.tokenizer = tokenizer_;
    return {fitted};
  }
  std::vector<std::pair<std::string, std::string>> facts() const override {
    auto out = WindowDataset::facts();
    out.emplace_back("vocabulary", str(vocabulary_size_, " tokens"));
    return out;
  }

 private:
  std::string token_field_;
  int64_t vocabulary_size_;
  TextTokenizerPtr tokenizer_;
};

std::vector<std::string> expand_all(const std::string& path, const std::vector<std::string>& more) {
  std::vector<std::string> out = expand_pattern(path);
  for (const std::string& each : more)
    for (std::string& file : expand_pattern(each)) out.push_back(std::move(file));
  return out;
}

/// The id that a config names, as a number or a token.
std::optional<int64_t> end_token_of(const TokensOptions& options, const TextTokenizer* tokenizer) {
  const std::string& text = options.end_token;
  if (text.empty()) return std::nullopt;
  if (tokenizer)
    if (const auto id = tokenizer->tokenizer().find(text)) return *id;
  if (text.size() < 10 &&
      std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; }))
    return std::stoll(text);
  fail(ErrorCode::kConfig, "tokens: end_token is '", text, "', expected an id",
       tokenizer ? " or a token of the tokenizer" : "; tokens need a `tokenizer`");
}

}  // namespace

DatasetPtr make_text(const TextOptions& options, const DatasetOptions& part) {
  const std::vector<std::string> paths = expand_all(options.path, options.more_paths);
  if (options.tokenizer.given()) {
    const TextTokenizerPtr tokenizer = options.tokenizer.open();
    const auto end = end_token_of(options, *tokenizer);
    return std::make_shared<SubwordDataset>("text", paths, windows_of(options, end),
                                            shared_row(options, paths, tokenizer, end), tokenizer,
                                            part);
  }
  if (options.documents != TextDocuments::kNone)
    fail(ErrorCode::kConfig, "text: `documents` needs a `tokenizer`, whose end token is between ",
         "them");
  Vocabulary vocabulary = !options.vocabulary.empty() ? Vocabulary(options.vocabulary)
                          : !options.vocabulary_file.empty()
                              ? Vocabulary::read(options.vocabulary_file)
                          : options.level == TextLevel::kBytes ? Vocabulary::bytes()
                                                               : characters_of_files(paths);
  return std::make_shared<CharacterDataset>(options, paths, std::move(vocabulary), part);
}

DatasetPtr make_tokens(const TokensOptions& options, const DatasetOptions& part) {
  const std::vector<std::string> paths = expand_all(options.path, options.more_paths);
  const TextTokenizerPtr tokenizer =
      options.tokenizer.given() ? options.tokenizer.open() : TextTokenizerPtr();
  const int64_t size = options.vocabulary_size > 0 ? options.vocabulary_size
                       : tokenizer                 ? tokenizer->size()
                                                   : 0;
  if (size < 1)
    fail(ErrorCode::kConfig, "tokens: give `vocabulary_size`, or the `tokenizer` of the files");
  if (tokenizer && size < tokenizer->size())
    fail(ErrorCode::kConfig, "tokens: vocabulary_size is ", size, ", the tokenizer has ",
         tokenizer->size(), " tokens");
  WindowOptions windows = options.windows;
  windows.end_token = end_token_of(options, tokenizer.get());
  auto row = std::make_shared<const TokenRow>(TokenRow::of_files(paths, options.width, size));
  return std::make_shared<SubwordDataset>("tokens", paths, windows, std::move(row), tokenizer,
                                          part);
}

}  // namespace paddle::data
