#include "serve/api.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <ctime>
#include <nlohmann/json.hpp>
#include <random>

#include "base/text.h"
#include "llm/generate.h"
#include "serve/request_keys.h"
#include "text/chat_template.h"
#include "text/grammar/json_schema.h"
#include "text/grammar/regex.h"
#include "text/token_bytes.h"

namespace paddle::serve {

namespace {

using Ordered = nlohmann::ordered_json;
using tokenizers::TokenId;

constexpr int64_t kMaxChoices = 128, kMaxLogprobs = 20;

std::vector<std::string> read_stops(Keys& keys) {
  std::vector<std::string> out;
  const Json* const value = keys.find("stop");
  if (!value) return out;
  const auto add = [&](const Json& item) {
    if (item.kind != Json::Kind::kString || item.text.empty())
      reject("stop", "'stop' is ", value->dump(), ", expected a string or an array of strings");
    out.push_back(item.text);
  };
  if (value->kind == Json::Kind::kArray)
    for (const Json& item : value->items) add(item);
  else
    add(*value);
  return out;
}

std::map<TokenId, double> read_bias(Keys& keys, int64_t vocab_size) {
  std::map<TokenId, double> out;
  const Json* const value = keys.find("logit_bias");
  if (!value) return out;
  if (value->kind != Json::Kind::kObject)
    reject("logit_bias", "'logit_bias' is ", value->dump(), ", expected an object");
  for (const auto& [key, bias] : value->entries) {
    int64_t token = -1;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), token);
    if (error != std::errc() || end != key.data() + key.size() || token < 0 || token >= vocab_size)
      reject("logit_bias", "'logit_bias': '", key, "' is not a token; there are ", vocab_size);
    if ((bias.kind != Json::Kind::kNumber && bias.kind != Json::Kind::kInteger) ||
        !(bias.number >= -100 && bias.number <= 100))
      reject("logit_bias", "'logit_bias': ", bias.dump(), " is not a number from -100 to 100");
    out[static_cast<TokenId>(token)] = bias.number;
  }
  return out;
}

/// Names of people and requests, which change nothing, and features that are not there: accepted
/// only where they ask for nothing.
void check_other_keys(Keys& keys) {
  keys.text("user");
  for (const char* key : {"tools", "tool_choice", "functions", "function_call", "suffix"})
    if (keys.find(key)) reject(key, "'", key, "' is not supported");
}

/// The grammar of `response_format`; none for plain text.
std::shared_ptr<grammar::Constraint> read_format(Keys& keys, Engine& engine) {
  const Json* const format = keys.find("response_format");
  if (!format) return nullptr;
  if (format->kind != Json::Kind::kObject)
    reject("response_format", "'response_format' is ", format->dump(), ", expected an object");
  Keys inner(*format);
  const std::string* const type = inner.text("type");
  const auto constrained = [&](grammar::Grammar grammar) {
    inner.check_all_read();
    return std::make_shared<grammar::Constraint>(std::move(grammar), engine.token_texts());
  };
  try {
    if (type && *type == "text") {
      inner.check_all_read();
      return nullptr;
    }
    if (type && *type == "json_object") return constrained(grammar::json_object_grammar());
    if (type && *type == "json_schema") {
      const Json* const named = inner.find("json_schema");
      const Json* const schema = named ? named->find("schema") : nullptr;
      if (!schema)
        reject("response_format",
               "'response_format' needs {\"json_schema\": {\"name\": …, \"schema\": …}}");
      for (const auto& [key, value] : named->entries)
        if (key != "name" && key != "schema" && key != "strict" && key != "description")
          reject("response_format", "'response_format': unknown key '", key, "' of 'json_schema'");
      return constrained(grammar::compile_json_schema(*schema));
    }
    if (type && *type == "regex") {
      const std::string* const pattern = inner.text("pattern");
      if (!pattern) reject("response_format", "'response_format' of type regex needs a 'pattern'");
      return constrained(grammar::compile_regex(*pattern));
    }
  } catch (const Error& e) {
    reject("response_format", e.message());
  }
  reject("response_format",
         "'response_format' needs a 'type': text, json_object, json_schema or "
         "regex");
}

