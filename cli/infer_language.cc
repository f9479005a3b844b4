#include "infer_language.h"

#include <fmt/core.h>

#include <array>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/interrupt.h"
#include "base/parallel.h"
#include "base/resident_memory.h"
#include "common.h"
#include "formats/npz.h"
#include "llm/embedder.h"
#include "llm/perplexity.h"
#include "text/chat_template.h"
#include "text/grammar/json_schema.h"
#include "text/grammar/regex.h"
#include "text/token_bytes.h"

namespace paddle::cli {

bool print_piece(const std::string& piece) {
  print_data(piece);
  return pending_interrupt() == 0;
}

std::shared_ptr<grammar::Constraint> schema_constraint(const std::string& file,
                                                       const tokenizers::Tokenizer& tokenizer) {
  constexpr uint64_t kMaxBytes = uint64_t{16} << 20;
  grammar::Grammar grammar;
  if (file == "object" && !file_exists(file)) {
    grammar = grammar::json_object_grammar();
  } else {
    const Json schema = parse_json(read_file(file, kMaxBytes, ErrorCode::kConfig), file);
    grammar = grammar::compile_json_schema(schema);
  }
  return std::make_shared<grammar::Constraint>(
      std::move(grammar), std::make_shared<const grammar::TokenTexts>(tokenizer));
}

std::shared_ptr<grammar::Constraint> regex_constraint(const std::string& pattern,
                                                      const tokenizers::Tokenizer& tokenizer) {
  return std::make_shared<grammar::Constraint>(
      grammar::compile_regex(pattern), std::make_shared<const grammar::TokenTexts>(tokenizer));
}

namespace {

/// The number that is the whole text.
template <class Number>
std::optional<Number> parse_whole(std::string_view text) {
  Number value{};
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  return problem == std::errc() && end == text.data() + text.size() ? std::optional(value)
                                                                    : std::nullopt;
}

}  // namespace

std::map<tokenizers::TokenId, double> read_logit_bias(const std::vector<std::string>& pairs,
                                                      int64_t vocab_size) {
  std::map<tokenizers::TokenId, double> out;
  for (const std::string& pair : pairs) {
    const size_t equals = pair.find('=');
    const auto token = parse_whole<int64_t>(std::string_view(pair).substr(0, equals));
    const auto bias = equals == pair.npos
                          ? std::nullopt
                          : parse_whole<double>(std::string_view(pair).substr(equals + 1));
    if (!token || !bias)
      fail(ErrorCode::kUsage, "--logit-bias is '", pair,
           "', expected TOKEN=BIAS, a token's id and a number");
    if (*token < 0 || *token >= vocab_size)
      fail(ErrorCode::kUsage, "--logit-bias: ", *token, " is not a token; there are ", vocab_size);
    if (!(*bias >= -100 && *bias <= 100))
      fail(ErrorCode::kUsage, "--logit-bias: ", pair.substr(equals + 1),
           " is not a number from -100 to 100");
    if (!out.emplace(static_cast<tokenizers::TokenId>(*token), *bias).second)
      fail(ErrorCode::kUsage, "--logit-bias: duplicate token ", *token);
  }
  return out;
}

namespace {

nlohmann::ordered_json score_line(const tokenizers::TokenBytes& token_bytes,
                                  const llm::TokenScore& score) {
  const std::string text = token_bytes.of(score.token);
  nlohmann::ordered_json bytes = nlohmann::ordered_json::array();
  for (const char c : text) bytes.push_back(static_cast<unsigned char>(c));
  const std::string valid = unicode::to_valid_utf8(text);
  return {{"id", score.token},
          {"token", valid == text ? text : tokenizers::escaped_bytes(text)},
          {"bytes", bytes},
          {"logprob", score.logprob}};
}

void print_scores(const tokenizers::Tokenizer& tokenizer,
                  const std::vector<llm::GeneratedToken>& tokens) {
  const tokenizers::TokenBytes token_bytes(tokenizer);
  for (const llm::GeneratedToken& token : tokens) {
    nlohmann::ordered_json line = score_line(token_bytes, token.score);
    line["top_logprobs"] = nlohmann::ordered_json::array();
    for (const llm::TokenScore& score : token.top)
      line["top_logprobs"].push_back(score_line(token_bytes, score));
    print(line.dump() + "\n");
  }
}

}  // namespace

void continue_text(llm::LanguageModel& model, const tokenizers::Tokenizer& tokenizer,
                   const std::string& prompt, const llm::GenerateOptions& options,
                   const ContinueOptions& how) {
  auto tokens = tokenizer.encode(prompt, {.special = true});
  llm::check_prompt(model.context, tokenizer, tokens, options);  // before anything is printed
  if (how.dry_run) {
    if (how.json)
      print(nlohmann::ordered_json({{"prompt_tokens", tokens.size()}, {"context", model.context}})
                .dump() +
            "\n");
    else
      print(str("prompt: ", tokens.size(), " tokens; context: ", model.context, "\n"));
    return;
  }
  print_data(prompt);
  std::vector<llm::GeneratedToken> scored;
  int64_t generated = 0;
  const std::string text = llm::generate(model, tokenizer, std::move(tokens), options, print_piece,
                                         [&](const llm::GeneratedToken& token) {
                                           ++generated;
                                           if (options.logprobs >= 0) scored.push_back(token);
                                         });
  print("\n");
  print_scores(tokenizer, scored);
  if (how.json) print_generated({prompt, text, generated});
}

void print_generated(const GeneratedText& generated) {
  nlohmann::ordered_json out = {{"prompt", generated.prompt}, {"text", generated.text}};
  if (generated.tokens) out["tokens"] = *generated.tokens;
  print(out.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace) + "\n");
}

