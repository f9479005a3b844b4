#include "text/chat_template.h"

#include "base/error.h"

namespace paddle::tokenizers {

void add_token_variables(jinja::Dict& variables, const Tokenizer& tokenizer) {
  const auto add = [&](const char* name, const std::optional<TokenId>& id) {
    const std::string* text = id ? tokenizer.token(*id) : nullptr;
    if (text) variables.set(name, *text);
  };
  add("bos_token", tokenizer.beginning);
  add("eos_token", tokenizer.end);
  for (const auto& [name, text] : tokenizer.named_tokens) variables.set(name + "_token", text);
}

std::string render_chat(const jinja::Template& chat_template, const Json& conversation,
                        const Tokenizer* tokenizer) {
  if (conversation.kind != Json::Kind::kObject || !conversation.find("messages"))
    fail(ErrorCode::kData, "a conversation is a JSON object with \"messages\"");
  jinja::Dict variables;
  if (tokenizer) add_token_variables(variables, *tokenizer);
  // As in Hugging Face's transformers, these are defined even where the request has none.
  for (const char* name : {"tools", "documents"}) variables.set(name, jinja::None{});
  variables.set("add_generation_prompt", false);
  for (const auto& [key, value] : conversation.entries) variables.set(key, jinja::from_json(value));
  return chat_template.render(std::make_shared<const jinja::Dict>(std::move(variables)));
}

}  // namespace paddle::tokenizers
