#pragma once
// A tokenizer of texts that a run keeps: its files are in memory, so that the model's folder gets a
// copy even after the folder that they came from has changed.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "text/tokenizer.h"

namespace paddle::data {

class TextTokenizer {
 public:
  /// Whatever load_tokenizer reads; of a GGUF file the metadata of the tokenizer are kept. With
  /// `chat_template`, that takes the place of its own. kUsage for a path that is not there, kModel
  /// for a damaged or unsupported file.
  static std::shared_ptr<const TextTokenizer> load(const std::string& path,
                                                   const std::string& chat_template = "");

  const tokenizers::Tokenizer& tokenizer() const { return tokenizer_; }
  int64_t size() const { return tokenizer_.vocabulary_size(); }
  const std::string& path() const { return path_; }
  /// Writes the files into a folder, from which `load` makes the same tokenizer.
  void save(const std::string& folder) const;

  /// The ids of a text between the tokenizer's own beginning and end tokens (if `surrounded`), cut
  /// to `limit` with the end tokens kept.
  std::vector<tokenizers::TokenId> encode(std::string_view text, int64_t limit,
                                          bool surrounded) const;

 private:
  std::string path_;
  tokenizers::Tokenizer tokenizer_;
  std::vector<std::pair<std::string, std::string>> files_;     ///< name and content
  std::vector<std::pair<std::string, std::string>> metadata_;  ///< of a GGUF file, instead
};
using TextTokenizerPtr = std::shared_ptr<const TextTokenizer>;

/// A tokenizer as options name it: loaded already, as that of the training data, or a path.
struct TokenizerChoice {
  std::string path = {};
  TextTokenizerPtr loaded = {};
  bool given() const { return loaded || !path.empty(); }
  TextTokenizerPtr open(const std::string& chat_template = "") const {
    return loaded ? loaded : TextTokenizer::load(path, chat_template);
  }
};

}  // namespace paddle::data
