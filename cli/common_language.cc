#include "common_language.h"

#include <sys/resource.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/interrupt.h"
#include "base/parallel.h"
#include "common.h"
#include "llm/perplexity.h"
#include "text/chat_template.h"

namespace paddle::cli {

bool print_piece(const std::string& piece) {
  print(piece);
  return pending_interrupt() == 0;
}

void continue_text(llm::LanguageModel& model, const tokenizers::Tokenizer& tokenizer,
                   const std::string& prompt, const llm::GenerateOptions& options) {
  auto tokens = tokenizer.encode(prompt, {.special = true});
  llm::check_prompt(model.context, tokenizer, tokens, options);  // before anything is printed
  print(prompt);
  llm::generate(model, tokenizer, std::move(tokens), options, print_piece);
  print("\n");
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
    if (!std::getline(std::cin, line)) break;
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
  std::array<char, 64> number{};
  std::snprintf(number.data(), number.size(), "%.4f", result.value);
  print(json ? line.dump() + "\n"
             : str("perplexity: ", number.data(), " over ", result.tokens, " tokens\n"));
}

void print_benchmark(const std::string& path, const llm::ModelOptions& model,
                     const llm::BenchmarkOptions& options) {
  const auto loaded = llm::load_shared(path, model);
  if (!loaded)
    fail(ErrorCode::kUsage, "the model's family has no function 'step', which --prefill times");
  const auto result = llm::benchmark(loaded, options, [] { return pending_interrupt() == 0; });
  if (pending_interrupt() != 0) return;
  struct rusage usage {};
  getrusage(RUSAGE_SELF, &usage);
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
  line["peak_mib"] = static_cast<double>(usage.ru_maxrss) / 1024;
  line["threads"] = thread_count();
  line["parameters"] = loaded->parameter_count();
  line["kernels"] = result.kernels;
  print(line.dump() + "\n");
}

void answer_requests(const serve::ModelEntry& model, const serve::BatchOptions& options) {
  watch_for_interrupts();
  auto shown = std::chrono::steady_clock::now();
  const auto result = serve::run_batch(model, options, [&](const serve::BatchResult& so_far) {
    if (std::chrono::steady_clock::now() - shown > std::chrono::seconds(10)) {
      shown = std::chrono::steady_clock::now();
      print(
          str(so_far.kept + so_far.answered + so_far.refused, " of ", so_far.total, " requests\n"));
    }
    return pending_interrupt() == 0;
  });
  print(str("answered ", result.answered, " of ", result.total, " requests",
            result.kept > 0 ? str("; ", result.kept, " were there") : "", "; written to ",
            options.output, "\n"));
  if (result.refused > 0)
    print_error(str("warning: ", result.refused, " of ", result.total, " requests were refused"));
}

}  // namespace paddle::cli