/// The content of a message: a string, or an array of parts of type `text`.
std::string content_of(const Json& content) {
  if (content.kind == Json::Kind::kString) return content.text;
  std::string out;
  for (const Json& part : content.items) {
    const Json* const type = part.find("type");
    const Json* const text = part.find("text");
    if (!type || type->text != "text" || !text || text->kind != Json::Kind::kString)
      reject("messages", "'messages': a part of a content is ", part.dump(),
             ", expected {\"type\": \"text\", \"text\": …}");
    out += text->text;
  }
  return out;
}

/// The conversation as the template takes it.
Json read_conversation(Keys& keys) {
  const Json* const messages = keys.find("messages");
  if (!messages) reject("messages", "there are no 'messages'");
  if (messages->kind != Json::Kind::kArray || messages->items.empty())
    reject("messages", "'messages' is ", messages->dump(), ", expected an array of messages");
  Json list = *messages;
  for (Json& message : list.items) {
    const Json* const role = message.find("role");
    if (!role || role->kind != Json::Kind::kString)
      reject("messages", "'messages': a message has no 'role': ", message.dump());
    bool has_content = false;
    for (auto& [key, value] : message.entries) {
      if (key == "content") {
        if (value.kind != Json::Kind::kString && value.kind != Json::Kind::kArray)
          reject("messages", "'messages': the content is ", value.dump(),
                 ", expected a string or an array");
        Json text;
        text.kind = Json::Kind::kString;
        text.text = content_of(value);
        value = std::move(text);
        has_content = true;
      } else if (key != "role" && key != "name" && key != "reasoning_content") {
        reject("messages", "'messages': unknown key '", key, "' of a message");
      }
    }
    if (!has_content) reject("messages", "'messages': a message has no 'content'");
  }
  Json out;
  out.kind = Json::Kind::kObject;
  Json yes;
  yes.kind = Json::Kind::kBoolean;
  yes.boolean = true;
  if (const Json* variables = keys.find("chat_template_kwargs")) {
    if (variables->kind != Json::Kind::kObject)
      reject("chat_template_kwargs", "'chat_template_kwargs' is ", variables->dump(),
             ", expected an object");
    out.entries = variables->entries;
  }
  out.entries.emplace_back("messages", std::move(list));
  out.entries.emplace_back("add_generation_prompt", std::move(yes));
  return out;
}

/// Whether it is a special token that the tokenizer puts in front of texts.
bool is_beginning(const tokenizers::Tokenizer& tokenizer, TokenId token) {
  const auto& tokens = tokenizer.beginning_tokens();
  return tokenizer.is_special(token) &&
         (token == tokenizer.beginning ||
          std::find(tokens.begin(), tokens.end(), token) != tokens.end());
}

std::vector<TokenId> ids_of(const Json& list, int64_t vocab_size) {
  std::vector<TokenId> out;
  for (const Json& item : list.items) {
    if (item.kind != Json::Kind::kInteger || item.integer < 0 || item.integer >= vocab_size)
      reject("prompt", "'prompt': ", item.dump(), " is not a token; there are ", vocab_size);
    out.push_back(static_cast<TokenId>(item.integer));
  }
  return out;
}

struct Prompt {
  std::vector<TokenId> tokens;
  std::string text;  ///< as `echo` repeats it
};

