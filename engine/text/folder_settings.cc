#include "text/folder_settings.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "base/files.h"

namespace paddle::tokenizers {

namespace {

constexpr const char* kNames[] = {"bos", "eos", "unk", "sep", "pad", "cls", "mask"};

/// A token as these files write it: a string, or an object with `content`.
std::string token_text(const JsonValue& value) {
  return value.is_string() ? value.text() : value.at("content").text();
}

void read_special(FolderSettings& settings, const JsonValue& file) {
  for (const char* name : kNames)
    if (const JsonValue value = file.get(std::string(name) + "_token"); !value.is_null())
      settings.special[name] = token_text(value);
  const JsonValue more = file.get("additional_special_tokens");
  if (more.is_array())
    for (const JsonValue& item : more.items())
      settings.additional_special.push_back(token_text(item));
}

TokenId checked_id(int64_t id, const JsonValue& place, const std::string& token) {
  if (id < 0 || id > kMaxTokenId)
    place.reject(str("the id of '", token, "' is ", id, ", expected 0 to ", kMaxTokenId));
  return static_cast<TokenId>(id);
}

/// `added_tokens_decoder`: an object of ids and tokens.
void read_added(FolderSettings& settings, const JsonValue& decoder) {
  if (!decoder.is_object()) decoder.reject("expected an object of ids and tokens");
  for (const auto& [key, value] : decoder.value().entries) {
    const JsonValue item = decoder.at(key);
    AddedToken token;
    token.content = item.at("content").text();
    int64_t id = -1;
    const auto [end, problem] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (problem != std::errc() || end != key.data() + key.size())
      decoder.reject("'" + key + "' is not an id");
    token.id = checked_id(id, decoder, token.content);
    token.special = item.get("special").boolean_or(false);
    token.normalized = item.get("normalized").boolean_or(!token.special);
    token.single_word = item.get("single_word").boolean_or(false);
    token.left_strip = item.get("lstrip").boolean_or(false);
    token.right_strip = item.get("rstrip").boolean_or(false);
    settings.added.push_back(std::move(token));
  }
}

/// added_tokens.json: an object of tokens and ids.
void read_added_file(FolderSettings& settings, const JsonValue& file) {
  if (!file.is_object()) file.reject("expected an object of tokens and ids");
  for (const auto& [text, value] : file.value().entries) {
    AddedToken token;
    token.content = text;
    token.id = checked_id(file.at(text).integer(), file, text);
    token.special = settings.is_special(text);
    token.normalized = !token.special;
    settings.added.push_back(std::move(token));
  }
}

std::string class_of_model(const std::string& folder) {
  const std::string path = folder + "/config.json";
  if (!file_exists(path)) return "";
  const Json content = read_json_file(path);
  const std::string type = JsonValue(content, path).get("model_type").text_or("");
  static const std::map<std::string, std::string> kClasses = {
      {"bert", "BertTokenizer"},        {"gpt2", "GPT2Tokenizer"},
      {"gpt_neox", "GPT2Tokenizer"},    {"opt", "GPT2Tokenizer"},
      {"starcoder2", "GPT2Tokenizer"},  {"roberta", "RobertaTokenizer"},
      {"qwen2", "Qwen2Tokenizer"},      {"qwen2_moe", "Qwen2Tokenizer"},
      {"qwen3", "Qwen2Tokenizer"},      {"qwen3_moe", "Qwen2Tokenizer"},
      {"llama", "LlamaTokenizer"},      {"mistral", "LlamaTokenizer"},
      {"mixtral", "LlamaTokenizer"},    {"gemma2", "GemmaTokenizer"},
      {"gemma3_text", "GemmaTokenizer"}};
  const auto it = kClasses.find(type);
  return it == kClasses.end() ? "" : it->second;
}

std::optional<bool> flag(const JsonValue& file, const char* key) {
  const JsonValue value = file.get(key);
  return value.is_null() ? std::nullopt : std::optional(value.boolean());
}

void read_config(FolderSettings& settings, const JsonValue& config) {
  settings.tokenizer_class = config.get("tokenizer_class").text_or("");
  if (settings.tokenizer_class.ends_with("Fast"))
    settings.tokenizer_class.resize(settings.tokenizer_class.size() - 4);
  settings.add_bos = flag(config, "add_bos_token");
  settings.add_eos = flag(config, "add_eos_token");
  settings.add_prefix_space = flag(config, "add_prefix_space");
  settings.legacy = flag(config, "legacy");
  settings.lowercase = flag(config, "do_lower_case");
  settings.strip_accents = flag(config, "strip_accents");
  settings.split_chinese = flag(config, "tokenize_chinese_chars");
  if (const JsonValue added = config.get("added_tokens_decoder"); !added.is_null())
    read_added(settings, added);
  const JsonValue chat = config.get("chat_template");
  if (chat.is_string()) settings.chat_template = chat.text();
  if (chat.is_array())
    for (const JsonValue& item : chat.items())
      if (item.at("name").text() == "default") settings.chat_template = item.at("template").text();
}

/// Calls `read` with the content of a file that need not be there.
template <class Read>
void read_if_there(const std::string& path, Read&& read) {
  if (!file_exists(path)) return;
  const Json content = read_json_file(path);
  read(JsonValue(content, path));
}

}  // namespace

bool FolderSettings::is_special(const std::string& token) const {
  return std::any_of(special.begin(), special.end(),
                     [&](const auto& entry) { return entry.second == token; }) ||
         std::find(additional_special.begin(), additional_special.end(), token) !=
             additional_special.end();
}

FolderSettings read_folder_settings(const std::string& folder) {
  FolderSettings settings;
  settings.folder = folder;
  read_if_there(folder + "/special_tokens_map.json",
                [&](const JsonValue& file) { read_special(settings, file); });
  read_if_there(folder + "/tokenizer_config.json", [&](const JsonValue& file) {
    read_special(settings, file);
    read_config(settings, file);
  });
  if (settings.added.empty())
    read_if_there(folder + "/added_tokens.json",
                  [&](const JsonValue& file) { read_added_file(settings, file); });
  if (settings.tokenizer_class.empty()) settings.tokenizer_class = class_of_model(folder);
  const std::string file = folder + "/chat_template.jinja";
  if (file_exists(file))
    settings.chat_template = read_file(file, uint64_t{1} << 20, ErrorCode::kModel);
  return settings;
}

}  // namespace paddle::tokenizers
