#pragma once
// Chat templates: conversations as the prompt that a model was trained on.

#include <string>

#include "text/jinja/template.h"
#include "text/tokenizer.h"

namespace paddle::tokenizers {

/// The variables that templates expect besides the conversation: bos_token and eos_token.
void add_token_variables(jinja::Dict& variables, const Tokenizer& tokenizer);

/// Renders {"messages": […], "tools": […], "add_generation_prompt": true, …}; every key is a
/// variable of the template. kData if it is no such object.
std::string render_chat(const jinja::Template& chat_template, const Json& conversation,
                        const Tokenizer* tokenizer);

}  // namespace paddle::tokenizers