/// Strings, or arrays of tokens.
std::vector<Prompt> read_prompts(Keys& keys, const Engine& engine) {
  const Json* const prompt = keys.find("prompt");
  if (!prompt) reject("prompt", "there is no 'prompt'");
  std::vector<Prompt> out;
  const tokenizers::Tokenizer& tokenizer = engine.tokenizer();
  const auto add = [&](const Json& item) {
    Prompt& each = out.emplace_back();
    if (item.kind == Json::Kind::kString) {
      each = {tokenizer.encode(item.text, {.special = true}), item.text};
      return;
    }
    if (item.kind != Json::Kind::kArray)
      reject("prompt", "'prompt' is ", prompt->dump(), ", expected strings or arrays of tokens");
    each.tokens = ids_of(item, engine.runner().vocab_size());
    // The beginning token of the tokenizer is not a part of the text.
    std::vector<TokenId> shown;
    for (const TokenId token : each.tokens)
      if (tokenizer.token(token) && !(shown.empty() && is_beginning(tokenizer, token)))
        shown.push_back(token);
    each.text = tokenizer.decode(shown, true);
  };
  const bool ids = prompt->kind == Json::Kind::kArray && !prompt->items.empty() &&
                   prompt->items[0].kind == Json::Kind::kInteger;
  if (ids || prompt->kind != Json::Kind::kArray)
    add(*prompt);
  else
    for (const Json& item : prompt->items) add(item);
  if (out.empty()) reject("prompt", "'prompt' is an empty list");
  return out;
}

llm::GenerateOptions read_options(Keys& keys, bool chat, Engine& engine,
                                  CompletionRequest& request) {
  constexpr int64_t kAll = int64_t{1} << 40;
  llm::GenerateOptions out;
  const int64_t standard = chat ? engine.runner().context() : 16;
  out.length = keys.integer("max_tokens", standard, 0, kAll);
  if (chat) out.length = keys.integer("max_completion_tokens", out.length, 0, kAll);
  out.sampling.temperature = keys.number("temperature", 1, 0, 100);
  out.sampling.top_p = keys.number("top_p", 1, 1e-9, 1);
  out.sampling.top_k = keys.integer("top_k", 0, 0, kAll);
  out.sampling.min_p = keys.number("min_p", 0, 0, 1);
  out.sampling.repetition_penalty = keys.number("repetition_penalty", 1, 1e-6, 1e6);
  out.presence_penalty = keys.number("presence_penalty", 0, -2, 2);
  out.frequency_penalty = keys.number("frequency_penalty", 0, -2, 2);
  std::random_device device;
  const auto seed = static_cast<int64_t>(device() >> 1);
  out.seed = static_cast<uint64_t>(keys.integer("seed", seed, INT64_MIN, INT64_MAX));
  out.speculate = engine.speculates();
  out.stops = read_stops(keys);
  out.logit_bias = read_bias(keys, engine.runner().vocab_size());
  out.constraint = read_format(keys, engine);
  if (chat) {
    request.wants_logprobs = keys.boolean("logprobs", false);
    const int64_t top = keys.integer("top_logprobs", 0, 0, kMaxLogprobs);
    if (top > 0 && !request.wants_logprobs)
      reject("top_logprobs", "'top_logprobs' needs 'logprobs': true");
    if (request.wants_logprobs) out.logprobs = top;
  } else {
    out.logprobs = keys.integer("logprobs", -1, 0, kMaxLogprobs);
    request.wants_logprobs = out.logprobs >= 0;
  }
  return out;
}

const ServedModel& find_model(Keys& keys, const std::vector<ServedModel>& models) {
  if (models.empty())
    throw ApiError{404, "no language model is served; other models answer /v1/predict", "model"};
  const std::string* const name = keys.text("model");
  if (!name) {
    if (models.size() == 1) return models[0];
    reject("model", "there is no 'model', and more than one is served");
  }
  std::vector<std::string> names;
  for (const ServedModel& model : models) {
    if (model.engine->name() == *name) return model;
    names.push_back(model.engine->name());
  }
  throw ApiError{404, str("there is no model '", *name, "'; served are ", join(names, ", ")),
                 "model"};
}

// --- responses ---

const char* reason_of(llm::Generation::End end) {
  return end == llm::Generation::End::kLength ? "length" : "stop";
}

std::string dump(const Ordered& value) {
  return value.dump(-1, ' ', false, Ordered::error_handler_t::replace);
}

Ordered bytes_of(const std::string& text) {
  Ordered out = Ordered::array();
  for (const char c : text) out.push_back(static_cast<unsigned char>(c));
  return out;
}

