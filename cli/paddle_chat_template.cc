// paddle chat-template MODEL MESSAGES.json: the prompt that a chat template makes of a
// conversation.

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "commands.h"
#include "common.h"
#include "common_options.h"
#include "text/chat_template.h"
#include "text/load.h"

namespace {

using namespace paddle;

int run_chat_template(int argc, char** argv) {
  cli::App app{"Renders a conversation with a model's chat template and prints the prompt."};
  std::string model, messages;
  bool json = false;
  app.add_option("MODEL", model,
                 "a Hugging Face folder, a GGUF file, or the template itself (.jinja)")
      ->required();
  app.add_option(
         "MESSAGES", messages,
         "JSON: {\"messages\": […], \"tools\": […], \"add_generation_prompt\": true, …}; any "
         "other key is a variable of the template")
      ->required();
  app.add_flag("--json", json, "print a JSON object: the prompt");
  if (const auto status = cli::read_command_line(app, argc, argv)) return *status;
  std::optional<tokenizers::Tokenizer> tokenizer;
  std::string source, name = model;
  if (model.ends_with(".jinja")) {
    source = read_file(model, uint64_t{1} << 20, ErrorCode::kModel);
  } else {
    tokenizer = tokenizers::load_tokenizer(model);
    source = tokenizer->chat_template;
    name = "chat template of " + model;
    if (source.empty()) fail(ErrorCode::kModel, "'", model, "' has no chat template");
  }
  const jinja::Template chat_template(source, name);
  Json conversation;
  try {
    conversation = read_json_file(messages);
  } catch (const Error& e) {
    throw Error(ErrorCode::kData, e.message());
  }
  const std::string prompt =
      tokenizers::render_chat(chat_template, conversation, tokenizer ? &*tokenizer : nullptr);
  if (json)
    cli::print(nlohmann::ordered_json({{"prompt", prompt}})
                   .dump(-1, ' ', true, nlohmann::json::error_handler_t::replace) +
               "\n");
  else
    cli::print_data(prompt);
  return 0;
}

}  // namespace

namespace paddle::cli {

int chat_template_command(int argc, char** argv) {
  return run_tool([&] { return run_chat_template(argc, argv); });
}

}  // namespace paddle::cli
