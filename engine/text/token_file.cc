#include "text/token_file.h"

#include <algorithm>

#include "base/files.h"
#include "base/text.h"
#include "text/json_lines.h"
#include "text/sections.h"

namespace paddle::tokenizers {

namespace {

class TokenWriter {
 public:
  TokenWriter(const Tokenizer& tokenizer, const TokenFileOptions& options,
              const std::string& output)
      : tokenizer_(tokenizer), options_(options) {
    if (!output.empty()) file_.emplace(output);
    summary_.bytes_each = tokenizer.vocabulary_size() <= 65536 ? 2 : 4;
    if (!options.end_token.empty()) {
      end_ = tokenizer.find(options.end_token);
      if (!end_)
        fail(ErrorCode::kUsage, "the end token '", options.end_token, "' is not in the vocabulary");
    } else if (!options.json_key.empty()) {
      end_ = end_of_document(tokenizer);
      if (!end_)
        fail(ErrorCode::kUsage, "the tokenizer does not say which token ends a document; name it ",
             "with --end");
    }
  }
  void add_document(std::string_view text) {
    encode_sections(tokenizer_, text, {.parse_special = options_.special},
                    [&](std::span<const TokenId> ids) { add(ids); });
    if (end_) add({&*end_, 1});
    ++summary_.documents;
  }
  TokenFileSummary finish() {
    if (file_) file_->commit();
    return summary_;
  }

 private:
  void add(std::span<const TokenId> ids) {
    bytes_.clear();
    for (const TokenId id : ids)
      for (int b = 0; b < summary_.bytes_each; ++b)
        bytes_ += static_cast<char>(static_cast<uint32_t>(id) >> (8 * b) & 0xff);
    if (file_) file_->write(bytes_);
    summary_.tokens += static_cast<int64_t>(ids.size());
  }

  const Tokenizer& tokenizer_;
  TokenFileOptions options_;
  std::optional<AtomicFile> file_;  ///< none: tokens are only counted
  std::optional<TokenId> end_;
  TokenFileSummary summary_;
  std::string bytes_;
};

}  // namespace

std::optional<TokenId> end_of_document(const Tokenizer& tokenizer) {
  if (tokenizer.end) return tokenizer.end;
  for (const char* name : {"<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>"})
    if (const auto id = tokenizer.find(name)) return id;
  return std::nullopt;
}

TokenFileSummary write_token_file(const Tokenizer& tokenizer, const std::vector<std::string>& files,
                                  const TokenFileOptions& options, const std::string& output) {
  TokenWriter writer(tokenizer, options, output);
  for (const std::string& path : files) {
    const auto file = MappedFile::open(path);
    if (options.json_key.empty())
      writer.add_document(file->view());
    else
      for_each_json_text(file->view(), path, options.json_key,
                         [&](std::string_view text) { writer.add_document(text); });
  }
  return writer.finish();
}

}  // namespace paddle::tokenizers
