#include "paddle/language_model.h"

#include <mutex>
#include <nlohmann/json.hpp>
#include <utility>

#include "api/access.h"
#include "llm/embedder.h"
#include "llm/generate.h"
#include "llm/language_model.h"
#include "text/chat_template.h"
#include "text/grammar/json_schema.h"
#include "text/grammar/regex.h"
#include "text/load.h"

namespace paddle::v0 {
namespace {

using tokenizers::TokenId;

llm::ModelOptions engine_options(const LanguageModelOptions& options) {
  llm::ModelOptions out;
  out.family = options.family;
  out.activations = llm::activations(options.activations);
  out.weights = llm::weight_type(options.weights);
  out.runner.cache = llm::cache_type(options.kv_cache);
  out.runner.adapter = options.adapter;
  if (options.context < 0)
    fail(paddle::ErrorCode::kUsage, "LanguageModelOptions::context is ", options.context);
  out.runner.context = options.context;
  return out;
}

std::string conversation_of(const std::vector<ChatMessage>& messages) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const ChatMessage& message : messages)
    list.push_back({{"role", message.role}, {"content", message.content}});
  const nlohmann::ordered_json conversation = {{"messages", list}, {"add_generation_prompt", true}};
  return conversation.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

class LanguageModel::Impl {
 public:
  Impl(const std::string& path, const LanguageModelOptions& options) {
    if (!llm::is_language_model(path))
      fail(paddle::ErrorCode::kUsage, path, ": neither a GGUF file nor a Hugging Face folder");
    model_ = llm::open_language_model(path, engine_options(options));
    tokenizer_ = tokenizers::load_tokenizer(path);
  }

  const std::string& name() const { return model_.model->name(); }
  int64_t context() const { return model_.context; }
  int64_t parameter_count() const { return model_.model->parameter_count(); }
  const tokenizers::Tokenizer& tokenizer() const { return tokenizer_; }

  GeneratedText generate(std::vector<TokenId> prompt, const GenerateOptions& given) {
    const llm::GenerateOptions options = generate_options(given);
    const std::lock_guard lock(mutex_);
    llm::check_prompt(model_.context, tokenizer_, prompt, options);
    GeneratedText out;
    out.prompt_tokens = static_cast<int64_t>(prompt.size());
    out.text = llm::generate(
        model_, tokenizer_, std::move(prompt), options,
        [&](const std::string& piece) { return !given.on_text || given.on_text(piece); },
        [&](const llm::GeneratedToken&) { ++out.generated_tokens; });
    return out;
  }

  std::string chat_prompt(const std::string& conversation) const {
    if (tokenizer_.chat_template.empty())
      fail(paddle::ErrorCode::kModel, "'", name(), "' has no chat template");
    const jinja::Template chat_template(tokenizer_.chat_template, "chat template");
    return tokenizers::render_chat(chat_template, parse_json(conversation, "conversation"),
                                   &tokenizer_);
  }

  GeneratedText chat(const std::string& conversation, const GenerateOptions& options) {
    // The template has the tokenizer's beginning itself.
    return generate(tokenizer_.encode(chat_prompt(conversation), {.parse_special = true}), options);
  }

 private:
  llm::GenerateOptions generate_options(const GenerateOptions& given) const {
    llm::GenerateOptions out;
    out.length = given.length;
    out.sampling = {given.temperature, given.top_k, given.top_p, given.min_p,
                    given.repetition_penalty};
    out.seed = given.seed;
    out.stops = given.stops;
    out.presence_penalty = given.presence_penalty;
    out.frequency_penalty = given.frequency_penalty;
    if (!given.json_schema.empty() && !given.regex.empty())
      fail(paddle::ErrorCode::kUsage, "json_schema and regex are mutually exclusive");
    if (!given.json_schema.empty())
      out.constraint =
          constraint(grammar::compile_json_schema(parse_json(given.json_schema, "json_schema")));
    if (!given.regex.empty()) out.constraint = constraint(grammar::compile_regex(given.regex));
    return out;
  }

  std::shared_ptr<grammar::Constraint> constraint(grammar::Grammar grammar) const {
    return std::make_shared<grammar::Constraint>(
        std::move(grammar), std::make_shared<const grammar::TokenTexts>(tokenizer_));
  }