void run_chat(llm::LanguageModel& model, const tokenizers::Tokenizer& tokenizer,
              const std::string& system, const llm::GenerateOptions& options) {
  if (tokenizer.chat_template.empty())
    fail(ErrorCode::kModel, "'", model.model->name(), "' has no chat template; use --prompt");
  const jinja::Template chat_template(tokenizer.chat_template, "chat template");
  nlohmann::ordered_json messages = nlohmann::ordered_json::array();
  if (!system.empty()) messages.push_back({{"role", "system"}, {"content", system}});
  const bool terminal = stdout_is_terminal();
  std::string line;
  while (pending_interrupt() == 0) {
    if (terminal) print("> ");
    if (!std::getline(std::cin, line)) break;  // at the end, or by Ctrl-C
    if (line.empty()) continue;
    messages.push_back({{"role", "user"}, {"content", line}});
    const nlohmann::ordered_json conversation = {{"messages", messages},
                                                 {"add_generation_prompt", true}};
    const std::string text =
        conversation.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    const std::string prompt =
        tokenizers::render_chat(chat_template, parse_json(text, "conversation"), &tokenizer);
    // The template has the tokenizer's beginning itself.
    const auto tokens = tokenizer.encode(prompt, {.parse_special = true});
    const std::string answer = llm::generate(model, tokenizer, tokens, options, print_piece);
    print("\n");
    if (pending_interrupt() == SIGINT) clear_interrupt();
    messages.push_back({{"role", "assistant"}, {"content", answer}});
  }
}

void print_perplexity(llm::LanguageModel& model, const tokenizers::Tokenizer& tokenizer,
                      const std::string& text, int64_t window, bool json) {
  const auto tokens = tokenizer.encode(text, {.special = true});
  const auto result =
      llm::perplexity(model, tokens, window, [] { return pending_interrupt() == 0; });
  if (pending_interrupt() != 0) return;
  const nlohmann::ordered_json line = {{"perplexity", result.value}, {"tokens", result.tokens}};
  print(json ? line.dump() + "\n"
             : fmt::format("perplexity: {:.4f} over {} tokens\n", result.value, result.tokens));
}

void print_benchmark(const std::string& path, const llm::ModelOptions& model,
                     const llm::BenchmarkOptions& options) {
  const auto loaded = llm::load_shared(path, model);
  if (!loaded)
    fail(ErrorCode::kUsage, "the model's family has no function 'step', which --prefill times");
  const auto result = llm::benchmark(loaded, options, [] { return pending_interrupt() == 0; });
  if (pending_interrupt() != 0) return;
  nlohmann::ordered_json streams = nlohmann::ordered_json::array();
  for (const llm::StreamSpeed& speed : result.speeds)
    streams.push_back({{"streams", speed.streams},
                       {"prefill_tokens_per_second", speed.prefill},
                       {"decode_tokens_per_second", speed.decode}});
  nlohmann::ordered_json line;
  line["prefill_tokens_per_second"] = result.speeds.at(0).prefill;
  line["decode_tokens_per_second"] = result.speeds.at(0).decode;
  line["streams"] = streams;
  line["prefill"] = options.prefill;
  line["decode"] = options.decode;
  line["repeats"] = options.repeats;
  line["peak_mib"] = static_cast<double>(peak_resident_bytes()) / (1 << 20);
  line["threads"] = thread_count();
  line["parameters"] = loaded->parameter_count();
  line["kernels"] = result.kernels;
  print(line.dump() + "\n");
}