/// The bytes of tokens one after the other, the first of which may begin the text.
class TokenSpeller {
 public:
  TokenSpeller(const Engine& engine, bool begins) : engine_(engine), begins_(begins) {}
  bool begins() const { return begins_; }
  /// The bytes that a token would add next.
  std::string bytes(TokenId token) const { return engine_.token_bytes().of(token, begins_); }
  /// Those of the next token.
  std::string next(TokenId token) {
    const std::string out = bytes(token);
    begins_ = begins_ && engine_.tokenizer().is_special(token);
    return out;
  }

 private:
  const Engine& engine_;
  bool begins_;
};

/// Bytes as JSON has them; those that are not valid UTF-8 are escaped, with `mark` in front.
std::string shown(const std::string& bytes, const char* mark) {
  return unicode::to_valid_utf8(bytes) == bytes ? bytes : mark + tokenizers::escaped_bytes(bytes);
}

/// The part of a chat message that an event adds. `calls`: those that have begun.
Ordered delta_of(const Event& event, int64_t& calls) {
  switch (event.kind) {
    case Event::Kind::kThought:
      return {{"reasoning_content", event.text}};
    case Event::Kind::kCallName:
      return {{"tool_calls", Ordered::array({{{"index", calls++},
                                              {"type", "function"},
                                              {"function", {{"name", event.text}}}}})}};
    case Event::Kind::kCallArguments:
      return {{"tool_calls", Ordered::array({{{"index", calls - 1},
                                              {"function", {{"arguments", event.text}}}}})}};
    case Event::Kind::kEnd:
      return Ordered::object();
    case Event::Kind::kText:
    case Event::Kind::kPrompt:
      break;
  }
  return {{"content", event.text}};
}

std::string text_of(const std::vector<Event>& events, Event::Kind kind = Event::Kind::kText) {
  std::string out;
  for (const Event& event : events)
    if (event.kind == kind) out += event.text;
  return out;
}

/// The message that the deltas of its events make.
Ordered message_of(const std::vector<Event>& events) {
  Ordered out = {{"role", "assistant"}, {"content", text_of(events)}};
  if (const std::string thoughts = text_of(events, Event::Kind::kThought); !thoughts.empty())
    out["reasoning_content"] = thoughts;
  Ordered calls = Ordered::array();
  for (const Event& event : events) {
    if (event.kind == Event::Kind::kCallName)
      calls.push_back(
          {{"type", "function"}, {"function", {{"name", event.text}, {"arguments", ""}}}});
    if (event.kind == Event::Kind::kCallArguments) {
      Ordered& arguments = calls.back()["function"]["arguments"];
      arguments = arguments.get<std::string>() + event.text;
    }
  }
  if (!calls.empty()) out["tool_calls"] = calls;
  return out;
}

Ordered chat_logprobs(const std::vector<Event>& events, TokenSpeller& speller) {
  Ordered content = Ordered::array();
  const auto entry = [](const llm::TokenScore& score, const std::string& bytes) {
    return Ordered{
        {"token", shown(bytes, "")}, {"logprob", score.logprob}, {"bytes", bytes_of(bytes)}};
  };
  for (const Event& event : events) {
    if (!event.token) continue;
    Ordered tops = Ordered::array();
    for (const llm::TokenScore& score : event.token->top)
      tops.push_back(entry(score, speller.bytes(score.token)));
    Ordered token = entry(event.token->score, speller.next(event.token->score.token));
    token["top_logprobs"] = tops;
    content.push_back(token);
  }
  return {{"content", content}};
}

/// `first` is the prompt's first token where the prompt is echoed; nothing predicts it.
Ordered text_logprobs(const Engine& engine, const std::vector<Event>& events, TokenSpeller& speller,
                      std::optional<TokenId> first = std::nullopt) {
  constexpr const char* kMark = "bytes:";
  Ordered tokens = Ordered::array(), values = Ordered::array(), tops = Ordered::array();
  if (first) {
    const std::string bytes = speller.next(*first);
    // The text does not begin with what the tokenizer puts in front of it.
    tokens.push_back(is_beginning(engine.tokenizer(), *first) ? "" : shown(bytes, kMark));
    values.push_back(nullptr);
    tops.push_back(nullptr);
  }
  for (const Event& event : events) {
    if (!event.token) continue;
    Ordered top = Ordered::object();
    for (const llm::TokenScore& score : event.token->top)
      // Of tokens that are spelled alike, the most likely one comes first.
      if (const std::string text = shown(speller.bytes(score.token), kMark); !top.contains(text))
        top[text] = score.logprob;
    const TokenId token = event.token->score.token;
    const bool hidden = event.kind == Event::Kind::kPrompt && speller.begins() &&
                        is_beginning(engine.tokenizer(), token);
    const std::string bytes = speller.next(token);
    tokens.push_back(hidden ? "" : shown(bytes, kMark));
    values.push_back(event.token->score.logprob);
    tops.push_back(top);
  }
  return {{"tokens", tokens}, {"token_logprobs", values}, {"top_logprobs", tops}};
}

