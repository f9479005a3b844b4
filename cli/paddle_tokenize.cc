// paddle tokenize: texts to token ids and back, one JSON value a line; files of texts to files of
// tokens; and training of a tokenizer.

#include <iostream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "commands.h"
#include "common.h"
#include "common_options.h"
#include "text/bpe_trainer.h"
#include "text/load.h"
#include "text/token_file.h"

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

void answer_lines(const tokenizers::Tokenizer& tokenizer, bool decode, bool special) {
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
}

void train(const std::vector<std::string>& files, tokenizers::BpeTrainingOptions options,
           const std::string& output, bool dry_run, bool json) {
  const int64_t wanted = options.vocabulary_size;
  tokenizers::BpeTrainer trainer(std::move(options));
  uint64_t bytes = 0;
  for (const std::string& file : files) {
    const auto text = MappedFile::open(file);
    trainer.add(text->view());
    bytes += text->size();
  }
  const tokenizers::TrainedBpe trained = trainer.train();
  if (!dry_run) write_file_atomically(output, tokenizers::tokenizer_json(trained));
  cli::print(str(output, ": ", trained.tokens.size(), " tokens, ", trained.merges.size(),
                 " merges, from ", bytes, " bytes and ", trained.distinct_words, " words",
                 dry_run ? "; nothing is written\n" : "\n"));
  if (trained.dropped_words > 0)
    cli::print_warning(
        str(trained.dropped_words, " rare words were dropped: there are too many distinct ones"));
  if (static_cast<int64_t>(trained.tokens.size()) < wanted)
    cli::print_warning(str("the text gives ", trained.tokens.size(), " tokens, not ", wanted,
                           ": no further pair occurs often enough"));
  if (json)
    cli::print(nlohmann::ordered_json({{"output", output},
                                       {"tokens", trained.tokens.size()},
                                       {"merges", trained.merges.size()},
                                       {"bytes", bytes},
                                       {"distinct_words", trained.distinct_words},
                                       {"written", !dry_run}})
                   .dump() +
               "\n");
}

struct TokenizeArguments {
  std::string model, output;
  std::vector<std::string> training, inputs;
  bool decode = false, special = false, overwrite = false, dry_run = false, json = false;
  tokenizers::BpeTrainingOptions trained;
  tokenizers::TokenFileOptions written;
};

void add_arguments(cli::App& app, TokenizeArguments& a) {
  app.add_option("MODEL", a.model,
                 "a Hugging Face folder, tokenizer.json, SentencePiece's .model, tekken.json or a "
                 "GGUF file");
  auto* decodes =
      app.add_flag("--decode", a.decode, "read JSON lists of ids and write JSON strings");
  app.add_flag("--special", a.special,
               "parse special tokens and add the tokenizer's own beginning and end; with --decode, "
               "keep special tokens in the text; with --input, parse them without adding any");
  auto* input = app.add_option("--input", a.inputs, "files of text that become one file of tokens")
                    ->excludes(decodes);
  app.add_option("--jsonl", a.written.json_key,
                 "with --input: the files are JSON lines, and this key of a record is a document")
      ->needs(input);
  app.add_option(
         "--end", a.written.end_token,
         "with --input: the separator token (EOS) after each document (default: none after a "
         "file, the tokenizer's end token after a record of --jsonl)")
      ->needs(input);
  auto* trains = app.add_option("--train", a.training, "learn a tokenizer from these files of text")
                     ->excludes(input)
                     ->excludes(decodes);
  app.add_option("--vocabulary-size", a.trained.vocabulary_size,
                 "with --train: tokens, the 256 bytes and special ones included (default: 8000)")
      ->needs(trains);
  app.add_option("--min-count", a.trained.min_count,
                 "with --train: how often a pair must occur to become a token (default: 2)")
      ->check(cli::in_range(int64_t{1}, int64_t{1} << 40))
      ->needs(trains);
  app.add_option("--special-token", a.trained.special_tokens,
                 "with --train: a token that is not written in texts, repeatable (default: "
                 "<|endoftext|>)")
      ->needs(trains);
  auto* out = app.add_option("-o,--output", a.output,
                             "the file of --train (tokenizer.json) or of --input (tokens.bin)");
  app.add_flag("--overwrite", a.overwrite, "replace an existing file")->needs(out);
  app.add_flag("--dry-run", a.dry_run, "with --input or --train: count, write nothing");
  app.add_flag(
      "--json", a.json,
      "with --input or --train: print a JSON object on the last line; otherwise the output "
      "is JSON in any case");
}

void check_output(const TokenizeArguments& a) {
  const bool writes = !a.training.empty() || !a.inputs.empty();
  if (writes == a.output.empty())
    fail(ErrorCode::kUsage,
         writes ? "no file to write is given: -o FILE" : "--output is for --train and --input");
  if (a.dry_run && !writes) fail(ErrorCode::kUsage, "--dry-run is for --train and --input");
  if (!a.dry_run) cli::check_output(a.output, a.overwrite);
}

int run_tokenize(int argc, char** argv) {
  cli::App app{
      "Turns texts into token ids: reads one JSON string a line from standard input and writes one "
      "JSON list of ids a line. With --input, files of text become a file of tokens. With --train, "
      "learns a byte-level BPE tokenizer from files of text."};
  TokenizeArguments a;
  add_arguments(app, a);
  if (const auto status = cli::read_command_line(app, argc, argv)) return *status;
  check_output(a);
  if (!a.training.empty()) {
    if (!a.model.empty())
      fail(ErrorCode::kUsage, "--train learns a tokenizer and takes no MODEL, found '", a.model,
           "'");
    train(a.training, std::move(a.trained), a.output, a.dry_run, a.json);
    return 0;
  }
  if (a.model.empty())
    fail(ErrorCode::kUsage, "no tokenizer is given (see paddle-tokenize --help)");
  const tokenizers::Tokenizer tokenizer = tokenizers::load_tokenizer(a.model);
  if (a.inputs.empty()) {
    answer_lines(tokenizer, a.decode, a.special);
    return 0;
  }
  a.written.special = a.special;
  const auto summary =
      tokenizers::write_token_file(tokenizer, a.inputs, a.written, a.dry_run ? "" : a.output);
  cli::print(str(a.output, ": ", summary.tokens, " tokens of ", summary.documents,
                 summary.documents == 1 ? " document as " : " documents as ",
                 summary.bytes_each == 2 ? "uint16" : "uint32", ", vocabulary_size ",
                 tokenizer.vocabulary_size(), a.dry_run ? "; nothing is written\n" : "\n"));
  if (a.json)
    cli::print(nlohmann::ordered_json({{"output", a.output},
                                       {"tokens", summary.tokens},
                                       {"documents", summary.documents},
                                       {"bytes_per_token", summary.bytes_each},
                                       {"vocabulary_size", tokenizer.vocabulary_size()},
                                       {"written", !a.dry_run}})
                   .dump() +
               "\n");
  return 0;
}

}  // namespace

namespace paddle::cli {

int tokenize_command(int argc, char** argv) {
  return run_tool([&] { return run_tokenize(argc, argv); });
}

}  // namespace paddle::cli
