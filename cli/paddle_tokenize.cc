// paddle tokenize MODEL: texts to token ids and back, one JSON value a line.

#include <CLI/CLI.hpp>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "common.h"
#include "text/load.h"

namespace {

using namespace paddle;

nlohmann::json parse_line(const std::string& line, int64_t number) {
  const nlohmann::json value = nlohmann::json::parse(line, nullptr, false);
  if (value.is_discarded())
    fail(ErrorCode::kData, "standard input, line ", number, ": not a JSON value");
  return value;
}

std::vector<tokenizers::TokenId> ids_of(const nlohmann::json& value, int64_t number) {
  std::vector<tokenizers::TokenId> ids;
  const auto is_id = [](const nlohmann::json& item) {
    return item.is_number_unsigned() && item.get<uint64_t>() <= tokenizers::kMaxTokenId;
  };
  if (!value.is_array() || !std::all_of(value.begin(), value.end(), is_id))
    fail(ErrorCode::kData, "standard input, line ", number, ": expected a JSON list of token ids");
  for (const auto& item : value) ids.push_back(item.get<tokenizers::TokenId>());
  return ids;
}

int run(int argc, char** argv) {
  CLI::App app{
      "Turns texts into token ids: reads one JSON string a line from standard input and writes one "
      "JSON list of ids a line."};
  std::string model;
  bool decode = false, special = false;
  app.add_option("MODEL", model,
                 "a Hugging Face folder, tokenizer.json, SentencePiece's .model, tekken.json or a "
                 "GGUF file")
      ->required();
  app.add_flag("--decode", decode, "read JSON lists of ids and write JSON strings");
  app.add_flag("--special", special,
               "parse special tokens and add the tokenizer's own beginning and end; with --decode, "
               "keep special tokens in the text");
  if (const auto status = cli::read_command_line(app, argc, argv)) return *status;
  const tokenizers::Tokenizer tokenizer = tokenizers::load_tokenizer(model);
  std::string line;
  for (int64_t number = 1; std::getline(std::cin, line); ++number) {
    const nlohmann::json value = parse_line(line, number);
    nlohmann::json result;
    if (decode) {
      result = tokenizer.decode(ids_of(value, number), special);
    } else {
      if (!value.is_string())
        fail(ErrorCode::kData, "standard input, line ", number, ": expected a JSON string");
      result = tokenizer.encode(value.get_ref<const std::string&>(), {.special = special});
    }
    // In ASCII: some readers take U+0085 or U+2028 as the end of a line.
    cli::print(result.dump(-1, ' ', true) + "\n");
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return paddle::cli::run_tool([&] { return run(argc, argv); });
}