/// Whether a prompt has no text, so that the answer begins it.
bool begins_text(const Engine& engine, const std::vector<TokenId>& prompt) {
  return std::all_of(prompt.begin(), prompt.end(),
                     [&](TokenId token) { return engine.tokenizer().is_special(token); });
}

Ordered usage_of(const CompletionRequest& request, const std::vector<Job::State>& states) {
  int64_t generated = 0, cached = 0, drafts = 0, accepted = 0;
  for (const Job::State& state : states) {
    generated += state.generated;
    cached += state.cached;
    drafts += state.drafts;
    accepted += state.accepted;
  }
  return {{"prompt_tokens", request.prompt_tokens},
          {"completion_tokens", generated},
          {"total_tokens", request.prompt_tokens + generated},
          {"prompt_tokens_details", {{"cached_tokens", cached}}},
          {"completion_tokens_details",
           {{"accepted_prediction_tokens", accepted},
            {"rejected_prediction_tokens", drafts - accepted}}}};
}

}  // namespace

CompletionRequest read_request(bool chat, std::string_view text,
                               const std::vector<ServedModel>& models) {
  try {
    const Json body = parse_json(text, "the request");
    if (body.kind != Json::Kind::kObject) reject("", "the request is not a JSON object");
    Keys keys(body);
    CompletionRequest out;
    out.chat = chat;
    out.model = &find_model(keys, models);
    Engine& engine = *out.model->engine;
    const llm::GenerateOptions options = read_options(keys, chat, engine, out);
    out.stream = keys.boolean("stream", false);
    if (const Json* stream_options = keys.find("stream_options")) {
      if (!out.stream) reject("stream_options", "'stream_options' needs 'stream': true");
      Keys inner(*stream_options);
      out.include_usage = inner.boolean("include_usage", false);
      inner.check_all_read();
    }
    const int64_t choices = keys.integer("n", 1, 1, kMaxChoices);
    check_other_keys(keys);
    std::vector<Prompt> prompts;
    if (chat) {
      const Json conversation = read_conversation(keys);
      keys.check_all_read();
      if (!out.model->chat_template)
        reject("messages", "the model has no chat template; use /v1/completions");
      prompts.emplace_back().tokens = engine.tokenizer().encode(
          tokenizers::render_chat(*out.model->chat_template, conversation, &engine.tokenizer()),
          {.parse_special = true});
    } else {
      prompts = read_prompts(keys, engine);
      out.echo = keys.boolean("echo", false);
      if (out.echo && out.stream) reject("echo", "'echo' is not for streams");
      keys.check_all_read();
    }
    if (static_cast<int64_t>(prompts.size()) * choices > kMaxChoices)
      reject("prompt", "more than ", kMaxChoices, " completions are requested at a time");
    if (const auto completions = static_cast<int64_t>(prompts.size()) * choices;
        completions > engine.max_sequences())
      reject(prompts.size() > 1 ? "prompt" : "n", completions,
             " completions are requested at a time; ", "this server takes at most ",
             engine.max_sequences(), " (--streams and --queue)");
    for (auto& [prompt, prompt_text] : prompts) {
      llm::check_prompt(engine.runner().context(), engine.tokenizer(), prompt, options);
      out.prompt_tokens += static_cast<int64_t>(prompt.size());
      for (int64_t i = 0; i < choices; ++i) {
        llm::GenerateOptions each = options;
        each.seed += static_cast<uint64_t>(i);
        out.jobs.push_back(std::make_shared<Job>(prompt, each, out.echo && out.wants_logprobs));
        if (out.echo) out.prompts.push_back(prompt_text);
      }
    }
    return out;
  } catch (const Error& e) {
    throw ApiError{400, e.what()};
  }
}

