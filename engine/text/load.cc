#include "text/load.h"

#include <algorithm>

#include "base/error.h"
#include "base/files.h"

namespace paddle::tokenizers {

namespace {

/// A token of tokenizer_config.json: a string, or an object with `content`.
std::optional<TokenId> configured_token(const Tokenizer& tokenizer, const JsonValue& value) {
  if (value.is_null()) return std::nullopt;
  return tokenizer.find(value.is_string() ? value.text() : value.at("content").text());
}

/// Reads the other files of a model folder: template, beginning and end.
void read_folder_settings(Tokenizer& tokenizer, const std::string& folder) {
  const std::string config = folder + "/tokenizer_config.json";
  if (file_exists(config)) {
    const Json content = read_json_file(config);
    const JsonValue settings(content, config);
    tokenizer.beginning = configured_token(tokenizer, settings.get("bos_token"));
    tokenizer.end = configured_token(tokenizer, settings.get("eos_token"));
    const JsonValue chat = settings.get("chat_template");
    if (chat.is_string()) tokenizer.chat_template = chat.text();
    if (chat.is_array())
      for (const JsonValue& item : chat.items())
        if (item.at("name").text() == "default")
          tokenizer.chat_template = item.at("template").text();
  }
  const std::string file = folder + "/chat_template.jinja";
  if (file_exists(file))
    tokenizer.chat_template = read_file(file, uint64_t{1} << 20, ErrorCode::kModel);
}

Tokenizer load_folder(const std::string& folder) {
  for (const char* name :
       {"/tokenizer.json", "/tokenizer.model", "/tekken.json", "/tokenizer.gguf"})
    if (file_exists(folder + name)) {
      Tokenizer tokenizer = load_tokenizer(folder + name);
      read_folder_settings(tokenizer, folder);
      return tokenizer;
    }
  fail(ErrorCode::kUsage, "'", folder,
       "' has no tokenizer: expected tokenizer.json, tokenizer.model or tekken.json in it");
}

}  // namespace

Tokenizer load_tokenizer(const std::string& path) {
  if (is_directory(path)) return load_folder(path);
  if (!file_exists(path)) fail(ErrorCode::kUsage, "'", path, "' does not exist");
  if (formats::gguf::is_gguf(path)) return read_gguf_tokenizer(formats::gguf::Reader::open(path));
  if (path.ends_with(".json")) {
    const Json content = read_json_file(path);
    return content.find("config") && content.find("vocab") ? read_tekken(content, path)
                                                           : read_tokenizer_json(content, path);
  }
  return read_sentence_piece(read_file(path, uint64_t{256} << 20, ErrorCode::kModel), path);
}

}  // namespace paddle::tokenizers
