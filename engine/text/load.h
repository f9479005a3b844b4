#pragma once
// Reading tokenizers from the files of other tools: Hugging Face's tokenizer.json and model
// folders, SentencePiece's .model, Mistral's tekken.json, and the metadata of GGUF files.

#include <string>
#include <vector>

#include "formats/gguf/reader.h"
#include "text/json_value.h"
#include "text/tokenizer.h"

namespace paddle::tokenizers {

struct FolderSettings;

/// Any of them: one of these files, or a folder with one, or with vocab.json and merges.txt or
/// vocab.txt. kUsage for a path that is not there, kModel for a damaged or unsupported file.
Tokenizer load_tokenizer(const std::string& path);
/// Names of the files of a folder that `load_tokenizer` reads.
std::vector<std::string> tokenizer_files(const std::string& folder);

Tokenizer read_tokenizer_json(const Json& content, const std::string& name);
Tokenizer read_tekken(const Json& content, const std::string& name);
/// With `settings`, as transformers' LlamaTokenizer does with a folder that has no tokenizer.json:
/// the beginning stands in front of a text unless add_bos_token is false, and the folder's added
/// tokens are found in it.
Tokenizer read_sentence_piece(std::string_view content, const std::string& name,
                              const FolderSettings* settings = nullptr);
Tokenizer read_gguf_tokenizer(const formats::gguf::Reader& file);

/// The patterns of a GGUF file's `tokenizer.ggml.pre`; kModel for an unknown name.
std::vector<std::string> gguf_patterns(const std::string& pre);
/// Whether words that are tokens are taken whole with it, whatever their merges say.
bool gguf_ignores_merges(const std::string& pre);
/// A name with these patterns; empty if there is none.
std::string find_gguf_pre(const std::vector<std::string>& patterns, bool ignores_merges);

}  // namespace paddle::tokenizers
