#pragma once
// The commands of paddle-infer for a language model and its tokenizer.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "llm/benchmark.h"
#include "llm/generate.h"
#include "serve/batch.h"
#include "text/tokenizer.h"

namespace paddle::cli {

/// Prints a piece of generated text; false if the user asked to stop.
bool print_piece(const std::string& piece);

/// Pairs TOKEN=BIAS, a token's id and a number from -100 to 100, for a vocabulary of `vocab_size`.
/// kUsage for others, and for a duplicate token.
std::map<tokenizers::TokenId, double> read_logit_bias(const std::vector<std::string>& pairs,
                                                      int64_t vocab_size);

/// A prompt with its continuation, and the number of generated tokens where it is known.
struct GeneratedText {
  std::string prompt, text;
  std::optional<int64_t> tokens;
};
/// Prints a JSON object.
void print_generated(const GeneratedText& generated);

struct ContinueOptions {
  bool dry_run = false;  ///< check the prompt, print the number of its tokens, generate nothing
  bool json = false;     ///< print a JSON object on the last line
};
/// Prints the prompt and its continuation; with `options.logprobs`, then a JSON line for each
/// generated token.
void continue_text(llm::LanguageModel& model, const tokenizers::Tokenizer& tokenizer,
                   const std::string& prompt, const llm::GenerateOptions& options,
                   const ContinueOptions& how);

/// The grammar of a JSON Schema's file, or of any JSON object for "object".
std::shared_ptr<grammar::Constraint> schema_constraint(const std::string& file,
                                                       const tokenizers::Tokenizer& tokenizer);
std::shared_ptr<grammar::Constraint> regex_constraint(const std::string& pattern,
                                                      const tokenizers::Tokenizer& tokenizer);

/// A conversation: a line of standard input is a message of the user. An interrupt (Ctrl-C) ends an
/// answer, and without one the conversation.
void run_chat(llm::LanguageModel& model, const tokenizers::Tokenizer& tokenizer,
              const std::string& system, const llm::GenerateOptions& options);

/// Prints the perplexity of a text; nothing after an interrupt. `window` 0: the default one.
void print_perplexity(llm::LanguageModel& model, const tokenizers::Tokenizer& tokenizer,
                      const std::string& text, int64_t window, bool json);

/// Times a language model and prints one JSON line.
void print_benchmark(const std::string& path, const llm::ModelOptions& model,
                     const llm::BenchmarkOptions& options);

/// Writes the vector of each line of a file, or of standard input for "-", as JSON lines to
/// standard output, or to `output` in the format that its name says.
/// With `json`, prints the number of vectors and the output as a JSON object at the end.
void embed_lines(const std::string& path, const llm::ModelOptions& model, const std::string& input,
                 const std::string& output, bool json);

/// Answers a file of requests until an interrupt. With `json`, prints the counts as a JSON object
/// at the end.
void answer_requests(const serve::ModelEntry& model, const serve::BatchOptions& options, bool json);

}  // namespace paddle::cli
