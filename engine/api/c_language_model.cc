// The C interface for language models, on top of the C++ one.

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

#include "api/c_handles.h"
#include "paddle/language_model.h"

using paddle::str;
using paddle::c_api::BadCall;
using paddle::c_api::guarded;
using paddle::c_api::Handles;
using paddle::c_api::known_fields;
using paddle::c_api::required;
using paddle::c_api::text_or;
using paddle::v0::GeneratedText;
using paddle::v0::GenerateOptions;
using paddle::v0::LanguageModel;
using paddle::v0::LanguageModelOptions;
using paddle::v0::TextEncoder;

struct paddle_language_model {
  LanguageModel model;
};

struct paddle_encoder {
  TextEncoder encoder;
};

namespace {

std::shared_ptr<paddle_language_model> opened(paddle_language_model* model) {
  return Handles<paddle_language_model>::all().get(model, "language model");
}
std::shared_ptr<paddle_encoder> opened(paddle_encoder* encoder) {
  return Handles<paddle_encoder>::all().get(encoder, "encoder");
}

GenerateOptions options_of(const paddle_generate_options* options) {
  const paddle_generate_options given = known_fields(options);
  GenerateOptions out;
  if (given.length != 0) out.length = given.length;
  // Without options the temperature is that of C++.
  if (options) out.temperature = given.temperature;
  out.top_k = given.top_k;
  if (given.top_p != 0) out.top_p = given.top_p;
  out.min_p = given.min_p;
  if (given.repetition_penalty != 0) out.repetition_penalty = given.repetition_penalty;
  out.presence_penalty = given.presence_penalty;
  out.frequency_penalty = given.frequency_penalty;
  out.seed = given.seed;
  if (given.stop_count > 0) required(given.stops, "stops");
  for (size_t i = 0; i < given.stop_count; ++i)
    out.stops.emplace_back(&required(given.stops[i], "stops[i]"));
  out.json_schema = text_or(given.json_schema, "");
  out.regex = text_or(given.regex, "");
  if (given.on_text)
    out.on_text = [on_text = given.on_text, user = given.user](const std::string& piece) {
      return piece.empty() || on_text(piece.data(), piece.size(), user) != 0;
    };
  return out;
}

void give(const GeneratedText& from, paddle_text& to) {
  auto* const data = static_cast<char*>(std::malloc(from.text.size() + 1));
  if (!data) throw std::bad_alloc();
  std::memcpy(data, from.text.c_str(), from.text.size() + 1);
  to = {data, from.text.size(), from.prompt_tokens, from.generated_tokens};
}

}  // namespace

extern "C" {

paddle_status paddle_language_model_open(const char* path,
                                         const paddle_language_model_options* options,
                                         paddle_language_model** model) {
  return guarded(__func__, [&] {
    required(model, "model") = nullptr;
    required(path, "path");
    const paddle_language_model_options given = known_fields(options);
    LanguageModelOptions known;
    known.context = given.context;
    known.kv_cache = text_or(given.kv_cache, known.kv_cache);
    known.activations = text_or(given.activations, known.activations);
    known.weights = text_or(given.weights, known.weights);
    known.adapter = text_or(given.adapter, "");
    known.family = text_or(given.family, "");
    *model = Handles<paddle_language_model>::all().add(
        std::make_shared<paddle_language_model>(LanguageModel(path, known)));
  });
}

paddle_status paddle_language_model_close(paddle_language_model* model) {
  return guarded(__func__, [&] {
    if (model) Handles<paddle_language_model>::all().remove(model, "language model");
  });
}

paddle_status paddle_language_model_context(paddle_language_model* model, int64_t* tokens) {
  return guarded(__func__, [&] { required(tokens, "tokens") = opened(model)->model.context(); });
}

paddle_status paddle_language_model_generate(paddle_language_model* model, const char* prompt,
                                             const paddle_generate_options* options,
                                             paddle_text* text) {
  return guarded(__func__, [&] {
    required(text, "text") = {};
    const auto held = opened(model);
    required(prompt, "prompt");
    give(held->model.generate(std::string(prompt), options_of(options)), *text);
  });
}

paddle_status paddle_language_model_chat(paddle_language_model* model, const char* conversation,
                                         const paddle_generate_options* options,
                                         paddle_text* text) {
  return guarded(__func__, [&] {
    required(text, "text") = {};
    const auto held = opened(model);
    required(conversation, "conversation");
    give(held->model.chat(std::string(conversation), options_of(options)), *text);
  });
}

paddle_status paddle_language_model_encode(paddle_language_model* model, const char* text,
                                           int32_t special, int64_t* tokens, size_t capacity,
                                           size_t* count) {
  return guarded(__func__, [&] {
    required(count, "count") = 0;
    const auto held = opened(model);
    required(text, "text");
    if (capacity > 0) required(tokens, "tokens");
    const std::vector<int64_t> ids = held->model.encode(text, special != 0);
    std::copy_n(ids.begin(), std::min(capacity, ids.size()), tokens);
    *count = ids.size();
  });
}

paddle_status paddle_language_model_decode(paddle_language_model* model, const int64_t* tokens,
                                           size_t count, paddle_text* text) {
  return guarded(__func__, [&] {
    required(text, "text") = {};
    const auto held = opened(model);
    if (count > 0) required(tokens, "tokens");
    give({held->model.decode(std::vector<int64_t>(tokens, tokens + count)), 0, 0}, *text);
  });
}

paddle_status paddle_text_free(paddle_text* text) {
  return guarded(__func__, [&] {
    if (!text) return;
    std::free(text->data);
    *text = {};
  });
}

paddle_status paddle_encoder_open(const char* path, paddle_encoder** encoder) {
  return guarded(__func__, [&] {
    required(encoder, "encoder") = nullptr;
    required(path, "path");
    *encoder =
        Handles<paddle_encoder>::all().add(std::make_shared<paddle_encoder>(TextEncoder(path)));
  });
}

paddle_status paddle_encoder_close(paddle_encoder* encoder) {
  return guarded(__func__, [&] {
    if (encoder) Handles<paddle_encoder>::all().remove(encoder, "encoder");
  });
}

paddle_status paddle_encoder_width(paddle_encoder* encoder, size_t* width) {
  return guarded(__func__, [&] {
    required(width, "width") = static_cast<size_t>(opened(encoder)->encoder.width());
  });
}

paddle_status paddle_encoder_embed(paddle_encoder* encoder, const char* text, float* vector,
                                   size_t width) {
  return guarded(__func__, [&] {
    const auto held = opened(encoder);
    required(text, "text");
    required(vector, "vector");
    if (width != static_cast<size_t>(held->encoder.width()))
      throw BadCall{str("width is ", width, ", expected ", held->encoder.width())};
    const std::vector<float> out = held->encoder.embed(text);
    std::copy(out.begin(), out.end(), vector);
  });
}

}  // extern "C"