  std::mutex mutex_;
  llm::LanguageModel model_;
  tokenizers::Tokenizer tokenizer_;
};

LanguageModel::LanguageModel(const std::string& path, const LanguageModelOptions& options)
    : impl_(translated([&] { return std::make_unique<Impl>(path, options); })) {}
LanguageModel::~LanguageModel() = default;
LanguageModel::LanguageModel(LanguageModel&&) noexcept = default;
LanguageModel& LanguageModel::operator=(LanguageModel&&) noexcept = default;

const std::string& LanguageModel::name() const { return impl_->name(); }
int64_t LanguageModel::context() const { return impl_->context(); }
int64_t LanguageModel::parameter_count() const { return impl_->parameter_count(); }
int64_t LanguageModel::vocabulary_size() const { return impl_->tokenizer().vocabulary_size(); }

std::vector<int64_t> LanguageModel::encode(const std::string& text, bool special) const {
  return translated([&] {
    const std::vector<TokenId> ids = impl_->tokenizer().encode(text, {.special = special});
    return std::vector<int64_t>(ids.begin(), ids.end());
  });
}

namespace {

std::vector<TokenId> engine_tokens(const std::vector<int64_t>& tokens, int64_t count) {
  std::vector<TokenId> out;
  for (const int64_t token : tokens) {
    if (token < 0 || token >= count)
      fail(paddle::ErrorCode::kData, "token ", token, " is out of range for ", count, " tokens");
    out.push_back(static_cast<TokenId>(token));
  }
  return out;
}

}  // namespace

std::string LanguageModel::decode(const std::vector<int64_t>& tokens) const {
  return translated([&] {
    const tokenizers::Tokenizer& tokenizer = impl_->tokenizer();
    return tokenizer.decode(engine_tokens(tokens, tokenizer.vocabulary_size()));
  });
}

GeneratedText LanguageModel::generate(const std::string& prompt, const GenerateOptions& options) {
  return translated([&] {
    return impl_->generate(impl_->tokenizer().encode(prompt, {.special = true}), options);
  });
}

GeneratedText LanguageModel::generate(const std::vector<int64_t>& prompt,
                                      const GenerateOptions& options) {
  return translated([&] {
    return impl_->generate(engine_tokens(prompt, impl_->tokenizer().vocabulary_size()), options);
  });
}

bool LanguageModel::has_chat_template() const { return !impl_->tokenizer().chat_template.empty(); }

std::string LanguageModel::chat_prompt(const std::vector<ChatMessage>& messages) const {
  return translated([&] { return impl_->chat_prompt(conversation_of(messages)); });
}

std::string LanguageModel::chat_prompt(const std::string& conversation) const {
  return translated([&] { return impl_->chat_prompt(conversation); });
}

GeneratedText LanguageModel::chat(const std::vector<ChatMessage>& messages,
                                  const GenerateOptions& options) {
  return translated([&] { return impl_->chat(conversation_of(messages), options); });
}

GeneratedText LanguageModel::chat(const std::string& conversation, const GenerateOptions& options) {
  return translated([&] { return impl_->chat(conversation, options); });
}

class TextEncoder::Impl {
 public:
  explicit Impl(const std::string& path) : embedder(path, {}) {}
  llm::Embedder embedder;
};

TextEncoder::TextEncoder(const std::string& path)
    : impl_(translated([&] {
        if (!llm::is_language_model(path))
          fail(paddle::ErrorCode::kUsage, path, ": neither a GGUF file nor a Hugging Face folder");
        return std::make_unique<Impl>(path);
      })) {}
TextEncoder::~TextEncoder() = default;
TextEncoder::TextEncoder(TextEncoder&&) noexcept = default;
TextEncoder& TextEncoder::operator=(TextEncoder&&) noexcept = default;

int64_t TextEncoder::width() const { return impl_->embedder.width(); }
int64_t TextEncoder::context() const { return impl_->embedder.context(); }

std::vector<float> TextEncoder::embed(const std::string& text) {
  return translated([&] { return impl_->embedder.embed(impl_->embedder.tokens(text)); });
}

}  // namespace paddle::v0
