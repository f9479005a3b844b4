#include "serve/embeddings.h"

#include <ctime>
#include <nlohmann/json.hpp>

#include "base/base64.h"
#include "base/error.h"
#include "base/text.h"
#include "serve/request_keys.h"

namespace paddle::serve {

namespace {

using Ordered = nlohmann::ordered_json;
using tokenizers::TokenId;

constexpr size_t kMaxTexts = 2048;

const HostedEncoder& find_encoder(Keys& keys, const std::vector<HostedEncoder>& encoders) {
  if (encoders.empty()) throw ApiError{404, "no model for embeddings is served", "model"};
  const std::string* const name = keys.text("model");
  if (!name) {
    if (encoders.size() == 1) return encoders[0];
    reject("model", "there is no 'model', and more than one is served");
  }
  std::vector<std::string> names;
  for (const HostedEncoder& encoder : encoders) {
    if (encoder.name == *name) return encoder;
    names.push_back(encoder.name);
  }
  throw ApiError{
      404, str("there is no model '", *name, "' for embeddings; served are ", join(names, ", ")),
      "model"};
}

std::vector<std::vector<TokenId>> read_input(Keys& keys, const llm::Embedder& embedder) {
  const Json* const input = keys.find("input");
  if (!input) reject("input", "there is no 'input'");
  std::vector<std::vector<TokenId>> out;
  const auto add_ids = [&](const Json& list) {
    std::vector<TokenId> ids;
    for (const Json& each : list.items) {
      if (each.kind != Json::Kind::kInteger || each.integer < 0 ||
          each.integer >= embedder.tokenizer().vocabulary_size())
        reject("input", "'input': ", each.dump(), " is not a token; there are ",
               embedder.tokenizer().vocabulary_size());
      ids.push_back(static_cast<TokenId>(each.integer));
    }
    if (ids.empty()) reject("input", "'input': a list of tokens is empty");
    if (static_cast<int64_t>(ids.size()) > embedder.context())
      reject("input", "'input': a text has ", ids.size(), " tokens; the model's context is ",
             embedder.context());
    out.push_back(std::move(ids));
  };
  const auto add_text = [&](const Json& text) {
    if (text.kind != Json::Kind::kString)
      reject("input", "'input': ", text.dump(), " is not a text");
    out.push_back(embedder.tokens(text.text));
  };
  if (input->kind != Json::Kind::kArray) {
    add_text(*input);
    return out;
  }
  if (input->items.empty() || input->items.size() > kMaxTexts)
    reject("input", "'input' has ", input->items.size(), " inputs, expected 1 to ", kMaxTexts);
  if (input->items[0].kind == Json::Kind::kInteger) {
    add_ids(*input);
    return out;
  }
  for (const Json& each : input->items)
    each.kind == Json::Kind::kArray ? add_ids(each) : add_text(each);
  return out;
}

}  // namespace

HostedEncoder host_encoder(const ModelEntry& entry) {
  if (!llm::is_encoder(entry.path, entry.family))
    fail(ErrorCode::kModel, entry.path,
         ": the model's family has neither a function 'step' nor 'embed'");
  check_no_language_settings(entry, "is an encoder");
  check_no_predict_settings(entry);
  return {entry.name,
          std::make_unique<llm::Embedder>(entry.path, llm::ModelOptions{.family = entry.family}),
          static_cast<int64_t>(std::time(nullptr))};
}

std::string answer_embeddings(std::string_view text, const std::vector<HostedEncoder>& encoders) {
  try {
    const Json body = parse_json(text, "the request");
    if (body.kind != Json::Kind::kObject) reject("", "the request is not a JSON object");
    Keys keys(body);
    const HostedEncoder& encoder = find_encoder(keys, encoders);
    llm::Embedder& embedder = *encoder.embedder;
    const auto inputs = read_input(keys, embedder);
    const std::string* const format = keys.text("encoding_format");
    if (format && *format != "float" && *format != "base64")
      reject("encoding_format", "'encoding_format' is '", *format, "', expected float or base64");
    keys.text("user");
    // OpenAI's `dimensions` cuts vectors of models that were trained for it.
    if (const int64_t width = keys.integer("dimensions", embedder.width(), 1, INT64_MAX);
        width != embedder.width())
      reject("dimensions", "'dimensions' is ", width, "; the model's vectors have ",
             embedder.width(), " numbers");
    keys.check_all_read();
    Ordered data = Ordered::array();
    int64_t tokens = 0;
    for (size_t i = 0; i < inputs.size(); ++i) {
      tokens += static_cast<int64_t>(inputs[i].size());
      const std::vector<float> vector = embedder.embed(inputs[i]);
      Ordered entry = {{"object", "embedding"}, {"index", i}};
      if (format && *format == "base64")
        entry["embedding"] = to_base64(
            {reinterpret_cast<const char*>(vector.data()), vector.size() * sizeof(float)});
      else
        entry["embedding"] = vector;
      data.push_back(std::move(entry));
    }
    return Ordered{{"object", "list"},
                   {"data", data},
                   {"model", encoder.name},
                   {"usage", {{"prompt_tokens", tokens}, {"total_tokens", tokens}}}}
        .dump();
  } catch (const Error& e) {
    throw ApiError{400, e.what()};
  }
}

}  // namespace paddle::serve
