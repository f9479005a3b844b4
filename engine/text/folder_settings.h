#pragma once
// The settings of a tokenizer in the small files of a Hugging Face folder: tokenizer_config.json,
// special_tokens_map.json, added_tokens.json and chat templates.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "text/json_value.h"
#include "text/tokenizer.h"

namespace paddle::tokenizers {

struct FolderSettings {
  std::string folder;
  /// Such as "GPT2Tokenizer", without the ending "Fast"; by config.json's model_type if
  /// tokenizer_config.json names none, and empty if neither is known.
  std::string tokenizer_class;
  /// Texts of the special tokens under the names "bos", "eos", "unk", "sep", "pad", "cls" and
  /// "mask".
  std::map<std::string, std::string> special;
  std::vector<std::string> additional_special;
  std::vector<AddedToken> added;
  std::optional<bool> add_bos, add_eos;
  std::optional<bool> add_prefix_space, legacy;                 ///< SentencePiece
  std::optional<bool> lowercase, strip_accents, split_chinese;  ///< BERT
  std::optional<std::string> chat_template;

  bool is_special(const std::string& token) const;
};

/// Files that are not there are left out; kModel for damaged ones.
FolderSettings read_folder_settings(const std::string& folder);

/// The tree of tokenizer.json for a folder of vocab.json and merges.txt (byte-level BPE: the
/// classes GPT2Tokenizer, RobertaTokenizer and Qwen2Tokenizer); adds the special tokens that are
/// the class's defaults to the settings. kModel for other classes and damaged files.
Json bpe_of_files(FolderSettings& settings);
/// The same for vocab.txt (WordPiece: BertTokenizer and the classes that are the same).
Json word_piece_of_file(FolderSettings& settings);

}  // namespace paddle::tokenizers
