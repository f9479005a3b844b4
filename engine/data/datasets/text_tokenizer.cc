#include "data/datasets/text_tokenizer.h"

#include <algorithm>
#include <filesystem>

#include "base/files.h"
#include "formats/gguf/writer.h"
#include "text/load.h"
#include "text/sections.h"

namespace paddle::data {
namespace {

constexpr uint64_t kMaxTokenizerBytes = uint64_t{256} << 20;
constexpr char kGgufName[] = "tokenizer.gguf";
constexpr char kTemplateName[] = "chat_template.jinja";

/// The name under which a single file is found in a folder again.
std::string name_in_folder(const std::string& path, const std::string& content) {
  if (!path.ends_with(".json")) return "tokenizer.model";
  const Json json = parse_json(content, path);
  return json.find("config") && json.find("vocab") ? "tekken.json" : "tokenizer.json";
}

}  // namespace

TextTokenizerPtr TextTokenizer::load(const std::string& path, const std::string& chat_template) {
  auto out = std::make_shared<TextTokenizer>();
  out->path_ = path;
  out->tokenizer_ = tokenizers::load_tokenizer(path);
  const auto keep = [&](const std::string& file, std::string name) {
    if (formats::gguf::is_gguf(file)) {
      const auto reader = formats::gguf::Reader::open(file);
      for (const auto& [key, bytes] : reader.raw_metadata())
        if (key.starts_with("tokenizer.")) out->metadata_.emplace_back(key, bytes);
      return;
    }
    std::string content = read_file(file, kMaxTokenizerBytes, ErrorCode::kModel);
    if (name.empty()) name = name_in_folder(file, content);
    out->files_.emplace_back(std::move(name), std::move(content));
  };
  if (is_directory(path)) {
    for (const std::string& name : tokenizers::tokenizer_files(path))
      keep(join_path(path, name), name);
  } else {
    keep(path, "");
  }
  if (!chat_template.empty()) {
    out->tokenizer_.chat_template = chat_template;
    std::erase_if(out->files_, [](const auto& file) { return file.first == kTemplateName; });
    out->files_.emplace_back(kTemplateName, chat_template);
  }
  return out;
}

void TextTokenizer::save(const std::string& folder) const {
  ensure_directory(folder);
  for (const auto& [name, content] : files_)
    write_file_atomically(join_path(folder, name), content);
  if (metadata_.empty()) return;
  std::vector<formats::gguf::RawValue> values;
  for (const auto& [key, bytes] : metadata_) values.push_back({key, bytes});
  formats::gguf::Writer(join_path(folder, kGgufName), {}, values, 32).close();
}

std::vector<tokenizers::TokenId> TextTokenizer::encode(std::string_view text, int64_t limit,
                                                       bool surrounded) const {
  std::vector<tokenizers::TokenId> ids, end;
  if (surrounded) ids = tokenizer_.beginning_tokens(), end = tokenizer_.end_tokens();
  const auto room = static_cast<size_t>(limit);
  // Of a text far longer than the limit the beginning is enough.
  constexpr size_t kBytesPerToken = 128;
  if (text.size() / kBytesPerToken > room)
    text = text.substr(0, tokenizers::section_length(text, room * kBytesPerToken));
  const std::vector<tokenizers::TokenId> own = tokenizer_.encode(text);
  ids.insert(ids.end(), own.begin(), own.end());
  ids.resize(std::min(ids.size(), room > end.size() ? room - end.size() : 0));
  ids.insert(ids.end(), end.begin(), end.end());
  ids.resize(std::min(ids.size(), room));
  return ids;
}

}  // namespace paddle::data
