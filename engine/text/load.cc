#include "text/load.h"

#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "text/folder_settings.h"

namespace paddle::tokenizers {

namespace {

constexpr uint64_t kMaxBytes = uint64_t{256} << 20;

/// Template, beginning and end, which tokenizers do not have themselves.
void set_use(Tokenizer& tokenizer, const FolderSettings& settings) {
  const auto named = [&](const char* name, std::optional<TokenId>& token) {
    if (const auto it = settings.special.find(name); it != settings.special.end())
      token = tokenizer.find(it->second);
  };
  named("bos", tokenizer.beginning);
  named("eos", tokenizer.end);
  for (const auto& [name, text] : settings.special)
    if (name != "bos" && name != "eos") tokenizer.named_tokens[name] = text;
  if (settings.chat_template) tokenizer.chat_template = *settings.chat_template;
}

Tokenizer load_folder(const std::string& folder) {
  const auto has = [&](const char* name) { return file_exists(folder + "/" + name); };
  FolderSettings settings = read_folder_settings(folder);
  Tokenizer tokenizer = [&] {
    if (has("tokenizer.json")) return load_tokenizer(folder + "/tokenizer.json");
    // Without a word on its class it is what the file by itself is.
    if (const std::string path = folder + "/tokenizer.model"; file_exists(path))
      return read_sentence_piece(read_file(path, kMaxBytes, ErrorCode::kModel), path,
                                 settings.tokenizer_class.empty() ? nullptr : &settings);
    if (has("tekken.json")) return load_tokenizer(folder + "/tekken.json");
    if (has("tokenizer.gguf")) return load_tokenizer(folder + "/tokenizer.gguf");
    if (has("vocab.json") && has("merges.txt"))
      return read_tokenizer_json(bpe_of_files(settings), folder + "/vocab.json");
    if (has("vocab.txt"))
      return read_tokenizer_json(word_piece_of_file(settings), folder + "/vocab.txt");
    fail(ErrorCode::kUsage, "'", folder,
         "' has no tokenizer: expected tokenizer.json, tokenizer.model, tekken.json, vocab.json "
         "with merges.txt, or vocab.txt in it");
  }();
  set_use(tokenizer, settings);
  return tokenizer;
}

}  // namespace

std::vector<std::string> tokenizer_files(const std::string& folder) {
  std::vector<std::string> out;
  const auto take = [&](const char* name) {
    const bool there = file_exists(folder + "/" + name);
    if (there) out.emplace_back(name);
    return there;
  };
  // As load_folder chooses: one file, or those of a vocabulary.
  const bool is_complete = take("tokenizer.json") || take("tokenizer.model") ||
                           take("tekken.json") || take("tokenizer.gguf");
  if (!is_complete && !(take("vocab.json") && take("merges.txt"))) take("vocab.txt");
  for (const char* name : {"special_tokens_map.json", "added_tokens.json", "chat_template.jinja"})
    take(name);
  if (!take("tokenizer_config.json")) take("config.json");  // which may name the class
  return out;
}

Tokenizer load_tokenizer(const std::string& path) {
  if (is_directory(path)) return load_folder(path);
  if (!file_exists(path)) fail(ErrorCode::kUsage, "'", path, "' does not exist");
  if (formats::gguf::is_gguf(path)) return read_gguf_tokenizer(formats::gguf::Reader::open(path));
  if (path.ends_with(".json")) {
    const Json content = read_json_file(path);
    return content.find("config") && content.find("vocab") ? read_tekken(content, path)
                                                           : read_tokenizer_json(content, path);
  }
  return read_sentence_piece(read_file(path, kMaxBytes, ErrorCode::kModel), path);
}

}  // namespace paddle::tokenizers
