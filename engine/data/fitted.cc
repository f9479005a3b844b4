#include "data/fitted.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "data/tokens.h"

namespace paddle::data {
namespace {

/// The tokenizers of these fields, each once.
std::vector<const TextTokenizer*> tokenizers_of(std::span<const Fitted> fitted) {
  std::vector<const TextTokenizer*> out;
  for (const Fitted& each : fitted)
    if (each.tokenizer && std::find(out.begin(), out.end(), each.tokenizer.get()) == out.end())
      out.push_back(each.tokenizer.get());
  return out;
}

std::string tokenizer_folder(size_t number) {
  return number == 0 ? "tokenizer" : str("tokenizer_", number + 1);
}

/// Reads the tokenizer that a field names, each folder once.
TextTokenizerPtr kept_tokenizer(const std::string& path, const std::string& name,
                                std::map<std::string, TextTokenizerPtr>& known) {
  if (name.find('/') != name.npos || name.starts_with('.'))
    fail(ErrorCode::kModel, path, ": '", name, "' is not a folder next to it");
  TextTokenizerPtr& tokenizer = known[name];
  const std::string folder = (std::filesystem::path(path).parent_path() / name).string();
  if (!is_directory(folder))
    fail(ErrorCode::kModel, folder, ": the folder of the tokenizer is missing; copy it again from ",
         "the run");
  if (!tokenizer) tokenizer = TextTokenizer::load(folder);
  return tokenizer;
}

}  // namespace

std::string fitted_json(std::span<const Fitted> fitted) {
  nlohmann::ordered_json out = {{"version", 1}, {"fields", nlohmann::ordered_json::array()}};
  const std::vector<const TextTokenizer*> tokenizers = tokenizers_of(fitted);
  for (const Fitted& each : fitted) {
    nlohmann::ordered_json field = {{"name", each.field}};
    if (!each.shift.empty()) field["shift"] = each.shift, field["factor"] = each.factor;
    if (each.log) field["log"] = true;
    if (!each.tokens.empty()) field["tokens"] = each.tokens;
    if (each.bytes) field["bytes"] = true;
    if (each.unknown_is_zero) field["unknown_is_zero"] = true;
    if (!each.token_kind.empty())
      field["token_kind"] = each.token_kind, field["lowercase"] = each.lowercase,
      field["max_length"] = each.max_length;
    if (each.tokenizer) {
      const auto at = std::find(tokenizers.begin(), tokenizers.end(), each.tokenizer.get());
      field["tokenizer"] = tokenizer_folder(static_cast<size_t>(at - tokenizers.begin()));
      if (each.max_length > 0) field["max_length"] = each.max_length;
      if (each.special_tokens) field["special_tokens"] = true;
    }
    out["fields"].push_back(std::move(field));
  }
  return out.dump(1) + "\n";
}

void write_fitted(const std::string& folder, std::span<const Fitted> fitted) {
  const std::vector<const TextTokenizer*> tokenizers = tokenizers_of(fitted);
  for (size_t i = 0; i < tokenizers.size(); ++i)
    tokenizers[i]->save(join_path(folder, tokenizer_folder(i)));
  write_file_atomically(join_path(folder, "fitted.json"), fitted_json(fitted));
}

std::vector<Fitted> read_fitted(const std::string& path) {
  const auto json =
      nlohmann::json::parse(read_file(path, uint64_t{1} << 30, ErrorCode::kModel), nullptr, false);
  std::vector<Fitted> out;
  std::map<std::string, TextTokenizerPtr> tokenizers;
  try {
    if (json.at("version").get<int>() != 1)
      fail(ErrorCode::kModel, path, ": written by a newer version of this program");
    for (const auto& field : json.at("fields")) {
      Fitted& each = out.emplace_back();
      each.field = field.at("name").get<std::string>();
      each.shift = field.value("shift", std::vector<double>());
      each.factor = field.value("factor", std::vector<double>());
      each.log = field.value("log", false);
      each.tokens = field.value("tokens", std::vector<std::string>());
      each.bytes = field.value("bytes", false);
      each.unknown_is_zero = field.value("unknown_is_zero", false);
      each.token_kind = field.value("token_kind", "");
      each.lowercase = field.value("lowercase", false);
      each.max_length = field.value("max_length", int64_t{0});
      if (field.contains("tokenizer"))
        each.tokenizer = kept_tokenizer(path, field.at("tokenizer").get<std::string>(), tokenizers);
      each.special_tokens = field.value("special_tokens", false);
      const bool is_text = parse_token_kind(each.token_kind).has_value();
      if (!each.token_kind.empty() && (!is_text || each.max_length < 1))
        fail(ErrorCode::kModel, path, ": field '", each.field, "' has no valid token_kind");
      if (each.shift.size() != each.factor.size())
        fail(ErrorCode::kModel, path, ": field '", each.field, "' has ", each.shift.size(),
             " shifts and ", each.factor.size(), " factors");
    }
  } catch (const nlohmann::json::exception&) {
    fail(ErrorCode::kModel, path, ": not the JSON that a run writes; copy it again from the run");
  }
  return out;
}

const Fitted* find_fitted(std::span<const Fitted> fitted, const std::string& field) {
  const auto it = std::find_if(fitted.begin(), fitted.end(),
                               [&](const Fitted& each) { return each.field == field; });
  return it == fitted.end() ? nullptr : &*it;
}

}  // namespace paddle::data
