#pragma once
// LanguageModel: text generation with a model in a GGUF file or a Hugging Face folder; TextEncoder:
// vectors of texts.
//
//   paddle::LanguageModel model("SmolLM2-135M-Instruct");
//   paddle::GenerateOptions options;
//   options.length = 64;
//   options.on_text = [](const std::string& piece) { std::fputs(piece.c_str(), stdout); return
//   true; }; model.generate("The capital of France is", options);
//
// Threads may share both: calls on one object run one at a time.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "paddle/config.h"

namespace paddle::v0 {

struct LanguageModelOptions {
  int64_t context = 0;  ///< tokens of prompt and answer; 0: the model's, as far as memory allows
  std::string kv_cache = "f32";  ///< keys and values: "f32", "bf16" or "int8"
  std::string activations =
      "int16";                    ///< in products with block-quantized weights; "int8", "float32"
  std::string weights = "as-is";  ///< or "int8", "int4": quantize matrices while loading
  std::string adapter;            ///< folder of a PEFT adapter
  std::string family;             ///< model file; "": the one of the model's type
};

struct GenerateOptions {
  int64_t length = 200;    ///< tokens at most
  double temperature = 1;  ///< 0: always the most likely token
  int64_t top_k = 0;       ///< 0: all tokens
  double top_p = 1, min_p = 0;
  double repetition_penalty = 1, presence_penalty = 0, frequency_penalty = 0;
  uint64_t seed = 0;
  std::vector<std::string> stops;  ///< the text ends before the first of these
  std::string json_schema;         ///< the text is JSON that is valid for this schema (its text)
  std::string regex;  ///< constrain the output to strings that match this regular expression
  /// Called with each piece of text as it becomes known: whole characters, possibly none. Ends the
  /// generation by returning false; an exception comes out of the call. Must not call the model.
  std::function<bool(const std::string&)> on_text;
};

struct GeneratedText {
  std::string text;  ///< without the prompt
  int64_t prompt_tokens = 0, generated_tokens = 0;
};

/// A message of a conversation. `role` is "system", "user", "assistant" or another one that the
/// model's chat template knows.
struct ChatMessage {
  std::string role, content;
};

class PADDLE_API LanguageModel {
 public:
  /// Opens a GGUF file or a Hugging Face folder. UsageError for a path without either and for
  /// options out of range, ModelError for what the family does not know, DeviceError for too little
  /// memory.
  explicit LanguageModel(const std::string& path, const LanguageModelOptions& options = {});
  ~LanguageModel();
  LanguageModel(LanguageModel&&) noexcept;
  LanguageModel& operator=(LanguageModel&&) noexcept;

  const std::string& name() const;
  int64_t context() const;  ///< tokens of prompt and answer
  int64_t parameter_count() const;
  int64_t vocabulary_size() const;

  /// Token ids of a text. `special`: special tokens in the text are parsed, and the tokenizer's own
  /// beginning and end are added.
  std::vector<int64_t> encode(const std::string& text, bool special = true) const;
  /// The text of token ids, without special tokens. DataError for ids out of range.
  std::string decode(const std::vector<int64_t>& tokens) const;

  /// Continues a text. What the last call had in common with it is not computed again. UsageError
  /// for a prompt beyond the context.
  GeneratedText generate(const std::string& prompt, const GenerateOptions& options = {});
  GeneratedText generate(const std::vector<int64_t>& prompt, const GenerateOptions& options = {});

  bool has_chat_template() const;
  /// The conversation as the model's chat template writes it, with the beginning of an answer.
  /// ModelError without a template, DataError where it rejects the conversation.
  std::string chat_prompt(const std::vector<ChatMessage>& messages) const;
  /// The same for the JSON text of an object with the template's variables: {"messages": [...],
  /// "tools": [...]}, as `paddle chat-template` takes it.
  std::string chat_prompt(const std::string& conversation) const;
  /// The answer to a conversation.
  GeneratedText chat(const std::vector<ChatMessage>& messages, const GenerateOptions& options = {});
  GeneratedText chat(const std::string& conversation, const GenerateOptions& options = {});

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

class PADDLE_API TextEncoder {
 public:
  /// Opens an encoder such as BERT: a Hugging Face folder (also one of sentence-transformers) or a
  /// GGUF file. Errors as those of LanguageModel.
  explicit TextEncoder(const std::string& path);
  ~TextEncoder();
  TextEncoder(TextEncoder&&) noexcept;
  TextEncoder& operator=(TextEncoder&&) noexcept;

  int64_t width() const;    ///< numbers of a vector
  int64_t context() const;  ///< tokens of a text
  /// The vector of a text, of length 1 unless the model's files say otherwise; it does not depend
  /// on earlier calls. UsageError for a text beyond the context.
  std::vector<float> embed(const std::string& text);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace paddle::v0