ResponseWriter::ResponseWriter(const CompletionRequest& request)
    : request_(request), created_(static_cast<int64_t>(std::time(nullptr))) {
  static std::atomic<uint64_t> count{0};
  static const uint64_t start = std::random_device()();
  const std::string text = fmt::format("{:08x}{:08x}", static_cast<unsigned long long>(start),
                                       static_cast<unsigned long long>(++count));
  id_ = str(request.chat ? "chatcmpl-" : "cmpl-", text);
  calls_.resize(request.jobs.size());
  for (const auto& job : request.jobs)
    begins_.push_back(begins_text(*request.model->engine, job->prompt));
}

std::string ResponseWriter::opening(size_t choice) const {
  const Ordered entry = {{"index", choice},
                         {"delta", {{"role", "assistant"}, {"content", ""}}},
                         {"logprobs", nullptr},
                         {"finish_reason", nullptr}};
  return dump({{"id", id_},
               {"object", "chat.completion.chunk"},
               {"created", created_},
               {"model", request_.model->engine->name()},
               {"choices", Ordered::array({entry})}});
}

std::string ResponseWriter::chunk(size_t choice, const Event& event) {
  const Engine& engine = *request_.model->engine;
  Ordered entry = {{"index", choice}};
  if (request_.chat)
    entry["delta"] = delta_of(event, calls_[choice]);
  else
    entry["text"] = event.text;
  entry["logprobs"] = nullptr;
  if (request_.wants_logprobs && event.token) {
    TokenSpeller speller(engine, begins_[choice]);
    entry["logprobs"] =
        request_.chat ? chat_logprobs({event}, speller) : text_logprobs(engine, {event}, speller);
    begins_[choice] = speller.begins();
  }
  entry["finish_reason"] = nullptr;
  if (event.kind == Event::Kind::kEnd) entry["finish_reason"] = reason_of(event.end);
  return dump({{"id", id_},
               {"object", request_.chat ? "chat.completion.chunk" : "text_completion"},
               {"created", created_},
               {"model", engine.name()},
               {"choices", Ordered::array({entry})}});
}

std::string ResponseWriter::usage_chunk(const std::vector<Job::State>& states) const {
  return dump({{"id", id_},
               {"object", request_.chat ? "chat.completion.chunk" : "text_completion"},
               {"created", created_},
               {"model", request_.model->engine->name()},
               {"choices", Ordered::array()},
               {"usage", usage_of(request_, states)}});
}

std::string ResponseWriter::whole(const std::vector<std::vector<Event>>& events,
                                  const std::vector<Job::State>& states) {
  const Engine& engine = *request_.model->engine;
  Ordered choices = Ordered::array();
  for (size_t i = 0; i < events.size(); ++i) {
    Ordered entry = {{"index", i}};
    if (request_.chat)
      entry["message"] = message_of(events[i]);
    else
      entry["text"] = (request_.echo ? request_.prompts[i] : "") + text_of(events[i]);
    entry["logprobs"] = nullptr;
    if (request_.wants_logprobs) {
      TokenSpeller speller(engine, request_.echo || begins_[i]);
      std::optional<int> first;
      if (request_.echo) first = request_.jobs[i]->prompt[0];
      entry["logprobs"] = request_.chat ? chat_logprobs(events[i], speller)
                                        : text_logprobs(engine, events[i], speller, first);
    }
    entry["finish_reason"] = reason_of(states[i].end);
    choices.push_back(entry);
  }
  return dump({{"id", id_},
               {"object", request_.chat ? "chat.completion" : "text_completion"},
               {"created", created_},
               {"model", engine.name()},
               {"choices", choices},
               {"usage", usage_of(request_, states)}});
}

}  // namespace paddle::serve