void answer_requests(const serve::ModelEntry& model, const serve::BatchOptions& options,
                     bool json) {
  watch_for_interrupts();
  auto shown = std::chrono::steady_clock::now();
  const auto result = serve::run_batch(model, options, [&](const serve::BatchResult& so_far) {
    if (std::chrono::steady_clock::now() - shown > std::chrono::seconds(10)) {
      shown = std::chrono::steady_clock::now();
      print(str(so_far.kept + so_far.answered + so_far.rejected, " of ", so_far.total,
                " requests\n"));
    }
    return pending_interrupt() == 0;
  });
  print(str("answered ", result.answered, " of ", result.total, " requests",
            result.kept > 0 ? str("; ", result.kept, " were there") : "", "; written to ",
            options.output, "\n"));
  if (result.rejected > 0)
    print_warning(str(result.rejected, " of ", result.total, " requests were rejected"));
  if (json)
    print(nlohmann::ordered_json({{"output", options.output},
                                  {"requests", result.total},
                                  {"answered", result.answered},
                                  {"kept", result.kept},
                                  {"rejected", result.rejected}})
              .dump() +
          "\n");
}

namespace {

/// Vectors one by one, in a format by the file's name.
class VectorWriter {
 public:
  explicit VectorWriter(std::string output) : output_(std::move(output)) {
    const bool known = output_.empty() || output_.ends_with(".jsonl") ||
                       output_.ends_with(".csv") || output_.ends_with(".npz");
    if (!known)
      fail(ErrorCode::kUsage,
           "--output: expected a name that ends in .jsonl, .csv or .npz, found '", output_, "'");
    if (!output_.empty() && !is_array()) file_.emplace(output_);
  }
  void add(const std::vector<float>& vector, int64_t line) {
    if (is_array()) {
      all_.insert(all_.end(), vector.begin(), vector.end());
      width_ = static_cast<int64_t>(vector.size());
      return;
    }
    std::string text;
    if (output_.ends_with(".csv")) {
      for (const float x : vector) text += (text.empty() ? "" : ",") + format_float(x);
    } else {
      text = nlohmann::ordered_json{{"index", line}, {"embedding", vector}}.dump();
    }
    text += "\n";
    if (file_)
      file_->write(text.data(), text.size());
    else
      print_data(text);
  }
  void finish() {
    if (file_) file_->commit();
    if (!is_array()) return;
    const int64_t rows = width_ == 0 ? 0 : static_cast<int64_t>(all_.size()) / width_;
    formats::write_npz(output_, {{"embeddings", Array::from<float>(all_, {rows, width_})}});
  }

 private:
  static std::string format_float(float x) { return fmt::format("{:.9g}", static_cast<double>(x)); }
  bool is_array() const { return output_.ends_with(".npz"); }
  std::string output_;
  std::optional<AtomicFile> file_;
  std::vector<float> all_;
  int64_t width_ = 0;
};

}  // namespace

void embed_lines(const std::string& path, const llm::ModelOptions& model, const std::string& input,
                 const std::string& output, bool json) {
  VectorWriter writer(output);
  std::ifstream file;
  if (input != "-") {
    file.open(input);
    if (!file) fail(ErrorCode::kUsage, input, ": cannot be read");
  }
  std::istream& lines = input == "-" ? std::cin : file;
  llm::Embedder embedder(path, model);
  int64_t number = 0;
  for (std::string line; pending_interrupt() == 0 && std::getline(lines, line); ++number) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    try {
      writer.add(embedder.embed(embedder.tokens(line)), number);
    } catch (const Error& e) {
      fail(ErrorCode::kData, input == "-" ? "standard input" : input, ":", number + 1, ": ",
           e.message());
    }
  }
  if (pending_interrupt() != 0) return;
  writer.finish();
  if (json) print(nlohmann::ordered_json({{"output", output}, {"vectors", number}}).dump() + "\n");
}

}  // namespace paddle::cli
